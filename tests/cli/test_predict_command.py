"""`litotes predict`: the same from every input, and nothing lost without a word at the edges."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from threading import Thread

import pytest
from command_lines import Run

needs_pipes = pytest.mark.skipif(os.name == "nt", reason="Windows has no such pipes")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "in.csv"
    file.write_text("id,text\n1,tea\n2,bad tea\n")
    return file


def say_on_stdin(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    stream = io.TextIOWrapper(io.BytesIO(content), "utf-8", "surrogateescape", newline="\n")
    monkeypatch.setattr("sys.stdin", stream)


def make_pipe(path: Path, content: bytes) -> Path:
    """A pipe that somebody writes this to as soon as it is read."""
    os.mkfifo(path)
    Thread(target=lambda: path.write_bytes(content), daemon=True).start()
    return path


def test_every_input_and_output_says_the_same(
    run: Run, predicting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["Great tea, mate", 'She said "fine", twice', "naïve café"]
    with (tmp_path / "in.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["n", "body"], *([n, text] for n, text in enumerate(texts))])
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"body": text}) + "\n" for text in texts))
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"body": texts}), tmp_path / "in.parquet")
    expected = run(f"{predicting} --json", *texts).out
    for name in ("in.csv", "in.jsonl", "in.parquet"):
        line = f"{predicting} --json --file {tmp_path / name} --column body --columns body"
        assert run(line).out.replace('"body":', '"text":') == expected
    # a byte-order mark is no text
    say_on_stdin(monkeypatch, ("\ufeff" + "\n".join(texts) + "\n").encode())
    assert run(f"{predicting} --json").out == expected
    lines = run(f"{predicting} --format jsonl", *texts).out.splitlines()
    documents = [json.loads(line) for line in lines]
    assert documents == json.loads(expected)
    names = ["text", "sentiment", "sarcasm", "truncated", "unreadable", "problem"]
    assert list(documents[0]) == names
    assert sum(documents[0]["sarcasm"]["probabilities"].values()) == pytest.approx(1)
    rows = csv.DictReader(run(f"{predicting} --format csv", *texts).out.splitlines())
    found = [(row["text"], row["sarcasm"]) for row in rows]
    assert found == [(one["text"], one["sarcasm"]["label"]) for one in documents]


def test_a_table_for_people_says_what_was_not_read(run: Run, predicting: str) -> None:
    shown = run(predicting, "x " * 200).out
    assert "sarcasm" in shown
    assert "its end was not seen" in shown
    assert "unreadable" not in shown
    for text in ("\u200b", "😀"):
        *_, last = run(predicting, text).out.splitlines()
        assert last == "  (unreadable: the model knows no part of it)"
    steering = "red \x1b[31m\x1b]0;title\x07 \u202eturned"
    assert run(predicting, steering).out.startswith("red ·[31m·]0;title· ·turned\n")
    shown = run(f"{predicting} --probabilities tea").out
    assert shown.count("%") == 2 * (1 + 2)  # of two tasks the answer, and each label


def test_the_ending_of_out_says_the_format(run: Run, predicting: str, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id;text\n1;Great tea\n2;😀\n", "utf-8-sig")
    line = f"{predicting} --file {tmp_path}/in.csv --out"
    for name, start in (("out.csv", "id,text,senti"), ("out.jsonl", '{"id"'), ("out", "Great")):
        assert "Unreadable texts: 1 (" in run(line, tmp_path / name).err or name == "out"
        assert (tmp_path / name).read_text().startswith(start)
    told = run(line, tmp_path / "x.csv", "--format", "jsonl", code=2).err
    assert "--out x.csv is to be csv, --format jsonl is not" in told
    assert not (tmp_path / "x.csv").exists()


@pytest.mark.parametrize(
    ("more", "advice"),
    [
        ("a.json", "--json"),
        ("a.tsv", ".csv"),
        ("a.csv.gz", ".gz is not written"),
        ("a.csv.gz --format csv", ".gz is not written"),
        ("a.xlsx", ".xlsx is not written"),
        ("a.csv --precision float16", "The precision float16 needs a CUDA device"),
        ("a.parquet --precision float16", "The precision float16 needs a CUDA device"),
        ("parts --on here --precision float16", "The precision float16 needs a CUDA device"),
    ],
)
def test_what_cannot_be_written_is_told_before_the_work(
    more: str, advice: str, run: Run, predicting: str, table: Path, tmp_path: Path
) -> None:
    line = f"{predicting} --file {table} --out {tmp_path}/{more}"
    assert advice in run(line, code=2).err
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]
    run(f"{predicting} tea --out {tmp_path}/answers.of-today")  # no ending that means something
    assert (tmp_path / "answers.of-today").read_text().startswith("tea\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "stdin is empty"), (b"a\n\nb\n", "line 2 is empty"), (b"caf\xe9\n", "UTF-8")],
)
def test_odd_stdin(
    content: bytes, message: str, run: Run, predicting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    say_on_stdin(monkeypatch, content)
    assert message in run(f"{predicting} --format jsonl --bad-rows stop", code=2).err


def test_a_bad_line_on_stdin_stops_no_other(
    run: Run, predicting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bad_rows, n_lines in (("empty", 4), ("skip", 2)):
        say_on_stdin(monkeypatch, b"tea\n\ncaf\xe9\nqueue\n")
        told = run(f"{predicting} --format jsonl --bad-rows {bad_rows}")
        lines = [json.loads(line) for line in told.out.splitlines()]
        assert len(lines) == n_lines
        assert [line["sarcasm"] is None for line in lines].count(True) == n_lines - 2
        assert (lines[0]["text"], lines[-1]["text"]) == ("tea", "queue")
        assert "2 rows" in told.err
        assert "stdin, line 2 is empty" in told.err


def test_lines_of_stdin_are_those_of_a_file(
    run: Run, predicting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A carriage return ends none; of one that has no end, as of /dev/zero, no more is kept than a
    text may have.
    """
    content = b"tea\rqueue\nbad tea\r\n"
    (tmp_path / "in.txt").write_bytes(content)
    say_on_stdin(monkeypatch, content)
    for name, source in (("a.csv", ""), ("b.csv", f"--file {tmp_path}/in.txt")):
        run(f"{predicting} {source} --out {tmp_path / name}")
        with (tmp_path / name).open(newline="") as stream:
            assert [row["text"] for row in csv.DictReader(stream)] == ["tea\rqueue", "bad tea"]
    say_on_stdin(monkeypatch, b"a" * 3_000_000 + b"\ntea\n")
    long, last = csv.DictReader(run(f"{predicting} --format csv").out.splitlines())
    assert "stdin, line 1 is longer than 1,000,000 characters" in long["problem"]
    assert len(long["text"]) < 100
    assert (last["text"], last["problem"]) == ("tea", "")


def test_a_table_of_which_no_row_is_kept_has_its_header(
    run: Run, predicting: str, table: Path, tmp_path: Path
) -> None:
    table.write_text("id,text\n1,\n")
    line = f"{predicting} --file {table} --bad-rows skip --format csv"
    printed = run(line).out
    run(line, "--out", tmp_path / "out.csv")
    assert printed.splitlines() == (tmp_path / "out.csv").read_text().splitlines()
    assert printed.startswith("id,text,sentiment")


def test_a_bad_file_writes_nothing(run: Run, predicting: str, table: Path, tmp_path: Path) -> None:
    table.write_text("text\nfine\n\xff\n", "latin-1")
    line = f"{predicting} --file {table} --bad-rows stop --out {tmp_path}/out.jsonl"
    assert "UTF-8" in run(line, code=2).err
    assert not (tmp_path / "out.jsonl").exists()


@needs_pipes
def test_a_pipe_whose_reader_leaves_is_no_error(
    run: Run, predicting: str, table: Path, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    table.write_text("id,text\n" + "1,tea\n" * 40)
    Thread(target=lambda: pipe.open("rb").close(), daemon=True).start()
    line = f"{predicting} --file {table} --format csv --out {pipe}"
    assert "Broken pipe" not in run(line).err


@needs_pipes
@pytest.mark.parametrize("name", ["in.csv", "in.jsonl", "in.txt"])
def test_a_table_may_come_through_a_pipe(
    name: str, run: Run, predicting: str, tmp_path: Path
) -> None:
    rows = {"in.csv": b"text\ntea\nbad tea\n", "in.txt": b"tea\nbad tea\n"}
    content = rows.get(name, b'{"text": "tea"}\n{"text": "bad tea"}\n')
    pipe = make_pipe(tmp_path / name, content)
    answered = csv.DictReader(run(f"{predicting} --file {pipe} --format csv").out.splitlines())
    assert [row["text"] for row in answered] == ["tea", "bad tea"]


@needs_pipes
def test_a_column_that_is_not_there_is_asked_for_by_its_own_option(
    run: Run, predicting: str, table: Path, tmp_path: Path
) -> None:
    pipe = make_pipe(tmp_path / "pipe.csv", table.read_bytes())
    for line in (f"--file {pipe} --columns nix --format csv", f"--file {table} --pair nix"):
        told = run(f"{predicting} {line}", code=2).err
        assert "there is no column 'nix'. Known: id, text" in told
        assert ("--pair" in told) is ("--pair" in line)
