"""Is a model worse for some groups of texts, by how much, and could these numbers show it?

Each group is compared with all other texts of its task: no group is singled out by its score. Three
measures are tested: macro-F1; accuracy; and the recall of each label, whose differences are those
of equal opportunity (Hardt, Price & Srebro 2016, arXiv 1610.02413, §2). Holm's correction (1979)
is over all tests of one call. The groups share no text; tests and intervals of shares are those of
`shares.py`.

Macro-F1 is treated in the same way: z = (a − b) / s with s the standard error if each label's texts
were answered alike in both groups, as in both together; its interval is the hybrid of those of each
group. A group's own bootstrap would not do for s: 30 texts without a mistake do not vary at all,
and any difference from them would be significant.

One model or several: of several the mean is compared. The interval then also covers other seeds
(`significance.py`); p and power are about these models on other texts. A share counts every text
once, however many models answered it: right for one model, a little too careful for several.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from litotes.core.errors import UserError
from litotes.core.numbers import Counts, Floats, macro_f1
from litotes.core.registry import unknown_name
from litotes.core.values import Example
from litotes.data.corpus import Cell, cell_of
from litotes.data.labels import annotator_kappa
from litotes.evaluation.evaluate import Predictions, TaskPredictions, kind_of_answer
from litotes.evaluation.reliability import ece_by_chance, reliability
from litotes.evaluation.scores import Bools, Interval, Result
from litotes.evaluation.shares import (
    hybrid_interval,
    normal_power,
    share_interval,
    share_power,
    share_test,
    two_sided,
)
from litotes.evaluation.significance import (
    ROUNDING,
    AnswerPatterns,
    Estimate,
    Tested,
    correct,
    estimate_mean,
    find_patterns,
    interval_over_texts,
    scores_of,
    text_bootstrap,
)

COLUMNS = ("variety", "source", "cell", "split", "group")
"""What texts may be grouped by: all that a corpus says about a text besides its labels."""

VISIBLE = 0.05
"""The gap whose power is given."""

FEWEST = 10
"""Texts of a group, and of all others, that are compared; for macro-F1 and recall, texts of each
label. Fewer show nothing.
"""
_N_DEALS = 2000


@dataclass(frozen=True)
class Group:
    """One group's scores. kappa: between the model and the labels; annotators: between people.

    ece_by_chance: the mean calibration error of a perfectly calibrated model with the same
    probabilities, which chance alone makes larger than 0.
    """

    task: str
    column: str
    name: str
    n: int
    macro_f1: float
    interval: Interval
    accuracy: float
    recall: Mapping[str, float | None]
    ece: float
    ece_by_chance: float
    kappa: float
    annotators: float | None

    @property
    def estimate(self) -> Estimate:
        return Estimate(self.macro_f1, self.interval)


@dataclass(frozen=True)
class Gap(Tested):
    """A group minus all other texts. measure: macro_f1, accuracy or `recall LABEL`.

    power: the chance to find a gap of VISIBLE with these numbers of texts, at 0.05 without any
    correction.
    """

    task: str
    column: str
    name: str
    measure: str
    n: tuple[int, int]
    difference: float
    interval: Interval
    p: float
    power: float
    adjusted_p: float = 1.0

    @property
    def estimate(self) -> Estimate:
        return Estimate(self.difference, self.interval)

    @property
    def kind(self) -> str:
        """The kind of measure: macro-F1, accuracy or recall."""
        return self.measure.partition(" ")[0].replace("macro_f1", "macro-F1")


@dataclass(frozen=True)
class Spread:
    """The spread of a column's groups in macro-F1, from the best to the worst.

    The groups of a small corpus always differ: spread_by_chance is the mean when the same texts are
    dealt to groups of the same sizes at random, spread_p the share of deals with a spread at least
    as large.
    """

    task: str
    column: str
    worst: str
    best: str
    spread: float
    spread_by_chance: float
    spread_p: float


@dataclass(frozen=True, repr=False)
class Gaps(Result):
    """notes: what was not compared, and why."""

    shown = ("spreads", "notes")
    groups: tuple[Group, ...]
    spreads: tuple[Spread, ...]
    gaps: tuple[Gap, ...]
    notes: tuple[str, ...] = ()


def find_gaps(
    predictions: Predictions, columns: Sequence[str], *, corpus: str = "", seed: int = 0
) -> Gaps:
    """columns: of COLUMNS. corpus: its name, by which annotators' agreement is known."""
    notes: list[str] = []
    found = []
    for result in predictions.values():
        if not result.task.is_choice:
            kind = kind_of_answer(result.task)
            notes.append(f"{result.task.name} is answered with {kind}: its gaps are not tested.")
            continue
        answers, sure = result.predicted()[None, None], result.confidence()[None, None]
        whole = Answered(result.gold(), answers, sure, result.task.labels)
        for column in columns:
            parts = _split(result, column, notes)
            if len(parts) > 1:
                people = {name: _kappa_of(result.only(own), corpus) for name, own in parts.items()}
                place = result.task.name, column
                found.append(whole.by_group(place, parts, people, seed=seed))
    if not found:
        raise UserError(
            f"There are no two groups of {FEWEST} texts or more by {', '.join(columns)}: nothing to"
            f" compare. {' '.join(notes)} Choose another column with --by."
        )
    groups, spreads, gaps = (tuple(chain(*parts)) for parts in zip(*found, strict=True))
    return Gaps(groups, spreads, tuple(correct(gaps)), tuple(notes))


def _kappa_of(part: TaskPredictions, corpus: str) -> float | None:
    """Annotators' agreement on the texts of a group, known where they are of one variety."""
    varieties = {str(example.variety) for example in part.examples}
    return annotator_kappa(corpus, part.task.name, varieties.pop()) if len(varieties) == 1 else None


def check_columns(text: str) -> tuple[str, ...]:
    """The columns of `--by variety,source`."""
    names = tuple(dict.fromkeys(text.split(",")))
    for name in names:
        if name not in COLUMNS:
            raise UserError(f"--by {text}: {unknown_name(name, COLUMNS, 'column')}")
    return names


def _split(result: TaskPredictions, column: str, notes: list[str]) -> dict[str, Bools]:
    """Tells which texts each group has, (text,); what is left out is noted."""
    names = np.array([_name(example, column) for example in result.examples])
    parts = {name: names == name for name in sorted({*names.tolist()} - {None})}
    small = [name for name, own in parts.items() if min(own.sum(), (~own).sum()) < FEWEST]
    if small and len(small) < len(parts):
        shown = ", ".join(small[:5]) + (f" and {len(small) - 5} more" if len(small) > 5 else "")
        few = f"fewer than {FEWEST} texts, not compared."
        notes.append(f"{result.task.name} by {column}: {shown}: {few}")
    return {name: own for name, own in parts.items() if name not in small}


def _name(example: Example, column: str) -> str | None:
    if column == "cell":
        return None if cell_of(example) == Cell(None, None) else str(cell_of(example))
    value: str | None = getattr(example, column)
    return value


ByGroup = tuple[list[Group], list[Spread], list[Gap]]


@dataclass(frozen=True)
class Answered:
    """Some texts and what one or several models answered. gold (text,); answers and the probability
    of each, sure, (row, seed, text): a row is a setting that was trained with each seed.
    """

    gold: Counts
    answers: Counts
    sure: Floats
    labels: tuple[str, ...]

    def only(self, keep: Bools) -> Answered:
        return Answered(self.gold[keep], self.answers[..., keep], self.sure[..., keep], self.labels)

    def by_seed(self, by_model: Floats) -> Floats:
        """Mean over rows. (model,) → (seed,)"""
        return np.asarray(by_model.reshape(self.answers.shape[:2]).mean(0))

    def by_label(self) -> Counts:
        """Counts the texts with each label. (class,)"""
        return np.bincount(self.gold, minlength=len(self.labels))

    def patterns(self) -> AnswerPatterns:
        by_model = self.answers.reshape(-1, len(self.gold))  # (model, text)
        return find_patterns(self.gold, by_model, len(self.labels))

    def by_group(
        self,
        place: tuple[str, str],
        parts: Mapping[str, Bools],
        annotators: Mapping[str, float | None],
        *,
        seed: int = 0,
    ) -> ByGroup:
        """Describes groups of these texts, p not corrected. place: task and column; parts: the
        texts of each group, (text,); annotators: the κ of people in each.
        """
        sides = {name: self.only(own) for name, own in parts.items()}
        groups = [
            side.describe((*place, name), annotators[name], seed) for name, side in sides.items()
        ]
        compared = list(parts)
        # of two groups that are all texts, one: the other's gaps are the same with another sign
        if len(parts) == 2 and np.any(list(parts.values()), axis=0).all():
            compared = compared[:1]
        gaps = [gap for name in compared for gap in self.compare(parts[name], (*place, name), seed)]
        known = {name: own for name, own in sides.items() if own.by_label().min() >= FEWEST}
        if len(known) < 2:
            return groups, [], gaps
        whole = self.only(np.any([parts[name] for name in known], axis=0)).patterns()
        return groups, [_spread(known, whole, place, seed)], gaps

    def describe(self, place: tuple[str, str, str], annotators: float | None, seed: int) -> Group:
        """The scores of these texts. place: task, column and name of the group."""
        found = self.patterns()
        counts = found.confusions(found.n).mean(0)  # (class, class)
        over_texts = interval_over_texts(found, seed=seed)
        whole = estimate_mean(self.by_seed(scores_of(found)), over_texts)
        recalls = zip(self.labels, counts.diagonal().tolist(), counts.sum(1).tolist(), strict=True)
        sure = self.sure.reshape(-1, len(self.gold))  # (model, text)
        right = (self.answers == self.gold).reshape(sure.shape)
        return Group(
            *place,
            n=len(self.gold),
            macro_f1=whole.value,
            interval=whole.interval,
            accuracy=float(right.mean()),
            recall={label: hits / n if n else None for label, hits, n in recalls},
            ece=float(np.mean([reliability(*one).ece for one in zip(sure, right, strict=True)])),
            ece_by_chance=float(np.mean([ece_by_chance(one, seed=seed) for one in sure])),
            kappa=cohen_kappa(counts),
            annotators=annotators,
        )

    def compare(self, own: Bools, place: tuple[str, str, str], seed: int) -> Iterator[Gap]:
        """The gaps between a group and all other texts. own (text,)"""
        sides = self.only(own), self.only(~own)
        is_known = np.min([side.by_label() for side in sides], axis=0) >= FEWEST  # (class,)
        if is_known.all():
            yield self._f1_gap(sides, place, seed)
        yield _share_gap(sides, (*place, "accuracy"))
        for number in np.flatnonzero(is_known).tolist():
            with_label = [side.only(side.gold == number) for side in sides]
            yield _share_gap(with_label, (*place, f"recall {self.labels[number]}"))

    def _f1_gap(self, sides: Sequence[Answered], place: tuple[str, str, str], seed: int) -> Gap:
        whole = self.patterns()
        n_whole = np.maximum(self.by_label(), 1)  # (class,)
        scores, ends, errors = [], [], []
        # not the same draws for both sides: they are different texts
        for number, side in enumerate(sides, start=seed):
            found = side.patterns()
            scores.append(scores_of(found))  # (model,)
            ends.append(interval_over_texts(found, seed=number))
            # each pattern as often as if texts of a label were answered as in the whole
            alike = whole.n * (side.by_label() / n_whole)[whole.gold]  # (pattern,)
            errors.append(text_bootstrap(whole, seed=number, expected=alike).mean(1).std())
        a, b = (float(one.mean()) for one in scores)
        over_texts = hybrid_interval(a, ends[0], b, ends[1])
        apart = _difference(self.by_seed(scores[0] - scores[1]), over_texts)
        error = float(np.hypot(*errors))
        n = len(sides[0].gold), len(sides[1].gold)
        p, power = two_sided(apart.value, error), normal_power(error, VISIBLE)
        return Gap(*place, "macro_f1", n, apart.value, apart.interval, p, power)


def _share_gap(sides: Sequence[Answered], place: tuple[str, str, str, str]) -> Gap:
    """The gap in the share of right answers. place: with the measure."""
    right = [(side.answers == side.gold).mean((0, 2)) for side in sides]  # (seed,) each
    n_a, n_b = (len(side.gold) for side in sides)
    a, b = (float(one.mean()) for one in right)
    apart = _difference(right[0] - right[1], share_interval(a, n_a, b, n_b))
    p, power = share_test(a, n_a, b, n_b), share_power(b, n_a, n_b, VISIBLE)
    return Gap(*place, (n_a, n_b), apart.value, apart.interval, p, power)


def _difference(by_seed: Floats, over_texts: Interval) -> Estimate:
    """The same models are on both sides, so their difference is one number a seed: (seed,)."""
    return estimate_mean(by_seed, over_texts, within=(-1.0, 1.0))


def _spread(
    sides: Mapping[str, Answered], whole: AnswerPatterns, place: tuple[str, str], seed: int
) -> Spread:
    """Measures how far the groups lie apart, mean over models, and how far when the texts of all of
    them are dealt to them at random, all answers to a text together.
    """
    scores = {name: float(scores_of(own.patterns()).mean()) for name, own in sides.items()}
    worst, *_, best = sorted(scores, key=scores.__getitem__)
    spread = scores[best] - scores[worst]
    generator = np.random.default_rng(seed)
    left = np.tile(whole.n, (_N_DEALS, 1))  # (deal, pattern): texts that no group has yet
    dealt = []
    for side in sides.values():
        # dealing texts is drawing how many of each pattern a group gets
        n = len(side.gold)
        hands = np.array([generator.multivariate_hypergeometric(one, n) for one in left])
        dealt.append(macro_f1(whole.confusions(hands)).mean(-1))  # (deal,)
        left = left - hands
    by_chance = np.ptp(dealt, axis=0)
    p = float((1 + (by_chance >= spread - ROUNDING).sum()) / (1 + _N_DEALS))
    return Spread(*place, worst, best, spread, float(by_chance.mean()), p)


def cohen_kappa(counts: Floats) -> float:
    """Agreement beyond chance (Cohen 1960) of confusion counts (class, class): 1 is perfect, 0 what
    two would have who only know how common the labels are; 0 if both give one label alone.
    """
    shares = counts / counts.sum()
    by_chance = float(shares.sum(0) @ shares.sum(1))
    if by_chance >= 1:
        return 0.0
    return (float(np.trace(shares)) - by_chance) / (1 - by_chance)
