"""`litotes predict` where its input or output is at an edge: nothing is lost without a word."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from threading import Thread

import pytest

from litotes.cli.main import main


@pytest.fixture
def command(trained_folder: Path) -> list[str]:
    return ["predict", "--model", str(trained_folder), "--device", "cpu"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "in.csv"
    file.write_text("id,text\n1,tea\n2,bad tea\n")
    return file


def make_pipe(path: Path, content: bytes) -> Path:
    """A pipe that somebody writes this to as soon as it is read."""
    os.mkfifo(path)
    Thread(target=lambda: path.write_bytes(content), daemon=True).start()
    return path


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such pipes")
def test_a_pipe_whose_reader_leaves_is_no_error(
    command: list[str], table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    table.write_text("id,text\n" + "1,tea\n" * 40)
    reader = Thread(target=lambda: pipe.open("rb").close(), daemon=True)
    reader.start()
    code = main([*command, "--file", str(table), "--format", "csv", "--out", str(pipe)])
    assert code == 0
    assert "Broken pipe" not in capsys.readouterr().err


@pytest.mark.parametrize("more", [["--out", "a.csv"], ["--out", "a.parquet"], ["--on", "here"]])
def test_a_precision_that_cannot_be_had_is_told_whatever_is_written(
    more: list[str],
    command: list[str],
    table: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    out = [] if "--out" in more else ["--out", "parts"]
    code = main([*command, "--file", str(table), *more, *out, "--precision", "float16"])
    assert code == 2
    assert "The precision float16 needs a CUDA device" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


@pytest.mark.parametrize(
    ("out", "more", "advice"),
    [
        ("a.json", [], "--json"),
        ("a.tsv", [], ".csv"),
        ("a.csv.gz", [], ".gz is not written"),
        ("a.csv.gz", ["--format", "csv"], ".gz is not written"),
        ("a.xlsx", [], ".xlsx is not written"),
    ],
)
def test_an_ending_that_is_not_written_is_told_before_the_work(
    out: str,
    more: list[str],
    advice: str,
    command: list[str],
    table: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """They became the view for people, in memory, under the name of a table."""
    assert main([*command, "--file", str(table), "--out", str(tmp_path / out), *more]) == 2
    assert advice in capsys.readouterr().err
    assert not (tmp_path / out).exists()
    kept = tmp_path / "answers.of-today"  # no ending that means something
    assert main([*command, "tea", "--out", str(kept)]) == 0
    assert kept.read_text().startswith("tea\n")


def test_a_table_of_which_no_row_is_kept_has_its_header(
    command: list[str], table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table.write_text("id,text\n1,\n")
    asked = [*command, "--file", str(table), "--bad-rows", "skip", "--format", "csv"]
    assert main(asked) == 0
    printed = capsys.readouterr().out
    assert main([*asked, "--out", str(tmp_path / "out.csv")]) == 0
    assert printed.splitlines() == (tmp_path / "out.csv").read_text().splitlines()
    assert printed.startswith("id,text,sentiment")


def test_a_carriage_return_on_stdin_ends_no_text(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it in a file; the answers of all later lines would move on by one."""
    content = b"tea\rqueue\nbad tea\r\n"
    (tmp_path / "in.txt").write_bytes(content)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))
    for name, source in (("a.csv", []), ("b.csv", ["--file", str(tmp_path / "in.txt")])):
        assert main([*command, *source, "--out", str(tmp_path / name)]) == 0
        with (tmp_path / name).open(newline="") as stream:
            assert [row["text"] for row in csv.DictReader(stream)] == ["tea\rqueue", "bad tea"]


def test_a_line_on_stdin_is_no_longer_than_one_of_a_file(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of one that has none, as of /dev/zero, no more is kept than a text may have."""
    content = io.BytesIO(b"a" * 3_000_000 + b"\ntea\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(content, encoding="utf-8"))
    assert main([*command, "--format", "csv"]) == 0
    first, last = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert "stdin, line 1 is longer than 1,000,000 characters" in first["problem"]
    assert len(first["text"]) < 100
    assert (last["text"], last["problem"]) == ("tea", "")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such pipes")
@pytest.mark.parametrize("name", ["in.csv", "in.jsonl", "in.txt"])
def test_a_table_may_come_through_a_pipe(
    name: str, command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {"in.csv": b"text\ntea\nbad tea\n", "in.txt": b"tea\nbad tea\n"}
    content = rows.get(name, b'{"text": "tea"}\n{"text": "bad tea"}\n')
    pipe = make_pipe(tmp_path / name, content)
    assert main([*command, "--file", str(pipe), "--format", "csv"]) == 0
    answered = csv.DictReader(capsys.readouterr().out.splitlines())
    assert [row["text"] for row in answered] == ["tea", "bad tea"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such pipes")
def test_a_column_that_a_pipe_has_not_is_told(
    command: list[str], table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = make_pipe(tmp_path / "pipe.csv", table.read_bytes())
    asked = [*command, "--file", str(pipe), "--columns", "nix", "--format", "csv"]
    assert main(asked) == 2
    assert "there is no column 'nix'. Known: id, text" in capsys.readouterr().err


def test_a_second_column_that_is_not_there_is_asked_for_by_its_own_option(
    command: list[str], table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--file", str(table), "--pair", "nix"]) == 2
    told = capsys.readouterr().err
    assert "there is no column 'nix'. Known: id, text" in told
    assert "--pair" in told
    assert "--column" not in told
