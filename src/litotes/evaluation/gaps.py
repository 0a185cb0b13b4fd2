"""Is a model worse for some groups of texts, by how much, and could these numbers show it?

Each group is compared with all other texts of its task: no group is singled out by its score. Three
measures are tested: macro-F1; accuracy; and the recall of each label, whose differences are those
of equal opportunity (Hardt, Price & Srebro 2016, arXiv 1610.02413, §2). Holm's correction (1979)
is over all tests of one call.

The groups share no text.

test       z = (a − b) / √(p̄ (1 − p̄) (1/n_a + 1/n_b)), p̄ the share of both groups together
exact test P(X ≥ k_a), X hypergeometric: k_a + k_b hits dealt to n_a + n_b texts (Fisher 1934); for
           few texts or rare hits, where z is no longer normal
interval   Newcombe's hybrid score (1998, method 10): with Wilson's limits l, u of each share,
           a − b − √((a − l_a)² + (u_b − b)²)   to   a − b + √((u_a − a)² + (b − l_b)²)
power      Φ((|δ| − z₀.₉₇₅ s₀) / s₁) for a true gap δ, s₀ and s₁ the standard errors of a − b
           without and with the gap

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
from dataclasses import asdict, dataclass, replace
from math import erfc, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import UserError
from litotes.core.numbers import Counts, Floats, confusion, macro_f1
from litotes.core.registry import unknown_name
from litotes.core.text import one_line
from litotes.core.values import Example
from litotes.data.corpus import Cell, cell_of
from litotes.data.labels import annotator_kappa
from litotes.evaluation.evaluate import TaskPredictions
from litotes.evaluation.reliability import ece_by_chance, reliability, wilson
from litotes.evaluation.scores import f1_interval, interval, with_unseen
from litotes.evaluation.significance import (
    SIGNIFICANT,
    AnswerPatterns,
    Estimate,
    find_patterns,
    holm,
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
_Z = 1.959964  # 97.5 % of the normal distribution lie below
Bools = NDArray[np.bool_]


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
    interval: tuple[float, float]
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
class Gap:
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
    interval: tuple[float, float]
    p: float
    power: float
    adjusted_p: float = 1.0

    @property
    def is_significant(self) -> bool:
        return self.adjusted_p < SIGNIFICANT

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


@dataclass(frozen=True)
class Gaps:
    """notes: what was not compared, and why."""

    groups: tuple[Group, ...]
    spreads: tuple[Spread, ...]
    gaps: tuple[Gap, ...]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        n_significant = sum(gap.is_significant for gap in self.gaps)
        return one_line(self, n_groups=len(self.groups), n_significant=n_significant)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def find_gaps(
    predictions: Mapping[str, TaskPredictions],
    columns: Sequence[str],
    *,
    corpus: str = "",
    seed: int = 0,
) -> Gaps:
    """columns: of COLUMNS. corpus: its name, by which annotators' agreement is known."""
    groups: list[Group] = []
    spreads: list[Spread] = []
    gaps: list[Gap] = []
    notes: list[str] = []
    for result in predictions.values():
        task = result.task
        if not task.is_choice:
            kind = "several labels" if task.multi_label else "a number"
            notes.append(f"{task.name} is answered with {kind}: its gaps are not tested.")
            continue
        whole = Answered.by_one_model(result)
        for column in columns:
            parts, more = _split(result, column)
            notes += more
            if len(parts) < 2:
                continue
            for name, own in parts.items():
                of_group = {one.variety for one in result.only(own.tolist()).examples}
                variety = str(of_group.pop()) if len(of_group) == 1 else None
                people = variety and annotator_kappa(corpus, task.name, variety)
                place = (task.name, column, name)
                groups.append(whole.only(own).describe(place, people or None, seed=seed))
            for name in _compared(parts):
                gaps += whole.compare(parts[name], (task.name, column, name), seed=seed)
            spreads += whole.spread(parts, (task.name, column), seed=seed)
    if not any(result.task.is_choice for result in predictions.values()):
        raise UserError(f"There are no gaps to test: {' '.join(notes)}")
    if not groups:
        wanted = ", ".join(columns)
        raise UserError(
            f"There are no two groups of {FEWEST} texts or more by {wanted}: nothing to compare."
            " Choose another column with --by."
        )
    return Gaps(tuple(groups), tuple(spreads), correct(gaps), tuple(notes))


def correct(gaps: Sequence[Gap]) -> tuple[Gap, ...]:
    """The gaps with p corrected over all of them."""
    adjusted = holm([gap.p for gap in gaps])
    return tuple(replace(gap, adjusted_p=p) for gap, p in zip(gaps, adjusted, strict=True))


def check_columns(text: str) -> tuple[str, ...]:
    """The columns of `--by variety,source`."""
    names = tuple(dict.fromkeys(text.split(",")))
    for name in names:
        if name not in COLUMNS:
            raise UserError(f"--by {text}: {unknown_name(name, COLUMNS, 'column')}")
    return names


def _split(result: TaskPredictions, column: str) -> tuple[dict[str, Bools], list[str]]:
    """Which texts each group has, (text,), and what is left out."""
    names = [_name(example, column) for example in result.examples]
    parts, small = {}, []
    for name in sorted(filter(None, set(names))):
        own = np.array([one == name for one in names])
        if min(own.sum(), (~own).sum()) < FEWEST:
            small.append(name)
        else:
            parts[name] = own
    if not small or not parts:
        return parts, []
    shown = ", ".join(small[:5]) + (f" and {len(small) - 5} more" if len(small) > 5 else "")
    note = f"{result.task.name} by {column}: {shown}: fewer than {FEWEST} texts, not compared."
    return parts, [note]


def _compared(parts: Mapping[str, Bools]) -> list[str]:
    """Of two groups that are all texts, one: the other's gaps are the same with another sign."""
    is_halved = len(parts) == 2 and bool(np.any(list(parts.values()), axis=0).all())
    return list(parts)[:1] if is_halved else list(parts)


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

    @classmethod
    def by_one_model(cls, result: TaskPredictions) -> Answered:
        answers, sure = result.predicted()[None, None], result.confidence()[None, None]
        return cls(result.gold(), answers, sure, result.task.labels)

    def only(self, keep: Bools) -> Answered:
        return Answered(self.gold[keep], self.answers[..., keep], self.sure[..., keep], self.labels)

    def by_model(self) -> Counts:
        """(row, seed, text) → (model, text)"""
        return self.answers.reshape(-1, len(self.gold))

    def by_seed(self, by_model: Floats) -> Floats:
        """Mean over rows. (model,) → (seed,)"""
        return np.asarray(by_model.reshape(self.answers.shape[:2]).mean(0))

    def patterns(self) -> AnswerPatterns:
        return find_patterns(self.gold, self.by_model(), len(self.labels))

    def describe(
        self, place: tuple[str, str, str], annotators: float | None, *, seed: int = 0
    ) -> Group:
        """The scores of these texts. place: task, column and name of the group."""
        found = self.patterns()
        counts = found.confusions(found.n).mean(0)  # (class, class)
        by_seed = self.by_seed(scores_of(found))
        if len(self.by_model()) == 1:
            over_texts = f1_interval(counts.astype(np.int64), seed=seed)
        else:
            drawn = interval(text_bootstrap(found, seed=seed).mean(1))
            over_texts = with_unseen(drawn, counts)
        value = float(by_seed.mean())
        n_by_label, n_found = counts.sum(1).tolist(), counts.diagonal().tolist()
        recalls = [hits / n if n else None for hits, n in zip(n_found, n_by_label, strict=True)]
        sure = self.sure.reshape(-1, len(self.gold))  # (model, text)
        right = self.by_model() == self.gold
        eces = [reliability(*one).ece for one in zip(sure, right, strict=True)]
        return Group(
            *place,
            n=len(self.gold),
            macro_f1=value,
            interval=widen_interval(value, over_texts, seed_margin(by_seed), within=(0.0, 1.0)),
            accuracy=float(right.mean()),
            recall=dict(zip(self.labels, recalls, strict=True)),
            ece=float(np.mean(eces)),
            ece_by_chance=float(np.mean([ece_by_chance(one, seed=seed) for one in sure])),
            kappa=cohen_kappa(counts),
            annotators=annotators,
        )

    def compare(self, own: Bools, place: tuple[str, str, str], *, seed: int = 0) -> Iterator[Gap]:
        """The gaps between a group and all other texts. own (text,)"""
        sides = self.only(own), self.only(~own)
        n_by_label = np.array([np.bincount(one.gold, minlength=len(self.labels)) for one in sides])
        if n_by_label.min() >= FEWEST:
            yield self._f1_gap(own, place, seed)
        yield _share_gap(sides, (*place, "accuracy"))
        for number, label in enumerate(self.labels):
            if n_by_label[:, number].min() >= FEWEST:
                of_label = (
                    sides[0].only(sides[0].gold == number),
                    sides[1].only(sides[1].gold == number),
                )
                yield _share_gap(of_label, (*place, f"recall {label}"))

    def _f1_gap(self, own: Bools, place: tuple[str, str, str], seed: int) -> Gap:
        whole = self.patterns()
        scores, ends, errors = [], [], []
        for number, side in enumerate((own, ~own)):
            found = self.only(side).patterns()
            scores.append(scores_of(found))  # (model,)
            # not the same draws for both: they are different texts
            drawn = interval(text_bootstrap(found, seed=seed + number).mean(1))
            ends.append(with_unseen(drawn, found.confusions(found.n).mean(0)))
            alike = _if_answered_alike(whole, self.gold[side])
            drawn_alike = text_bootstrap(whole, seed=seed + number, expected=alike)
            errors.append(float(drawn_alike.mean(1).std()))
        a, b = (float(one.mean()) for one in scores)
        over_texts, error = hybrid_interval(a, ends[0], b, ends[1]), float(np.hypot(*errors))
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

    def spread(
        self, parts: Mapping[str, Bools], place: tuple[str, str], *, seed: int = 0
    ) -> Iterator[Spread]:
        """How far the groups with enough texts of each label lie apart, mean over models; of fewer
        than two there is none. All answers to a text are dealt together.
        """
        scores, whole = {}, []
        for name, own in parts.items():
            side = self.only(own)
            if np.bincount(side.gold, minlength=len(self.labels)).min() >= FEWEST:
                counts = [confusion(side.gold, one, len(self.labels)) for one in side.by_model()]
                scores[name] = float(macro_f1(np.stack(counts)).mean())
                whole.append(own)
        if len(scores) < 2:
            return
        worst, *_, best = sorted(scores, key=scores.__getitem__)
        spread = scores[best] - scores[worst]
        dealt = self._dealt_spreads(whole, seed)
        yield Spread(
            *place,
            worst=worst,
            best=best,
            spread=spread,
            spread_by_chance=float(dealt.mean()),
            spread_p=float((1 + (dealt >= spread - 1e-12).sum()) / (1 + len(dealt))),
        )

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


def _share_gap(sides: tuple[Answered, Answered], place: tuple[str, str, str, str]) -> Gap:
    """Of the shares of right answers."""
    n_a, n_b = (len(side.gold) for side in sides)
    by_seed = [(side.answers == side.gold).mean((0, 2)) for side in sides]  # (seed,) each
    a, b = (float(one.mean()) for one in by_seed)
    return Gap(
        *place,
        n=(n_a, n_b),
        difference=a - b,
        interval=_widen(a - b, share_interval(a, n_a, b, n_b), by_seed[0] - by_seed[1]),
        p=share_test(a, n_a, b, n_b),
        power=share_power(b, n_a, n_b, VISIBLE),
    )


def _widen(value: float, over_texts: tuple[float, float], by_seed: Floats) -> tuple[float, float]:
    """The same models are on both sides, so their difference is one number a seed: (seed,)."""
    return widen_interval(value, over_texts, seed_margin(by_seed), within=(-1.0, 1.0))


def share_interval(a: float, n_a: int, b: float, n_b: int) -> tuple[float, float]:
    """The 95 % interval of a − b."""
    return hybrid_interval(a, wilson(a, n_a), b, wilson(b, n_b))


def hybrid_interval(
    a: float, ends_a: tuple[float, float], b: float, ends_b: tuple[float, float]
) -> tuple[float, float]:
    """The interval of a − b from those of a and b."""
    (low_a, high_a), (low_b, high_b) = ends_a, ends_b
    low = a - b - sqrt((a - low_a) ** 2 + (high_b - b) ** 2)
    high = a - b + sqrt((high_a - a) ** 2 + (b - low_b) ** 2)
    return max(low, -1.0), min(high, 1.0)


def share_test(a: float, n_a: int, b: float, n_b: int) -> float:
    """Two-sided p of a = b."""
    error = _pooled_error(a, n_a, b, n_b)
    return two_sided(a - b, error)


def exact_test(n_hits: tuple[int, int], n: tuple[int, int]) -> float:
    """One-sided p of the first group having no larger a share of hits than the second."""
    both, whole = sum(n_hits), sum(n)
    logs = np.concatenate([[0.0], np.log(np.arange(1, whole + 1))]).cumsum()  # log k!

    def ways(total: int, chosen: NDArray[np.int64]) -> Floats:
        return np.asarray(logs[total] - logs[chosen] - logs[total - chosen])

    here = np.arange(n_hits[0], min(n[0], both) + 1)  # as many hits in the first group, or more
    all_ways = ways(whole, np.array(both))
    chances = np.exp(ways(n[0], here) + ways(n[1], both - here) - all_ways)
    return min(float(chances.sum()), 1.0)


def share_power(share: float, n_a: int, n_b: int, gap: float) -> float:
    """The chance that `share_test` is under 0.05 if group b has this share and a has less by `gap`;
    if so much less is impossible, more.
    """
    other = share - gap if share >= gap else share + gap
    without = _pooled_error(other, n_a, share, n_b)
    with_gap = sqrt(other * (1 - other) / n_a + share * (1 - share) / n_b)
    if not with_gap:
        return 1.0
    return _below((gap - _Z * without) / with_gap)


def _if_answered_alike(whole: AnswerPatterns, gold: Counts) -> Floats:
    """How often each pattern of the whole would come among texts with these labels, (text,), if
    those of a label were answered as in the whole. (pattern,)
    """
    n_whole = np.bincount(whole.gold, weights=whole.n, minlength=whole.n_classes)
    share = np.bincount(gold, minlength=whole.n_classes) / np.maximum(n_whole, 1)  # (class,)
    return np.asarray(whole.n * share[whole.gold])


def two_sided(difference: float, error: float) -> float:
    """The p of a difference with a known standard error; 1 where nothing varies or differs."""
    if not error:
        return 1.0 if not difference else 0.0
    return 2 * _below(-abs(difference) / error)


def normal_power(error: float, gap: float) -> float:
    """The chance that `two_sided` is under 0.05, for a true gap."""
    return 1.0 if not error else _below(gap / error - _Z) + _below(-gap / error - _Z)


def cohen_kappa(counts: Floats) -> float:
    """Agreement beyond chance (Cohen 1960) of confusion counts (class, class): 1 is perfect, 0 what
    two would have who only know how common the labels are; 0 if both give one label alone.
    """
    shares = counts / counts.sum()
    by_chance = float(shares.sum(0) @ shares.sum(1))
    if by_chance >= 1:
        return 0.0
    return (float(np.trace(shares)) - by_chance) / (1 - by_chance)


def _below(z: float) -> float:
    """Φ: the share of the normal distribution that lies below."""
    return erfc(-z / sqrt(2)) / 2


def _pooled_error(a: float, n_a: int, b: float, n_b: int) -> float:
    both = (a * n_a + b * n_b) / (n_a + n_b)
    return sqrt(max(both * (1 - both), 0.0) * (1 / n_a + 1 / n_b))
