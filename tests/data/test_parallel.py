"""Sources of parallel texts: parts that share no source text, lines that belong together, gathered
interpretations.
"""

from __future__ import annotations

import gzip
import tomllib
from pathlib import Path

import pytest

from litotes.core.errors import UserError
from litotes.data.parallel import PARALLEL, Pair, load_parallel
from litotes.data.words import load_words

WRONG = tomllib.loads(Path(__file__).with_name("wrong_sources.toml").read_text("utf-8"))


def write(file: Path, *lines: str) -> Path:
    content = "".join(f"{line}\n" for line in lines).encode()
    file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)
    return file


def test_multi30k_in_both_directions_without_leaks(tmp_path: Path) -> None:
    parts = {"train": 4, "val": 2, "test_2016_flickr": 2}
    for part, n in parts.items():
        names = [f"{part} {number}" for number in range(n)]
        if part == "train":
            names[-1] = "test_2016_flickr 0"  # the first of the test
        write(tmp_path / f"{part}.de.gz", *(f"ein {name}" for name in names))
        write(tmp_path / f"{part}.en", *(f"a {name}" for name in names))
    there = load_parallel(f"multi30k:{tmp_path}?from=de&to=en")
    assert there.train[0] == Pair("ein train 0", ("a train 0",))
    assert (len(there.train), len(there.valid), len(there.test)) == (3, 2, 2)
    assert "1 pairs" in there.notes[0]
    back = load_parallel(f"multi30k:{tmp_path}?from=en&to=de")
    assert back.train[0] == Pair("a train 0", ("ein train 0",))
    assert there.fingerprint() != back.fingerprint()


def test_interpretations_are_gathered_by_tweet(tmp_path: Path) -> None:
    lines = ("love it, hate it", "Love  it,dislike it", "in both, x", "bad,", "so fun, No  fun")
    write(tmp_path / "train.csv.gz", *lines, "so fun, in both", "a, so fun")
    write(tmp_path / "test.csv", " in both, what was meant", " in both, one, or two")
    texts = load_parallel(f"sign:{tmp_path}")
    own = {"love it": ("hate it", "dislike it"), "so fun": ("No  fun", "in both")}
    assert {one.source: one.targets for one in texts.train} == {**own, "a": ("so fun",)}
    assert texts.test == (Pair("in both", ("what was meant", "one, or two")),)
    assert "1 pairs whose source text also sits in a later part were left out." in texts.notes
    words = load_words(f"sarcasm-sign:{tmp_path}")
    assert {one.text for one in words} == {*own, "a", "in both"}
    assert words.notes == texts.notes[:1] == ("1 lines without an interpretation were left out.",)
    plain = load_parallel(f"sign:{tmp_path}?plain=yes").train
    assert plain[:3] == texts.train
    assert {one.source for one in plain[3:]} == {"hate it", "dislike it", "No  fun", "x"}
    assert all(one.targets == (one.source,) for one in plain[3:])
    write(tmp_path / "train.csv.gz", "no comma")
    for load, name in ((load_parallel, "sign"), (load_words, "sarcasm-sign")):
        with pytest.raises(UserError, match="line 1: a tweet, a comma"):
            load(f"{name}:{tmp_path}")


def test_real_interpretations_share_no_tweet(shared_data: Path) -> None:
    texts = load_parallel(f"sign:{shared_data / 'sarcasm-sign'}")
    train, valid, test = (
        {pair.key for pair in part} for part in (texts.train, texts.valid, texts.test)
    )
    assert not train & valid
    assert not (train | valid) & test
    assert len(texts.train) > 2200
    words = load_words(f"sarcasm-sign:{shared_data / 'sarcasm-sign'}")
    assert {one.key for one in words} == train | valid | test
    assert sum(len(pair.targets) >= 5 for pair in texts.test) == len(texts.test) > 250


def test_files_of_ones_own_are_divided_by_text(tmp_path: Path) -> None:
    """Case and blanks do not carry a text into another part."""
    rows = [f"{('Text  ', 'text ')[n % 2]}{n // 2}\tother {n}" for n in range(200)]
    file = write(tmp_path / "pairs.tsv", *rows, " \tleft out")
    texts = load_parallel(f"tsv:{file}?test=0.2")
    assert (len(texts.train), len(texts.valid), len(texts.test)) == (150, 10, 40)
    assert not {pair.key for pair in texts.train} & {pair.key for pair in texts.test}
    one = write(tmp_path / "a.txt", *(f"text {number}" for number in range(20)))
    two = write(tmp_path / "b.txt.gz", *(f"other {number}" for number in range(20)))
    both = load_parallel(f"lines:{one}?to={two}&valid=0&test=0")
    assert both.train[3] == Pair("text 3", ("other 3",))
    assert len(both.train) == 20


@pytest.mark.parametrize(("spec", "words"), WRONG["parallel"].items())
def test_what_is_wrong_is_said(spec: str, words: str, tmp_path: Path) -> None:
    write(tmp_path / "bad.tsv", "a\tb", "a\tb\tc")
    write(tmp_path / "ok.tsv", "a\tb")
    write(tmp_path / "nul.tsv", "a\0\tb")
    with pytest.raises(UserError, match=words):
        load_parallel(spec.replace("FOLDER", str(tmp_path)))
    for name, source in PARALLEL.items():
        assert source.example.startswith(f"{name}:")
        assert source.about
