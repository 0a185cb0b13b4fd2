"""Every way a file can be wrong is answered with one sentence: which file, which line, which
column, and what to do.
"""

import gzip
import tomllib
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from litotes.core.errors import UserError
from litotes.data.sources import load

WRONG = tomllib.loads(Path(__file__).with_name("wrong_sources.toml").read_text("utf-8"))
HEAD = b"text,mood\n"
TABLE = "table:{file}?label.sentiment=mood"


@dataclass(frozen=True)
class Bad:
    """A file's name and content, and what the sentence about it must say beside the name; None for
    content makes no file.
    """

    name: str
    content: bytes | None
    says: Sequence[str]
    spec: str = TABLE


BAD = {
    "no such file": Bad("a.csv", None, ("does not exist", "check the path")),
    "UTF-16 without its mark": Bad(
        "a.csv", "text,mood\nhi,pos\n".encode("utf-16-le"), ("line 1", "NUL", "Save it as UTF-8")
    ),
    "UTF-16 cut in half": Bad(
        "a.csv", "text,mood\nhi,pos\n".encode("utf-16")[:-1], ("a.csv", "UTF-16", "fetch it again")
    ),
    "NUL": Bad("a.csv", HEAD + b"a\0b,pos\n", ("line 2", "NUL", "Save it as UTF-8")),
    "cut gzip": Bad(
        "a.csv.gz",
        gzip.compress(HEAD + b"good,pos\n" * 9)[:-9],
        ("breaks off after line", "fetch it again"),
    ),
    "spoilt gzip": Bad(
        "a.csv.gz",
        gzip.compress(HEAD + b"good,pos\n")[:-6] + b"abcdef",
        ("breaks off", "fetch it again"),
    ),
    "gzip of a few bytes": Bad(
        "a.csv.gz", gzip.compress(HEAD + b"good,pos\n")[:12], ("breaks off after line 0",)
    ),
    "gzip and more": Bad(
        "a.csv.gz", gzip.compress(HEAD + b"good,pos\n") + b"more", ("breaks off after line 2",)
    ),
    "long line": Bad(
        "a.csv",
        HEAD + b"a" * 1_000_001 + b",pos\n",
        ("line 2", "longer than 1,000,000 characters", "cut it"),
    ),
    "long text": Bad(
        "a.csv",
        HEAD + b'"' + b"a a a a a a\n" * 100_000 + b'",pos\n',
        ("line 2", "longer than 1,000,000 characters", "never closed"),
        TABLE + "&bad=stop",
    ),
    "deep JSON": Bad("a.jsonl", b"[" * 100_000, ("line 1", "is not JSON")),
    **{
        name: Bad(**{**case, "content": case["content"].encode("latin-1")})
        for name, case in tomllib.loads(
            (Path(__file__).parent / "bad_inputs.toml").read_text(encoding="utf-8")
        ).items()
    },
}


def message(bad: Bad, folder: Path) -> str:
    file = folder / bad.name
    file.parent.mkdir(parents=True, exist_ok=True)
    if bad.content is not None:
        file.write_bytes(bad.content)
    with pytest.raises(UserError) as caught:
        load(bad.spec.format(file=file, folder=folder))
    return str(caught.value)


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_answered_with_a_sentence(case: str, tmp_path: Path) -> None:
    bad = BAD[case]
    if bad.name.endswith(".parquet"):
        pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    told = message(bad, tmp_path)
    missing = [part for part in (str(tmp_path / bad.name), *bad.says) if part not in told]
    assert not missing, f"{missing} not in: {told}"
    assert "\n" not in told
    assert told.endswith(".")


def test_parquet_that_python_cannot_hold_is_answered_with_a_sentence(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    offsets = pa.py_buffer(b"\0\0\0\0\2\0\0\0\4\0\0\0")
    latin = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"\xe9\xe9ok")])
    dates = pa.array([2**62, 1], pa.timestamp("us"))  # in the year 148,000
    texts = pa.array(["tea", "queue"])
    for number, (table, says) in enumerate(
        [
            (pa.table({"text": latin}), "text that is not UTF-8"),
            (pa.table({"text": dates}), "column 'text' holds timestamp"),
            (pa.table({"text": pa.array([[d] for d in dates.cast("int64").to_pylist()])}), "list<"),
            (
                pa.Table.from_arrays([texts, texts], names=["text", "text"]),
                "column 'text' is there 2 times",
            ),
        ]
    ):
        file = tmp_path / f"{number}.parquet"
        pq.write_table(table, file)
        with pytest.raises(UserError, match=says):
            load(f"table:{file}")


@pytest.mark.parametrize(("spec", "told"), WRONG["paths"].items())
def test_a_path_that_leads_nowhere_is_told(spec: str, told: str, tmp_path: Path) -> None:
    if "dev.tsv" in spec:
        (tmp_path / "dev.tsv").touch()
    with pytest.raises(UserError, match=told.format(folder=tmp_path)):
        load(spec.format(folder=tmp_path))
    with pytest.raises(UserError, match=r"a.csv cannot be read: File name too long"):
        load(f"table:{tmp_path}/{'a' * 5000}.csv")


def test_what_is_no_trouble(tmp_path: Path) -> None:
    """A byte-order mark, Windows line ends, gzip by a name in either case, a text at the limit."""
    for name, content in (
        ("a.csv", b"\xef\xbb\xbftext,mood\r\n\r\ngood,pos\r\n"),
        ("A.CSV.GZ", gzip.compress(HEAD + b"good,pos\n")),
        ("b.csv", HEAD + b"a" * 999_990 + b",pos\n"),
    ):
        (tmp_path / name).write_bytes(content)
        (example,) = load(TABLE.format(file=tmp_path / name))
        assert len(example.text) == (999_990 if name == "b.csv" else 4)
        assert example.labels == {"sentiment": "positive"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", [b"a" * 50_000_000, b'"' + b"a b c d e\n" * 5_000_000], ids=["one line", "one quote"]
)
def test_a_huge_record_takes_little_memory(line: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(HEAD + line)
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=r"line 2.* longer than 1,000,000 characters"):
            load(f"{TABLE}&bad=stop".format(file=tmp_path / "a.csv"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40_000_000


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(["csv", "tsv", "jsonl", "csv.gz"]),
    content=st.lists(
        st.one_of(
            st.binary(max_size=6),
            st.sampled_from(
                [
                    HEAD,
                    b"\n",
                    b'"',
                    b",",
                    b"\t",
                    b"\r",
                    b"good,pos\n",
                    b'{"text": "a", "mood": 1}\n',
                ]
            ),
        ),
        max_size=12,
    ).map(b"".join),
    is_packed=st.booleans(),
)
def test_whatever_a_file_holds_it_is_read_or_explained(
    kind: str, content: bytes, is_packed: bool, tmp_path: Path
) -> None:
    file = tmp_path / f"a.{kind}"
    file.write_bytes(gzip.compress(content) if is_packed else content)
    try:
        loaded = load(TABLE.format(file=file))
    except UserError as error:
        told = str(error)
    else:
        assert all(example.text.strip() for example in loaded)
        return
    assert str(file) in told
