"""Sources of parallel texts: parts that share no source text, lines that belong together, gathered
interpretations.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from litotes.core.errors import UserError
from litotes.data.parallel import PARALLEL, Pair, load_parallel
from litotes.data.words import load_words


def write(file: Path, *lines: str) -> Path:
    content = "".join(f"{line}\n" for line in lines).encode()
    file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)
    return file


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    for part, n in (("train", 4), ("val", 2), ("test_2016_flickr", 2)):
        # the last training caption is also the first of the test
        names = [f"{part} {number}" for number in range(n)]
        if part == "train":
            names[-1] = "test_2016_flickr 0"
        write(tmp_path / f"{part}.de.gz", *(f"ein {name}" for name in names))
        write(tmp_path / f"{part}.en", *(f"a {name}" for name in names))
    return tmp_path


def test_multi30k_in_both_directions_without_leaks(captions: Path) -> None:
    there = load_parallel(f"multi30k:{captions}?from=de&to=en")
    assert there.train[0] == Pair("ein train 0", ("a train 0",))
    assert (len(there.train), len(there.valid), len(there.test)) == (3, 2, 2)
    assert "1 pairs" in there.notes[0]
    back = load_parallel(f"multi30k:{captions}?from=en&to=de")
    assert back.train[0] == Pair("a train 0", ("ein train 0",))
    assert there.fingerprint() != back.fingerprint()


def test_interpretations_are_gathered_by_tweet(tmp_path: Path) -> None:
    write(
        tmp_path / "train.csv", " love it, hate it", " love it, dislike it", " in both, x", " bad,"
    )
    write(tmp_path / "dev.csv", " so fun, no fun")
    write(tmp_path / "test.csv", " in both, what was meant", " in both, something else")
    texts = load_parallel(f"sign:{tmp_path}")
    assert texts.train == (Pair("love it", ("hate it", "dislike it")),)
    assert texts.test == (Pair("in both", ("what was meant", "something else")),)
    assert any("1 lines without" in note for note in texts.notes)


def test_what_was_meant_may_be_learned_to_stay(tmp_path: Path) -> None:
    write(
        tmp_path / "train.csv",
        " so fun, no fun",
        " so fun, No  fun",
        " so fun, in both",
        " a, so fun",
    )
    write(tmp_path / "test.csv", " in both, x")
    texts = load_parallel(f"sign:{tmp_path}?plain=yes")
    wanted = {"so fun": ("no fun", "No  fun", "in both"), "a": ("so fun",), "No  fun": ("No  fun",)}
    assert {pair.source: pair.targets for pair in texts.train} == wanted
    assert load_parallel(f"sign:{tmp_path}").train == texts.train[:2]


def test_both_uses_of_the_interpretations_know_the_same_tweets(tmp_path: Path) -> None:
    """A line without the blank after its comma, a tweet in capitals, a person who said nothing."""
    lines = ["love it!,hate it!", "Love  it!, i hate it!", "so fun,", "so fun, no, not fun"]
    write(tmp_path / "train.csv.gz", *lines)
    texts, words = load_parallel(f"sign:{tmp_path}"), load_words(f"sarcasm-sign:{tmp_path}")
    assert texts.train == (
        Pair("love it!", ("hate it!", "i hate it!")),
        Pair("so fun", ("no, not fun",)),
    )
    assert {one.text for one in words} == {pair.source for pair in texts.train}
    assert texts.notes == words.notes == ("1 lines without an interpretation were left out.",)
    assert [one.tags for one in words] == [("changed", "kept"), ("changed", "kept")]
    write(tmp_path / "train.csv.gz", "no comma")
    for load in (load_parallel, load_words):
        name = "sign" if load is load_parallel else "sarcasm-sign"
        with pytest.raises(UserError, match="line 1: a tweet, a comma"):
            load(f"{name}:{tmp_path}")


def test_case_and_blanks_do_not_carry_a_text_into_another_part(tmp_path: Path) -> None:
    rows = []
    for number in range(60):
        rows += [f"Text  {number}\tone", f"text {number}\tother"]
    texts = load_parallel(f"tsv:{write(tmp_path / 'pairs.tsv', *rows)}?test=0.3")
    assert not {pair.key for pair in texts.train} & {pair.key for pair in texts.test}
    assert len(texts.test) == 36


def test_real_interpretations_share_no_tweet(shared_data: Path) -> None:
    texts = load_parallel(f"sign:{shared_data / 'sarcasm-sign'}")
    parts = [{pair.source for pair in part} for part in (texts.train, texts.valid, texts.test)]
    assert not parts[0] & parts[1]
    assert not (parts[0] | parts[1]) & parts[2]
    assert len(texts.train) > 2200
    words = load_words(f"sarcasm-sign:{shared_data / 'sarcasm-sign'}")
    tweets = {pair.key for part in (texts.train, texts.valid, texts.test) for pair in part}
    assert {one.key for one in words} == tweets
    assert sum(len(pair.targets) >= 5 for pair in texts.test) == len(texts.test) > 250


def test_files_of_ones_own_are_divided_by_text(tmp_path: Path) -> None:
    rows = [f"text {number // 2}\tother {number}" for number in range(200)]
    texts = load_parallel(f"tsv:{write(tmp_path / 'pairs.tsv', *rows)}?test=0.2")
    assert len(texts.train) + len(texts.valid) + len(texts.test) == 200
    assert len(texts.test) == 40
    assert not {pair.source for pair in texts.train} & {pair.source for pair in texts.test}
    one = write(tmp_path / "a.txt", *(f"text {number}" for number in range(20)))
    two = write(tmp_path / "b.txt.gz", *(f"other {number}" for number in range(20)))
    both = load_parallel(f"lines:{one}?to={two}&valid=0&test=0")
    assert both.train[3] == Pair("text 3", ("other 3",))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("multi31k:x", "Did you mean 'multi30k'"),
        ("sign", "needs a path"),
        ("tsv:FOLDER/none.tsv", "does not exist"),
        ("tsv:FOLDER/bad.tsv", "line 2: 3 columns"),
        ("tsv:FOLDER/ok.tsv?tets=0.1", "Did you mean 'test'"),
        ("tsv:FOLDER/ok.tsv?test=0.6&valid=0.6", "nothing to learn from"),
        ("lines:FOLDER/ok.tsv", "second file"),
        ("lines:FOLDER/ok.tsv?to=FOLDER/bad.tsv", "1 lines on one side and 2"),
        ("multi30k:FOLDER/none", "not a folder"),
        ("sign:FOLDER/none", "not a folder"),
        ("sign:FOLDER?part=dev", "no option of sign .part.. Known: plain"),
        ("tsv:FOLDER/nul.tsv", "line 1 holds a NUL byte"),
        ("tsv:~nobody-of-this-name/x.tsv", "no home folder"),
        ("multi30k:FOLDER?from=de&to=de", "the same language"),
    ],
)
def test_what_is_wrong_is_said(spec: str, words: str, tmp_path: Path) -> None:
    write(tmp_path / "bad.tsv", "a\tb", "a\tb\tc")
    write(tmp_path / "ok.tsv", "a\tb")
    write(tmp_path / "nul.tsv", "a\0\tb")
    with pytest.raises(UserError, match=words):
        load_parallel(spec.replace("FOLDER", str(tmp_path)))


def test_every_source_has_an_example() -> None:
    for name, source in PARALLEL.items():
        assert source.example.startswith(f"{name}:")
        assert source.about
