"""Bulk scoring in this process: every row once and in order, parts whole or not there, and nothing
joined that does not belong together.
"""

from __future__ import annotations

import csv
import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest

from litotes.cli.main import main
from litotes.core.errors import Stopped, UserError
from litotes.core.jobs import Outcome, attempt
from litotes.core.progress import Watch
from litotes.core.values import Task
from litotes.exporting.export import export_models
from litotes.model.calibration import TaskAnswers
from litotes.prediction.answers import Answers
from litotes.prediction.predictor import BatchPredictor
from litotes.prediction.table_jobs import (
    FolderResult,
    PartJob,
    local_runner,
    predict_part,
    predict_to_folder,
    write_record,
)
from litotes.prediction.tables import (
    FORMATS,
    AnsweredRows,
    Layout,
    TableRequest,
    arrow_table,
    row_lines,
)

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("onnxruntime")

N_ROWS = 230


@pytest.fixture(scope="module")
def asked(trained_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> BatchPredictor:
    folder = copytree(trained_folder, tmp_path_factory.mktemp("parts") / "run")
    export_models(folder, n_texts=20)
    return BatchPredictor(str(folder), device="cpu")


def text(n: int) -> str:
    return f"the tea is {'great' if n % 3 else 'bad'}, {n} queue" + " and it is not" * (n % 7)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Three kinds of table; in the order of their names the ids count up."""
    folder = tmp_path / "in"
    folder.mkdir()
    ids = list(range(N_ROWS))
    pq.write_table(
        pa.table({"id": ids[:100], "text": [text(n) for n in ids[:100]]}),
        folder / "a.parquet",
        row_group_size=30,
    )
    with (folder / "b.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("id", "text"), *((n, text(n)) for n in ids[100:160])])
    (folder / "c.jsonl").write_text(
        "".join(json.dumps({"id": n, "text": text(n)}) + "\n" for n in ids[160:])
    )
    return folder


def request_of(source: Path, **changes: Any) -> TableRequest:
    return replace(TableRequest(source, format="parquet", n_rows=40), **changes)


def scored(request: TableRequest, asked: BatchPredictor, out: Path) -> FolderResult:
    return predict_to_folder(request, asked, out, runner=local_runner(1))


def rows_in(out: Path) -> list[dict[str, Any]]:
    """Of all parts in the order of their names, in one form."""
    rows: list[dict[str, Any]] = []
    for part in sorted(out.glob("part-*")):
        if part.suffix == ".parquet":
            rows += pq.read_table(part).to_pylist()
        elif part.suffix == ".csv":
            with part.open(newline="") as stream:
                rows += [
                    {
                        **row,
                        "sarcasm_probability": float(row["sarcasm_probability"]),
                        "truncated": row["truncated"] == "True",
                        "unreadable": row["unreadable"] == "True",
                    }
                    for row in csv.DictReader(stream)
                ]
        else:
            for line in part.read_text().splitlines():
                row = json.loads(line)
                rows.append(
                    {
                        **row,
                        "sarcasm": row["sarcasm"]["label"],
                        "sarcasm_probability": row["sarcasm"]["probability"],
                    }
                )
    return rows


@pytest.mark.parametrize("format", FORMATS)
def test_every_row_once_in_order_as_alone(
    asked: BatchPredictor, source: Path, tmp_path: Path, format: str
) -> None:
    result = scored(request_of(source, format=format), asked, tmp_path / "out")
    rows = rows_in(tmp_path / "out")
    assert [int(row["id"]) for row in rows] == list(range(N_ROWS))
    assert [row["text"] for row in rows] == [text(n) for n in range(N_ROWS)]
    for row in rows[::17]:
        (alone,) = asked.predictor().predict([row["text"]])
        answer = alone.answers["sarcasm"]
        assert (row["sarcasm"], row["truncated"]) == (answer.label, alone.truncated)
        assert row["unreadable"] is False
        assert row["sarcasm_probability"] == pytest.approx(answer.probability, abs=1e-5)
    assert (result.plan.n_rows, result.n_answered, result.n_found, result.failures) == (
        N_ROWS,
        N_ROWS,
        0,
        {},
    )
    names = [f"part-{n:05d}.{format}" for n in range(7)]  # 40 40 20, 40 20, 40 30
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["parts"] == dict(zip(names, [40, 40, 20, 40, 20, 40, 30], strict=True))
    assert manifest["rows"] == N_ROWS
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "manifest.json",
        *names,
        "plan.json",
    ]


def test_a_single_file_and_its_columns(asked: BatchPredictor, source: Path, tmp_path: Path) -> None:
    plain = TableRequest(source / "a.parquet", columns=("text",), format="parquet", n_rows=64)
    scored(plain, asked, tmp_path / "text")
    table = pq.read_table(tmp_path / "text" / "part-00001.parquet")
    tasks = ["sentiment", "sentiment_probability", "sarcasm", "sarcasm_probability"]
    answers = [*tasks, "truncated", "unreadable", "problem"]
    assert table.column_names == ["text", *answers]
    assert table["text"].to_pylist() == [text(n) for n in range(64, 100)]
    scored(replace(plain, columns=None, keep_text=False), asked, tmp_path / "key")
    table = pq.read_table(tmp_path / "key" / "part-00000.parquet")
    assert table.column_names == ["id", *answers]
    assert table.schema.field("id").type == pa.int64()  # as it was
    assert table["id"].to_pylist() == list(range(64))


def test_columns_of_every_kind() -> None:
    grade = Task("grade", ())

    def rows(values: list[object]) -> AnsweredRows:
        n = len(values)
        no = np.zeros(n, np.bool_)
        tasks = {"grade": TaskAnswers(grade, np.full(n, 1.5))}
        answers = Answers(["tea"] * n, [None] * n, {}, tasks, no, no)
        return AnsweredRows([{"key": one} for one in values], answers)

    layout = Layout(TableRequest(Path("-")), ("key",), {"grade": grade})
    found = row_lines(layout, "jsonl", rows(["ä", 5, float("nan"), {"a": [1]}])).splitlines()
    assert [json.loads(line)["key"] for line in found] == ["ä", 5, None, {"a": [1]}]
    assert row_lines(layout, "csv", rows(["ä,b", 5, True, {"a": [1]}])).splitlines() == [
        '"ä,b",1.5,False,False,',
        "5,1.5,False,False,",
        "true,1.5,False,False,",
        '"{""a"": [1]}",1.5,False,False,',
    ]
    for values, types, expected in (
        (["a", 5, None], {}, ["a", "5", None]),
        ([5, None, 7], {"key": "int64"}, [5, None, 7]),
        ([True, None, False], {"key": "bool"}, [True, None, False]),
    ):
        table = arrow_table(replace(layout, types=types), rows(values))
        assert table["key"].to_pylist() == expected


def test_names_that_clash(asked: BatchPredictor, source: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["tea"], "sarcasm": ["gold"]}), tmp_path / "in.parquet")
    request = TableRequest(tmp_path / "in.parquet", format="parquet")
    scored(request, asked, tmp_path / "clash")
    (row,) = rows_in(tmp_path / "clash")
    assert row["sarcasm"] == "gold"
    assert row["predicted_sarcasm"] in ("literal", "sarcastic")
    with pytest.raises(UserError, match=r"'sarcasm' already.*--columns.*--prefix"):
        scored(replace(request, prefix=""), asked, tmp_path / "out")
    with pytest.raises(UserError, match="no one could tell which row is meant"):
        scored(replace(request, columns=("text",), keep_text=False), asked, tmp_path / "out")
    with pytest.raises(UserError, match="There is no format 'xml'"):
        TableRequest(source, format="xml")
    with pytest.raises(UserError, match=r"no column 'name'\. Known: id, text"):
        scored(request_of(source, columns=("name",)), asked, tmp_path / "out")


def test_types_are_kept(asked: BatchPredictor, tmp_path: Path) -> None:
    """Those of Parquet, whatever they are, and those of JSON that all rows agree on."""
    when = pa.array([1, None, 3], pa.timestamp("ns"))
    nested = pa.array([[1], [], None], pa.list_(pa.int32()))
    table = pa.table({"when": when, "nested": nested, "text": ["tea", None, "queue"]})
    pq.write_table(table, tmp_path / "in.parquet")
    request = TableRequest(tmp_path / "in.parquet", format="parquet", n_rows=2)
    for bad_rows, places in (("empty", [0, 1, 2]), ("skip", [0, 2])):
        scored(replace(request, bad_rows=bad_rows), asked, tmp_path / bad_rows)
        parts = sorted((tmp_path / bad_rows).glob("part-*"))
        found = pa.concat_tables([pq.read_table(part) for part in parts])
        assert found.select(table.column_names).equals(table.take(places))
    lines = [{"text": "tea", "n": 1, "x": 0.5, "odd": 1}, {"text": "tea", "n": 2, "odd": "a"}]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
    scored(replace(request, source=tmp_path / "in.jsonl"), asked, tmp_path / "json")
    rows = rows_in(tmp_path / "json")
    assert [(row["n"], row["x"], row["odd"]) for row in rows] == [(1, 0.5, "1"), (2, None, "a")]


def test_a_number_that_another_type_could_not_hold_is_kept_as_text(
    asked: BatchPredictor, tmp_path: Path
) -> None:
    """A float would have rounded the id; Arrow refused it, and all rows were without an answer."""
    rows = [{"text": "tea", "id": 2**60 + 1, "n": 2}, {"text": "tea", "id": 0.5, "n": 0.5}]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, rows)))
    request = TableRequest(tmp_path / "in.jsonl", format="parquet")
    result = scored(request, asked, tmp_path / "out")
    assert not result.failures
    found = [(row["id"], row["n"]) for row in rows_in(tmp_path / "out")]
    assert found == [(str(2**60 + 1), 2.0), ("0.5", 0.5)]


def stopping_after(n_parts: int) -> Any:
    def run(jobs: dict[str, PartJob], begun: Path, watch: Watch) -> Iterator[Outcome]:
        for place, (name, job) in enumerate(jobs.items()):
            if place == n_parts:
                raise KeyboardInterrupt
            yield attempt(name, lambda job=job: predict_part(job, watch))  # type: ignore[misc]

    return run


def test_a_stopped_run_goes_on(asked: BatchPredictor, source: Path, tmp_path: Path) -> None:
    scored(request_of(source), asked, tmp_path / "whole")
    out = tmp_path / "out"
    with pytest.raises(
        Stopped, match=r"Stopped; 4 parts are left to do in .*out\. Start the same command again"
    ):
        predict_to_folder(request_of(source), asked, out, runner=stopping_after(3))
    assert not (out / "manifest.json").exists()
    (out / ".staged-node-5-part-00004.parquet").write_bytes(b"half a pa")  # what a power cut leaves
    before = {path: path.stat().st_mtime_ns for path in out.glob("part-*")}
    result = scored(request_of(source), asked, out)
    assert (result.n_found, result.n_answered) == (3, N_ROWS - 100)
    assert {path: path.stat().st_mtime_ns for path in before} == before  # not made again
    for part in sorted((tmp_path / "whole").glob("part-*")):
        assert (out / part.name).read_bytes() == part.read_bytes()
    assert not list(out.glob(".staged*"))
    again = scored(request_of(source), asked, out)
    assert (again.n_found, again.n_answered) == (7, 0)


@pytest.mark.parametrize("damage", ["cut", "cut at a row", "flip"])
@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize("format", FORMATS)
def test_a_damaged_part_is_made_again(
    asked: BatchPredictor, source: Path, tmp_path: Path, format: str, finished: bool, damage: str
) -> None:
    out, request = tmp_path / "out", request_of(source, format=format)
    if finished:
        scored(request, asked, out)
    else:
        with pytest.raises(Stopped):
            predict_to_folder(request, asked, out, runner=stopping_after(5))
    part, other = out / f"part-00002.{format}", out / f"part-00003.{format}"
    whole, kept = part.read_bytes(), other.stat().st_mtime_ns
    match damage:
        case "cut":
            part.write_bytes(whole[:-7])
        case "cut at a row":
            part.write_bytes(whole[: whole.rindex(b"\n", 0, -1) + 1])
        case "flip":
            part.write_bytes(whole[:300] + bytes([whole[300] ^ 1]) + whole[301:])
    result = scored(request, asked, out)
    assert part.read_bytes() == whole
    assert result.damaged == (part.name,)
    assert result.n_found == (6 if finished else 4)
    assert other.stat().st_mtime_ns == kept
    assert [int(row["id"]) for row in rows_in(out)] == list(range(N_ROWS))
    assert sorted(path.name for path in out.iterdir() if not path.name.startswith("part")) == [
        "manifest.json",
        "plan.json",
    ]
    assert scored(request, asked, out).n_found == 7


def test_a_disk_without_room_is_told_and_the_other_parts_are_kept(
    asked: BatchPredictor, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced = Path.replace

    def fill_up(self: Path, target: Path) -> Path:
        if target.name == "part-00003.parquet":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return replaced(self, target)

    monkeypatch.setattr(Path, "replace", fill_up)
    with pytest.raises(UserError, match=r"part-00003.parquet cannot be written \(No space left"):
        run_parts(request_of(source), asked, tmp_path / "out")
    monkeypatch.undo()
    result = scored(request_of(source), asked, tmp_path / "out")
    assert (result.n_found, result.damaged) == (3, ())


def run_parts(request: TableRequest, asked: BatchPredictor, out: Path) -> None:
    """Without what turns an error of a part into its outcome."""

    def run(jobs: dict[str, PartJob], begun: Path, watch: Watch) -> Iterator[Outcome]:
        for job in jobs.values():
            predict_part(job, watch)
        return iter(())

    predict_to_folder(request, asked, out, runner=run)


def test_unreadable_rows_are_counted(
    asked: BatchPredictor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["😀", "tea", "\u200b", "queue", "ჩაი"]
    (tmp_path / "in.csv").write_text("text\n" + "\n".join(texts))
    command = ["predict", "--file", str(tmp_path / "in.csv"), "--model", asked.folder]
    options = ["--on", "here", "--rows-per-part", "2"]
    assert main([*command, *options, "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().err
    assert "5 of 5 rows answered" in said
    assert "Unreadable texts: 3 (the model knows no part of them)." in said
    assert main([*command, *options, "--out", str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows_unreadable"] == 3  # found again


def test_a_damaged_plan_is_refused(asked: BatchPredictor, source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(Stopped):
        predict_to_folder(request_of(source), asked, out, runner=stopping_after(1))
    plan = json.loads((out / "plan.json").read_text())
    del plan["sha256"]
    part = plan["parts"][0]
    for change in (
        {"parts": 5},
        {"parts": [part[:4]]},
        {"parts": [[-1, *part[1:]]]},
        {"parts": [[99, *part[1:]]]},
        {"parts": [[*part[:4], "many"]]},
        {"parts": [[*part[:4], 2**70]]},
        {"types": {"id": "\x1b[31m"}},
        {"types": None},
    ):
        write_record(out / "plan.json", **(plan | change))  # its hash fits
        with pytest.raises(UserError, match=r"plan\.json is damaged"):
            scored(request_of(source), asked, out)


def test_a_spreadsheet_computes_no_key(asked: BatchPredictor, source: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("=id,text\n=1+1,tea\n-5,queue\n7,=tea\n")
    request = TableRequest(tmp_path / "in.csv", format="csv")
    scored(request, asked, tmp_path / "guarded")
    scored(replace(request, keep_formulas=True), asked, tmp_path / "kept")
    (file,) = (tmp_path / "guarded").glob("part-*")
    rows = list(csv.reader(file.read_text("utf-8").splitlines()))
    assert [row[:2] for row in rows] == [
        ["'=id", "text"],
        ["'=1+1", "tea"],
        ["-5", "queue"],
        ["7", "'=tea"],
    ]
    (file,) = (tmp_path / "kept").glob("part-*")
    assert file.read_text("utf-8").startswith("=id,text")


def test_another_input_or_model_is_not_joined(
    asked: BatchPredictor, source: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with pytest.raises(Stopped):
        predict_to_folder(request_of(source), asked, out, runner=stopping_after(1))
    with pytest.raises(UserError, match="another model"):
        scored(request_of(source), replace(asked, runtime="torch"), out)
    stat = (source / "b.csv").stat()
    os.utime(source / "b.csv", ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    with pytest.raises(UserError, match=r"another input \(b\.csv has changed, come or gone\)"):
        scored(request_of(source), asked, out)
    os.utime(source / "b.csv", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    (source / "d.csv").write_text("id,text\n1,tea\n")
    with pytest.raises(UserError, match=r"another input \(d\.csv has changed"):
        scored(request_of(source), asked, out)
    (source / "d.csv").unlink()
    (out / "plan.json").write_text("{")
    with pytest.raises(UserError, match=r"plan\.json is damaged"):
        scored(request_of(source), asked, out)
    (out / "plan.json").unlink()
    with pytest.raises(UserError, match=r"holds parts, but no plan\.json"):
        scored(request_of(source), asked, out)


def test_folders_where_it_would_do_harm_are_refused(
    asked: BatchPredictor, source: Path, tmp_path: Path
) -> None:
    for out, sentence in (
        (source, "lies in the folder that is read"),
        (source / "x", "lies in the folder"),
        (source / "b.csv", "is a file"),
    ):
        with pytest.raises(UserError, match=sentence):
            scored(request_of(source), asked, out)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("keep")
    with pytest.raises(UserError, match=r"holds letter\.txt"):
        scored(request_of(source), asked, tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]


def test_an_input_that_changes_meanwhile_is_told(
    asked: BatchPredictor, source: Path, tmp_path: Path
) -> None:
    def run(jobs: dict[str, PartJob], begun: Path, watch: Watch) -> Iterator[Outcome]:
        (source / "b.csv").touch()
        return local_runner(1)(jobs, begun, watch)

    result = predict_to_folder(request_of(source), asked, tmp_path / "out", runner=run)
    assert list(result.failures) == ["part-00003.parquet", "part-00004.parquet"]
    assert "b.csv has been changed while it was read" in result.failures["part-00003.parquet"]


def test_another_model_on_a_worker_is_told(
    asked: BatchPredictor, source: Path, tmp_path: Path
) -> None:
    def run(jobs: dict[str, PartJob], begun: Path, watch: Watch) -> Iterator[Outcome]:
        return local_runner(1)(
            {name: replace(job, model=("another",)) for name, job in jobs.items()}, begun, watch
        )

    result = predict_to_folder(request_of(source), asked, tmp_path / "out", runner=run)
    assert len(result.failures) == 7
    assert "is another model" in result.failures["part-00000.parquet"]


def test_bad_rows_are_told_together_and_the_others_are_done(
    asked: BatchPredictor, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (source / "c.jsonl").read_text().splitlines()
    for place in (3, 5, 6, 7, 8, 45):
        lines[place] = json.dumps({"id": place, "text": " "})
    (source / "c.jsonl").write_text("\n".join(lines))
    command = [
        "predict",
        "--file",
        str(source),
        "--model",
        asked.folder,
        "--on",
        "here",
        "--out",
        str(tmp_path / "out"),
        "--json",
    ]
    options = ["--key", "id", "--rows-per-part", "40"]
    assert main([*command, *options, "--bad-rows", "stop"]) == 2
    told = capsys.readouterr()
    summary = json.loads(told.out)
    assert (summary["rows"], summary["rows_answered"], list(summary["failures"])) == (
        230,
        160,
        ["part-00005.parquet", "part-00006.parquet"],
    )
    *_, last = told.err.splitlines()
    assert last.startswith(
        f"litotes: 2 of 7 parts failed, the others are in {tmp_path / 'out'}. {source}/c.jsonl,"
        " line 4, column 'text' is empty"
    )
    assert "line 6" in last
    assert "And 2 more rows like these." in last
    assert "c.jsonl, line 46" in told.err
    assert len(list((tmp_path / "out").glob("part-*"))) == 5
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["tea", "--key", "id"], "--key is about the columns of a table: give the --file"),
        (["tea", "--no-text"], "--no-text is about the columns of a table"),
        (["tea", "--format", "parquet"], "Parquet is not for a screen: name a file"),
        (["tea", "--format", "parquet", "--out", "o"], "Parquet files are written for tables"),
        (["tea", "--workers", "2"], "--workers is for answers in parts: add --on"),
        (["--file", "f.csv", "--key", "a", "--columns", "b"], "give one of them"),
        (["--on", "here", "--out", "o"], "name the table or folder"),
        (["--on", "here", "--file", "f.csv"], "a folder for the answers"),
        (
            ["--on", "here", "--file", "f.csv", "--out", "o", "--format", "table"],
            "for a person to read",
        ),
        (["--on", "here", "--file", "f.csv", "--out", "o", "--address", "auto"], "add --on ray"),
        (["--on", "here", "--file", "f.csv", "--out", "o"], "f.csv does not exist"),
    ],
)
def test_what_the_command_refuses(
    asked: BatchPredictor,
    tmp_path: Path,
    arguments: list[str],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["predict", "--model", asked.folder, *arguments]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.slow
def test_a_killed_command_goes_on(asked: BatchPredictor, tmp_path: Path) -> None:
    """Two processes on one machine; the command dies by SIGKILL in the middle, and a part that was
    there is not made again.
    """
    n_rows = 20_000
    pq.write_table(
        pa.table({"id": range(n_rows), "text": [text(n) for n in range(n_rows)]}),
        tmp_path / "in.parquet",
        row_group_size=3000,
    )
    out = tmp_path / "out"
    options = [
        "--on",
        "here",
        "--workers",
        "2",
        "--rows-per-part",
        "500",
        "--key",
        "id",
        "--no-text",
        "--json",
    ]
    command = [sys.executable, "-m", "litotes", "predict", *options, "--model", asked.folder]
    command += ["--file", str(tmp_path / "in.parquet"), "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while process.poll() is None and len(list(out.glob("part-*"))) < 3:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = {path.name: path.stat().st_mtime_ns for path in out.glob("part-*")}
    assert 3 <= len(kept) < 40
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["parts_found"] >= len(kept)
    assert {name: (out / name).stat().st_mtime_ns for name in kept} == kept
    assert [row["id"] for row in rows_in(out)] == list(range(n_rows))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"n_rows": 41}, "another number of rows per part"),
        ({"format": "csv"}, "another format"),
        ({"columns": ("text",)}, "another choice of columns"),
        ({"keep_formulas": True}, "another treatment of formulas"),
        (
            {"column": "id", "format": "csv"},
            "another choice of columns and another format",
        ),
    ],
)
def test_another_request_is_not_joined(
    asked: BatchPredictor, source: Path, tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(Stopped):
        predict_to_folder(request_of(source), asked, tmp_path / "out", runner=stopping_after(1))
    with pytest.raises(UserError, match=f"which had {sentence}. Delete it to begin anew"):
        scored(request_of(source, **changes), asked, tmp_path / "out")
