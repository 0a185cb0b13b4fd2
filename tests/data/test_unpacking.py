"""Small files that unpack to far too much are refused while they are read, by every reader."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.core.values import Prediction
from litotes.data.tables import cut_spans, files, read_rows

N_ROWS = 20_000
SENTENCE = "unpacks to more than 50 times its size"


@pytest.fixture(autouse=True)
def little_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "FREE_BYTES", 1 << 16)


def bomb(folder: Path, name: str, rows: Iterable[str] = ("good tea",) * N_ROWS) -> Path:
    file, rows = folder / name, list(rows)
    if name.endswith(".parquet"):
        pa = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pa.table({"text": rows}), file)
        return file
    template = '{{"text": "{}"}}\n' if ".jsonl" in name else "{}\n"
    lines = ["" if ".jsonl" in name else "text\n", *map(template.format, rows)]
    with gzip.open(file, "wt") as stream:
        stream.writelines(lines)
    return file


@pytest.mark.parametrize("name", ["a.csv.gz", "a.tsv.gz", "a.jsonl.gz", "a.parquet"])
def test_a_bomb_is_refused(tmp_path: Path, name: str) -> None:
    file = bomb(tmp_path, name)
    with pytest.raises(UserError, match=rf"{SENTENCE}.*If it is neither, "):
        list(read_rows(file, needs=["text"]))
    with pytest.raises(UserError, match=SENTENCE):
        cut_spans(file, n_rows=1, needs=["text"])


def test_long_texts_that_a_parquet_file_holds_once_are_counted(tmp_path: Path) -> None:
    """What it says of its size is true, and small."""
    file = bomb(tmp_path, "a.parquet", ["tea " * 5_000] * 300)
    rows = read_rows(file, needs=["text"])
    with pytest.raises(UserError, match=SENTENCE):
        list(islice(rows, 100))


@pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl.gz", "a.parquet"])
def test_ordinary_tables_are_read(tmp_path: Path, name: str) -> None:
    """Each text is another; half of their characters are the same."""
    texts = [f"the tea of {n * 7919 % 99_991} was great" for n in range(N_ROWS)]
    file = bomb(tmp_path, name, texts)
    assert [row.text("text") for row in read_rows(file, needs=["text"])] == texts


def test_what_is_unpacked_is_read(tmp_path: Path) -> None:
    """As the error says."""
    packed = bomb(tmp_path, "a.csv.gz")
    (tmp_path / "a.csv").write_bytes(gzip.decompress(packed.read_bytes()))
    assert sum(1 for _ in read_rows(tmp_path / "a.csv", needs=["text"])) == N_ROWS


@pytest.mark.parametrize(
    "command",
    [
        lambda file: ["audit", "--data", f"table:{file}"],
        lambda file: ["coverage", "--by", "words", "--data", f"table:{file}"],
        lambda file: ["score", str(file), str(file)],
        lambda file: ["score", "--submit", str(file)],
        lambda file: ["predict", "--file", str(file)],
        lambda file: ["predict", "--file", str(file), "--format", "csv", "--out", "out.csv"],
        lambda file: ["predict", "--file", str(file), "--on", "here", "--out", "out"],
    ],
)
def test_every_command_refuses_a_bomb(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: Callable[[Path], list[str]],
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "bomb.csv.gz"
    with gzip.open(file, "wt") as stream:
        stream.write("source,variety,text,sentiment,sarcasm\n")
        stream.writelines(["Reddit,en-AU,good tea,1,0\n"] * N_ROWS)

    def read_only(self: object, texts: Iterable[object]) -> Iterator[Prediction]:
        for _ in texts:
            yield Prediction("tea", {}, False)

    monkeypatch.setattr("litotes.prediction.predictor.Predictor.stream", read_only)
    assert main(command(file)) == 2
    assert SENTENCE in capsys.readouterr().err
