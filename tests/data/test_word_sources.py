"""Sources of words: what is read, what is refused, and that splits keep texts apart."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from time import process_time

import pytest

from litotes.core.errors import UserError
from litotes.data.words import (
    CUTTINGS,
    WORD_SOURCES,
    Entity,
    changed_words,
    cut_text,
    entities_of,
    is_bio,
    load_words,
    longest_stretch,
)

WRONG = tomllib.loads(Path(__file__).with_name("wrong_sources.toml").read_text("utf-8"))
CONLLU = """\
# text = It's not.
1-2\tIt's\t_\t_\t_\t_\t_\t_\t_\t_
1\tIt\tit\tPRON\tPRP\t_\t0\troot\t_\t_
2\t's\tbe\tAUX\tVBZ\t_\t1\tcop\t_\t_
2.1\tsaid\tsay\tVERB\tVBD\t_\t_\t_\t_\t_
3\tnot\tnot\tPART\tRB\t_\t1\tadvmod\t_\t_
4\t.\t.\tPUNCT\t.\t_\t1\tpunct\t_\t_

1\tTea\ttea\tNOUN\tNN\t_\t0\troot\t_\t_
"""


def make(folder: Path, name: str) -> str:
    """Files for a source, and the source that reads them."""
    if name == "ud-ewt":
        (folder / "x-dev.conllu").write_text(CONLLU)
        (folder / "x-test.conllu").write_text(CONLLU.replace("Tea", "Coffee"))
        return f"ud-ewt:{folder}"
    if name == "conll":
        (folder / "train.txt").write_text("-DOCSTART- -X- O\n\nAnn NNP B-PER\nsang VBD O\n")
        (folder / "dev.txt").write_text("Cy NNP B-PER")
        (folder / "test.txt").write_text("Bob NNP B-PER\nslept VBD O\n\n")
        return f"conll:{folder}"
    if name == "words":
        rows = [{"words": ["a", f"b{n}"], "tags": ["X", "Y"], "span": [0, 1]} for n in range(40)]
        (folder / "mine.jsonl").write_text("\n".join(map(json.dumps, rows)))
        return f"words:{folder / 'mine.jsonl'}?test=0.3&words=signs&task=own"
    lines = []
    for number in range(40):
        tweet = f"so great tea {number}"
        meant = (f"so bad tea {number}", tweet, f"so awful tea {number}", tweet, tweet)
        lines += [f"{tweet}, {one}" for one in meant]
    (folder / "train.csv").write_text("\n".join(lines[:104]) + "\n")
    (folder / "test.csv").write_text("\n".join(lines[104:]) + "\n")  # inside a tweet's five
    return f"sarcasm-sign:{folder}"


@pytest.mark.parametrize("name", WORD_SOURCES)
def test_the_contract_of_a_source(name: str, tmp_path: Path) -> None:
    corpus = load_words(make(tmp_path, name))
    assert {"train", "test"} <= set(corpus.splits())
    for one in corpus:
        assert one.words
        assert all(word == word.strip() and word for word in one.words)
        assert one.tags is not None
        assert len(one.tags) == len(one.words)
        assert set(one.tags) <= set(corpus.labels)
    clean, n_leaks = corpus.without_leaks()
    assert len(clean) == len(corpus) - n_leaks
    train = {one.key for one in clean.only("train")}
    assert train
    assert not train & {one.key for one in corpus.only("test")}
    rest, held = load_words(make(tmp_path, "words")).hold_out(0.3, seed=1)
    assert 4 <= len(held) <= 20
    assert len(rest) + len(held) == 40
    assert rest.fingerprint() != held.fingerprint()
    assert (held.cutting, held.task) == ("signs", "own")


def test_conllu_and_conll_word_by_word(tmp_path: Path) -> None:
    corpus = load_words(make(tmp_path, "ud-ewt"))
    first, second, *_ = corpus
    assert (first.words, first.tags) == (("It", "'s", "not", "."), ("PRON", "AUX", "PART", "PUNCT"))
    assert (second.words, second.tags, first.split) == (("Tea",), ("NOUN",), "train")
    assert "no train file" in corpus.notes[0]
    assert corpus.without_leaks()[1] == 1  # It 's not . is in both
    corpus = load_words(make(tmp_path, "conll"))
    assert corpus.labels == ("O", "B-PER")
    assert [(one.text, one.split) for one in corpus] == [
        ("Cy", "valid"),
        ("Bob slept", "test"),
        ("Ann sang", "train"),
    ]
    with pytest.raises(UserError, match='no spans: kind = "span"'):
        corpus.for_kind("span")
    assert corpus.for_kind("tagging") == corpus
    for content, told in (
        ("only\n", "line 1: a word and its tag"),
        ("a\tb\n", "line 1: 2 columns where"),
    ):
        source = "conll" if "word" in told else "ud-ewt"
        (tmp_path / "one.txt").write_text(content)
        with pytest.raises(UserError, match=told):
            load_words(f"{source}:{tmp_path / 'one.txt'}")


def test_the_locus_is_what_two_of_five_changed(tmp_path: Path) -> None:
    corpus = load_words(make(tmp_path, "sarcasm-sign"))
    assert len(corpus) == 40  # the tweet whose lines are in two files is one
    for one in corpus:
        assert one.tags == ("kept", "changed", "kept", "kept")
        assert one.span == (1, 2)
    lines = ["so great tea, so bad tea", *["so great tea, so great tea"] * 4]
    (tmp_path / "train.csv").write_text("\n".join(lines))
    (tmp_path / "test.csv").unlink()
    (one,) = load_words(f"sarcasm-sign:{tmp_path}")  # one interpreter is not enough
    assert (one.tags, one.span, one.has_span) == (("kept",) * 3, None, True)
    assert changed_words(["i", "love", "this", "queue"], ["i", "hate", "this"]) == [1, 3]
    assert changed_words(["it", "is", "great"], ["it", "is", "not", "great"]) == []
    assert longest_stretch("xyyxyyyx", "y") == (4, 7)
    assert longest_stretch("yyxyy", "y") == (0, 2)
    assert longest_stretch("xx", "y") is None


@pytest.mark.parametrize(("line", "problem"), WRONG["words"].items())
def test_bad_lines_are_named(tmp_path: Path, line: str, problem: str) -> None:
    file = tmp_path / "bad.jsonl"
    good = '{"words": ["fine", "tea"], "tags": ["X", "Y"], "span": [0, 2], "split": "dev"}\n'
    file.write_text(good)
    (one,) = load_words(f"words:{file}")
    assert (one.words, one.tags, one.span) == (("fine", "tea"), ("X", "Y"), (0, 2))
    assert one.split == "valid"
    file.write_text(good + line)
    with pytest.raises(UserError, match=problem) as found:
        load_words(f"words:{file}")
    assert "line 2" in str(found.value)


def test_wrong_names_are_answered(tmp_path: Path) -> None:
    options = ("task=a b", "words=none", "test=1", "x=1")
    for spec in ("ud-ewt", "udewt:x", f"conll:{tmp_path}", *(f"conll:x?{one}" for one in options)):
        with pytest.raises(UserError):
            load_words(spec)


def test_entities() -> None:
    tags = ["B-PER", "I-PER", "O", "I-LOC", "B-LOC", "I-PER", None, "I-PER"]
    places = [("PER", 0, 2), ("LOC", 3, 4), ("LOC", 4, 5), ("PER", 5, 6), ("PER", 7, 8)]
    assert entities_of(tags) == tuple(Entity(*place) for place in places)
    assert is_bio(["O", "B-PER", "I-PER"])
    assert not is_bio(["NOUN", "VERB"])
    assert not is_bio(["O"])


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("treebank", "I ca n't wait 15 - minute delays at www.x.org ... it 's 3.5 % , cool !!! :)"),
        ("signs", "I can't wait 15 - minute delays at www.x.org ... it's 3.5 % , cool !!! :)"),
        ("blanks", "I can't wait 15-minute delays at www.x.org ... it's 3.5%, cool!!! :)"),
    ],
)
def test_texts_are_cut_like_the_training_texts(way: str, words: str) -> None:
    text = "I can't wait 15-minute delays at www.x.org ... it's 3.5%, cool!!! :)"
    found = cut_text(text, way)
    assert [word.written for word in found] == words.split()
    assert [text[word.start : word.end] for word in found] == words.split()
    assert [word.written for word in cut_text("Cannot gonna", "treebank")] == [
        "Can",
        "not",
        "gon",
        "na",
    ]
    assert way in CUTTINGS


@pytest.mark.parametrize("unit", ["a!", "aa.", "ab-", "a@", "a.b_", "'’a"])
def test_a_long_text_without_blanks_is_cut_in_no_time(unit: str) -> None:
    """Such a text took a minute when every word was searched for an @ or an ending to its end."""
    text = (unit * 20_000)[:20_000]
    started = process_time()
    words = cut_text(text, "treebank")
    assert process_time() - started < 3
    assert "".join(word.written for word in words) == text


def test_real_files(shared_data: Path) -> None:
    """The figures of the data's own description."""
    treebank = load_words(f"ud-ewt:{shared_data / 'ud-ewt'}")
    assert (len(treebank.only("train")), len(treebank.only("test"))) == (2001, 2077)
    assert len(treebank.labels) == 17
    tweets = load_words(f"sarcasm-sign:{shared_data / 'sarcasm-sign'}")
    assert len(tweets) == 2825
    assert tweets.without_leaks()[1] == 0
