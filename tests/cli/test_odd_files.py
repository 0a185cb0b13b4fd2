"""Forty odd files, each with what `litotes predict` makes of it: rows, rows without an answer, or a
sentence.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import pytest

from litotes.cli.main import main

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@dataclass(frozen=True)
class Odd:
    """texts: of the rows, "" where one has no answer. columns: the first of the output. error: of
    a file that is refused.
    """

    name: str
    content: bytes
    texts: list[str] = field(default_factory=list)
    columns: str = "id,text"
    error: str = ""
    options: tuple[str, ...] = ()


def parquet(**columns: object) -> bytes:
    target = BytesIO()
    pq.write_table(pa.table(columns), target)
    return target.getvalue()


TWO = ["tea", "a queue"]
NOT_UTF8 = b"id,text\n1,caf\xe9\n2,tea\n"
NESTED = b'{"id": {"a": [1]}, "text": "tea"}\n{"id": null, "text": "a queue"}\n'
UNCLOSED = b'id,text\n1,"tea\n2,a queue\n3,"queue"\n4,fine\n'
UNCLOSED_EARLY = b'text,id\n"tea,1\na queue,2\n"queue",3\nfine,4\n'
SWALLOWED = b'id,text\n1,"tea\n2,a queue",x\n3,fine\n'

FILES = {
    "plain": Odd("a.csv", b"id,text\n1,tea\n2,a queue\n", TWO),
    "semicolons": Odd("a.csv", b"id;text\n1;tea\n2;a queue\n", TWO),
    "tabs in a .csv": Odd("a.csv", b"id\ttext\n1\ttea\n2\ta queue\n", TWO),
    "bars": Odd("a.csv", b"id|text\n1|tea\n2|a queue\n", TWO),
    "commas in a .tsv": Odd("a.tsv", b"id,text\n1,tea\n2,a queue\n", TWO),
    "semicolons, commas in the header": Odd(
        "a.csv", b"id, or key;text\n1;tea\n", ["tea"], '"id, or key",text'
    ),
    "byte-order mark": Odd("a.csv", b"\xef\xbb\xbfid;text\n1;tea\n", ["tea"]),
    "Excel's sep=": Odd("a.csv", b"sep=;\r\nid;text\r\n1;tea\r\n2;a queue\r\n", TWO),
    "UTF-16 from Excel": Odd("a.csv", "id\ttext\r\n1\tcafé\r\n".encode("utf-16"), ["café"]),
    "UTF-16, big end first": Odd(
        "a.csv", b"\xfe\xff" + "id,text\n1,tea\n".encode("utf-16-be"), ["tea"]
    ),
    "UTF-16 gzipped": Odd("a.csv.gz", gzip.compress("id,text\n1,tea\n".encode("utf-16")), ["tea"]),
    "old Mac line ends": Odd("a.csv", b"id,text\r1,tea\r", error="bare carriage return"),
    "Windows line ends": Odd("a.csv", b"id,text\r\n1,tea\r\n2,a queue\r\n", TWO),
    "no line end at the end": Odd("a.csv", b"id,text\n1,tea\n2,a queue", TWO),
    "blank lines": Odd("a.csv", b"id,text\n\n1,tea\n\n2,a queue\n\n", TWO),
    "pandas's index": Odd("a.csv", b",text\n0,tea\n1,a queue\n", TWO, ",text"),
    "a name twice": Odd("a.csv", b"id,id,text\n1,2,tea\n", ["tea"], "id,id.2,text"),
    "the text's name twice": Odd("a.csv", b"text,text\na,b\n", error="'text' is there 2 times"),
    "names of answers": Odd(
        "a.csv", b"text,sarcasm\ntea,gold\n", ["tea"], "text,sarcasm,predicted_sentiment"
    ),
    "blanks around names": Odd("a.csv", b" id , text \n1,tea\n", ["tea"]),
    "quoted lines": Odd("a.csv", b'id,text\n1,"tea\nfor two"\n2,x\n', ["tea\nfor two", "x"]),
    "an empty text": Odd("a.csv", b"id,text\n1,\n2,tea\n", ["", "tea"]),
    "only blanks": Odd("a.csv", b"id,text\n1,  \n2,tea\n", ["", "tea"]),
    "a field too few": Odd("a.csv", b"id,text\n1\n2,tea\n", ["", "tea"]),
    "a field too many": Odd("a.csv", b"id,text\n1,tea,cake\n2,tea\n", ["", "tea"]),
    "Latin-1": Odd("a.csv", NOT_UTF8, ["", "tea"]),
    "Latin-1, stopped": Odd(
        "a.csv", NOT_UTF8, error="byte 13 of the file is not UTF-8", options=("--bad-rows", "stop")
    ),
    "a NUL": Odd("a.csv", b"id,text\n1,a\0b\n2,tea\n", ["", "tea"]),
    "a quote left open": Odd("a.csv", UNCLOSED, ["", "a queue", "queue", "fine"]),
    "a quote left open before other fields": Odd(
        "a.csv", UNCLOSED_EARLY, ["", "a queue", "queue", "fine"], "text,id"
    ),
    "a quote that swallows a line": Odd("a.csv", SWALLOWED, ["", "", "fine"]),
    "no header": Odd("a.csv", b"tea and cake,1\nqueue,2\n", error="no column 'text'"),
    "another name": Odd(
        "a.csv", b"id,review\n1,lovely tea\n", error="--column review", columns="id,review"
    ),
    "a header alone": Odd("a.csv", b"id,text\n", error="has no rows"),
    "nothing": Odd("a.csv", b"", error="is empty: give a file"),
    "JSON lines": Odd("a.jsonl", b'{"id": 1, "text": "tea"}\n{"text": "a queue"}\n', TWO),
    "a JSON array": Odd("a.json", b'[{"id": 1, "text": "tea"}, {"text": "a queue"}]', TWO),
    "a line that is no JSON": Odd("a.jsonl", b'{"id": 1, "text": "tea"}\n{oops\n', ["tea", ""]),
    "an object without text": Odd("a.jsonl", b'{"id": 1, "text": "tea"}\n{"id": 2}\n', ["tea", ""]),
    "nested JSON": Odd("a.jsonl", NESTED, TWO),
    "half a surrogate pair": Odd(
        "a.jsonl", b'{"id": 1, "text": "\\ud800"}\n{"id": 2, "text": "tea"}\n', ["", "tea"]
    ),
    "a text that is a number": Odd("a.jsonl", b'{"id": 1, "text": 5}\n', ["5"]),
    "texts, one a line": Odd("a.txt", b"tea\n\na queue\n", ["tea", "", "a queue"], "text"),
    "Parquet with nulls": Odd("a.parquet", parquet(id=[1, 2], text=["tea", None]), ["tea", ""]),
    "Parquet with dates": Odd(
        "a.parquet", parquet(id=pa.array([1], pa.timestamp("s")), text=["tea"]), ["tea"]
    ),
    "a .csv that is Parquet": Odd("a.csv", parquet(text=["tea"]), error="a.csv"),
    "a spreadsheet": Odd("a.xlsx", b"PK", error="save it as .csv"),
    "a column named twice": Odd(
        "a.csv", b"id,text\n1,tea\n", ["tea"], "id,text,s", options=("--columns", "id,text,id")
    ),
    "the text as the key": Odd(
        "a.csv", b"id,text\n1,tea\n", ["tea"], "text,s", options=("--key", "text")
    ),
    "a NUL in another column of JSON": Odd(
        "a.jsonl", b'{"id": "a\\u0000b", "text": "tea"}\n{"text": "a queue"}\n', TWO
    ),
    "a NUL in another column of Parquet": Odd(
        "a.parquet", parquet(id=["a\0b", "c"], text=TWO), TWO
    ),
    "Parquet with UUIDs": Odd(
        "a.parquet", parquet(id=pa.array([b"\xff" * 16], pa.binary(16)), text=["tea"]), ["tea"]
    ),
    "a JSON object on several lines": Odd("a.json", b'{\n"text": "tea"\n}\n', error="is not JSON"),
    "a JSON array of texts": Odd("a.json", b'["tea"]', error="is not a JSON object"),
}


@pytest.mark.parametrize("odd", FILES.values(), ids=list(FILES))
def test_an_odd_file(
    odd: Odd, trained_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / odd.name, tmp_path / "out.csv"
    file.write_bytes(odd.content)
    command = ["predict", "--model", str(trained_folder), "--device", "cpu", *odd.options]
    code = main([*command, "--file", str(file), "--out", str(out)])
    told = capsys.readouterr().err
    if odd.error:
        assert code == 2
        assert odd.error in told.splitlines()[-1]
        assert not out.exists()
        return
    assert code == 0, told
    with out.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert out.read_text("utf-8").startswith(odd.columns)
    prefix = "predicted_" if "predicted" in odd.columns else ""
    assert len(rows) == len(odd.texts)
    for row, text in zip(rows, odd.texts, strict=True):
        assert (row[f"{prefix}sarcasm"] != "") is (text != "")
        assert (row[f"{prefix}problem"] == "") is (text != "")
        if text:
            assert row["text"] == text
    n_bad = odd.texts.count("")
    assert bool(re.search("rows? .*(no|without an) answer", told)) is (n_bad > 0)
    lines = tmp_path / "out.jsonl"
    assert main([*command, "--file", str(file), "--out", str(lines)]) == 0
    documents = [json.loads(line) for line in lines.read_text("utf-8").splitlines()]
    assert [document[f"{prefix}problem"] is None for document in documents] == [
        text != "" for text in odd.texts
    ]
