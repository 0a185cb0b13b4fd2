"""Tables as programs write them: other separators, byte-order marks, arrays, plain texts. Spans,
one after the other, are the table: no row lost, none twice. What unpacks to far too much is
refused.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from io import StringIO
from itertools import islice
from pathlib import Path

import pytest

from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.core.values import Prediction
from litotes.data.tables import Span, column_names, cut_spans, files, find_tables, read_rows
from litotes.data.tables.files import Start
from litotes.data.tables.parquet import read_arrow
from litotes.data.tables.rows import Row

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

TEXTS = [f'row {n}: \'twas ☕, naïve & \u2028 odd — "quoted"' for n in range(23)]


def jsonl(file: Path) -> None:
    """With blank lines, both line ends, and a mark of byte order."""
    lines = [
        json.dumps({"text": text, "id": n}, ensure_ascii=n % 2 == 0) for n, text in enumerate(TEXTS)
    ]
    ends = ["\n", "\r\n", "\n\n", "\r\n  \r\n"]
    content = "\ufeff\n" + "".join(line + ends[n % 4] for n, line in enumerate(lines)).rstrip()
    file.write_bytes(content.encode())


def delimited(delimiter: str, encoding: str = "utf-8-sig") -> Callable[[Path], None]:
    def write(file: Path) -> None:
        """With texts of several lines."""
        target = StringIO()
        writer = csv.writer(target, delimiter=delimiter)
        writer.writerow(["id", "text"])
        writer.writerows(
            (n, text if n % 3 else f"{text}\nsecond, {n}\n\nfourth") for n, text in enumerate(TEXTS)
        )
        file.write_bytes(target.getvalue().encode(encoding))

    return write


def parquet(file: Path) -> None:
    columns = {"other": [0.5] * len(TEXTS), "id": range(len(TEXTS)), "text": TEXTS}
    pq.write_table(pa.table(columns), file, row_group_size=7)


def array(file: Path) -> None:
    records = [{"text": text, "id": n} for n, text in enumerate(TEXTS)]
    file.write_text(json.dumps(records, indent=2), "utf-8-sig")


WRITERS = {
    "t.jsonl": jsonl,
    "t.csv": delimited(","),
    "semicolons.csv": delimited(";"),
    "bars.csv": delimited("|"),
    "tabs.csv": delimited("\t"),
    "t.tsv": delimited("\t"),
    "excel.csv": delimited(",", "utf-16"),
    "t.parquet": parquet,
    "t.json": array,
}
NAMES = [*WRITERS, "t.jsonl.gz", "t.csv.gz", "excel.csv.gz"]


def made(folder: Path, name: str) -> Path:
    WRITERS[name.removesuffix(".gz")](folder / name)
    if name.endswith(".gz"):
        (folder / name).write_bytes(gzip.compress((folder / name).read_bytes()))
    return folder / name


def rows_of(spans: list[Span]) -> list[Row]:
    return [row for span in spans for row in span.rows(["id", "text"])]


@pytest.mark.parametrize("name", NAMES)
def test_spans_are_the_table(tmp_path: Path, name: str) -> None:
    file = made(tmp_path, name)
    whole = list(read_rows(file, needs=["id", "text"]))
    assert [str(row.value("id")) for row in whole] == [str(n) for n in range(23)]
    assert all(row.text("text").startswith(text) for row, text in zip(whole, TEXTS, strict=True))
    assert {"id", "text"} <= set(column_names(file))
    for n_rows in (1, 7, 8, 22, 23, 24):
        spans = cut_spans(file, n_rows=n_rows, needs=["id", "text"])
        assert rows_of(spans) == whole  # with their numbers
        assert [span.n_rows for span in spans[:-1]] == [n_rows] * ((23 - 1) // n_rows)
        assert sum(span.n_rows for span in spans) == 23
        assert rows_of(spans[-1:]) == whole[-spans[-1].n_rows :]  # read alone
    with pytest.raises(UserError, match=r"no column 'body'.*Known: id"):
        cut_spans(file, n_rows=5, needs=["body"])


def test_the_first_line_may_tell_the_separator_and_a_column_alone_has_none(tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text("sep=|\ntext|id\na;b|1\n")
    (row,) = read_rows(file, needs=["text"])
    assert (row.values, row.number) == ({"text": "a;b", "id": "1"}, 3)
    file.write_text("text\none; two | three\n")
    assert [row.values["text"] for row in read_rows(file, needs=["text"])] == ["one; two | three"]
    file.write_text("text,x,x,x.2\n1,2,3,4\n")
    assert column_names(file) == ["text", "x", "x.2_", "x.2"]


def test_a_bad_line_takes_no_other_with_it(tmp_path: Path) -> None:
    lines = [json.dumps({"text": text}) for text in TEXTS]
    lines[15] = "{no json"
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    spans = cut_spans(tmp_path / "t.jsonl", n_rows=10, needs=["text"])
    found = [row for span in spans for row in span.rows(["text"])]
    assert [row.number for row in found if row.problem] == [16]
    with pytest.raises(UserError, match=r"t\.jsonl, line 16 is not JSON"):
        found[15].text("text")
    content = b'text,id\n"open,1\nfine,2\ncaf\xe9,3\none\nb\0d,4\n"so" so,5\nlast,6\n'
    (tmp_path / "t.csv").write_bytes(content)
    rows = list(read_rows(tmp_path / "t.csv", needs=["text", "id"]))
    assert [row.number for row in rows] == [2, 3, 4, 5, 6, 7, 8]
    assert [row.number for row in rows if row.problem is None] == [3, 8]
    assert rows[2].values["text"] == "caf\ufffd"
    assert "line 2: ',' expected" in str(rows[0].problem)
    assert "line 4: byte 26 of the file is not UTF-8" in str(rows[2].problem)
    assert "2 (text, id)" in str(rows[3].problem)
    assert "line 6 holds a NUL" in str(rows[4].problem)
    spans = cut_spans(tmp_path / "t.csv", n_rows=3, needs=["text"])
    assert [row for span in spans for row in span.rows(["text", "id"])] == rows


def test_row_groups_before_a_span_are_not_read(tmp_path: Path) -> None:
    file = made(tmp_path, "t.parquet")
    span = cut_spans(file, n_rows=10, needs=["text"])[1]
    content = bytearray(file.read_bytes())
    first = pq.ParquetFile(file).metadata.row_group(0)
    begin = min(
        first.column(place).dictionary_page_offset or first.column(place).data_page_offset
        for place in range(3)
    )
    n_spoilt = first.total_byte_size // 2
    content[begin : begin + n_spoilt] = b"\xff" * n_spoilt
    file.write_bytes(content)
    assert [row.values["text"] for row in span.rows(["text"])] == TEXTS[10:20]
    with pytest.raises(UserError, match="damaged"):
        list(Span(str(file), Start(), 10).rows(["text"]))
    pq.write_table(pa.table({"text": ["tea"]}), file)
    with pytest.raises(UserError, match="has become shorter"):
        list(Span(str(file), Start(), 10).rows(["text"]))


def test_columns_of_parquet_keep_their_types(tmp_path: Path) -> None:
    """Batches of 256 rows are read, from groups of 100."""
    ids = pa.array(range(600), pa.int32())
    pq.write_table(pa.table({"x": ids, "id": ids}), tmp_path / "t.parquet", row_group_size=100)
    for start, n_rows in ((0, 600), (0, 256), (0, 257), (255, 2), (256, 257), (599, 1), (300, 900)):
        found = read_arrow(tmp_path / "t.parquet", ["id"], start, n_rows)
        assert found.column("id") == pa.chunked_array([ids[start : start + n_rows]])
        rows = read_rows(tmp_path / "t.parquet", needs=["id"], start=Start(row=start))
        assert [row.values["id"] for row in rows] == [str(n) for n in range(start, 600)]


def test_arrays_and_texts_that_are_none(tmp_path: Path) -> None:
    file = tmp_path / "in.json"
    file.write_text("\n".join(json.dumps({"text": text}) for text in TEXTS))  # lines
    assert len(list(read_rows(file, needs=["text"]))) == 23
    for broken, said in (("[1]", "item 1 is not a JSON object"), ("[{]", "not JSON")):
        file.write_text(broken)
        with pytest.raises(UserError, match=said):
            [row.text("text") for row in read_rows(file, needs=["text"])]
    file = tmp_path / "in.txt"
    file.write_bytes('\ufefftea\r\nqueue, and "more"\r\n\r\nlast'.encode())
    rows = list(read_rows(file, needs=["text"]))
    assert [row.values["text"] for row in rows] == ["tea", 'queue, and "more"', "", "last"]
    assert [span.n_rows for span in cut_spans(file, n_rows=3, needs=["text"])] == [3, 1]
    with pytest.raises(UserError, match=r"line 3, column 'text' is empty"):
        rows[2].text("text")
    with pytest.raises(UserError, match=r"no column 'label'.*Known: text"):
        list(read_rows(file, needs=["label"]))


def test_the_tables_of_a_folder_by_name(tmp_path: Path) -> None:
    empty = {"b.csv": "id,text\n", "a/z.jsonl": "\n", "a/y.tsv": "text\n"}
    hidden = ("_SUCCESS", ".hidden.csv", "a/_metadata", ".git/x.csv")
    for name in (*empty, *hidden):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(empty.get(name, ""))
    found = find_tables(tmp_path)
    assert found == [tmp_path / name for name in ("a/y.tsv", "a/z.jsonl", "b.csv")]
    assert [cut_spans(file, n_rows=5, needs=["text"]) for file in found] == [[], [], []]
    (tmp_path / "notes.txt").touch()
    with pytest.raises(UserError, match=r"notes\.txt is not a table"):
        find_tables(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="holds no tables"):
        find_tables(tmp_path / "empty")
    with pytest.raises(UserError, match="does not exist"):
        find_tables(tmp_path / "none")


N_ROWS = 20_000
SENTENCE = "unpacks to more than 50 times its size"


def bomb(folder: Path, name: str, rows: Iterable[str] = ("good tea",) * N_ROWS) -> Path:
    file, rows = folder / name, list(rows)
    if name.endswith(".parquet"):
        pq.write_table(pa.table({"text": rows}), file)
        return file
    template = '{{"text": "{}"}}\n' if ".jsonl" in name else "{}\n"
    lines = ["" if ".jsonl" in name else "text\n", *map(template.format, rows)]
    with gzip.open(file, "wt") as stream:
        stream.writelines(lines)
    return file


def test_what_a_file_may_unpack_to(tmp_path: Path) -> None:
    """50 bytes for each of its own, 64 MiB in any case; every row counts for 100 more."""
    file = tmp_path / "a.csv.gz"
    for n_bytes, most in ((10, 1 << 26), (2_000_000, 100_000_000)):
        file.write_bytes(bytes(n_bytes))
        limit = files.UnpackingLimit(file, "unpack it")
        limit.add(most - 700, n_rows=3)
        limit.add(300, n_rows=1)
        with pytest.raises(UserError, match=r"more than 50 times its size.*unpack it"):
            limit.add(1, n_rows=0)


@pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl.gz", "a.parquet"])
def test_a_bomb_is_refused_and_an_ordinary_table_is_read(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the ordinary one each text is another; half of their characters are the same."""
    monkeypatch.setattr(files, "FREE_BYTES", 1 << 16)
    file = bomb(tmp_path, name)
    with pytest.raises(UserError, match=rf"{SENTENCE}.*If it is neither, "):
        list(read_rows(file, needs=["text"]))
    with pytest.raises(UserError, match=SENTENCE):
        cut_spans(file, n_rows=1, needs=["text"])
    texts = [f"the tea of {n * 7919 % 99_991} was great" for n in range(5_000)]
    file = bomb(tmp_path, name, texts)
    assert [row.text("text") for row in read_rows(file, needs=["text"])] == texts
    # what a Parquet file says of its size may be true, and small, where it holds a text once
    rows = read_rows(bomb(tmp_path, "b.parquet", ["tea " * 5_000] * 300), needs=["text"])
    with pytest.raises(UserError, match=SENTENCE):
        list(islice(rows, 100))


@pytest.mark.parametrize(
    "command",
    [
        "audit --data table:FILE",
        "coverage --by words --data table:FILE",
        "score FILE FILE",
        "predict --file FILE",
        "predict --file FILE --on here --out out",
    ],
)
def test_every_command_refuses_a_bomb(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    monkeypatch.setattr(files, "FREE_BYTES", 1 << 16)
    monkeypatch.chdir(tmp_path)
    with gzip.open("bomb.csv.gz", "wt") as stream:
        stream.write("source,variety,text,sentiment,sarcasm\n")
        stream.writelines(["Reddit,en-AU,good tea,1,0\n"] * N_ROWS)

    def read_only(self: object, texts: Iterable[object]) -> Iterator[Prediction]:
        for _ in texts:
            yield Prediction("tea", {}, False)

    monkeypatch.setattr("litotes.prediction.predictor.Predictor.stream", read_only)
    assert main(command.replace("FILE", "bomb.csv.gz").split()) == 2
    assert SENTENCE in capsys.readouterr().err
