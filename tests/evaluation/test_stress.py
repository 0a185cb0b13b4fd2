"""A stress test's numbers follow from what the model answers; its statistics hold what they say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from litotes.core.errors import UserError
from litotes.core.values import Answer, Example, Prediction, Task
from litotes.data.corpus import Corpus
from litotes.data.rewrites import REWRITES
from litotes.evaluation.stress import (
    ALL,
    findings,
    mean_by_text,
    sign_test,
    stress,
    write_stress,
)

TASK = Task("sentiment", ("negative", "positive"))
CHOSEN = {name: REWRITES[name] for name in ("would-will", "isnt-it", "upper-case", "knifes")}


class FakePredictor:
    """Positive unless the text holds “would”; the longer the text, the less sure."""

    tasks: Mapping[str, Task] = {"sentiment": TASK}

    def predict(
        self, texts: Sequence[str], *, pairs: Sequence[str | None] | None = None
    ) -> list[Prediction]:
        found = []
        for text in texts:
            sure = 0.9 - min(len(text), 100) / 1000
            label = "negative" if "would" in text else "positive"
            other = "positive" if label == "negative" else "negative"
            answer = Answer(label, sure, {label: sure, other: 1 - sure})
            found.append(Prediction(text, {"sentiment": answer}, truncated=False))
        return found


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    examples = []
    for number in range(60):
        text = f"The soup at table {number} was warm and we will certainly come back for that."
        variety = "en-IN" if number % 2 else "en-UK"
        examples.append(Example(text, {"sentiment": "positive"}, variety=variety, split="test"))
    return Corpus("made", tuple(examples), {"sentiment": TASK})


def run(corpus: Corpus, **options: Any) -> Any:
    return stress(cast(Any, FakePredictor()), corpus, CHOSEN, **options)


def test_what_flips_every_answer_is_found(corpus: Corpus) -> None:
    result = run(corpus, n_texts=40)
    rows = {row.rewrite: row for row in result.rows if row.cell == ALL}
    assert set(rows) == {"would-will", "isnt-it", "upper-case"}
    assert result.not_applied == ("knifes",)
    worst = rows["would-will"]
    assert (worst.n, worst.flips.value, worst.n_broken, worst.n_mended) == (40, 1.0, 40, 0)
    assert worst.is_worse_than_control
    assert worst.control is not None
    assert worst.control.flips.value == 0.0
    assert worst.control.flip_difference is not None
    assert worst.control.flip_difference.value == pytest.approx(1.0)
    assert worst.flips.interval[0] > 0.9
    assert rows["isnt-it"].flips.value == 0.0
    assert rows["upper-case"].control is None  # nothing is left alone
    # the longer text is less sure, the control is as long as the text
    assert rows["isnt-it"].change.value == pytest.approx(-0.010, abs=1e-6)
    assert rows["isnt-it"].change_difference is not None
    assert rows["isnt-it"].change_difference.value == pytest.approx(-0.010, abs=1e-6)
    assert [line for line in findings(result) if "would-will" in line]
    # Holm over the two tests of two rewrites
    tests = [one for row in rows.values() for one in (row.flip_difference, row.change_difference)]
    p = sorted(one.p for one in tests if one is not None)
    assert min(one.adjusted_p for one in tests if one is not None) == pytest.approx(4 * p[0])


def test_rows_by_variety_add_up(corpus: Corpus) -> None:
    result = run(corpus)
    for name in ("would-will", "isnt-it"):
        rows = {row.cell: row for row in result.rows if row.rewrite == name}
        assert set(rows) == {ALL, "en-IN", "en-UK"}
        assert rows[ALL].n == rows["en-IN"].n + rows["en-UK"].n == 60
    (indian,) = (row for row in result.varieties if row.variety == "en-IN")
    assert indian.n_rewrites == 2  # would-will and isnt-it are common there
    assert indian.flips.value == pytest.approx(0.5)


def test_few_texts_are_not_tested_and_the_same_seed_draws_the_same(corpus: Corpus) -> None:
    result = run(corpus, seed=5, n_texts=10)
    assert result == run(corpus, seed=5, n_texts=10)
    controls = [row.control for row in result.rows if row.control is not None]
    assert controls
    assert all(control.flip_difference is None for control in controls)


def test_no_text_to_rewrite_is_a_sentence(corpus: Corpus) -> None:
    with pytest.raises(UserError, match="None of the 1 rewrites applies"):
        stress(cast(Any, FakePredictor()), corpus, {"knifes": REWRITES["knifes"]})


def test_page_figure_and_numbers_are_written(corpus: Corpus, tmp_path: Path) -> None:
    result = run(corpus, n_texts=25)
    write_stress(result, CHOSEN, tmp_path)
    kinds = {file.suffix for file in tmp_path.iterdir()}
    assert kinds == {".json", ".svg", ".png", ".html"}
    numbers = json.loads((tmp_path / "stress.json").read_text("utf-8"))
    assert len(numbers["rows"]) == len(result.rows)
    page = (tmp_path / "stress.html").read_text("utf-8")
    assert "would-will" in page
    assert "<svg" in page
    assert ">119<" in page  # its number in eWAVE


def test_the_sign_test_keeps_its_level_and_finds_a_shift() -> None:
    generator = np.random.default_rng(2)
    null = [sign_test(generator.normal(size=30), seed=n) for n in range(60)]
    assert 0 <= sum(p < 0.05 for p in null) <= 9  # 3 expected
    assert np.mean(null) == pytest.approx(0.5, abs=0.15)
    assert sign_test(generator.normal(1, 1, size=30), seed=0) < 0.01
    assert sign_test(np.zeros(5), seed=0) == 1.0


def test_bootstrap_intervals_hold_the_mean() -> None:
    values = np.random.default_rng(3).normal(0.3, 1, 200)
    # every text counted twice says no more than once
    texts = [str(n) for n in range(200)] * 2
    low, high = mean_by_text(texts, np.tile(values, 2), seed=0).interval
    assert low < values.mean() < high
    assert high - low == pytest.approx(2 * 1.96 * values.std() / np.sqrt(200), rel=0.15)
