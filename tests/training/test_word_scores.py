"""Scores of tags and spans against scikit-learn and by hand."""

from __future__ import annotations

from itertools import chain

import pytest
from sklearn.metrics import accuracy_score, f1_score

from litotes.data.words import WordExample
from litotes.training.tagging.scores import (
    most_frequent_tags,
    score_spans,
    score_tags,
    span_overlap,
)

LABELS = ("a", "b", "c")
GOLD = [list("abca"), list("bb"), list("cabab"), list("a")]
FOUND = [list("abba"), list("ab"), list("cacab"), list("b")]


def test_words_as_scikit_learn_counts_them() -> None:
    scores = score_tags("t", LABELS, GOLD, FOUND)
    gold, found = [*chain(*GOLD)], [*chain(*FOUND)]
    assert scores.accuracy == pytest.approx(accuracy_score(gold, found))
    assert scores.macro_f1 == pytest.approx(f1_score(gold, found, average="macro"))
    by_label = f1_score(gold, found, average=None, labels=list(LABELS))
    assert [one.f1 for one in scores.labels] == pytest.approx(list(by_label))
    assert scores.n_words == len(gold)
    assert scores.interval[0] < scores.accuracy < scores.interval[1]
    assert scores.entity_f1 is None


def test_a_word_without_an_answer_is_wrong() -> None:
    scores = score_tags("t", LABELS, [list("ab")], [["a", None]])
    assert scores.accuracy == 0.5
    assert [one.recall for one in scores.labels] == [1, 0, 0]


def test_entities_count_whole() -> None:
    gold = [["B-P", "I-P", "O", "B-L"], ["O", "B-P"]]
    found = [["B-P", "O", "O", "B-L"], ["O", "B-P"]]
    scores = score_tags("t", ("O", "B-L", "B-P", "I-P"), gold, found)
    # 3 meant, 3 found, 2 of them whole
    assert scores.entity_f1 == pytest.approx(2 / 3)
    assert scores.n_entities == 3
    assert score_tags("t", ("O", "B-L", "B-P", "I-P"), gold, gold).entity_f1 == 1


def test_spans() -> None:
    assert span_overlap((0, 4), (2, 6)) == pytest.approx(0.5)
    assert span_overlap((0, 2), (2, 4)) == 0
    assert span_overlap(None, None) == 1
    assert span_overlap(None, (0, 1)) == 0
    scores = score_spans("t", [(0, 4), None, (1, 2)], [(2, 6), None, (1, 2)])
    assert scores.exact_match == pytest.approx(2 / 3)
    assert scores.overlap_f1 == pytest.approx(2.5 / 3)
    assert scores.majority == pytest.approx(1 / 3)


def test_resamples_take_whole_texts() -> None:
    """One text has all mistakes: with it twice or not at all the score moves by much."""
    gold, found = [["a"] * 50, ["a"] * 50], [["a"] * 50, ["b"] * 50]
    assert score_tags("t", LABELS, gold, found).interval == (0.0, 1.0)


def test_the_most_frequent_tag_of_each_word() -> None:
    train = [
        WordExample(("can", "can", "rust"), ("AUX", "AUX", "VERB")),
        WordExample(("can", "sand", "Tin"), ("NOUN", "NOUN", "NOUN")),
    ]
    test = [WordExample(("can", "CAN", "tin", "zebra"))]
    assert most_frequent_tags(train, test) == [["AUX", "AUX", "NOUN", "NOUN"]]
