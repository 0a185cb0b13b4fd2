from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from litotes.core.errors import UserError
from litotes.core.values import Task
from litotes.data.corpus import NAMELESS, ColumnNames, Corpus
from litotes.data.sources import load
from litotes.evaluation.evaluate import CellScores, evaluate, score_warnings
from litotes.evaluation.scores import Scores
from litotes.prediction.predictor import Predictor


@pytest.fixture
def predictor(trained_folder: Path) -> Predictor:
    return Predictor.load(trained_folder, device="cpu")


def test_scores_by_cell_and_over_all(predictor: Predictor) -> None:
    corpus = load("sampler").where(split="test", task="sentiment")
    rows = evaluate(predictor, corpus)
    assert [row.cell for row in rows] == ["all", *(str(cell) for cell in corpus.cells())]
    assert rows[0].scores.n == len(corpus) == sum(row.scores.n for row in rows[1:])


def test_scores_of_an_older_version_are_still_read(predictor: Predictor) -> None:
    rows = evaluate(predictor, load("sampler").where(split="test", task="sentiment"))
    assert CellScores.from_json(rows[0].as_json()) == rows[0]
    older = {key: value for key, value in rows[0].as_json().items() if key != "calibration_error"}
    scores = CellScores.from_json(older).scores
    assert isinstance(scores, Scores)
    assert scores.calibration_error is None


def test_unreadable_texts_are_counted_and_told(predictor: Predictor) -> None:
    corpus = load("sampler").where(split="test", task="sarcasm")
    first, second, *others = corpus.examples
    emoji, blank = replace(first, text="😀"), replace(second, text="\u200b")
    rows = evaluate(predictor, replace(corpus, examples=(emoji, blank, *others)))
    assert rows[0].n_unreadable == sum(row.n_unreadable for row in rows[1:]) == 2
    told = f"2 of {len(corpus)} sarcasm texts tested on are unreadable"
    assert any(warning.startswith(told) for warning in score_warnings(rows))
    assert CellScores.from_json(rows[0].as_json()) == rows[0]
    older = {key: value for key, value in rows[0].as_json().items() if key != "n_unreadable"}
    assert CellScores.from_json(older).n_unreadable == 0


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


def test_labels_the_model_does_not_know(predictor: Predictor) -> None:
    corpus = load("sampler").where(split="test")
    strange = replace(corpus.examples[0], labels={"sentiment": "neutral"})
    three = Corpus(
        "three", (strange,), {"sentiment": Task("sentiment", ("negative", "neutral", "positive"))}
    )
    with pytest.raises(UserError, match="'neutral'"):
        evaluate(predictor, three)


def test_nothing_in_common(predictor: Predictor) -> None:
    corpus = Corpus("other", load("sampler").examples[:2], {"topic": Task("topic", ("a", "b"))})
    with pytest.raises(UserError, match="Nothing to score"):
        evaluate(predictor, corpus)


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
