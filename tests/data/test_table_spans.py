"""Spans, one after the other, are the table: no row lost, none twice, each with the place it has in
the file.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest

from litotes.core.errors import UserError
from litotes.data.tables import Span, cut_spans, find_tables, read_rows
from litotes.data.tables.files import Start
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


def delimited(delimiter: str) -> Callable[[Path], None]:
    def write(file: Path) -> None:
        """With texts of several lines."""
        target = StringIO()
        writer = csv.writer(target, delimiter=delimiter)
        writer.writerow(["id", "text"])
        writer.writerows(
            (n, text if n % 3 else f"{text}\nsecond, {n}\n\nfourth") for n, text in enumerate(TEXTS)
        )
        file.write_bytes(b"\xef\xbb\xbf" + target.getvalue().encode())

    return write


def parquet(file: Path) -> None:
    pq.write_table(
        pa.table({"other": [0.5] * len(TEXTS), "id": range(len(TEXTS)), "text": TEXTS}),
        file,
        row_group_size=7,
    )


WRITERS = {
    "t.jsonl": jsonl,
    "t.csv": delimited(","),
    "t.tsv": delimited("\t"),
    "t.parquet": parquet,
}
NAMES = [*WRITERS, "t.jsonl.gz", "t.csv.gz"]


def made(folder: Path, name: str) -> Path:
    WRITERS[name.removesuffix(".gz")](folder / name)
    if name.endswith(".gz"):
        (folder / name).write_bytes(gzip.compress((folder / name).read_bytes()))
    return folder / name


def rows_of(spans: list[Span]) -> list[Row]:
    return [row for span in spans for row in span.rows(["id", "text"])]


@pytest.mark.parametrize("n_rows", [1, 2, 7, 8, 22, 23, 24, 1000])
@pytest.mark.parametrize("name", NAMES)
def test_spans_are_the_table(tmp_path: Path, name: str, n_rows: int) -> None:
    file = made(tmp_path, name)
    whole = list(read_rows(file, needs=["id", "text"]))
    assert [row.value("id") in (n, str(n)) for n, row in enumerate(whole)] == [True] * len(TEXTS)
    spans = cut_spans(file, n_rows=n_rows, needs=["id", "text"])
    assert rows_of(spans) == whole  # with their numbers
    assert [span.n_rows for span in spans] == [n_rows] * (len(TEXTS) // n_rows) + [
        len(TEXTS) % n_rows
    ] * (len(TEXTS) % n_rows > 0)
    assert rows_of(spans[-1:]) == whole[-spans[-1].n_rows :]  # read alone


def test_row_groups_before_a_span_are_not_read(tmp_path: Path) -> None:
    file = made(tmp_path, "t.parquet")
    span = cut_spans(file, n_rows=10, needs=["text"])[1]
    content = bytearray(file.read_bytes())
    first = pq.ParquetFile(file).metadata.row_group(0)
    begin = min(
        first.column(place).dictionary_page_offset or first.column(place).data_page_offset
        for place in range(3)
    )
    content[begin : begin + first.total_byte_size // 2] = b"\xff" * (first.total_byte_size // 2)
    file.write_bytes(content)
    assert [row.values["text"] for row in span.rows(["text"])] == TEXTS[10:20]
    with pytest.raises(UserError, match="damaged"):
        list(Span(str(file), Start(), 10).rows(["text"]))


def test_a_bad_line_in_the_middle_has_its_number(tmp_path: Path) -> None:
    lines = [json.dumps({"text": text}) for text in TEXTS]
    lines[15] = "{no json"
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    spans = cut_spans(tmp_path / "t.jsonl", n_rows=10, needs=["text"])
    assert len(list(spans[0].rows(["text"]))) == 10
    with pytest.raises(UserError, match=r"t\.jsonl, line 16 is not JSON"):
        [row.text("text") for row in spans[1].rows(["text"])]


def test_a_file_without_rows_has_no_spans(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,text\n")
    (tmp_path / "t.jsonl").write_text("\n")
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "t.parquet")
    assert [cut_spans(file, n_rows=5, needs=["text"]) for file in find_tables(tmp_path)] == [
        [],
        [],
        [],
    ]


def test_a_missing_column_is_told_when_it_is_cut(tmp_path: Path) -> None:
    for name in WRITERS:
        with pytest.raises(UserError, match="no column 'body'"):
            cut_spans(made(tmp_path, name), n_rows=5, needs=["body"])


def test_a_file_that_has_become_shorter_is_told(tmp_path: Path) -> None:
    (span,) = cut_spans(made(tmp_path, "t.parquet"), n_rows=50, needs=["text"])
    pq.write_table(pa.table({"text": ["tea"]}), tmp_path / "t.parquet")
    with pytest.raises(UserError, match="has become shorter"):
        list(span.rows(["text"]))


def test_the_tables_of_a_folder_by_name(tmp_path: Path) -> None:
    for name in (
        "b.csv",
        "a/z.jsonl",
        "a/y.parquet",
        "_SUCCESS",
        ".hidden.csv",
        "a/_metadata",
        ".git/x.csv",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert find_tables(tmp_path) == [
        tmp_path / "a" / "y.parquet",
        tmp_path / "a" / "z.jsonl",
        tmp_path / "b.csv",
    ]
    (tmp_path / "notes.txt").touch()
    with pytest.raises(UserError, match=r"notes\.txt is not a table"):
        find_tables(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="holds no tables"):
        find_tables(tmp_path / "empty")
    with pytest.raises(UserError, match="does not exist"):
        find_tables(tmp_path / "none")
