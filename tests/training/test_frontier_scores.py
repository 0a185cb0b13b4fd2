"""The score of a point over several tasks, with an interval over texts that carry both labels."""

from __future__ import annotations

import numpy as np
import pytest

from litotes.core.values import Example, Task
from litotes.data.corpus import Corpus
from litotes.training.distillation.frontier import _mean_score, _scores

LABELS = ("no", "yes")


def corpus(gold: list[int], *, apart: bool) -> Corpus:
    """Texts with both tasks' labels, or each with one."""
    examples = []
    for place, own in enumerate(gold):
        labels = {"a": LABELS[own]} if apart else dict.fromkeys("ab", LABELS[own])
        examples.append(Example(f"t{place}", labels, split="test"))
        if apart:
            examples.append(Example(f"u{place}", {"b": LABELS[own]}, split="test"))
    tasks = {name: Task(name, LABELS) for name in "ab"}
    return Corpus("made", tuple(examples), tasks)


def test_tasks_of_the_same_texts_share_their_luck() -> None:
    """Two tasks that are right and wrong together tell no more than one of them."""
    generator = np.random.default_rng(0)
    gold = generator.integers(0, 2, 200)
    given = np.where(generator.random(200) < 0.75, gold, 1 - gold).tolist()
    answers = [dict.fromkeys("ab", given)]
    widths = {}
    for apart in (False, True):
        test = corpus(gold.tolist(), apart=apart)
        found = _mean_score(test, answers, seed=0)
        assert found is not None
        own = _scores(test, answers, seed=0)["a"]
        assert found.macro_f1 == pytest.approx(own.macro_f1)
        widths[apart] = np.ptp(found.interval) / np.ptp(own.interval)
    assert widths[False] == pytest.approx(1, abs=0.06)
    assert widths[True] == pytest.approx(np.sqrt(0.5), abs=0.06)
