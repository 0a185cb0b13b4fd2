"""Tables as other programs write them: other separators, byte-order marks, arrays, plain texts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from litotes.core.errors import UserError
from litotes.data.tables import cut_spans, read_rows

ROWS = [("1", "tea; cold, bitter"), ("2", "a | b"), ("3", "line\nbreak")]


def write_delimited(file: Path, delimiter: str, *, mark: str = "") -> Path:
    lines = [f"id{delimiter}text{delimiter}region"]
    lines += [f'{number}{delimiter}"{text}"{delimiter}AU' for number, text in ROWS]
    content = mark + "\r\n".join(lines) + "\r\n"
    if file.suffix == ".gz":
        file.write_bytes(gzip.compress(content.encode()))
    else:
        file.write_bytes(content.encode())
    return file


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("name", ["in.csv", "in.tsv", "in.csv.gz"])
def test_the_separator_is_found(name: str, delimiter: str, mark: str, tmp_path: Path) -> None:
    file = write_delimited(tmp_path / name, delimiter, mark=mark)
    rows = list(read_rows(file, needs=["text", "id"]))
    assert [(row.values["id"], row.values["text"]) for row in rows] == ROWS
    spans = cut_spans(file, n_rows=2, needs=["text"])
    assert [row.values["text"] for span in spans for row in span.rows(["text"])] == [
        text for _, text in ROWS
    ]


def test_a_single_column_has_no_separator(tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text("text\none; two | three\n")
    assert [row.values["text"] for row in read_rows(file, needs=["text"])] == ["one; two | three"]


def test_a_missing_column_is_told_with_those_that_are_there(tmp_path: Path) -> None:
    file = write_delimited(tmp_path / "in.csv", ";")
    with pytest.raises(UserError, match=r"no column 'texts'.*'text'\? Known: id, region, text"):
        list(read_rows(file, needs=["texts"]))


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_of_objects(indent: int | None, tmp_path: Path) -> None:
    file = tmp_path / "in.json"
    records = [{"id": int(number), "text": text} for number, text in ROWS]
    file.write_text(json.dumps(records, indent=indent), "utf-8-sig")
    rows = list(read_rows(file, needs=["text"]))
    assert [row.values["text"] for row in rows] == [text for _, text in ROWS]
    spans = cut_spans(file, n_rows=2, needs=["text"])
    assert [[row.number for row in span.rows(["text"])] for span in spans] == [[1, 2], [3]]
    file.write_text("\n".join(map(json.dumps, records)))  # lines under the same name
    assert len(list(read_rows(file, needs=["text"]))) == 3
    for broken, said in (("[1]", "item 1 is not a JSON object"), ("[{]", "not JSON")):
        file.write_text(broken)
        with pytest.raises(UserError, match=said):
            [row.text("text") for row in read_rows(file, needs=["text"])]


def test_a_file_of_texts(tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_bytes('\ufefftea\r\nqueue, and "more"\r\n\r\nlast'.encode())
    rows = list(read_rows(file, needs=["text"]))
    assert [row.values["text"] for row in rows] == ["tea", 'queue, and "more"', "", "last"]
    spans = cut_spans(file, n_rows=3, needs=["text"])
    assert [span.n_rows for span in spans] == [3, 1]
    with pytest.raises(UserError, match=r"line 3, column 'text' is empty"):
        rows[2].text("text")
    with pytest.raises(UserError, match=r"no column 'label'.*Known: text"):
        list(read_rows(file, needs=["label"]))
