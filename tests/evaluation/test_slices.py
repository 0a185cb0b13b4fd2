"""Slices: nothing is found in random mistakes, what was planted is, and what is no more than its
cells and labels is called so.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import fisher_exact

from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.core.values import Answer, Example, Task
from litotes.evaluation import slices
from litotes.evaluation.evaluate import TaskPredictions
from litotes.evaluation.shares import exact_test
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


def random_corpus(n: int, seed: int, *, inside: float = USUAL) -> TaskPredictions:
    """N texts of 5 to 29 of the words; those with the planted word are wrong at the rate
    `inside`.
    """
    generator = np.random.default_rng(seed)
    examples, answers = [], []
    for number in range(n):
        words = generator.choice(WORDS, size=int(generator.integers(5, 30)), replace=False)
        gold = int(generator.random() < 0.4)
        is_wrong = generator.random() < (inside if PLANTED in words else USUAL)
        variety = ("a", "b")[int(generator.integers(2))]
        text = " ".join([f"x{number}", *words])
        examples.append(Example(text, {TASK.name: TASK.labels[gold]}, variety=variety))
        answers.append(Answer(TASK.labels[gold != is_wrong], 0.8))
    flags = (False,) * n
    return TaskPredictions(TASK, tuple(examples), tuple(answers), flags, flags)


@pytest.fixture
def without_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    """No random text shows a feature, and looking for them takes long."""
    monkeypatch.setattr(slices, "signs_of", lambda text: [])


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
def test_a_planted_word_is_found_and_no_other() -> None:
    n_found = 0
    for seed in range(5):
        result = random_corpus(800, seed, inside=0.55)
        confirmed = find_slices({"mood": result}, seed=seed).confirmed()
        n_found += [one.name for one in confirmed] == [PLANTED]
    assert n_found >= 4
    (one, *_) = confirmed
    assert (one.kind, one.task) == ("word", "mood")
    assert one.interval[0] < one.difference < one.interval[1]
    assert one.difference == pytest.approx(0.35, abs=0.15)
    assert not one.is_explained  # it is hard within every variety and label


def test_a_word_that_stands_for_a_hard_variety_is_called_explained() -> None:
    generator = np.random.default_rng(0)
    examples, answers = [], []
    for number in range(800):
        is_hard = number % 2
        # nine in ten texts of the hard variety have the word, one in ten of the other
        words = ["sydney"] if generator.random() < (0.9 if is_hard else 0.1) else []
        gold = int(generator.random() < 0.5)
        wrong = generator.random() < (0.5 if is_hard else 0.1)
        text = " ".join([f"x{number}", *words])
        variety = "hard" if is_hard else "easy"
        examples.append(Example(text, {"mood": TASK.labels[gold]}, variety=variety))
        answers.append(Answer(TASK.labels[gold != wrong], 0.8))
    flags = (False,) * len(examples)
    result = TaskPredictions(TASK, tuple(examples), tuple(answers), flags, flags)
    found = {(one.kind, one.name): one for one in find_slices({"mood": result}).confirmed()}
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
    assert ("source", "here") not in found  # 34 others are too few in two halves
    assert [name for kind, name in found if kind == "length"]
    assert ("word", "x1") not in found
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


CASES = [((3, 15), (20, 500)), ((0, 4), (20, 30)), ((20, 30), (20, 30)), ((7, 0), (9, 9))]


@pytest.mark.parametrize(("hits", "n"), CASES)
def test_slices_are_confirmed_by_the_exact_test(hits: tuple[int, int], n: tuple[int, int]) -> None:
    """Of 3 of 20 against 15 of 500 z would say 0.001, and chance does it ten times as often."""
    table = [[hits[0], n[0] - hits[0]], [hits[1], n[1] - hits[1]]]
    expected = fisher_exact(table, alternative="greater").pvalue
    assert exact_test(hits, n) == pytest.approx(expected)


def test_the_stratified_difference_is_that_of_mantel_and_haenszel() -> None:
    # two strata: 4/10 against 2/20, 6/12 against 3/6
    wrong, own, strata = [], [], []
    for stratum, (inside, outside) in enumerate((((4, 10), (2, 20)), ((6, 12), (3, 6)))):
        for is_in, (n_wrong, n) in ((True, inside), (False, outside)):
            wrong += [True] * n_wrong + [False] * (n - n_wrong)
            own += [is_in] * n
            strata += [stratum] * n
    arrays = np.array(wrong), np.array(own), np.array(strata)
    found = stratified_difference(*arrays)
    assert found is not None
    weights = (10 * 20 / 30, 12 * 6 / 18)
    expected = (weights[0] * (0.4 - 0.1) + weights[1] * 0.0) / sum(weights)
    assert found.value == pytest.approx(expected)
    assert found.interval[0] < expected < found.interval[1]
    everything = np.ones(len(wrong), dtype=bool)
    assert stratified_difference(arrays[0], everything, arrays[2]) is None


def test_the_interval_of_matched_texts_holds_where_a_stratum_has_few() -> None:
    """20 texts of a slice in 12 strata, some of them with one; nothing sets them apart."""
    generator = np.random.default_rng(0)
    n_draws, n_covered, n_above = 400, 0, 0
    for _ in range(n_draws):
        strata = np.concatenate([generator.integers(12, size=20), np.repeat(np.arange(12), 40)])
        rates = generator.uniform(0.15, 0.45, 12)
        wrong, own = generator.random(500) < rates[strata], np.arange(500) < 20
        found = stratified_difference(wrong, own, strata)
        assert found is not None
        low, high = found.interval
        n_covered += low <= 0 <= high
        n_above += low > 0
    assert n_covered >= 0.87 * n_draws
    assert n_above <= 0.05 * n_draws


@pytest.mark.parametrize(
    ("task", "kind"),
    [(Task("score", ()), "a number"), (Task("moods", ("a", "b"), multi_label=True), "several")],
)
def test_only_tasks_with_one_label_are_searched(task: Task, kind: str) -> None:
    result = TaskPredictions(task, (), (), (), ())
    with pytest.raises(UserError, match=f"{task.name} is answered with {kind}"):
        find_slices({task.name: result})


def test_what_matching_leaves_open_is_not_called_nothing() -> None:
    (one, *_) = find_slices({"mood": random_corpus(800, 1, inside=0.55)}, seed=1).confirmed()
    unclear = replace(one, kind="variety", matched=0.02, matched_interval=(-0.1, 0.14))
    alone = replace(one, matched=None, matched_interval=None)
    said = {}
    for name, changed in {"clear": one, "unclear": unclear, "alone": alone}.items():
        found = Slices((changed,), {"mood": 1}, {"mood": (400, 400)})
        *_, said[name] = findings(found)
    assert "match" not in said["clear"]
    assert said["unclear"].endswith("; matched by source and label it may be nothing.")
    assert said["alone"].endswith("; no texts are alike enough to be matched.")


def test_page_and_figure_say_what_was_found(tmp_path: Path) -> None:
    found = find_slices({"mood": random_corpus(800, 1, inside=0.55)}, seed=1)
    assert len(found.slices) <= N_KEPT
    said = " ".join(findings(found))
    assert f"mood, word {PLANTED}: " in said
    write_slices(found, tmp_path)
    page = (tmp_path / "slices.html").read_text()
    assert "not confirmed" in page
    assert PLANTED in page
    empty = find_slices({"mood": random_corpus(60, 1)}, seed=1)
    draw_slices(empty).draw_without_rendering()


@pytest.mark.slow
def test_evaluate_searches_slices_when_asked(
    trained_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["evaluate", "--model", str(trained_folder), "--data", "sampler", "--slices"]
    words += ["--device", "cpu"]
    assert main([*words, "--out", str(out)]) == 0
    assert "slices looked at" in capsys.readouterr().out
    names = {path.name for path in out.iterdir()}
    assert {"slices.json", "slices.svg", "slices.html", "scores.json"} <= names
    content = json.loads((out / "scores.json").read_text())["slices"]
    assert content == json.loads((out / "slices.json").read_text())
    assert set(content["n_candidates"]) == {"sentiment", "sarcasm"}
