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

import numpy as np

from litotes.core.errors import UserError
from litotes.core.numbers import Counts, Floats, macro_f1
from litotes.core.registry import unknown_name
from litotes.core.values import Example
from litotes.data.corpus import Cell, cell_of
from litotes.data.labels import annotator_kappa
from litotes.evaluation.evaluate import Predictions, TaskPredictions, kind_of_answer
from litotes.evaluation.reliability import ece_by_chance, reliability
from litotes.evaluation.scores import Bools, Interval, Result, f1_interval
from litotes.evaluation.shares import (
    hybrid_interval,
    normal_power,
    share_interval,
    share_power,
    share_test,
    two_sided,
)
from litotes.evaluation.significance import (
    AnswerPatterns,
    Estimate,
    Tested,
    correct,
    find_patterns,
    interval_over_texts,
    scores_of,
    seed_margin,
    split_draws,
    text_bootstrap,
    widen_interval,
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
    """A group less all other texts. measure: macro_f1, accuracy or `recall LABEL`.

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
        """Of its measure: macro-F1, accuracy or recall."""
        return self.measure.partition(" ")[0].replace("macro_f1", "macro-F1")


@dataclass(frozen=True)
class Spread:
    """How far the groups of a column lie apart in macro-F1, from the best to the worst.

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
    found: list[Gaps] = []
    notes: list[str] = []
    for result in predictions.values():
        task = result.task
        if not task.is_choice:
            kind = kind_of_answer(task)
            notes.append(f"{task.name} is answered with {kind}: its gaps are not tested.")
            continue
        answers, sure = result.predicted()[None, None], result.confidence()[None, None]
        whole = Answered(result.gold(), answers, sure, task.labels)
        for column in columns:
            parts = _split(result, column, notes)
            if len(parts) < 2:
                continue
            people = {}
            for name, own in parts.items():
                varieties = {one.variety for one in result.only(own.tolist()).examples}
                variety = varieties.pop() if len(varieties) == 1 else None
                people[name] = annotator_kappa(corpus, task.name, str(variety)) or None
            found.append(whole.by_group((task.name, column), parts, people, seed=seed))
    if not any(result.task.is_choice for result in predictions.values()):
        raise UserError(f"There are no gaps to test: {' '.join(notes)}")
    if not found:
        wanted = ", ".join(columns)
        raise UserError(
            f"There are no two groups of {FEWEST} texts or more by {wanted}: nothing to compare."
            " Choose another column with --by."
        )
    return Gaps(
        tuple(group for one in found for group in one.groups),
        tuple(spread for one in found for spread in one.spreads),
        tuple(correct([gap for one in found for gap in one.gaps])),
        tuple(notes),
    )


def check_columns(text: str) -> tuple[str, ...]:
    """The columns of `--by variety,source`."""
    names = tuple(dict.fromkeys(text.split(",")))
    for name in names:
        if name not in COLUMNS:
            raise UserError(f"--by {text}: {unknown_name(name, COLUMNS, 'column')}")
    return names


def _split(result: TaskPredictions, column: str, notes: list[str]) -> dict[str, Bools]:
    """Which texts each group has, (text,); what is left out is noted."""
    names = [_name(example, column) for example in result.examples]
    parts, small = {}, []
    for name in sorted(filter(None, set(names))):
        own = np.array([one == name for one in names])
        if min(own.sum(), (~own).sum()) < FEWEST:
            small.append(name)
        else:
            parts[name] = own
    if small and parts:
        shown = ", ".join(small[:5]) + (f" and {len(small) - 5} more" if len(small) > 5 else "")
        few = f"fewer than {FEWEST} texts, not compared."
        notes.append(f"{result.task.name} by {column}: {shown}: {few}")
    return parts


def _name(example: Example, column: str) -> str | None:
    if column == "cell":
        return None if cell_of(example) == Cell(None, None) else str(cell_of(example))
    value: str | None = getattr(example, column)
    return value


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

    def by_model(self) -> Counts:
        """(row, seed, text) → (model, text)"""
        return self.answers.reshape(-1, len(self.gold))

    def by_seed(self, by_model: Floats) -> Floats:
        """Mean over rows. (model,) → (seed,)"""
        return np.asarray(by_model.reshape(self.answers.shape[:2]).mean(0))

    def by_label(self) -> Counts:
        """How many texts have each label. (class,)"""
        return np.bincount(self.gold, minlength=len(self.labels))

    def patterns(self) -> AnswerPatterns:
        return find_patterns(self.gold, self.by_model(), len(self.labels))

    def by_group(
        self,
        place: tuple[str, str],
        parts: Mapping[str, Bools],
        annotators: Mapping[str, float | None],
        *,
        seed: int = 0,
    ) -> Gaps:
        """All that is said of groups of these texts, p not corrected. place: task and column;
        parts: the texts of each group, (text,); annotators: the κ of people in each.
        """
        compared = list(parts)
        # of two groups that are all texts, one: the other's gaps are the same with another sign
        if len(parts) == 2 and np.any(list(parts.values()), axis=0).all():
            compared = compared[:1]
        groups = []
        for name, own in parts.items():
            groups.append(self.only(own).describe((*place, name), annotators[name], seed=seed))
        gaps = [
            gap for name in compared for gap in self.compare(parts[name], (*place, name), seed=seed)
        ]
        return Gaps(tuple(groups), tuple(self._spread(parts, place, seed)), tuple(gaps))

    def describe(
        self, place: tuple[str, str, str], annotators: float | None, *, seed: int = 0
    ) -> Group:
        """The scores of these texts. place: task, column and name of the group."""
        found = self.patterns()
        counts = found.confusions(found.n).mean(0)  # (class, class)
        by_seed = self.by_seed(scores_of(found))
        # the same draws as those of `scores.py` where there is one model
        if len(self.by_model()) == 1:
            over_texts = f1_interval(counts.astype(np.int64), seed=seed)
        else:
            over_texts = interval_over_texts(found, seed=seed)
        value = float(by_seed.mean())
        n_found = zip(self.labels, counts.diagonal().tolist(), counts.sum(1).tolist(), strict=True)
        sure = self.sure.reshape(-1, len(self.gold))  # (model, text)
        right = self.by_model() == self.gold
        eces = [reliability(*one).ece for one in zip(sure, right, strict=True)]
        return Group(
            *place,
            n=len(self.gold),
            macro_f1=value,
            interval=widen_interval(value, over_texts, seed_margin(by_seed), within=(0.0, 1.0)),
            accuracy=float(right.mean()),
            recall={label: hits / n if n else None for label, hits, n in n_found},
            ece=float(np.mean(eces)),
            ece_by_chance=float(np.mean([ece_by_chance(one, seed=seed) for one in sure])),
            kappa=cohen_kappa(counts),
            annotators=annotators,
        )

    def compare(self, own: Bools, place: tuple[str, str, str], *, seed: int = 0) -> Iterator[Gap]:
        """The gaps between a group and all other texts. own (text,)"""
        n_by_label = np.array([self.only(side).by_label() for side in (own, ~own)])
        if n_by_label.min() >= FEWEST:
            yield self._f1_gap(own, place, seed)
        among = {"accuracy": np.ones_like(own)}
        for number, label in enumerate(self.labels):
            if n_by_label[:, number].min() >= FEWEST:
                among[f"recall {label}"] = self.gold == number
        right = self.answers == self.gold  # (row, seed, text)
        for measure, texts in among.items():
            inside, outside = right[..., own & texts], right[..., ~own & texts]
            n_a, n_b = inside.shape[-1], outside.shape[-1]
            by_seed = inside.mean((0, 2)), outside.mean((0, 2))  # (seed,) each
            a, b = (float(one.mean()) for one in by_seed)
            yield Gap(
                *place,
                measure,
                n=(n_a, n_b),
                difference=a - b,
                interval=_widen(a - b, share_interval(a, n_a, b, n_b), by_seed[0] - by_seed[1]),
                p=share_test(a, n_a, b, n_b),
                power=share_power(b, n_a, n_b, VISIBLE),
            )

    def _f1_gap(self, own: Bools, place: tuple[str, str, str], seed: int) -> Gap:
        whole = self.patterns()
        n_whole = np.maximum(self.by_label(), 1)  # (class,)
        scores, ends, errors = [], [], []
        # not the same draws for both sides: they are different texts
        for number, side in enumerate((self.only(own), self.only(~own))):
            found = side.patterns()
            scores.append(scores_of(found))  # (model,)
            ends.append(interval_over_texts(found, seed=seed + number))
            # each pattern as often as if texts of a label were answered as in the whole
            alike = whole.n * (side.by_label() / n_whole)[whole.gold]  # (pattern,)
            drawn = text_bootstrap(whole, seed=seed + number, expected=alike)
            errors.append(float(drawn.mean(1).std()))
        a, b = (float(one.mean()) for one in scores)
        over_texts, error = (
            hybrid_interval(a, ends[0], b, ends[1]),
            float(np.hypot(errors[0], errors[1])),
        )
        by_model = scores[0] - scores[1]
        difference = float(by_model.mean())
        return Gap(
            *place,
            "macro_f1",
            n=(int(own.sum()), int((~own).sum())),
            difference=difference,
            interval=_widen(difference, over_texts, self.by_seed(by_model)),
            p=two_sided(difference, error),
            power=normal_power(error, VISIBLE),
        )

    def _spread(
        self, parts: Mapping[str, Bools], place: tuple[str, str], seed: int
    ) -> Iterator[Spread]:
        """How far the groups with enough texts of each label lie apart, mean over models; of fewer
        than two there is none. All answers to a text are dealt together.
        """
        sides = {name: self.only(own) for name, own in parts.items()}
        known = [name for name, side in sides.items() if side.by_label().min() >= FEWEST]
        if len(known) < 2:
            return
        scores = {name: float(scores_of(sides[name].patterns()).mean()) for name in known}
        worst, *_, best = sorted(scores, key=scores.__getitem__)
        spread = scores[best] - scores[worst]
        dealt = self._dealt_spreads([parts[name] for name in known], seed)
        p = float((1 + (dealt >= spread - 1e-12).sum()) / (1 + len(dealt)))
        yield Spread(*place, worst, best, spread, float(dealt.mean()), p)

    def _dealt_spreads(self, parts: Sequence[Bools], seed: int) -> Floats:
        """The spread when texts are dealt at random. (deal,)"""
        n_classes = len(self.labels)
        # (model, text): its place in the confusion counts, of the texts of all these groups
        places = (self.gold * n_classes + self.by_model())[:, np.any(parts, axis=0)]
        ends = np.cumsum([own.sum() for own in parts])[:-1]
        generator = np.random.default_rng(seed)
        spreads = []
        for n_deals in split_draws(_N_DEALS, places.shape[1]):
            order = np.tile(np.arange(places.shape[1]), (n_deals, 1))
            order = generator.permuted(order, axis=1)  # (deal, text)
            scores = np.zeros((len(parts), n_deals))  # (group, deal)
            for place in places:
                for group, hand in enumerate(np.split(place[order], ends, axis=1)):
                    counts = [(hand == cell).sum(1) for cell in range(n_classes**2)]  # (deal,) each
                    by_deal = np.stack(counts, axis=1).reshape(-1, n_classes, n_classes)
                    scores[group] += macro_f1(by_deal) / len(places)
            spreads.append(np.ptp(scores, axis=0))
        return np.concatenate(spreads)


def _widen(value: float, over_texts: Interval, by_seed: Floats) -> Interval:
    """The same models are on both sides, so their difference is one number a seed: (seed,)."""
    return widen_interval(value, over_texts, seed_margin(by_seed), within=(-1.0, 1.0))


def cohen_kappa(counts: Floats) -> float:
    """Agreement beyond chance (Cohen 1960) of confusion counts (class, class): 1 is perfect, 0 what
    two would have who only know how common the labels are; 0 if both give one label alone.
    """
    shares = counts / counts.sum()
    by_chance = float(shares.sum(0) @ shares.sum(1))
    if by_chance >= 1:
        return 0.0
    return (float(np.trace(shares)) - by_chance) / (1 - by_chance)
