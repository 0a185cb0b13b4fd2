"""Which features of a variety change a model's answers? Real texts are rewritten, the model is
asked about each version, and what changed is counted beside a control that misspells as many words.

Statistics are of pairs: a text under a rewrite and under its control. All intervals are of 95 %.
Texts are taken as independent draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import comb, sqrt
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import UserError
from litotes.core.figures import BAR, GAP, INK, add_legend, hide_frame, new_figure, save_figure
from litotes.core.numbers import Floats
from litotes.core.pages import render, render_paragraphs
from litotes.core.progress import Watch, ignore_progress
from litotes.core.storage import write_text
from litotes.core.text import one_line
from litotes.core.values import Answer, Example, grouped
from litotes.data.corpus import Corpus
from litotes.data.rewrites.control import control_of
from litotes.data.rewrites.rewrite import Rewrite
from litotes.evaluation.reliability import wilson
from litotes.evaluation.scores import N_RESAMPLES, interval
from litotes.evaluation.significance import SIGNIFICANT, Estimate, holm
from litotes.prediction.predictor import Predictor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALL = "all"
"""The cell of all texts."""

N_TEXTS = 200
"""Texts under each rewrite, at most."""

FEWEST = 20
"""With fewer texts that have a control there is no test."""

N_SIGNS = 20_000
"""Draws of the permutation test: p may be as small as 1 / 20,001, and stays so corrected."""

N_ROWS = 40
"""Rewrites in the figure: those with the most flips; the rest are in the tables."""

_CHUNK = 256
_ROUNDING = 1e-12
Answers = dict[tuple[str, str | None], Mapping[str, Answer]]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Contrast(Estimate):
    """A rewrite less its control on the same texts; `adjusted_p` is Holm's over all tests of the
    table.
    """

    p: float
    adjusted_p: float

    @property
    def is_significant(self) -> bool:
        return self.adjusted_p < SIGNIFICANT


@dataclass(frozen=True)
class Comparison:
    """A rewrite beside its control, on the n texts that have one.

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
        """Whether more answers flip, or the probability falls further, than under the control."""
        flips, change = self.flip_difference, self.change_difference
        flips_more = flips is not None and flips.is_significant and flips.value > 0
        return flips_more or (change is not None and change.is_significant and change.value < 0)


@dataclass(frozen=True)
class VarietyRow:
    """All features that eWAVE calls common in a variety, pooled: share of flips, less controls.

    Intervals draw whole texts, since a text comes under many rewrites.
    """

    variety: str
    task: str
    n_rewrites: int
    n: int
    flips: Estimate
    difference: Estimate


@dataclass(frozen=True)
class StressResult:
    """A whole stress test. examples: for each rewrite a text before, after, and its control."""

    model: str
    data: str
    seed: int
    n_texts: int
    rows: tuple[StressRow, ...]
    varieties: tuple[VarietyRow, ...]
    examples: Mapping[str, tuple[str, str, str | None]]
    not_applied: tuple[str, ...]

    def __repr__(self) -> str:
        return one_line(self, model=self.model, data=self.data, n_rows=len(self.rows))

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

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class _Case:
    """A text under one rewrite."""

    rewrite: str
    example: Example
    rewritten: str
    control: str | None


@dataclass(frozen=True)
class _Effects:
    """What rewriting does to one task's answers. (text,) each; control: nan without one."""

    flips: Bools
    change: Floats
    control_flips: Floats
    control_change: Floats
    n_broken: int
    n_mended: int


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
        for own in by_rewrite.values():
            rows.append(_row(own, answers, task, ALL, seed))
            by_variety = grouped(own, lambda case: case.example.variety or "")
            varieties = sorted(filter(None, by_variety))
            rows += [_row(by_variety[one], answers, task, one, seed) for one in varieties]
        pooled += _varieties(cases, rewrites, answers, task, seed)
    shortest = {name: min(own, key=_length) for name, own in by_rewrite.items()}
    return StressResult(
        model=model,
        data=corpus.name,
        seed=seed,
        n_texts=len({case.example.text for case in cases}),
        rows=_correct(rows),
        varieties=tuple(pooled),
        examples={
            name: (one.example.text, one.rewritten, one.control) for name, one in shortest.items()
        },
        not_applied=tuple(name for name in rewrites if name not in by_rewrite),
    )


def _length(case: _Case) -> int:
    return len(case.example.text)


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
    """Every version of a text is asked about once, the short ones first."""
    asked = {
        (text, case.example.pair)
        for case in cases
        for text in (case.example.text, case.rewritten, case.control)
        if text is not None
    }
    keys = sorted(asked, key=lambda key: (len(key[0]), key[0], key[1] or ""))
    answers: Answers = {}
    for start in range(0, len(keys), _CHUNK):
        chunk = keys[start : start + _CHUNK]
        found = predictor.predict([key[0] for key in chunk], pairs=[key[1] for key in chunk])
        answers |= {key: one.answers for key, one in zip(chunk, found, strict=True)}
        watch("answering", start + len(chunk), len(keys), "")
    return answers


def _effects(cases: Sequence[_Case], answers: Answers, task: str) -> _Effects:
    # (number, text): whether the label changes, the change of the probability of the first label,
    # and both under the control
    numbers = np.full((4, len(cases)), np.nan)
    n_broken = n_mended = 0
    for place, case in enumerate(cases):
        pair, gold = case.example.pair, case.example.labels.get(task)
        first = answers[case.example.text, pair][task]
        second = answers[case.rewritten, pair][task]
        numbers[:2, place] = _compare(first, second)
        if case.control is not None:
            numbers[2:, place] = _compare(first, answers[case.control, pair][task])
        if first.label != second.label and gold is not None:
            n_broken += first.label == gold
            n_mended += second.label == gold
    flips, *rest = numbers
    return _Effects(flips.astype(bool), *rest, n_broken, n_mended)


def _compare(first: Answer, second: Answer) -> tuple[float, float]:
    """Whether the label changes, and by how much the probability of the first label does."""
    label = str(first.label)
    change = second.probabilities[label] - first.probabilities[label]
    return float(second.label != first.label), change


def _row(cases: Sequence[_Case], answers: Answers, task: str, cell: str, seed: int) -> StressRow:
    effects = _effects(cases, answers, task)
    return StressRow(
        rewrite=cases[0].rewrite,
        task=task,
        cell=cell,
        n=len(cases),
        flips=_share(effects.flips),
        change=_mean(effects.change, seed),
        n_broken=effects.n_broken,
        n_mended=effects.n_mended,
        control=_control(effects, seed),
    )


def _share(flips: Bools) -> Estimate:
    share = float(flips.mean())
    return Estimate(share, wilson(share, len(flips)))


def _mean(values: Floats, seed: int) -> Estimate:
    """By drawing texts with replacement. values (text,)"""
    draws = np.random.default_rng(seed).integers(0, len(values), (N_RESAMPLES, len(values)))
    return Estimate(float(values.mean()), interval(values[draws].mean(1)))


def _control(effects: _Effects, seed: int) -> Comparison | None:
    there = ~np.isnan(effects.control_change)  # (text,)
    if not there.any():
        return None
    flips, control_flips = effects.flips[there], effects.control_flips[there].astype(bool)
    change, control_change = effects.change[there], effects.control_change[there]
    by_flip = by_change = None
    if len(flips) >= FEWEST:
        share = float(flips.mean() - control_flips.mean())
        p = mcnemar(flips, control_flips)
        by_flip = Contrast(share, difference_interval(flips, control_flips), p, p)
        mean = _mean(change - control_change, seed)
        p = sign_test(change - control_change, seed=seed)
        by_change = Contrast(mean.value, mean.interval, p, p)
    under_control = (_share(control_flips), _mean(control_change, seed))
    return Comparison(len(flips), *under_control, by_flip, by_change)


def _correct(rows: Sequence[StressRow]) -> tuple[StressRow, ...]:
    """Holm's correction over all tests of all texts, and apart from it over those by variety."""
    found = list(rows)
    for is_all in (True, False):
        tests = [
            (number, name, contrast)
            for number, row in enumerate(rows)
            if (row.cell == ALL) == is_all
            for name in ("flip_difference", "change_difference")
            if (contrast := getattr(row, name)) is not None
        ]
        adjusted = holm([contrast.p for _, _, contrast in tests])
        for (number, name, contrast), p in zip(tests, adjusted, strict=True):
            control = found[number].control
            assert control is not None
            changed: Any = {name: replace(contrast, adjusted_p=p)}
            found[number] = replace(found[number], control=replace(control, **changed))
    return tuple(found)


def _varieties(
    cases: Sequence[_Case],
    rewrites: Mapping[str, Rewrite],
    answers: Answers,
    task: str,
    seed: int,
) -> Iterator[VarietyRow]:
    """Features that are common in a variety, pooled over the texts that have a control."""
    common = {name: rewrite.common_in() for name, rewrite in rewrites.items()}
    for variety in sorted({tag for tags in common.values() for tag in tags}):
        own = [case for case in cases if variety in common[case.rewrite] and case.control]
        if own:
            effects = _effects(own, answers, task)
            yield VarietyRow(
                variety,
                task,
                n_rewrites=len({case.rewrite for case in own}),
                n=len(own),
                flips=_by_text(own, effects.flips.astype(float), seed),
                difference=_by_text(own, effects.flips - effects.control_flips, seed),
            )


def _by_text(cases: Sequence[_Case], values: Floats, seed: int) -> Estimate:
    _, places = np.unique([case.example.text for case in cases], return_inverse=True)
    sums: Any = np.bincount(places, weights=values)
    counts: Floats = np.bincount(places).astype(np.float64)
    return Estimate(float(values.mean()), clustered_interval(sums, counts, seed=seed))


# Statistics of pairs


def mcnemar(first: Bools, second: Bools) -> float:
    """Two-sided p of the exact test of McNemar (1947): does one happen more often than the other?

    b texts have the first alone, c the second alone; under the null b is binomial(b + c, 1/2).
    first, second (text,)
    """
    b, c = int((first & ~second).sum()), int((second & ~first).sum())
    n_ways = sum(comb(b + c, k) for k in range(min(b, c) + 1))
    return min(1.0, 2 * n_ways / 2 ** (b + c))


def difference_interval(first: Bools, second: Bools) -> tuple[float, float]:
    """Of the difference of two shares on the same texts: Newcombe (1998), method 10.

    Wilson's intervals of both shares, joined with the correlation φ of the pairs:

        low  = d − √(l₁² − 2 φ l₁ u₂ + u₂²),    l = share − low, u = high − share
        high = d + √(u₁² − 2 φ u₁ l₂ + l₂²)

    first, second (text,)
    """
    n = len(first)
    share_1, share_2 = float(first.mean()), float(second.mean())
    (low_1, high_1), (low_2, high_2) = wilson(share_1, n), wilson(share_2, n)
    phi = _phi(first, second)
    below_1, above_1 = share_1 - low_1, high_1 - share_1
    below_2, above_2 = share_2 - low_2, high_2 - share_2
    d = share_1 - share_2
    low = sqrt(max(below_1**2 - 2 * phi * below_1 * above_2 + above_2**2, 0.0))
    high = sqrt(max(above_1**2 - 2 * phi * above_1 * below_2 + below_2**2, 0.0))
    return max(d - low, -1.0), min(d + high, 1.0)


def _phi(first: Bools, second: Bools) -> float:
    """The correlation of two answers of yes and no; 0 where one of them never changes.

    A positive one is taken a little smaller, as if half a pair were the other way round.
    """
    n = len(first)
    both, neither = int((first & second).sum()), int((~first & ~second).sum())
    only_1, only_2 = int((first & ~second).sum()), int((second & ~first).sum())
    sides = (both + only_1) * (only_2 + neither) * (both + only_2) * (only_1 + neither)
    if sides == 0:
        return 0.0
    product = both * neither - only_1 * only_2
    if product < 0:
        return product / sqrt(sides)
    return max(product - n / 2, 0.0) / sqrt(sides)


def sign_test(differences: Floats, *, seed: int) -> float:
    """Two-sided p of the paired permutation test: is the mean of the differences other than 0?

        p = (1 + #{|mean of ± d| ≥ |mean of d|}) / (1 + draws)

    Null: for every text it is a coin's toss which of its two values came from which rewrite.
    differences (text,)
    """
    generator = np.random.default_rng(seed)
    observed = abs(float(differences.sum())) - _ROUNDING
    n_as_large, n_left = 0, N_SIGNS
    while n_left:
        size = min(n_left, max(1, 2_000_000 // len(differences)))
        signs = generator.integers(0, 2, (size, len(differences)), dtype=np.int8)
        sums = 2 * (signs @ differences) - differences.sum()  # (draw,)
        n_as_large += int((np.abs(sums) >= observed).sum())
        n_left -= size
    return (1 + n_as_large) / (1 + N_SIGNS)


def clustered_interval(sums: Floats, counts: Floats, *, seed: int) -> tuple[float, float]:
    """Of a mean over answers that come in texts: whole texts are drawn with replacement.

    sums, counts (text,): of the answers of each text
    """
    draws = np.random.default_rng(seed).integers(0, len(sums), (N_RESAMPLES, len(sums)))
    return interval(sums[draws].sum(1) / counts[draws].sum(1))


# What is written


def findings(result: StressResult) -> tuple[str, ...]:
    """What was found, in sentences."""
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
    """Draws a forest plot for each task: flips under each rewrite beside those under its control.

    Rewrites with fewer than FEWEST texts are left out.
    """
    shown = {
        task: [row for row in result.overall(task) if row.n >= FEWEST][:N_ROWS]
        for task in result.tasks()
    }
    n_rows = max(1, *(len(rows) for rows in shown.values()))
    picture = new_figure(5.6 * len(shown), 0.21 * n_rows + 1.4)
    axes = picture.subplots(1, len(shown), squeeze=False)[0]
    for (task, rows), ax in zip(shown.items(), axes, strict=True):
        controls = [None if row.control is None else row.control.flips for row in rows]
        series = (
            ([row.flips for row in rows], -0.17, BAR, "o", "rewrite"),
            (controls, 0.17, GAP, "s", "control: as many words misspelled"),
        )
        for estimates, shift, colour, mark, label in series:
            # rewrite and control lie a sixth of a row apart, so that neither covers the other
            there = [(n + shift, one) for n, one in enumerate(estimates) if one is not None]
            if not there:
                continue
            values = np.array([100 * one.value for _, one in there])
            ends = 100 * np.array([one.interval for _, one in there]).T  # (end, rewrite)
            errors = np.abs(ends - values)
            places = [place for place, _ in there]
            bars = ax.errorbar(values, places, xerr=errors, fmt=mark, color=colour, elinewidth=1.1)
            bars.lines[0].set(markersize=4.5, markeredgecolor=INK, markeredgewidth=0.4)
            bars.set_label(label)
        names = [f"{one.rewrite}{' *' * one.is_worse_than_control} ({one.n})" for one in rows]
        ax.set_yticks(range(len(rows)), names, fontsize=8, parse_math=False)
        ax.set_ylim(max(len(rows), 1) - 0.4, -0.6)
        ax.set_xlim(left=-1)  # a point at 0 is seen whole
        ax.grid(axis="x", color="#DDDDDD", linewidth=0.6)
        ax.set_axisbelow(True)
        ax.set_xlabel("answers that change, % of texts")
        ax.set_title(task, fontsize=11, parse_math=False)
        hide_frame(ax)
    add_legend(picture, axes, n_columns=2)
    return picture
