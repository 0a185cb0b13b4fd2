"""Two models on the same texts, by hand: whose answers are compared with whose, and under which
numbers.
"""

from __future__ import annotations

import json

import pytest

from litotes.core.errors import UserError
from litotes.core.values import Answer, Example, Task
from litotes.data.corpus import Corpus
from litotes.evaluation.evaluate import TaskPredictions, compare_models
from litotes.evaluation.significance import holm

WORDS = ("negative", "positive")
EXAMPLES = tuple(
    Example(
        f"text {number}",
        {"sentiment": WORDS[number % 2]},
        variety=("en-AU", "en-UK")[number // 60],
        source="Forum",
        split="test",
    )
    for number in range(120)
)
CORPUS = Corpus("made", EXAMPLES, {"sentiment": Task("sentiment", WORDS)})


def predictions(n_right: int, *, labels: tuple[str, ...] = WORDS) -> dict[str, TaskPredictions]:
    """The first n_right of each variety are right."""
    wrong = {"negative": "positive", "positive": "negative"}
    gold = [str(example.labels["sentiment"]) for example in EXAMPLES]
    answers = tuple(
        Answer(word if place % 60 < n_right else wrong[word], 0.9)
        for place, word in enumerate(gold)
    )
    return {
        "sentiment": TaskPredictions(
            Task("sentiment", labels),
            EXAMPLES,
            answers,
            truncated=(False,) * len(EXAMPLES),
            unreadable=(False,) * len(EXAMPLES),
        )
    }


def test_all_and_every_cell_with_one_correction() -> None:
    rows = compare_models(predictions(54), predictions(30), CORPUS)
    assert [row.cell for row in rows] == ["all", "en-AU Forum", "en-UK Forum"]
    assert [row.difference.difference for row in rows] == pytest.approx([0.4] * 3)
    assert all(row.is_significant for row in rows)
    assert all(row.adjusted_p >= row.difference.p for row in rows)
    assert [row.adjusted_p for row in rows] == list(holm([row.difference.p for row in rows]))
    content = json.loads(json.dumps(rows[0].as_json()))
    assert (content["cell"], content["n"], content["significant"]) == ("all", 120, True)


def test_the_other_way_round_is_the_opposite() -> None:
    assert compare_models(predictions(30), predictions(54), CORPUS)[
        0
    ].difference.difference == pytest.approx(-0.4)


def test_a_model_against_itself() -> None:
    for row in compare_models(predictions(40), predictions(40), CORPUS):
        assert (row.difference.difference, row.difference.p, row.is_significant) == (0, 1, False)


def test_labels_in_another_order_are_the_same_labels() -> None:
    for row in compare_models(
        predictions(40), predictions(40, labels=("positive", "neutral", "negative")), CORPUS
    ):
        assert row.difference.difference == 0


def test_nothing_in_common_is_a_mistake() -> None:
    other = {"sarcasm": predictions(40)["sentiment"]}
    with pytest.raises(UserError, match="one answers sentiment, the other sarcasm"):
        compare_models(predictions(40), other, CORPUS)


def test_the_calibration_error_stands_with_the_scores() -> None:
    scores = predictions(54)["sentiment"].scores()
    # 0.9 sure, 0.9 right
    assert scores.as_json()["calibration_error"] == pytest.approx(0.0, abs=1e-9)
    assert predictions(30)["sentiment"].reliability().ece == pytest.approx(0.4)
