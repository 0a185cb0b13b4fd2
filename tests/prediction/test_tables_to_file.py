"""Tables to files of answers: nothing lost, nothing twice, whatever happens on the way."""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from litotes.core.errors import Stopped, UserError
from litotes.prediction import table_jobs
from litotes.prediction.answers import Answers
from litotes.prediction.predictor import Predictor
from litotes.prediction.table_jobs import predict_to_file
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


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_jobs, "_ROWS_OF_A_FILE", 10)


def stop_after(n_rows: int) -> Callable[[str, int, int, str], None]:
    def interrupt(what: str, done: int, _: int, __: str) -> None:
        if what == "answering" and done > n_rows:
            raise KeyboardInterrupt

    return interrupt


def test_every_row_is_answered_in_order_as_alone(
    predictor: Predictor, table: TableRequest, tmp_path: Path
) -> None:
    """In a file, and in a pipe, which stays one."""
    seen: list[tuple[int, int]] = []

    def watch(what: str, done: int, total: int, _: str) -> None:
        if what == "answering":
            seen.append((done, total))

    result = predict_to_file(table, predictor, tmp_path / "o" / "out.csv", watch=watch)
    rows = rows_of(tmp_path / "o" / "out.csv")
    assert result.tally == Tally(len(rows), len(TEXTS))
    assert [row["text"] for row in rows] == texts_of(table)
    for row in rows[::37]:
        answer = predictor.predict(row["text"]).answers["sentiment"]
        assert row["sentiment"] == answer.label
        assert float(row["sentiment_probability"]) == pytest.approx(answer.probability, abs=1e-5)
    assert os.listdir(tmp_path / "o") == ["out.csv"]
    assert seen == sorted(seen)
    assert seen[-1] == (150, 150)
    if not hasattr(os, "mkfifo"):
        return
    pipe, read = tmp_path / "pipe.csv", tmp_path / "read.csv"
    os.mkfifo(pipe)
    reader = Thread(target=lambda: read.write_bytes(pipe.read_bytes()), daemon=True)
    reader.start()
    assert predict_to_file(table, predictor, pipe).tally == result.tally
    reader.join(20)
    kept = [(row["id"], row["text"], row["sarcasm"]) for row in rows]
    assert [(row["id"], row["text"], row["sarcasm"]) for row in rows_of(read)] == kept
    assert pipe.is_fifo()
    with pytest.raises(UserError, match="Parquet"):
        predict_to_file(replace(table, format="parquet"), predictor, pipe)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(
    ("format", "stopped_after"), [("csv", 0), ("csv", 9), ("jsonl", 10), ("parquet", 57)]
)
def test_a_stopped_run_goes_on(
    predictor: Predictor, table: TableRequest, tmp_path: Path, stopped_after: int, format: str
) -> None:
    """What a power cut leaves, and a part that was damaged since, are made again."""
    pytest.importorskip("pyarrow")
    table = replace(table, format=format)
    whole, out = tmp_path / f"whole.{format}", tmp_path / f"out.{format}"
    result = predict_to_file(table, predictor, whole)
    with pytest.raises(Stopped, match="again to go on"):
        predict_to_file(table, predictor, out, watch=stop_after(stopped_after))
    assert not out.exists()
    part = tmp_path / f"out.{format}.part"
    (part / ".staged-x").mkdir()
    (part / ".staged-x" / "half").write_bytes(b"half a li")
    kept = sorted(part.glob("part-*"))
    assert len(kept) == stopped_after // 10
    if kept:
        kept[0].write_bytes(kept[0].read_bytes()[:-3])
    asked: list[str] = []
    answer = predictor.answer_columns

    def counting(texts: Sequence[str], **options: Any) -> Answers:
        asked.extend(texts)
        return answer(texts, **options)

    predictor.answer_columns = counting  # type: ignore[method-assign,assignment]
    assert predict_to_file(table, predictor, out).tally == result.tally
    assert out.read_bytes() == whole.read_bytes()
    assert len(asked) == len(TEXTS) - max(stopped_after // 10 - 1, 0) * 10
    assert not part.exists()


@pytest.mark.usefixtures("small_parts")
def test_a_packed_table_is_read_once(
    predictor: Predictor, table: TableRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A .gz file cannot be entered in the middle: a part would unpack all that is before it."""
    packed = tmp_path / "in.csv.gz"
    packed.write_bytes(gzip.compress(table.source.read_bytes()))
    read, starts = table_jobs.read_rows, []

    def counting(*given: Any, **options: Any) -> Any:
        starts.append(options["start"].row)
        return read(*given, **options)

    monkeypatch.setattr(table_jobs, "read_rows", counting)
    predict_to_file(TableRequest(packed), predictor, tmp_path / "out.csv")
    assert starts == [0]
    assert [row["text"] for row in rows_of(tmp_path / "out.csv")] == texts_of(table)


def test_a_link_stays_a_link_and_its_rows_are_kept_beside_its_target(
    predictor: Predictor, table: TableRequest, tmp_path: Path
) -> None:
    (tmp_path / "far").mkdir()
    link = tmp_path / "out.csv"
    link.symlink_to(tmp_path / "far" / "file.csv")

    def look(*_: object) -> None:
        part = tmp_path / "far" / "file.csv.part"
        assert os.name == "nt" or part.stat().st_mode & 0o777 == 0o700

    predict_to_file(table, predictor, link, watch=look)
    assert link.is_symlink()
    assert len(rows_of(tmp_path / "far" / "file.csv")) == len(TEXTS)
    assert os.listdir(tmp_path / "far") == ["file.csv"]


@pytest.mark.parametrize("place", ["part", "plan.json"])
def test_links_where_unfinished_rows_are_kept_are_refused(
    predictor: Predictor, table: TableRequest, tmp_path: Path, place: str
) -> None:
    letter = tmp_path / "theirs" / "plan.json"
    letter.parent.mkdir()
    letter.write_bytes(b"keep")
    part = tmp_path / "out.csv.part"
    if place == "part":
        part.symlink_to(letter.parent)
    else:
        part.mkdir()
        (part / "plan.json").symlink_to(letter)
    with pytest.raises(UserError, match=r"is a link|plan\.json is damaged"):
        predict_to_file(table, predictor, tmp_path / "out.csv")
    assert letter.read_bytes() == b"keep"
    assert os.listdir(letter.parent) == ["plan.json"]


def test_a_bad_row_is_named_before_anything_is_answered(
    predictor: Predictor, tmp_path: Path
) -> None:
    (tmp_path / "in.jsonl").write_text(
        "".join(json.dumps({"text": text}) + "\n" for text in [*TEXTS[:30], " "])
    )
    predictor.answer_columns = None  # type: ignore[method-assign,assignment]
    request = TableRequest(tmp_path / "in.jsonl", bad_rows="stop")
    with pytest.raises(UserError, match=r"line 31.*is empty"):
        predict_to_file(request, predictor, tmp_path / "out.csv")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("out")] == []


def test_targets_that_would_do_harm_are_refused_first(
    predictor: Predictor, table: TableRequest, tmp_path: Path
) -> None:
    predictor.answer_columns = None  # type: ignore[method-assign,assignment]
    with pytest.raises(UserError, match="the table itself"):
        predict_to_file(table, predictor, table.source)
    for folder in (tmp_path, Path("."), Path("")):
        with pytest.raises(UserError, match="is a folder"):
            predict_to_file(table, predictor, folder)
    with pytest.raises(UserError, match="does not exist"):
        predict_to_file(TableRequest(tmp_path / "none.csv"), predictor, tmp_path / "out.csv")
    (tmp_path / "out.csv.part").mkdir()
    (tmp_path / "out.csv.part" / "mine.txt").write_text("keep")
    with pytest.raises(UserError, match=r"holds mine\.txt"):
        predict_to_file(table, predictor, tmp_path / "out.csv")
    assert (tmp_path / "out.csv.part" / "mine.txt").read_text() == "keep"
