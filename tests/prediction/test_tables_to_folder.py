"""Bulk scoring in this process: every row once and in order, parts whole or not there, and nothing
joined that does not belong together.
"""

from __future__ import annotations

import csv
import errno
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from litotes.cli.main import main
from litotes.core.errors import Stopped, UserError
from litotes.core.jobs import Outcome, attempt
from litotes.core.progress import Watch
from litotes.exporting.export import export_models
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
    TableRequest,
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


def rows_in(out: Path) -> list[dict[str, Any]]:
    """Of all parts in the order of their names, with the types of JSON."""
    rows: list[dict[str, Any]] = []
    for part in sorted(out.glob("part-*")):
        if part.suffix == ".parquet":
            rows += pq.read_table(part).to_pylist()
        elif part.suffix == ".csv":
            written = csv.DictReader(part.read_text("utf-8").splitlines())
            rows += [{**row, "truncated": row["truncated"] == "True"} for row in written]
        else:
            for row in map(json.loads, part.read_text("utf-8").splitlines()):
                share = row["sarcasm"]["probability"]
                rows.append(
                    row | {"sarcasm_probability": share, "sarcasm": row["sarcasm"]["label"]}
                )
    return rows


def scored(request: TableRequest, asked: BatchPredictor, out: Path) -> FolderResult:
    return predict_to_folder(request, asked, out, runner=local_runner(1))


@pytest.mark.parametrize("format", FORMATS)
def test_every_row_once_in_order_as_alone(
    asked: BatchPredictor, source: Path, tmp_path: Path, format: str
) -> None:
    out = tmp_path / "out"
    result = scored(request_of(source, format=format), asked, out)
    rows = rows_in(out)
    assert [(int(row["id"]), row["text"]) for row in rows] == [(n, text(n)) for n in range(N_ROWS)]
    for row in rows[::17]:
        (alone,) = asked.predictor().predict([row["text"]])
        answer = alone.answers["sarcasm"]
        assert (row["sarcasm"], row["truncated"]) == (answer.label, alone.truncated)
        assert float(row["sarcasm_probability"]) == pytest.approx(answer.probability, abs=1e-5)
    assert (result.plan.n_rows, result.n_answered, result.n_found) == (N_ROWS, N_ROWS, 0)
    sizes = [40, 40, 20, 40, 20, 40, 30]
    names = [f"part-{n:05d}.{format}" for n in range(7)]
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["parts"] == dict(zip(names, sizes, strict=True))
    assert manifest["rows"] == N_ROWS
    assert sorted(os.listdir(out)) == ["manifest.json", *names, "plan.json"]
    assert result.as_json()["parts"] == 7


def test_types_and_columns_are_kept(asked: BatchPredictor, tmp_path: Path) -> None:
    """Those of Parquet, whatever they are, and those of JSON that hold all values exactly."""
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
    lines = [
        {"text": "tea", "n": 1, "x": 0.5, "odd": 1, "wide": 2**60 + 1, "id": 2**60 + 1, "b": True},
        {"text": "tea", "n": 2, "odd": "a", "wide": 0.5, "id": 2, "x": 3, "b": False},
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
    scored(
        replace(request, source=tmp_path / "in.jsonl", keep_text=False), asked, tmp_path / "json"
    )
    found = pq.read_table(tmp_path / "json" / "part-00000.parquet")
    assert found.column_names[:6] == ["n", "x", "odd", "wide", "id", "b"]
    assert "text" not in found.column_names
    expected = {"n": [1, 2], "x": [0.5, 3.0], "odd": ["1", "a"], "id": [2**60 + 1, 2]}
    expected |= {"wide": [str(2**60 + 1), "0.5"], "b": [True, False]}
    assert found.select(list(expected)).to_pydict() == expected


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


def stopping_after(n_parts: int) -> Any:
    def run(jobs: dict[str, PartJob], watch: Watch) -> Iterator[Outcome]:
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


DAMAGE = {
    "cut": lambda whole: whole[:-7],
    "cut at a row": lambda whole: whole[: whole.rindex(b"\n", 0, -1) + 1],
    "flip": lambda whole: whole[:300] + bytes([whole[300] ^ 1]) + whole[301:],
}


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize(
    ("format", "damage"), [("parquet", "cut"), ("csv", "cut at a row"), ("jsonl", "flip")]
)
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
    part.write_bytes(DAMAGE[damage](whole))
    result = scored(request, asked, out)
    assert part.read_bytes() == whole
    assert (result.damaged, result.n_found) == ((part.name,), 6 if finished else 4)
    assert other.stat().st_mtime_ns == kept
    assert [int(row["id"]) for row in rows_in(out)] == list(range(N_ROWS))
    names = [path.name for path in out.iterdir() if not path.name.startswith("part")]
    assert sorted(names) == ["manifest.json", "plan.json"]
    assert scored(request, asked, out).n_found == 7


def changing(do: Callable[[], object], **changes: Any) -> Any:
    """A runner before which something happens, and whose jobs are changed."""

    def run(jobs: dict[str, PartJob], watch: Watch) -> Iterator[Outcome]:
        do()
        jobs = {name: replace(job, **changes) for name, job in jobs.items()}
        return local_runner(1)(jobs, watch=watch)

    return run


def test_what_happens_meanwhile_is_told_part_by_part(
    asked: BatchPredictor, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, out, replaced = request_of(source), tmp_path / "out", Path.replace
    runner = changing((source / "b.csv").touch)
    result = predict_to_folder(request, asked, out, runner=runner)
    assert list(result.failures) == ["part-00003.parquet", "part-00004.parquet"]
    assert "b.csv has been changed while it was read" in result.failures["part-00003.parquet"]
    other = changing(lambda: None, model=("another",))
    result = predict_to_folder(request, asked, tmp_path / "other", runner=other)
    assert len(result.failures) == 7
    assert "is another model" in result.failures["part-00000.parquet"]

    def fill_up(self: Path, target: Path) -> Path:
        if target.name == "part-00003.parquet":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return replaced(self, target)

    monkeypatch.setattr(Path, "replace", fill_up)
    full = scored(request, asked, tmp_path / "full")
    assert "cannot be written (No space left" in full.failures["part-00003.parquet"]
    monkeypatch.undo()
    again = scored(request, asked, tmp_path / "full")
    assert (again.n_found, again.damaged, again.failures) == (6, (), {})


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


def test_what_does_not_belong_together_is_not_joined(
    asked: BatchPredictor, source: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"

    def assert_refused(words: str, by: BatchPredictor = asked, **changes: Any) -> None:
        with pytest.raises(UserError, match=words):
            scored(request_of(source, **changes), by, out)

    with pytest.raises(Stopped):
        predict_to_folder(request_of(source), asked, out, runner=stopping_after(1))
    assert_refused("another number of rows per part. Delete it to begin anew", n_rows=41)
    assert_refused("another choice of columns and another format", column="id", format="csv")
    assert_refused("another treatment of formulas", keep_formulas=True)
    assert_refused("another treatment of bad rows", bad_rows="skip")
    assert_refused("another set of answer columns", all_probabilities=True)
    assert_refused("another model", replace(asked, runtime="torch"))
    stat = (source / "b.csv").stat()
    os.utime(source / "b.csv", ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert_refused(r"another input \(b\.csv has changed, come or gone\)")
    os.utime(source / "b.csv", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    (source / "d.csv").write_text("id,text\n1,tea\n")
    assert_refused(r"another input \(d\.csv has changed")
    (source / "d.csv").unlink()
    (out / "plan.json").write_text("{")
    assert_refused(r"plan\.json is damaged")
    (out / "plan.json").unlink()
    assert_refused(r"holds parts, but no plan\.json")


def test_bad_rows_are_told_together_and_the_others_are_done(
    asked: BatchPredictor, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (source / "c.jsonl").read_text().splitlines()
    for place in (3, 5, 6, 7, 8, 45):
        lines[place] = json.dumps({"id": place, "text": " "})
    lines[20:23] = [json.dumps({"id": 0, "text": one}) for one in ("😀", "\u200b", "ჩაი")]
    (source / "c.jsonl").write_text("\n".join(lines))
    out = tmp_path / "out"
    command = ["predict", "--file", str(source), "--model", asked.folder, "--on", "here"]
    command += ["--out", str(out), "--key", "id", "--rows-per-part", "40", "--json"]
    assert main([*command, "--bad-rows", "stop"]) == 2
    told = capsys.readouterr()
    summary, last = json.loads(told.out), told.err.splitlines()[-1]
    assert (summary["rows"], summary["rows_answered"]) == (230, 160)
    assert list(summary["failures"]) == ["part-00005.parquet", "part-00006.parquet"]
    assert last.startswith("litotes: 2 of 7 parts failed")
    assert "c.jsonl, line 4, column 'text' is empty" in last
    assert "line 6" in last
    assert "And 2 more rows like these." in last
    assert "c.jsonl, line 46" in told.err
    assert len(list(out.glob("part-*"))) == 5
    assert not (out / "manifest.json").exists()
    command[command.index(str(out))] = str(tmp_path / "all")
    assert main(command[:-1]) == 0
    said = capsys.readouterr().err
    assert "230 of 230 rows answered" in said
    assert "6 rows" in said
    assert "And 3 more." in said
    assert "Unreadable texts: 3" in said
    assert main(command) == 0  # found again, with what became of its rows
    found = json.loads(capsys.readouterr().out)
    assert (found["parts_found"], found["rows_bad"], found["rows_unreadable"]) == (7, 6, 3)


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


IN_PARTS = "--on here --file f.csv"
REFUSED = {
    "tea --key id": "--key needs --file",
    "tea --no-text": "--no-text needs --file",
    "tea --format parquet": "--format parquet needs --file and --out",
    "tea --out o.parquet": "Parquet files are written for tables",
    "tea --workers 2": "--workers needs --on",
    "--file f.csv --key a --columns b": "--key and --columns",
    "--on here --out o": "--on needs --file",
    IN_PARTS: "--on needs --out",
    f"{IN_PARTS} --out o --format table": "--on and --format table",
    f"{IN_PARTS} --out o --address auto": "needs --on ray",
    f"{IN_PARTS} --out o": "f.csv does not exist",
}


@pytest.mark.parametrize("options", REFUSED)
def test_what_the_command_refuses(
    asked: BatchPredictor,
    tmp_path: Path,
    options: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["predict", "--model", asked.folder, *options.split()]) == 2
    assert REFUSED[options] in capsys.readouterr().err
