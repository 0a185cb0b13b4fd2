"""Scores of a corpus over all of it and by cell, and two models on the same texts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from litotes.core.errors import UserError
from litotes.core.values import Answer, Example, Task
from litotes.data.corpus import NAMELESS, ColumnNames, Corpus
from litotes.data.sources import load
from litotes.evaluation.evaluate import (
    CellScores,
    TaskPredictions,
    compare_models,
    evaluate,
    score_warnings,
    select_fair_texts,
)
from litotes.evaluation.significance import holm
from litotes.model.folder import text_hash
from litotes.prediction.predictor import Predictor


@pytest.fixture
def predictor(trained_folder: Path) -> Predictor:
    return Predictor.load(trained_folder, device="cpu")


def test_scores_by_cell_and_over_all(predictor: Predictor) -> None:
    corpus = load("sampler").where(split="test", task="sentiment")
    rows = evaluate(predictor, corpus)
    assert [row.cell for row in rows] == ["all", *(str(cell) for cell in corpus.cells())]
    assert rows[0].scores.n == len(corpus) == sum(row.scores.n for row in rows[1:])
    assert [CellScores.from_json(row.as_json()) for row in rows] == list(rows)


def test_unreadable_texts_are_counted_and_told(predictor: Predictor) -> None:
    corpus = load("sampler").where(split="test", task="sarcasm")
    first, second, *others = corpus.examples
    emoji, blank = replace(first, text="😀"), replace(second, text="\u200b")
    rows = evaluate(predictor, replace(corpus, examples=(emoji, blank, *others)))
    assert rows[0].n_unreadable == sum(row.n_unreadable for row in rows[1:]) == 2
    told = f"2 of {len(corpus)} sarcasm texts tested on are unreadable"
    assert any(warning.startswith(told) for warning in score_warnings(rows))


def test_a_collapsed_model_is_called_one(predictor: Predictor) -> None:
    head = predictor.runtimes[0].model().classifier.heads["sarcasm"].output
    head.weight.data.zero_()
    head.bias.data.copy_(head.bias.data.new_tensor([1.0, 0.0]))
    rows = evaluate(predictor, load("sampler").where(split="test", task="sarcasm"))
    cut, *warnings = score_warnings(rows)
    # the tiny encoder reads 96 pieces
    assert cut.startswith(f"{rows[0].n_truncated} of {rows[0].scores.n} sarcasm texts")
    assert rows[0].n_truncated > 100
    assert len(warnings) == len(rows)
    assert "COLLAPSED" in warnings[0]
    assert "'literal'" in warnings[0]
    assert rows[0].scores.macro_f1 == rows[0].scores.majority


@pytest.mark.parametrize(
    ("label", "task", "message"),
    [
        ("neutral", Task("sentiment", ("negative", "neutral", "positive")), "'neutral'"),
        ("a", Task("topic", ("a", "b")), "Nothing to score"),
        (0.5, Task("sentiment", ()), "with a number"),
        (("a",), Task("sentiment", ("a", "b"), multi_label=True), "with several labels"),
    ],
)
def test_labels_must_fit_the_model(
    predictor: Predictor, label: object, task: Task, message: str
) -> None:
    example = Example("tea", {task.name: label})  # type: ignore[dict-item]
    with pytest.raises(UserError, match=message):
        evaluate(predictor, Corpus("other", (example,), {task.name: task}))


def test_texts_without_a_split_are_those_that_are_new() -> None:
    texts = tuple(Example(f"tea {n}", {"mood": "a"}, split="train") for n in range(4))
    corpus = Corpus("bare", texts, {"mood": Task("mood", ("a", "b"))})
    hashes = [text_hash(one) for one in texts]
    new = select_fair_texts(corpus, frozenset(hashes[:1]))
    assert (new.examples, new.notes[0].split(": ")[1]) == (
        texts[1:],
        "the 3 texts that the model was not trained on are used, 1 others are left out.",
    )
    all_of_them, unknown = (select_fair_texts(corpus, one) for one in (frozenset(), None))
    assert all_of_them.notes == ("bare has no split: all of its 4 texts are used.",)
    assert unknown.notes[0].startswith(f"{all_of_them.notes[0]} Whether the model was trained")
    with pytest.raises(UserError, match="trained on all 4 texts"):
        select_fair_texts(corpus, frozenset(hashes))
    split = replace(corpus, examples=(*texts, replace(texts[0], split="test")))
    (note,) = select_fair_texts(split, frozenset(hashes[:1])).notes
    assert note.startswith("WARNING: the model was trained on 1 of these 1 texts")


def test_texts_without_a_name_are_not_called_all_of_them(predictor: Predictor) -> None:
    """As when a corpus of varieties is joined to one without."""
    corpus = load("sampler").where(split="test", task="sentiment")
    nameless = tuple(
        replace(one, variety=None, source=None) if place % 2 else one
        for place, one in enumerate(corpus)
    )
    mixed = replace(corpus, examples=nameless)
    rows = evaluate(predictor, mixed)
    names = [row.cell for row in rows]
    assert len(set(names)) == len(names)
    assert names.count("all") == names.count(NAMELESS) == 1
    assert [row.scores.n for row in rows if row.cell == NAMELESS] == [len(corpus) // 2]
    columns = dict.fromkeys(map(ColumnNames(nameless, "variety").name, nameless))
    assert NAMELESS in columns
    assert "all" not in columns
    bare = [replace(one, variety=None) for one in corpus]
    assert set(map(ColumnNames(bare, "variety").name, bare)) == {"all"}


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
