"""Tables to files of answers: nothing lost, nothing twice, whatever happens on the way."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from threading import Thread

import pytest

from litotes.core.errors import Stopped, UserError
from litotes.core.values import Prediction
from litotes.exporting.export import export_models
from litotes.prediction import table_jobs
from litotes.prediction.predictor import Predictor, TokenizedText
from litotes.prediction.table_jobs import predict_to_file, write_record
from litotes.prediction.tables import TableRequest, Tally

TEXTS = [
    f"the tea is {'great' if n % 3 else 'bad'}, {n} queue" + " and it is not" * (n % 7)
    for n in range(150)
]


@pytest.fixture
def predictor(trained_folder: Path) -> Predictor:
    return Predictor.load(trained_folder, device="cpu")


@pytest.fixture
def table(tmp_path: Path) -> TableRequest:
    with (tmp_path / "in.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "text"])
        writer.writerows(enumerate([*TEXTS[:-1], 'two\nlines, with a "quote"']))
    return TableRequest(tmp_path / "in.csv")


def texts_of(table: TableRequest) -> list[str]:
    return [row.text("text") for row in table.rows()]


def rows_of(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))


def assert_same(file: Path, expected: Path) -> None:
    """Probabilities by torch differ in their last digits with the texts that were computed
    together.
    """
    ours, theirs = rows_of(file), rows_of(expected)
    assert [row["text"] for row in ours] == [row["text"] for row in theirs]
    for row, other in zip(ours, theirs, strict=True):
        assert row["sarcasm"] == other["sarcasm"]
        assert float(row["sarcasm_probability"]) == pytest.approx(
            float(other["sarcasm_probability"]), abs=1e-5
        )


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_jobs, "_ROWS_BETWEEN_STATES", 10)


def test_every_row_is_answered_in_order_as_alone(
    predictor: Predictor, table: TableRequest, tmp_path: Path
) -> None:
    seen: list[tuple[int, int]] = []
    result = predict_to_file(
        predictor,
        table,
        tmp_path / "o" / "out.csv",
        watch=lambda _, done, total, __: seen.append((done, total)),
    )
    rows = rows_of(tmp_path / "o" / "out.csv")
    assert result.tally == Tally(len(rows), len(TEXTS))
    assert [row["text"] for row in rows] == texts_of(table)
    for row in rows[::37]:
        (alone,) = predictor.predict([row["text"]])
        assert row["sentiment"] == alone.answers["sentiment"].label
        assert float(row["sentiment_probability"]) == pytest.approx(
            alone.answers["sentiment"].probability, abs=1e-5
        )
    assert not (tmp_path / "o" / "out.csv.part").exists()
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (150, 150)


def test_a_spreadsheet_computes_no_cell(predictor: Predictor, tmp_path: Path) -> None:
    table = TableRequest(tmp_path / "in.csv")
    texts = ["=1+1", "-5", "@tea", "tea", "+queue"]
    table.source.write_text("text\n" + "\n".join(texts) + "\n")
    predict_to_file(predictor, table, tmp_path / "out.csv")
    rows = rows_of(tmp_path / "out.csv")
    assert [row["text"] for row in rows] == ["'=1+1", "'-5", "'@tea", "tea", "'+queue"]
    predict_to_file(predictor, replace(table, keep_formulas=True), tmp_path / "kept.csv")
    assert [row["text"] for row in rows_of(tmp_path / "kept.csv")] == texts
    predict_to_file(predictor, replace(table, format="jsonl"), tmp_path / "out.jsonl")
    lines = (tmp_path / "out.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["text"] for line in lines] == texts
    again = TableRequest(tmp_path / "out.csv")
    assert predict_to_file(predictor, again, tmp_path / "again.csv").tally.n_written == len(texts)
    assert [row["text"] for row in rows_of(tmp_path / "again.csv")] == texts_of(again)


@pytest.mark.parametrize("name", ["in.jsonl", "in.parquet"])
def test_other_kinds_of_table(predictor: Predictor, tmp_path: Path, name: str) -> None:
    if name.endswith("parquet"):
        pa = pytest.importorskip("pyarrow")
        pa.parquet = pytest.importorskip("pyarrow.parquet")
        pa.parquet.write_table(pa.table({"text": TEXTS[:20]}), tmp_path / name)
    else:
        (tmp_path / name).write_text(
            "".join(json.dumps({"text": text}) + "\n" for text in TEXTS[:20])
        )
    last: list[tuple[int, int]] = []
    predict_to_file(
        predictor,
        TableRequest(tmp_path / name, format="jsonl"),
        tmp_path / "out.jsonl",
        watch=lambda _, done, total, __: last.append((done, total)),
    )
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["text"] for line in lines] == TEXTS[:20]
    assert set(lines[0]) == {
        "text",
        "sentiment",
        "sarcasm",
        "truncated",
        "unreadable",
        "problem",
    }
    assert last[-1] == (20, 20)


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("stop_after", [0, 1, 9, 10, 57, 149])
def test_a_stopped_run_goes_on(
    predictor: Predictor, table: TableRequest, tmp_path: Path, stop_after: int
) -> None:
    expected = tmp_path / "whole.csv"
    predict_to_file(predictor, table, expected)
    out = tmp_path / "out.csv"

    def interrupt(_: str, done: int, __: int, ___: str) -> None:
        if done > stop_after:
            raise KeyboardInterrupt

    with pytest.raises(Stopped, match="again to go on"):
        predict_to_file(predictor, table, out, watch=interrupt)
    assert not out.exists()
    with (tmp_path / "out.csv.part" / "rows").open("ab") as stream:
        stream.write(b"half a li")  # what a power cut leaves
    asked: list[str] = []
    answer = predictor.answer

    def counting(texts: Sequence[TokenizedText]) -> list[Prediction]:
        asked.extend(text.text for text in texts)
        return answer(texts)

    predictor.answer = counting  # type: ignore[method-assign]
    predict_to_file(predictor, table, out)
    assert_same(out, expected)
    assert len(asked) == len(TEXTS) - (stop_after + 1) // 10 * 10


@pytest.mark.usefixtures("small_steps")
def test_unreadable_texts_are_counted_across_a_stop(predictor: Predictor, tmp_path: Path) -> None:
    texts = ["😀" if n in (3, 25, 26) else f"tea {n}" for n in range(40)]
    (tmp_path / "in.csv").write_text("text\n" + "\n".join(texts))
    table, out = TableRequest(tmp_path / "in.csv"), tmp_path / "out.csv"

    def interrupt(_: str, done: int, __: int, ___: str) -> None:
        if done > 20:
            raise KeyboardInterrupt

    with pytest.raises(Stopped):
        predict_to_file(predictor, table, out, watch=interrupt)
    assert predict_to_file(predictor, table, out).tally.n_unreadable == 3
    assert [row["text"] for row in rows_of(out) if row["unreadable"] == "True"] == ["😀"] * 3


@pytest.mark.usefixtures("small_steps")
def test_answers_of_other_runs_are_not_joined(
    predictor: Predictor, table: TableRequest, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"

    def interrupt(_: str, done: int, __: int, ___: str) -> None:
        if done > 40:
            raise KeyboardInterrupt

    with pytest.raises(Stopped):
        predict_to_file(predictor, table, out, watch=interrupt)
    with pytest.raises(UserError, match="another format"):
        predict_to_file(predictor, replace(table, format="jsonl"), out)
    state = tmp_path / "out.csv.part" / "state.json"
    written = state.read_text()
    changed = json.loads(written.replace('"unreadable"', '"other"'))
    del changed["sha256"]
    write_record(state, **changed)
    with pytest.raises(UserError, match="another set of answer columns"):
        predict_to_file(predictor, table, out)
    state.write_text(written)
    with pytest.raises(UserError, match="treatment of formulas"):
        predict_to_file(predictor, replace(table, keep_formulas=True), out)
    stat = table.source.stat()
    os.utime(table.source, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    with pytest.raises(UserError, match="another file"):
        predict_to_file(predictor, table, out)
    os.utime(table.source, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    head = predictor.runtimes[0].model().classifier.heads["sarcasm"].output
    before = head.bias.data.clone()  # type: ignore[union-attr,operator]
    head.bias.data += 1  # type: ignore[union-attr,operator]
    with pytest.raises(UserError, match="another model"):
        predict_to_file(predictor, table, out)
    head.bias.data.copy_(before)  # type: ignore[union-attr,operator]
    (tmp_path / "out.csv.part" / "rows").write_bytes(b"text")
    with pytest.raises(UserError, match="shorter"):
        predict_to_file(predictor, table, out)
    state = tmp_path / "out.csv.part" / "state.json"
    content = json.loads(state.read_text())
    del content["sha256"]
    for count in (-1, 2**70, "10", None, True, [], 1e300):
        tally = content["tally"] | {"n_read": count}
        write_record(state, **(content | {"tally": tally}))
        with pytest.raises(UserError, match="is not a count"):
            predict_to_file(predictor, table, out)
    state.write_text("{")
    with pytest.raises(UserError, match="damaged"):
        predict_to_file(predictor, table, out)


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("name", ["tally", "n_bytes", "rows"])
def test_progress_is_believed_only_as_it_was_written(
    predictor: Predictor, table: TableRequest, tmp_path: Path, name: str
) -> None:
    """A row more or less in the state would leave one out, or repeat one."""
    out, part = tmp_path / "out.csv", tmp_path / "out.csv.part"

    def interrupt(_: str, done: int, __: int, ___: str) -> None:
        if done > 40:
            raise KeyboardInterrupt

    with pytest.raises(Stopped):
        predict_to_file(predictor, table, out, watch=interrupt)
    if name == "rows":
        content = (part / "rows").read_bytes()
        (part / "rows").write_bytes(content.replace(b"great", b"grand", 1))
        sentence = "rows is not as it was written"
    else:
        state = json.loads((part / "state.json").read_text())
        place, field = (state["tally"], "n_read") if name == "tally" else (state, name)
        place[field] -= 1
        (part / "state.json").write_text(json.dumps(state))
        sentence = r"state\.json is damaged \(not as it was written\)"
    with pytest.raises(UserError, match=rf"{sentence}.* to begin anew"):
        predict_to_file(predictor, table, out)
    assert not out.exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such pipes")
def test_a_pipe_gets_every_row_and_stays_a_pipe(
    predictor: Predictor, table: TableRequest, tmp_path: Path
) -> None:
    predict_to_file(predictor, table, tmp_path / "file.csv")
    pipe, read = tmp_path / "pipe.csv", []
    os.mkfifo(pipe)
    reader = Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    assert predict_to_file(predictor, table, pipe).tally.n_written == len(TEXTS)
    reader.join(20)
    (tmp_path / "read.csv").write_bytes(read[0])
    assert_same(tmp_path / "read.csv", tmp_path / "file.csv")
    assert pipe.is_fifo()
    assert not (tmp_path / "pipe.csv.part").exists()


def test_a_link_stays_a_link_and_its_rows_are_kept_beside_its_target(
    predictor: Predictor, table: TableRequest, tmp_path: Path
) -> None:
    (tmp_path / "far").mkdir()
    link = tmp_path / "out.csv"
    link.symlink_to(tmp_path / "far" / "file.csv")

    def look(*_: object) -> None:
        part = tmp_path / "far" / "file.csv.part"
        assert os.name == "nt" or part.stat().st_mode & 0o777 == 0o700

    predict_to_file(predictor, table, link, watch=look)
    assert link.is_symlink()
    assert len(rows_of(tmp_path / "far" / "file.csv")) == len(TEXTS)
    assert os.listdir(tmp_path / "far") == ["file.csv"]


@pytest.mark.parametrize("place", ["part", "rows"])
def test_links_where_unfinished_rows_are_kept_are_refused(
    predictor: Predictor, table: TableRequest, tmp_path: Path, place: str
) -> None:
    letter = tmp_path / "theirs" / "rows"
    letter.parent.mkdir()
    letter.write_bytes(b"keep")
    part = tmp_path / "out.csv.part"
    if place == "part":
        part.symlink_to(letter.parent)
    else:
        part.mkdir()
        (part / "rows").symlink_to(letter)
    with pytest.raises(UserError, match="is a link"):
        predict_to_file(predictor, table, tmp_path / "out.csv")
    assert letter.read_bytes() == b"keep"
    assert os.listdir(letter.parent) == ["rows"]


@pytest.mark.usefixtures("small_steps")
def test_a_full_disk_keeps_what_is_safe(
    predictor: Predictor, table: TableRequest, tmp_path: Path
) -> None:
    resource = pytest.importorskip("resource")
    whole, out = tmp_path / "whole.csv", tmp_path / "out.csv"
    predict_to_file(predictor, table, whole)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (whole.stat().st_size // 2, hard))
    try:
        with pytest.raises(UserError, match=r"rows cannot be written \(File too large\)"):
            predict_to_file(predictor, table, out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (
        json.loads((tmp_path / "out.csv.part" / "state.json").read_text())["tally"]["n_read"] > 20
    )
    predict_to_file(predictor, table, out)
    assert_same(out, whole)


def test_a_bad_row_is_named_before_anything_is_answered(
    predictor: Predictor, tmp_path: Path
) -> None:
    (tmp_path / "in.jsonl").write_text(
        "".join(json.dumps({"text": text}) + "\n" for text in [*TEXTS[:30], " "])
    )
    predictor.answer = None  # type: ignore[method-assign,assignment]
    request = TableRequest(tmp_path / "in.jsonl", bad_rows="stop")
    with pytest.raises(UserError, match=r"line 31.*is empty"):
        predict_to_file(predictor, request, tmp_path / "out.csv")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("out")] == []


def test_targets_that_would_do_harm_are_refused_first(
    predictor: Predictor, table: TableRequest, tmp_path: Path
) -> None:
    predictor.answer = None  # type: ignore[method-assign,assignment]
    with pytest.raises(UserError, match="the table itself"):
        predict_to_file(predictor, table, table.source)
    for folder in (tmp_path, Path("."), Path("")):
        with pytest.raises(UserError, match="is a folder"):
            predict_to_file(predictor, table, folder)
    with pytest.raises(UserError, match="does not exist"):
        predict_to_file(predictor, TableRequest(tmp_path / "none.csv"), tmp_path / "out.csv")
    (tmp_path / "out.csv.part").mkdir()
    (tmp_path / "out.csv.part" / "mine.txt").write_text("keep")
    with pytest.raises(UserError, match=r"holds mine\.txt"):
        predict_to_file(predictor, table, tmp_path / "out.csv")
    assert (tmp_path / "out.csv.part" / "mine.txt").read_text() == "keep"


@pytest.mark.usefixtures("small_steps")
def test_what_a_finished_run_left_speaks_for_nothing(
    predictor: Predictor, table: TableRequest, tmp_path: Path
) -> None:
    """Killed after the rename: a state without rows.

    Another table begins and is stopped; the first command must not take its rows.
    """
    out = tmp_path / "out.csv"
    states: list[bytes] = []

    def keep_state(_: str, done: int, __: int, ___: str) -> None:
        if done == 150:
            states.append((tmp_path / "out.csv.part" / "state.json").read_bytes())

    predict_to_file(predictor, table, out, watch=keep_state)
    whole = tmp_path / "whole.csv"
    whole.write_bytes(out.read_bytes())
    part = tmp_path / "out.csv.part"
    part.mkdir()
    (part / "state.json").write_bytes(states[-1])
    (tmp_path / "other.csv").write_text("text\n" + "".join(f"other {n}\n" for n in range(500)))

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Stopped):
        predict_to_file(predictor, TableRequest(tmp_path / "other.csv"), out, watch=interrupt)
    predict_to_file(predictor, table, out)
    assert_same(out, whole)


def test_two_commands_do_not_write_the_same_file(
    predictor: Predictor, table: TableRequest, tmp_path: Path
) -> None:
    def second(*_: object) -> None:
        with pytest.raises(UserError, match="another process"):
            predict_to_file(predictor, table, tmp_path / "out.csv")

    result = predict_to_file(predictor, table, tmp_path / "out.csv", watch=second)
    assert result.tally.n_written == len(TEXTS)


@pytest.mark.slow
def test_a_killed_command_loses_and_repeats_nothing(trained_folder: Path, tmp_path: Path) -> None:
    model = copytree(trained_folder, tmp_path / "run")
    export_models(model, n_texts=50)
    n_texts = 30_000
    with (tmp_path / "in.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(
            [["text"], *([f"{TEXTS[n % 150]} {n}"] for n in range(n_texts))]
        )
    command = [
        sys.executable,
        "-m",
        "litotes",
        "predict",
        "--file",
        "in.csv",
        "--model",
        str(model),
        "--format",
        "csv",
        "--out",
        "out.csv",
    ]
    for n_kept in _kills(command, tmp_path):
        assert n_kept > 0
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    rows = rows_of(tmp_path / "out.csv")
    assert [row["text"] for row in rows] == [f"{TEXTS[n % 150]} {n}" for n in range(n_texts)]
    alone = Predictor.load(model, runtime="torch", device="cpu").predict(
        [row["text"] for row in rows[::3000]]
    )
    assert [one.answers["sarcasm"].label for one in alone] == [
        row["sarcasm"] for row in rows[::3000]
    ]


def _kills(command: list[str], folder: Path) -> Iterator[int]:
    """Kills the command twice, each time when more rows are safe than before; says how many."""
    state, before = folder / "out.csv.part" / "state.json", 0
    for _ in range(2):
        process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while process.poll() is None:
            if (
                state.is_file()
                and (n_kept := json.loads(state.read_text())["tally"]["n_read"]) > before
            ):
                process.send_signal(signal.SIGKILL)
                process.wait()
                before = n_kept
                yield n_kept
                break
            time.sleep(0.01)
        else:
            pytest.fail("it ended before it could be killed")
