"""Slices: nothing is found in random mistakes, what was planted is, and what is no more than its
cells and labels is called so.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from litotes.core.errors import UserError
from litotes.core.values import Answer, Example, Task
from litotes.evaluation import slices
from litotes.evaluation.evaluate import TaskPredictions
from litotes.evaluation.slices import (
    FEWEST,
    N_KEPT,
    Slices,
    divide,
    draw_slices,
    find_candidates,
    find_slices,
    findings,
    stratified_difference,
    words_of,
    write_slices,
)

TASK = Task("mood", ("calm", "angry"))
WORDS = [f"w{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(120)]
PLANTED = WORDS[7]
USUAL = 0.2
"""The error rate where nothing is planted."""


def predictions(rows: list[tuple[str, str, int, bool]]) -> TaskPredictions:
    """Rows of a text, its variety, its gold class, and whether the answer is wrong."""
    examples = [
        Example(text, {"mood": TASK.labels[gold]}, variety=variety)
        for text, variety, gold, _ in rows
    ]
    answers = [Answer(TASK.labels[gold != is_wrong], 0.8) for *_, gold, is_wrong in rows]
    flags = (False,) * len(rows)
    return TaskPredictions(TASK, tuple(examples), tuple(answers), flags, flags)


def random_corpus(n: int, seed: int, *, inside: float = USUAL) -> TaskPredictions:
    """N texts of 5 to 29 of the words; those with the planted word are wrong at the rate
    `inside`.
    """
    generator = np.random.default_rng(seed)
    rows = []
    for number in range(n):
        words = generator.choice(WORDS, size=int(generator.integers(5, 30)), replace=False)
        gold = int(generator.random() < 0.4)
        is_wrong = bool(generator.random() < (inside if PLANTED in words else USUAL))
        variety = ("a", "b")[int(generator.integers(2))]
        rows.append((" ".join([f"x{number}", *words]), variety, gold, is_wrong))
    return predictions(rows)


@pytest.fixture
def without_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    """No random text shows a feature, and looking for them takes long."""
    monkeypatch.setattr(slices, "signs_of", lambda text: [])


@pytest.mark.slow
@pytest.mark.usefixtures("without_signs")
def test_random_mistakes_have_no_slices() -> None:
    n_wrong = n_kept = 0
    n_corpora = 40
    for seed in range(n_corpora):
        found = find_slices({"mood": random_corpus(300, seed)}, seed=seed)
        assert found.n_candidates["mood"] > 20
        n_kept += len(found.slices)
        n_wrong += bool(found.confirmed())
    assert n_kept > n_corpora  # chance alone keeps some on the first half
    assert n_wrong <= 0.05 * n_corpora + 3 * np.sqrt(0.05 * 0.95 * n_corpora)


@pytest.mark.usefixtures("without_signs")
def test_a_planted_word_is_found_measured_and_told(tmp_path: Path) -> None:
    result = random_corpus(800, 1, inside=0.55)
    found = find_slices({"mood": result}, seed=1)
    one, *_ = found.confirmed()
    assert (one.kind, one.name, one.task) == ("word", PLANTED, "mood")
    assert not one.is_explained  # it is hard within every variety and label
    assert one.verdict == "confirmed"
    # its numbers are those of the second half
    wrong = result.gold() != result.predicted()
    own = np.array([PLANTED in example.text for example in result.examples])
    searched = divide(result.examples, seed=1)
    inside, outside = wrong[own & ~searched].mean(), wrong[~own & ~searched].mean()
    assert one.n == (int((own & ~searched).sum()), int((~own & ~searched).sum()))
    assert (one.error, one.difference) == pytest.approx((inside, inside - outside))
    first = wrong[own & searched].mean() - wrong[~own & searched].mean()
    assert one.searched == pytest.approx(first)
    assert one.interval[0] < one.difference < one.interval[1]
    assert len(found.slices) <= N_KEPT
    assert any(f"mood, word {PLANTED}: " in sentence for sentence in findings(found))
    write_slices(found, tmp_path)
    page = (tmp_path / "slices.html").read_text()
    assert "not confirmed" in page
    assert PLANTED in page
    content = json.loads((tmp_path / "slices.json").read_text())["slices"]
    assert (content[0]["confirmed"], content[0]["explained"]) == (True, False)
    draw_slices(find_slices({"mood": random_corpus(60, 1)}, seed=1)).draw_without_rendering()
    # what matching leaves open is not called nothing
    unclear = replace(one, kind="variety", matched=0.02, matched_interval=(-0.1, 0.14))
    alone = replace(one, matched=None, matched_interval=None)
    said = [
        findings(Slices((changed,), {"mood": 1}, {"mood": (400, 400)}))[-1]
        for changed in (one, unclear, alone)
    ]
    assert "match" not in said[0]
    assert said[1].endswith("; matched by source and label it may be nothing.")
    assert said[2].endswith("; no texts are alike enough to be matched.")


@pytest.mark.usefixtures("without_signs")
def test_a_word_that_stands_for_a_hard_variety_is_called_explained() -> None:
    generator = np.random.default_rng(0)
    rows = []
    for number in range(800):
        is_hard = number % 2
        # nine in ten texts of the hard variety have the word, one in ten of the other
        word = "sydney" if generator.random() < (0.9 if is_hard else 0.1) else ""
        gold = int(generator.random() < 0.5)
        is_wrong = bool(generator.random() < (0.5 if is_hard else 0.1))
        rows.append((f"x{number} {word}", "hard" if is_hard else "easy", gold, is_wrong))
    found = {
        (one.kind, one.name): one for one in find_slices({"mood": predictions(rows)}).confirmed()
    }
    assert found["word", "sydney"].is_explained
    assert found["word", "sydney"].difference > 0.2
    assert ("variety", "hard") in found


def test_lengths_features_and_sources_are_candidates() -> None:
    texts = ["a b c d"] * 50 + ["so sooo good today and much more of it"] * 50
    examples = []
    for number, text in enumerate(texts):
        source = "here" if number % 3 else "there"
        examples.append(Example(f"{text} x{number}", {"mood": "calm"}, source=source))
    searched = np.arange(100) % 2 == 0
    found = {(one.kind, one.name): one for one in find_candidates(examples, searched)}
    assert ("feature", "sooo") in found
    assert found["feature", "sooo"].own.sum() == 50
    assert ("word", "today") in found
    assert ("word", "x1") not in found
    assert ("source", "here") not in found  # 34 others are too few in two halves
    assert [name for kind, name in found if kind == "length"] == ["0 to 5 words", "8 to 10 words"]
    assert found["length", "0 to 5 words"].own.tolist() == [True] * 50 + [False] * 50
    for candidate in found.values():
        for half in (searched, ~searched):
            assert min((candidate.own & half).sum(), (~candidate.own & half).sum()) >= FEWEST
    assert words_of(Example("Don’t STOP 7", {})) == {"don't", "stop"}


def test_texts_that_belong_together_stay_together() -> None:
    examples = [Example(f"t{number}", {}, group=f"g{number // 4}") for number in range(80)]
    searched = divide(examples, seed=3)
    by_group = searched.reshape(20, 4)
    assert (by_group == by_group[:, :1]).all()
    assert searched.sum() == 40
    assert (searched != divide(examples, seed=4)).any()
    # as splits see it: in other letters, and with or without a group
    alike = [Example(text.format(number), {}) for number in range(20) for text in ("t{}", "T{} ")]
    alike += [Example("t0", {}, group="g"), Example("other words", {}, group="g")]
    for seed in range(3):
        searched = divide(alike, seed=seed)
        assert (searched[:40:2] == searched[1:40:2]).all()
        assert len(set(searched[[0, 1, 40, 41]].tolist())) == 1


def test_the_stratified_difference_is_that_of_mantel_haenszel_and_sato() -> None:
    # two strata: 4/10 against 2/20, 6/12 against 3/6; a third has one side alone
    wrong, own, strata = [], [], []
    cells = [
        (4, 10, True, 0),
        (2, 20, False, 0),
        (6, 12, True, 1),
        (3, 6, False, 1),
        (5, 5, True, 2),
    ]
    for n_wrong, n, is_in, stratum in cells:
        wrong += [True] * n_wrong + [False] * (n - n_wrong)
        own += [is_in] * n
        strata += [stratum] * n
    found = stratified_difference(np.array(wrong), np.array(own), np.array(strata))
    assert found is not None
    weight = 10 * 20 / 30 + 12 * 6 / 18
    value = 10 * 20 / 30 * (0.4 - 0.1) / weight
    p = (10**2 * 2 - 20**2 * 4 + 10 * 20 * 10 / 2) / 30**2
    p += (12**2 * 3 - 6**2 * 6 + 12 * 6 * -6 / 2) / 18**2
    q = (4 * 18 + 2 * 6) / 60 + (6 * 3 + 3 * 6) / 36
    margin = 1.959964 * np.sqrt(value * p + q) / weight
    assert found.value == pytest.approx(value)
    assert found.interval == pytest.approx((value - margin, value + margin))
    assert stratified_difference(np.array(wrong), np.ones(53, dtype=bool), np.array(strata)) is None


@pytest.mark.parametrize(
    ("task", "kind"),
    [(Task("score", ()), "a number"), (Task("moods", ("a", "b"), multi_label=True), "several")],
)
def test_only_tasks_with_one_label_are_searched(task: Task, kind: str) -> None:
    result = TaskPredictions(task, (), (), (), ())
    with pytest.raises(UserError, match=f"{task.name} is answered with {kind}"):
        find_slices({task.name: result})
