"""Which features of a variety change a model's answers? Real texts are rewritten, the model is
asked about each version, and what changed is counted against a control misspelling as many words.

Statistics are of pairs: a text under a rewrite and under its control. All intervals are of 95 %.
Texts are taken as independent draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from litotes.core.errors import UserError
from litotes.core.figures import BAR, GAP, save_figure
from litotes.core.numbers import Floats
from litotes.core.pages import render, render_paragraphs
from litotes.core.progress import Watch, ignore_progress
from litotes.core.registry import grouped
from litotes.core.storage import write_text
from litotes.core.values import Answer, Example
from litotes.data.corpus import ALL, Corpus
from litotes.data.rewrites.control import control_of
from litotes.data.rewrites.rewrite import Rewrite
from litotes.evaluation.evaluate import predict_in_chunks
from litotes.evaluation.forest import Panel, Points, draw_forest
from litotes.evaluation.scores import N_RESAMPLES, Result, interval
from litotes.evaluation.shares import mcnemar, paired_interval, wilson
from litotes.evaluation.significance import ROUNDING, Estimate, Tested, correct
from litotes.prediction.predictor import Predictor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_TEXTS = 200
"""Texts under each rewrite, at most."""

FEWEST = 20
"""With fewer texts that have a control there is no test."""

N_SIGNS = 20_000
"""Draws of the permutation test: p may be as small as 1 / 20,001, and stays so corrected."""

N_ROWS = 40
"""Rewrites in the figure: those with the most flips; the rest are in the tables."""

Answers = dict[tuple[str, str | None], Mapping[str, Answer]]


@dataclass(frozen=True)
class Contrast(Estimate, Tested):
    """A rewrite minus its control on the same texts."""

    p: float
    adjusted_p: float


@dataclass(frozen=True)
class Comparison:
    """A rewrite against its control, on the n texts that have one.

    flips: share of answers that change. change: mean change of the probability of the label first
    given. The differences are None where there are too few texts for a test.
    """

    n: int
    flips: Estimate
    change: Estimate
    flip_difference: Contrast | None
    change_difference: Contrast | None


@dataclass(frozen=True)
class StressRow:
    """One rewrite, one task, one variety of texts (or all of them).

    flips: share of the n texts whose label changes. change: mean change of the probability of the
    label first given. n_broken, n_mended: right answers that became wrong, and wrong ones that
    became right, among texts with a gold label.
    """

    rewrite: str
    task: str
    cell: str
    n: int
    flips: Estimate
    change: Estimate
    n_broken: int
    n_mended: int
    control: Comparison | None

    @property
    def flip_difference(self) -> Contrast | None:
        return None if self.control is None else self.control.flip_difference

    @property
    def change_difference(self) -> Contrast | None:
        return None if self.control is None else self.control.change_difference

    @property
    def is_worse_than_control(self) -> bool:
        """True if more answers flip, or the probability falls further, than under the control."""
        flips, change = self.flip_difference, self.change_difference
        flips_more = flips is not None and flips.is_significant and flips.value > 0
        return flips_more or (change is not None and change.is_significant and change.value < 0)


@dataclass(frozen=True)
class VarietyRow:
    """All features that eWAVE calls common in a variety, pooled: share of flips, minus controls.

    Intervals draw whole texts, since a text comes under many rewrites.
    """

    variety: str
    task: str
    n_rewrites: int
    n: int
    flips: Estimate
    difference: Estimate


@dataclass(frozen=True, repr=False)
class StressResult(Result):
    """A whole stress test. examples: for each rewrite a text before, after, and its control."""

    shown = ("model", "data", "n_texts")
    model: str
    data: str
    seed: int
    n_texts: int
    rows: tuple[StressRow, ...]
    varieties: tuple[VarietyRow, ...]
    examples: Mapping[str, tuple[str, str, str | None]]
    not_applied: tuple[str, ...]

    def overall(self, task: str) -> list[StressRow]:
        """The rows of all texts, the most flips first."""
        return self.by_cell(task)[ALL]

    def by_cell(self, task: str) -> dict[str, list[StressRow]]:
        """The rows of one task by variety, the most flips first; all texts under ALL."""
        rows = sorted(
            (row for row in self.rows if row.task == task),
            key=lambda row: (row.cell, -row.flips.value, row.change.value, row.rewrite),
        )
        return grouped(rows, lambda row: row.cell)

    def tasks(self) -> list[str]:
        return list(dict.fromkeys(row.task for row in self.rows))


@dataclass(frozen=True, eq=False)  # known by itself
class _Case:
    """A text under one rewrite."""

    rewrite: str
    example: Example
    rewritten: str
    control: str | None

    def versions(self) -> tuple[str, str, str | None]:
        return self.example.text, self.rewritten, self.control


def stress(
    predictor: Predictor,
    corpus: Corpus,
    rewrites: Mapping[str, Rewrite],
    *,
    model: str = "model",
    n_texts: int = N_TEXTS,
    seed: int = 0,
    watch: Watch = ignore_progress,
) -> StressResult:
    """Asks about each rewrite on at most `n_texts` texts that it applies to, drawn at random.

    The seed fixes the texts, the rewrites, the controls and the draws of intervals and tests.
    """
    cases = _make_cases(corpus, rewrites, n_texts, seed, watch)
    if not cases:
        raise UserError(
            f"None of the {len(rewrites)} rewrites applies to a text of {corpus.name}: choose other"
            " rewrites with --only, or other texts."
        )
    answers = _ask(predictor, cases, watch)
    tasks = [name for name, task in predictor.tasks.items() if task.is_choice]
    if not tasks:
        raise UserError(
            "The model gives numbers or several labels at once: there is no one label that could"
            " change."
        )
    by_rewrite = grouped(cases, lambda case: case.rewrite)
    rows: list[StressRow] = []
    pooled: list[VarietyRow] = []
    for task in tasks:
        effects = {case: _effects(case, answers, task) for case in cases}
        for own in by_rewrite.values():
            by_variety = grouped(own, lambda case: case.example.variety or "")
            parts = {ALL: own} | {name: by_variety[name] for name in sorted(by_variety) if name}
            for name, part in parts.items():
                numbers = np.array([effects[case] for case in part])
                rows.append(_row((own[0].rewrite, task, name), numbers.T, seed))
        pooled += _varieties(effects, rewrites, task, seed)
    shortest = {
        name: min(own, key=lambda case: len(case.example.text)) for name, own in by_rewrite.items()
    }
    return StressResult(
        model=model,
        data=corpus.name,
        seed=seed,
        n_texts=len({case.example.text for case in cases}),
        rows=_correct(rows),
        varieties=tuple(pooled),
        examples={name: case.versions() for name, case in shortest.items()},
        not_applied=tuple(name for name in rewrites if name not in by_rewrite),
    )


def _make_cases(
    corpus: Corpus, rewrites: Mapping[str, Rewrite], n_texts: int, seed: int, watch: Watch
) -> list[_Case]:
    examples = list({(example.text, example.pair): example for example in corpus}.values())
    Random(seed).shuffle(examples)
    cases: list[_Case] = []
    for number, (name, rewrite) in enumerate(rewrites.items()):
        watch("rewriting", number, len(rewrites), name)
        n_found = 0
        for example in examples:
            rewritten = rewrite(example.text, seed=seed)
            if rewritten != example.text:
                control = control_of(example.text, rewritten, seed=seed)
                cases.append(_Case(name, example, rewritten, control))
                n_found += 1
            if n_found == n_texts:
                break
    return cases


def _ask(predictor: Predictor, cases: Sequence[_Case], watch: Watch) -> Answers:
    """Asks about every version of a text once, the short ones first."""
    asked = {(text, case.example.pair) for case in cases for text in case.versions() if text}
    keys = sorted(asked, key=lambda key: (len(key[0]), key[0], key[1] or ""))
    texts, pairs = zip(*keys, strict=True)
    found = predict_in_chunks(predictor, texts, pairs, what="answering", watch=watch)
    return {key: one.answers for key, one in zip(keys, found, strict=True)}


def _effects(case: _Case, answers: Answers, task: str) -> list[float]:
    """Compares the answers to a text's versions. Whether the label flips and the change of the
    probability of the first label; both under the control, nan without one; whether a right label
    became wrong, and a wrong one right.
    """
    pair, gold = case.example.pair, case.example.labels.get(task)
    first, after = (answers[text, pair][task] for text in (case.example.text, case.rewritten))
    label, numbers = str(first.label), []
    for text in (case.rewritten, case.control):
        if text is None:
            numbers += [np.nan, np.nan]
        else:
            other = answers[text, pair][task]
            change = other.probabilities[label] - first.probabilities[label]
            numbers += [other.label != label, change]
    return [*numbers, *(numbers[0] and answer.label == gold for answer in (first, after))]


def _row(place: tuple[str, str, str], numbers: Floats, seed: int) -> StressRow:
    """place: rewrite, task and cell. numbers (effect, text)"""
    flips, change, control_flips, control_change, broken, mended = numbers
    known = ~np.isnan(control_change)  # (text,)
    control = None
    if known.any():
        pairs = (flips[known], control_flips[known]), (change[known], control_change[known])
        control = _compare(*pairs, seed)
    n_broken, n_mended = int(broken.sum()), int(mended.sum())
    own = len(flips), _share(flips), _mean(change, seed)
    return StressRow(*place, *own, n_broken, n_mended, control)


def _share(flips: Floats) -> Estimate:
    share = float(flips.mean())
    return Estimate(share, wilson(share, len(flips)))


def _mean(values: Floats, seed: int) -> Estimate:
    """Estimates the mean by drawing texts with replacement. values (text,)"""
    draws = np.random.default_rng(seed).integers(0, len(values), (N_RESAMPLES, len(values)))
    return Estimate(float(values.mean()), interval(values[draws].mean(1)))


def _compare(flips: tuple[Floats, Floats], changes: tuple[Floats, Floats], seed: int) -> Comparison:
    """Under the rewrite and under the control, (text,) each."""
    n, by_flip, by_change = len(flips[0]), None, None
    if n >= FEWEST:
        pair = flips[0] == 1, flips[1] == 1
        p = mcnemar(*pair)
        share = float(flips[0].mean() - flips[1].mean())
        by_flip = Contrast(share, paired_interval(*pair), p, p)
        apart = changes[0] - changes[1]
        mean, p = _mean(apart, seed), sign_test(apart, seed=seed)
        by_change = Contrast(mean.value, mean.interval, p, p)
    return Comparison(n, _share(flips[1]), _mean(changes[1], seed), by_flip, by_change)


def _correct(rows: Sequence[StressRow]) -> tuple[StressRow, ...]:
    """Holm's correction over all tests of all texts, and apart from it over those by variety."""
    corrected: dict[Any, Contrast | None] = {}
    for is_all, family in grouped(rows, lambda row: row.cell == ALL).items():
        both = [one for row in family for one in (row.flip_difference, row.change_difference)]
        tests = [one for one in both if one is not None]
        # equal tests have equal p, which are corrected alike
        corrected |= {(is_all, one): own for one, own in zip(tests, correct(tests), strict=True)}
    found = []
    for row in rows:
        control = row.control and replace(
            row.control,
            flip_difference=corrected.get((row.cell == ALL, row.flip_difference)),
            change_difference=corrected.get((row.cell == ALL, row.change_difference)),
        )
        found.append(replace(row, control=control))
    return tuple(found)


def _varieties(
    effects: Mapping[_Case, Sequence[float]],
    rewrites: Mapping[str, Rewrite],
    task: str,
    seed: int,
) -> Iterator[VarietyRow]:
    """Features that are common in a variety, pooled over the texts that have a control."""
    common = {name: rewrite.common_in() for name, rewrite in rewrites.items()}
    for variety in sorted({tag for tags in common.values() for tag in tags}):
        own = [case for case in effects if variety in common[case.rewrite] and case.control]
        if own:
            flips, _, control_flips, *_ = np.array([effects[case] for case in own]).T
            texts = [case.example.text for case in own]
            yield VarietyRow(
                variety,
                task,
                n_rewrites=len({case.rewrite for case in own}),
                n=len(own),
                flips=mean_by_text(texts, flips, seed=seed),
                difference=mean_by_text(texts, flips - control_flips, seed=seed),
            )


def mean_by_text(texts: Sequence[str], values: Floats, *, seed: int) -> Estimate:
    """The mean over answers that come in texts: whole texts are drawn with replacement.

    texts, values (answer,)
    """
    _, places = np.unique(texts, return_inverse=True)
    sums, counts = np.bincount(places, weights=values), np.bincount(places)  # (text,)
    draws = np.random.default_rng(seed).integers(0, len(sums), (N_RESAMPLES, len(sums)))
    drawn = interval(sums[draws].sum(1) / counts[draws].sum(1))
    return Estimate(float(values.mean()), drawn)


def sign_test(differences: Floats, *, seed: int) -> float:
    """Two-sided p of the paired permutation test: is the mean of the differences other than 0?

        p = (1 + #{|mean of ± d| ≥ |mean of d|}) / (1 + draws)

    Null: for every text it is a coin's toss which of its two values came from which rewrite.
    differences (text,)
    """
    generator = np.random.default_rng(seed)
    observed = abs(float(differences.sum())) - ROUNDING
    n_as_large, n_left = 0, N_SIGNS
    while n_left:
        size = min(n_left, max(1, 2_000_000 // len(differences)))
        signs = generator.integers(0, 2, (size, len(differences)), dtype=np.int8)
        sums = 2 * (signs @ differences) - differences.sum()  # (draw,)
        n_as_large += int((np.abs(sums) >= observed).sum())
        n_left -= size
    return (1 + n_as_large) / (1 + N_SIGNS)


# What is written


def findings(result: StressResult) -> tuple[str, ...]:
    """Says what was found, in sentences."""
    return render_paragraphs("evaluation/stress.txt", "findings", result=result, fewest=FEWEST)


def write_stress(result: StressResult, rewrites: Mapping[str, Rewrite], folder: Path) -> None:
    """Writes stress.json, the figure as stress.svg and stress.png, and the page stress.html."""
    svg = save_figure(folder / "stress", draw_stress(result), result.as_json())
    page = render(
        "evaluation/stress.html",
        result=result,
        findings=findings(result),
        rewrites=rewrites,
        svg=svg,
        n_rows=N_ROWS,
        fewest=FEWEST,
    )
    write_text(folder / "stress.html", page)


def draw_stress(result: StressResult) -> Figure:
    """Draws a forest plot for each task: flips under each rewrite next to those under its control.

    Rewrites with fewer than FEWEST texts are left out.
    """
    panels: dict[str, Panel] = {}
    for task in result.tasks():
        rows = [row for row in result.overall(task) if row.n >= FEWEST][:N_ROWS]
        names = [f"{one.rewrite}{' *' * one.is_worse_than_control} ({one.n})" for one in rows]
        controls = [None if row.control is None else row.control.flips for row in rows]
        misspelled = "control: as many words misspelled"
        # a sixth of a row to either side, so that neither covers the other
        points = (
            Points("rewrite", [row.flips for row in rows], BAR, shift=-0.17),
            Points(misspelled, controls, GAP, "s", shift=0.17),
        )
        panels[task] = names, points
    return draw_forest(panels, what="answers that change, % of texts", width=5.6)
