"""Sources of words: what is read, what is refused, and that splits keep texts apart."""

from __future__ import annotations

import json
from pathlib import Path
from time import process_time

import pytest

from litotes.core.errors import UserError
from litotes.data.words import (
    CUTTINGS,
    WORD_SOURCES,
    Entity,
    WordCorpus,
    changed_words,
    cut_text,
    entities_of,
    is_bio,
    load_words,
    longest_stretch,
)

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
        (folder / "test.txt").write_text("Bob NNP B-PER\nslept VBD O\n\n")
        return f"conll:{folder}"
    if name == "words":
        rows = [{"words": ["a", f"b{n}"], "tags": ["X", "Y"], "span": [0, 1]} for n in range(40)]
        (folder / "mine.jsonl").write_text("\n".join(map(json.dumps, rows)))
        return f"words:{folder / 'mine.jsonl'}?test=0.3"
    lines = []
    for number in range(40):
        tweet = f"so great tea {number}"
        meant = (f"so bad tea {number}", tweet, f"so awful tea {number}", tweet, tweet)
        lines += [f"{tweet}, {one}" for one in meant]
    (folder / "train.csv").write_text("\n".join(lines[:104]) + "\n")
    (folder / "test.csv").write_text("\n".join(lines[104:]) + "\n")  # inside a tweet's five
    return f"sarcasm-sign:{folder}"


@pytest.fixture(params=sorted(WORD_SOURCES))
def corpus(request: pytest.FixtureRequest, tmp_path: Path) -> WordCorpus:
    return load_words(make(tmp_path, request.param))


def test_the_contract_of_a_source(corpus: WordCorpus) -> None:
    assert set(corpus.splits()) == {"train", "test"}
    for one in corpus:
        assert one.words
        assert all(word == word.strip() and word for word in one.words)
        assert one.tags is not None
        assert len(one.tags) == len(one.words)
        assert set(one.tags) <= set(corpus.labels)
    train = {one.key for one in corpus.without_leaks()[0].only("train")}
    assert train
    assert not train & {one.key for one in corpus.only("test")}
    assert corpus.cutting in CUTTINGS


def test_conllu_leaves_out_what_is_not_a_word(tmp_path: Path) -> None:
    corpus = load_words(make(tmp_path, "ud-ewt"))
    first = corpus.examples[0]
    assert first.words == ("It", "'s", "not", ".")
    assert first.tags == ("PRON", "AUX", "PART", "PUNCT")
    assert first.split == "train"
    assert "no train file" in corpus.notes[0]
    assert corpus.without_leaks()[1] == 1  # It 's not . is in both


def test_the_locus_is_what_two_of_five_changed(tmp_path: Path) -> None:
    corpus = load_words(make(tmp_path, "sarcasm-sign"))
    assert len(corpus) == 40  # the tweet whose lines are in two files is one
    for one in corpus:
        assert one.tags == ("kept", "changed", "kept", "kept")
        assert one.span == (1, 2)


def test_one_interpreter_is_not_enough(tmp_path: Path) -> None:
    lines = ["so great tea, so bad tea", *["so great tea, so great tea"] * 4]
    (tmp_path / "train.csv").write_text("\n".join(lines))
    (one,) = load_words(f"sarcasm-sign:{tmp_path}")
    assert one.tags == ("kept",) * 3
    assert one.span is None
    assert one.has_span


def test_changes_word_by_word() -> None:
    assert changed_words(["i", "love", "this", "queue"], ["i", "hate", "this"]) == [1, 3]
    assert changed_words(["it", "is", "great"], ["it", "is", "not", "great"]) == []
    assert longest_stretch("xyyxyyyx", "y") == (4, 7)
    assert longest_stretch("yyxyy", "y") == (0, 2)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"words": []}', "no words"),
        ('{"words": ["a b"]}', "not one word"),
        ('{"words": ["a"], "tags": ["X", "Y"]}', "one for each word"),
        ('{"words": ["a"], "span": [0, 2]}', "span"),
        ('{"words": ["a"], "span": [1, 1]}', "span"),
        ('{"words": "a"}', "list of strings"),
        ('{"words": ["a"], "split": ["test"]}', "the split"),
        ('{"words": ["a"], "tags": ["X\\u001b[2J"]}', "cannot be printed"),
        ('{"words": ["\\ud800"], "tags": ["X"]}', "half a character"),
        ("not json", "JSON"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, line: str, problem: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text('{"words": ["fine"], "tags": ["X"]}\n' + line)
    with pytest.raises(UserError, match=problem) as found:
        load_words(f"words:{file}")
    assert "line 2" in str(found.value)


def test_wrong_names_are_answered(tmp_path: Path) -> None:
    for spec in ("ud-ewt", "udewt:x", f"ud-ewt:{tmp_path}?x=1", f"conll:{tmp_path}"):
        with pytest.raises(UserError):
            load_words(spec)


def test_entities() -> None:
    tags = ["B-PER", "I-PER", "O", "I-LOC", "B-LOC", "I-PER", None, "I-PER"]
    assert entities_of(tags) == (
        Entity("PER", 0, 2),
        Entity("LOC", 3, 4),
        Entity("LOC", 4, 5),
        Entity("PER", 5, 6),
        Entity("PER", 7, 8),
    )
    assert is_bio(["O", "B-PER", "I-PER"])
    assert not is_bio(["NOUN", "VERB"])
    assert not is_bio(["O"])


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("treebank", "I ca n't wait 15 - minute delays at www.x.org ... it 's 3.5 % , cool !!! :)"),
        ("signs", "I can't wait 15 - minute delays at www.x.org ... it's 3.5 % , cool !!! :)"),
    ],
)
def test_texts_are_cut_like_the_training_texts(way: str, words: str) -> None:
    text = "I can't wait 15-minute delays at www.x.org... it's 3.5%, cool!!! :)"
    text = text.replace("www.x.org...", "www.x.org ...")
    found = cut_text(text, way)
    assert [word.written for word in found] == words.split()
    assert [text[word.start : word.end] for word in found] == words.split()


@pytest.mark.parametrize("unit", ["a!", "aa.", "ab-", "a@", "a.b_", "'’a"])
def test_a_long_text_without_blanks_is_cut_in_no_time(unit: str) -> None:
    """Such a text took a minute when every word was searched for an @ or an ending to its end."""
    text = (unit * 20_000)[:40_000]
    started = process_time()
    words = cut_text(text, "treebank")
    assert process_time() - started < 5
    assert "".join(word.written for word in words) == text


def test_real_files(shared_data: Path) -> None:
    """The figures of the data's own description."""
    if not (shared_data / "ud-ewt").is_dir():
        pytest.skip("ud-ewt is not on this machine")
    treebank = load_words(f"ud-ewt:{shared_data / 'ud-ewt'}")
    assert (len(treebank.only("train")), len(treebank.only("test"))) == (2001, 2077)
    assert len(treebank.labels) == 17
    tweets = load_words(f"sarcasm-sign:{shared_data / 'sarcasm-sign'}")
    assert len(tweets) == 2825
    assert tweets.without_leaks()[1] == 0
