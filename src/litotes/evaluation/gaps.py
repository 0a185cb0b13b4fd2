"""Is a model worse for some groups of texts, by how much, and could these numbers show it?

Each group is compared with all other texts of its task: no group is singled out by its score. Three
measures are tested: macro-F1; accuracy; and the recall of each label, whose differences are those
of equal opportunity (Hardt, Price & Srebro 2016, arXiv 1610.02413, §2). Holm's correction (1979)
is over all tests of one call. How they are tested, and what their power is, `gap_statistics` says.
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
from litotes.evaluation.reliability import wilson
from litotes.evaluation.scores import f1_interval, interval, with_unseen
from litotes.evaluation.significance import (
    SIGNIFICANT,
    AnswerPatterns,
    Estimate,
    find_patterns,
    holm,
    scores_of,
    split_draws,
    text_bootstrap,
)

COLUMNS = ("variety", "source", "cell", "split", "group")
"""What texts may be grouped by: all that a corpus says about a text besides its labels."""
VISIBLE = 0.05
"""The gap whose power is given."""


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
        if not result.task.is_choice:
            kind = "several labels" if result.task.multi_label else "a number"
            notes.append(f"{result.task.name} is answered with {kind}: its gaps are not tested.")
            continue
        for column in columns:
            parts, more = _split(result, column)
            notes += more
            if len(parts) < 2:
                continue
            for name, own in parts.items():
                groups.append(_group(result.only(own), column, name, corpus, seed))
            for name in _compared(parts):
                gaps += _compare(result, parts[name], column, name, seed)
            spreads += find_spread(result, parts, column, seed=seed)
    if not any(result.task.is_choice for result in predictions.values()):
        raise UserError(f"There are no gaps to test: {' '.join(notes)}")
    if not groups:
        wanted = ", ".join(columns)
        raise UserError(
            f"There are no two groups of {FEWEST} texts or more by {wanted}: nothing to compare."
            " Choose another column with --by."
        )
    corrected = holm([gap.p for gap in gaps])
    tested = [replace(gap, adjusted_p=p) for gap, p in zip(gaps, corrected, strict=True)]
    return Gaps(tuple(groups), tuple(spreads), tuple(tested), tuple(notes))


def check_columns(text: str) -> tuple[str, ...]:
    """The columns of `--by variety,source`."""
    names = tuple(dict.fromkeys(text.split(",")))
    for name in names:
        if name not in COLUMNS:
            raise UserError(f"--by {text}: {unknown_name(name, COLUMNS, 'column')}")
    return names


def _split(result: TaskPredictions, column: str) -> tuple[dict[str, list[bool]], list[str]]:
    """Which texts each group has, and what is left out."""
    names = [_name(example, column) for example in result.examples]
    parts, small = {}, []
    for name in sorted(set(names) - {None}, key=str):
        own = [one == name for one in names]
        if min(sum(own), len(own) - sum(own)) < FEWEST:
            small.append(str(name))
        else:
            parts[str(name)] = own
    if not small or not parts:
        return parts, []
    shown = ", ".join(small[:5]) + (f" and {len(small) - 5} more" if len(small) > 5 else "")
    note = f"{result.task.name} by {column}: {shown}: fewer than {FEWEST} texts, not compared."
    return parts, [note]


def _compared(parts: Mapping[str, Sequence[bool]]) -> list[str]:
    """Of two groups that are all texts, one: the other's gaps are the same with another sign."""
    is_halved = len(parts) == 2 and all(map(any, zip(*parts.values(), strict=True)))
    return list(parts)[:1] if is_halved else list(parts)


def _name(example: Example, column: str) -> str | None:
    if column == "cell":
        return None if cell_of(example) == Cell(None, None) else str(cell_of(example))
    value: str | None = getattr(example, column)
    return value


def _group(part: TaskPredictions, column: str, name: str, corpus: str, seed: int) -> Group:
    task = part.task
    counts = confusion(part.gold(), part.predicted(), len(task.labels))
    recall = {}
    for place, label in enumerate(task.labels):
        n = int(counts[place].sum())
        recall[label] = float(counts[place, place] / n) if n else None
    variety = {example.variety for example in part.examples}
    annotators = None
    if len(variety) == 1:
        annotators = annotator_kappa(corpus, task.name, str(variety.pop()))
    return Group(
        task=task.name,
        column=column,
        name=name,
        n=len(part.examples),
        macro_f1=float(macro_f1(counts)),
        interval=f1_interval(counts, seed=seed),
        accuracy=float(np.trace(counts) / counts.sum()),
        recall=recall,
        ece=part.reliability().ece,
        ece_by_chance=part.ece_by_chance(seed=seed),
        kappa=cohen_kappa(counts.astype(np.float64)),
        annotators=annotators,
    )


def _compare(
    result: TaskPredictions, own: Sequence[bool], column: str, name: str, seed: int
) -> Iterator[Gap]:
    """The gaps between a group and all other texts."""
    n_classes = len(result.task.labels)
    sides = [result.only(own), result.only([not one for one in own])]
    counts = [confusion(side.gold(), side.predicted(), n_classes) for side in sides]
    place = (result.task.name, column, name)
    if all(map(has_all_labels, counts)):
        yield Gap(*place, "macro_f1", **_f1_gap(result, own, seed))
    hits = [int(np.trace(one)) for one in counts]
    yield Gap(*place, "accuracy", **_share_gap(hits, [int(one.sum()) for one in counts]))
    for number, label in enumerate(result.task.labels):
        n = [int(one[number].sum()) for one in counts]
        if min(n) >= FEWEST:
            hits = [int(one[number, number]) for one in counts]
            yield Gap(*place, f"recall {label}", **_share_gap(hits, n))


def _f1_gap(result: TaskPredictions, own: Sequence[bool], seed: int) -> dict[str, Any]:
    is_own, predicted = np.asarray(own), result.predicted()[np.newaxis]
    found = f1_gap(result.gold(), predicted, is_own, len(result.task.labels), seed=seed)
    return {
        "n": (int(is_own.sum()), int((~is_own).sum())),
        "difference": found.difference,
        "interval": found.over_texts,
        "p": two_sided(found.difference, found.error),
        "power": normal_power(found.error, VISIBLE),
    }


def _share_gap(hits: Sequence[int], n: Sequence[int]) -> dict[str, Any]:
    (n_a, n_b), (a, b) = n, (hits[0] / n[0], hits[1] / n[1])
    return {
        "n": (n_a, n_b),
        "difference": a - b,
        "interval": share_interval(a, n_a, b, n_b),
        "p": share_test(a, n_a, b, n_b),
        "power": share_power(b, n_a, n_b, VISIBLE),
    }


# Differences between two groups of texts that share none: shares, intervals, tests and power.
#
# test       z = (a − b) / √(p̄ (1 − p̄) (1/n_a + 1/n_b)), p̄ the share of both groups together
# exact test P(X ≥ k_a), X hypergeometric: k_a + k_b hits dealt to n_a + n_b texts (Fisher 1934);
# for
#            few texts or rare hits, where z is no longer normal
# interval   Newcombe's hybrid score (1998, method 10): with Wilson's limits l, u of each share,
#            a − b − √((a − l_a)² + (u_b − b)²)   to   a − b + √((u_a − a)² + (b − l_b)²)
# power      Φ((|δ| − z₀.₉₇₅ s₀) / s₁) for a true gap δ, s₀ and s₁ the standard errors of a − b
#            without and with the gap
#
# Macro-F1 is treated in the same way: z = (a − b) / s with s the standard error if each label's
# texts
# were answered alike in both groups, as in both together; its interval is the hybrid of those of
# each
# group, `over_texts`. A group's own bootstrap would not do for s: 30 texts without a mistake do
# not
# vary at all, and any difference from them would be significant.

_Z = 1.959964  # 97.5 % of the normal distribution lie below


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


@dataclass(frozen=True)
class F1Gap:
    """Macro-F1 of a group less that of all other texts.

    by_model: (model,). over_texts: the 95 % interval of their mean. error: its standard error
    without a gap.
    """

    by_model: Floats
    over_texts: tuple[float, float]
    error: float

    @property
    def difference(self) -> float:
        return float(self.by_model.mean())


def f1_gap(
    gold: Counts, predicted: Counts, own: NDArray[np.bool_], n_classes: int, *, seed: int
) -> F1Gap:
    """A group against the rest. gold (text,), predicted (model, text), own (text,): the group."""
    whole = find_patterns(gold, predicted, n_classes)
    scores, ends, errors = [], [], []
    for number, side in enumerate((own, ~own)):
        found = find_patterns(gold[side], predicted[:, side], n_classes)
        scores.append(scores_of(found))
        # not the same draws for both: they are different texts
        drawn = interval(text_bootstrap(found, seed=seed + number).mean(1))
        ends.append(with_unseen(drawn, found.confusions(found.n).mean(0)))
        alike = _if_answered_alike(whole, gold[side])
        drawn_alike = text_bootstrap(whole, seed=seed + number, expected=alike)
        errors.append(float(drawn_alike.mean(1).std()))
    a, b = (float(one.mean()) for one in scores)
    over_texts = hybrid_interval(a, ends[0], b, ends[1])
    return F1Gap(scores[0] - scores[1], over_texts, float(np.hypot(errors[0], errors[1])))


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


# How far the groups of a corpus lie apart in macro-F1, and how far they would by chance alone.
#
# The groups of a small corpus always differ. `spread_by_chance` is the mean difference between the
# best and the worst macro-F1 when the same texts are dealt to groups of the same sizes at random,
# and
# `spread_p` the share of deals with a spread at least as large.

FEWEST = 10
"""Texts of a group, and of all others, that are compared; for macro-F1 and recall, texts of each
label. Fewer show nothing.
"""
_N_DEALS = 2000


@dataclass(frozen=True)
class Spread:
    """How far the groups of a column lie apart in macro-F1."""

    task: str
    column: str
    worst: str
    best: str
    spread: float
    spread_by_chance: float
    spread_p: float


def has_all_labels(counts: Counts) -> bool:
    """Macro-F1 over another set of labels, or with an F1 of a few texts, compares with nothing."""
    return int(counts.sum(1).min()) >= FEWEST


def find_spread(
    result: TaskPredictions, parts: Mapping[str, Sequence[bool]], column: str, *, seed: int
) -> Iterator[Spread]:
    """That of the groups with enough texts of each label; of fewer than two there is none.

    parts: which texts each group has.
    """
    answers = MeanAnswers(result.gold(), result.predicted()[None], len(result.task.labels))
    return find_mean_spread(answers, parts, task=result.task.name, column=column, seed=seed)


@dataclass(frozen=True)
class MeanAnswers:
    """gold (text,) and the answers of one or several models, predicted (model, text), whose scores
    are averaged.
    """

    gold: Counts
    predicted: Counts
    n_classes: int

    def macro_f1(self, own: NDArray[np.bool_]) -> float | None:
        """Of some texts; None where a label has too few of them. own (text,)"""
        gold = self.gold[own]
        counts = [confusion(gold, one[own], self.n_classes) for one in self.predicted]
        if not has_all_labels(counts[0]):
            return None
        return float(macro_f1(np.stack(counts)).mean())


def find_mean_spread(
    answers: MeanAnswers,
    parts: Mapping[str, Sequence[bool]],
    *,
    task: str,
    column: str,
    seed: int,
) -> Iterator[Spread]:
    """`find_spread` for the mean over models; all answers to a text are dealt together."""
    scores, whole = {}, []
    for name, own in parts.items():
        score = answers.macro_f1(np.asarray(own))
        if score is not None:
            scores[name] = score
            whole.append(own)
    if len(scores) < 2:
        return
    worst, *_, best = sorted(scores, key=scores.__getitem__)
    spread = scores[best] - scores[worst]
    dealt = _dealt_spreads(answers, whole, seed)
    yield Spread(
        task=task,
        column=column,
        worst=worst,
        best=best,
        spread=spread,
        spread_by_chance=float(dealt.mean()),
        spread_p=float((1 + (dealt >= spread - 1e-12).sum()) / (1 + len(dealt))),
    )


def _dealt_spreads(answers: MeanAnswers, parts: Sequence[Sequence[bool]], seed: int) -> Floats:
    """The spread when texts are dealt at random. (deal,)"""
    # (model, text): its place in the confusion counts, of the texts of all these groups
    is_in = np.any(parts, axis=0)
    places = (answers.gold * answers.n_classes + answers.predicted)[:, is_in]
    ends = np.cumsum([sum(own) for own in parts])[:-1]
    generator = np.random.default_rng(seed)
    spreads = []
    for n_deals in split_draws(_N_DEALS, places.shape[1]):
        order = np.tile(np.arange(places.shape[1]), (n_deals, 1))
        order = generator.permuted(order, axis=1)  # (deal, text)
        scores = np.zeros((len(parts), n_deals))  # (group, deal)
        for place in places:
            for group, hand in enumerate(np.split(place[order], ends, axis=1)):
                scores[group] += _dealt_scores(hand, answers.n_classes) / len(places)
        spreads.append(np.ptp(scores, axis=0))
    return np.concatenate(spreads)


def _dealt_scores(hand: Counts, n_classes: int) -> Floats:
    """Macro-F1 of every deal. (deal, text) → (deal,)"""
    counts = [(hand == cell).sum(1) for cell in range(n_classes**2)]  # (deal,) each
    return macro_f1(np.stack(counts, axis=1).reshape(-1, n_classes, n_classes))
