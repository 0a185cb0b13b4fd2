"""On which texts is a model worse than elsewhere? Slices are found on one half of the texts and
confirmed on the other.

1. The texts are divided at random; texts that a split keeps together stay together.
2. On the first half every candidate is tested: is the error rate inside higher
   than outside? Those with p < 0.05, at most N_KEPT of a task, the surest first, are kept.
3. On the second half only these are tested, with Holm's correction (1979) over all of them.

    first half    z = (e_in − e_out) / √(ē (1 − ē) (1/n_in + 1/n_out)),   p = 1 − Φ(z)
    second half   P(so many of all mistakes, or more, fall inside), Fisher's exact test, one-sided

For 20 texts with few mistakes z promises too much: its p would confirm by luck twice as often as it
says. The second half knows nothing of the search, so with a chance of at least 0.95 no slice is
confirmed by luck, however many were looked at. Intervals of the differences are Newcombe's (1998)
on the second half. Slices overlap, and a word may stand for a platform or for a label that is hard
everywhere. So beside each difference stands the matched one (Mantel & Haenszel 1959): texts of one
variety, source and gold label, a stratum k, are compared with each other,

    RD = Σ w_k (e_in,k − e_out,k) / Σ w_k,   w_k = n_in,k n_out,k / n_k

with an interval of ±1.96 standard errors by Sato (1989, Biometrics 45, 1323), which also hold where
a stratum has one text or two of the slice. A variety is matched by source and label, a source by
variety and label, a cell by label. Where the interval holds 0, the slice may be no more than what
it was matched by.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from litotes.core.errors import UserError
from litotes.core.figures import BAR, GAP, INK, save_figure
from litotes.core.numbers import Counts, format_signed
from litotes.core.pages import render, render_paragraphs
from litotes.core.registry import grouped
from litotes.core.storage import write_text
from litotes.core.values import Example
from litotes.data.corpus import ColumnNames, components, ties_of
from litotes.data.rewrites.signs import signs_of
from litotes.evaluation.evaluate import Predictions, TaskPredictions, kind_of_answer
from litotes.evaluation.forest import Panel, Points, draw_forest
from litotes.evaluation.scores import Bools, Interval, Json, Result
from litotes.evaluation.shares import Z, exact_test, share_interval, share_test
from litotes.evaluation.significance import SIGNIFICANT, Estimate, Tested, correct

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_KEPT = 10
"""Slices of a task that go on to the second half."""

HEAD = (
    "task", "slice", "n / others", "error", "elsewhere", "first half",
    "second half (95 % interval)", "p", "p corrected", "matched (95 % interval)", "",
)  # fmt: skip
"""Of a table of slices."""


@dataclass(frozen=True)
class Slice(Tested):
    """A slice that was kept. Differences are error rates inside less outside.

    n: its texts in the second half, and the others. searched: the difference on the first half,
    where chance has chosen it. matched: the difference among texts of the same variety, source and
    label; None where no stratum has texts on both sides.
    """

    task: str
    kind: str
    name: str
    n: tuple[int, int]
    error: float
    error_elsewhere: float
    searched: float
    difference: float
    interval: Interval
    p: float
    adjusted_p: float
    matched: float | None
    matched_interval: Interval | None

    @property
    def is_explained(self) -> bool:
        """Whether its varieties, sources and labels may be all there is to it."""
        return self.matched_interval is None or self.matched_interval[0] <= 0

    @property
    def matched_by(self) -> str:
        """By what its texts are matched."""
        known = {"variety": "source and label", "source": "variety and label", "cell": "label"}
        return known.get(self.kind, "variety, source and label")

    def cells(self) -> tuple[str, ...]:
        """Its row of a table, under HEAD."""
        matched = "–"
        if self.matched is not None and self.matched_interval is not None:
            matched = Estimate(self.matched, self.matched_interval).signed()
        verdict = "confirmed" if self.is_significant else "not confirmed"
        if self.is_significant and self.is_explained:
            verdict = "confirmed; unclear when matched"
        return (
            self.task,
            f"{self.kind} {self.name}",
            " / ".join(map(str, self.n)),
            f"{self.error:.3f}",
            f"{self.error_elsewhere:.3f}",
            format_signed(self.searched, 3, minus="−"),
            Estimate(self.difference, self.interval).signed(),
            *("< 0.0001" if p < 0.0001 else f"{p:.4f}" for p in (self.p, self.adjusted_p)),
            matched,
            verdict,
        )


@dataclass(frozen=True, repr=False)
class Slices(Result):
    """What was kept, confirmed or not, the surest first. n_candidates: looked at, by task."""

    shown = ("n_candidates", "notes")
    slices: tuple[Slice, ...]
    n_candidates: Mapping[str, int]
    n_texts: Mapping[str, tuple[int, int]]
    notes: tuple[str, ...] = ()

    def confirmed(self) -> list[Slice]:
        return [one for one in self.slices if one.is_significant]

    def as_json(self) -> Json:
        content = super().as_json()
        for one, own in zip(self.slices, content["slices"], strict=True):
            own |= {"confirmed": one.is_significant, "explained": one.is_explained}
        return content


def find_slices(predictions: Predictions, *, seed: int = 0) -> Slices:
    """Searches every classification task; a seed divides the texts in one way."""
    kept: list[Slice] = []
    n_candidates, n_texts, notes = {}, {}, []
    for task, result in predictions.items():
        if not result.task.is_choice:
            kind = kind_of_answer(result.task)
            notes.append(f"{task} is answered with {kind}: it is not searched for slices.")
            continue
        searched = divide(result.examples, seed=seed)
        candidates = find_candidates(result.examples, searched)
        n_candidates[task] = len(candidates)
        n_texts[task] = (int(searched.sum()), int((~searched).sum()))
        if not candidates:
            notes.append(
                f"{task}: no word, length, source, variety or feature has {FEWEST} texts, and"
                f" {FEWEST} others, in each half of {len(searched)} texts: nothing to search."
            )
        kept += _search(result, candidates, searched)
    if not n_candidates:
        raise UserError(f"There are no mistakes to search: {' '.join(notes)}")
    tested = sorted(correct(kept), key=lambda one: (one.adjusted_p, one.p))
    return Slices(tuple(tested), n_candidates, n_texts, tuple(notes))


def divide(examples: Sequence[Example], *, seed: int) -> Bools:
    """Which texts are searched: half of them, with their groups. (text,)"""
    keys = [example.group or example.text for example in examples]
    different = sorted(set(keys))
    Random(seed).shuffle(different)
    chosen = set(different[: len(different) // 2])
    # the same text in other letters, or a member of a group, goes where the first of them goes
    blocks = components(tuple(ties_of(example)) for example in examples)
    members = grouped(zip(blocks, keys, strict=True), lambda pair: pair[0])
    first = {block: min(key for _, key in own) for block, own in members.items()}
    return np.array([first[block] in chosen for block in blocks], dtype=np.bool_)


def _search(
    result: TaskPredictions, candidates: Sequence[Candidate], searched: Bools
) -> Iterator[Slice]:
    """Keeps what is worse on the first half, and measures it on the second."""
    wrong = result.gold() != result.predicted()  # (text,)
    found = []
    for number, candidate in enumerate(candidates):
        hits, n = _count(wrong, candidate.own, searched)
        error, elsewhere = hits[0] / n[0], hits[1] / n[1]
        p = share_test(error, n[0], elsewhere, n[1])
        p = p / 2 if error > elsewhere else 1 - p / 2  # of no more mistakes inside than outside
        if p < SIGNIFICANT:
            found.append((p, number, error - elsewhere))
    for _, number, first in sorted(found)[:N_KEPT]:
        candidate = candidates[number]
        hits, n = _count(wrong, candidate.own, ~searched)
        error, elsewhere, p = hits[0] / n[0], hits[1] / n[1], exact_test(hits, n)
        strata = _strata(result, candidate.kind)
        matched = stratified_difference(wrong, candidate.own, strata, ~searched)
        yield Slice(
            task=result.task.name,
            kind=candidate.kind,
            name=candidate.name,
            n=n,
            error=error,
            error_elsewhere=elsewhere,
            searched=first,
            difference=error - elsewhere,
            interval=share_interval(error, n[0], elsewhere, n[1]),
            p=p,
            adjusted_p=p,
            matched=None if matched is None else matched.value,
            matched_interval=None if matched is None else matched.interval,
        )


def _count(wrong: Bools, own: Bools, half: Bools) -> tuple[tuple[int, int], tuple[int, int]]:
    """The mistakes and the texts, inside and outside each, in one half. (text,) each"""
    inside, outside = wrong[own & half], wrong[~own & half]
    return (int(inside.sum()), int(outside.sum())), (len(inside), len(outside))


def _strata(result: TaskPredictions, kind: str) -> Counts:
    """The number of each text's variety, source and gold label, less what the slice itself is."""
    numbers: dict[tuple[str, str, int], int] = {}
    found = []
    for example, gold in zip(result.examples, result.gold().tolist(), strict=True):
        variety = "" if kind in ("variety", "cell") else str(example.variety)
        source = "" if kind in ("source", "cell") else str(example.source)
        found.append(numbers.setdefault((variety, source, gold), len(numbers)))
    return np.array(found)


def stratified_difference(wrong: Bools, own: Bools, strata: Counts, half: Bools) -> Estimate | None:
    """The difference within strata with its interval; None where no stratum has both sides.

    (text,) each
    """
    weights, differences = [], []
    by_difference = constant = 0.0  # Sato's ΣP and ΣQ
    for stratum in np.unique(strata[half]):
        here = half & (strata == stratum)
        inside, outside = wrong[here & own], wrong[here & ~own]
        a, b = int(inside.sum()), int(outside.sum())  # mistakes
        n_in, n_out, n = len(inside), len(outside), len(inside) + len(outside)
        if n_in and n_out:
            weights.append(n_in * n_out / n)
            differences.append(a / n_in - b / n_out)
            skew = n_in * n_out * (n_out - n_in) / 2
            by_difference += (n_in**2 * b - n_out**2 * a + skew) / n**2
            constant += (a * (n_out - b) + b * (n_in - a)) / (2 * n)
    if not weights:
        return None
    value = float(np.average(differences, weights=weights))
    variance = max(value * by_difference + constant, 0.0) / sum(weights) ** 2
    margin = Z * float(np.sqrt(variance))
    return Estimate(value, (max(value - margin, -1.0), min(value + margin, 1.0)))


# Which slices there are to look at, and which texts each of them has

FEWEST = 20
"""Texts that a slice has in each half, and that are left outside of it."""

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


@dataclass(frozen=True)
class Candidate:
    """A slice: kind is word, length, variety, source, cell or feature, own (text,) its texts."""

    kind: str
    name: str
    own: Bools


def find_candidates(examples: Sequence[Example], searched: Bools) -> list[Candidate]:
    """All slices with enough texts inside and outside, in both halves.

    searched (text,): the half that is searched; the limits of lengths are its quartiles. How many
    texts a slice has says nothing about mistakes, so both halves may be asked.
    """
    found = []
    for candidate in _all_candidates(examples, searched):
        sides = [
            own & half for own in (candidate.own, ~candidate.own) for half in (searched, ~searched)
        ]
        if min(int(side.sum()) for side in sides) >= FEWEST:
            found.append(candidate)
    return found


def _all_candidates(examples: Sequence[Example], searched: Bools) -> Iterator[Candidate]:
    yield from _by_names("word", examples, words_of)
    yield from _by_length(examples, searched)
    yield from _by_names("feature", examples, lambda example: signs_of(_whole(example)))
    yield from _by_names("variety", examples, lambda one: [one.variety] if one.variety else [])
    yield from _by_names("source", examples, lambda one: [one.source] if one.source else [])
    n_varieties = len({example.variety for example in examples})
    n_sources = len({example.source for example in examples})
    if min(n_varieties, n_sources) > 1:  # otherwise cells are varieties or sources
        names = ColumnNames(examples, "cell")
        yield from _by_names("cell", examples, lambda example: [names.name(example)])


def words_of(example: Example) -> set[str]:
    """The words of a text in small letters."""
    return {word.casefold().replace("’", "'") for word in _WORD.findall(_whole(example))}


def _by_names(
    kind: str, examples: Sequence[Example], names_of: Callable[[Example], Collection[str]]
) -> Iterator[Candidate]:
    places: dict[str, list[int]] = {}
    for place, example in enumerate(examples):
        for name in names_of(example):
            places.setdefault(name, []).append(place)
    for name in sorted(places):
        if len(places[name]) >= 2 * FEWEST:
            own = np.zeros(len(examples), dtype=np.bool_)
            own[places[name]] = True
            yield Candidate(kind, name, own)


def _by_length(examples: Sequence[Example], searched: Bools) -> Iterator[Candidate]:
    """Quarters by the number of words."""
    if not searched.any():
        return
    lengths = np.array([len(_whole(example).split()) for example in examples])
    bounds = np.quantile(lengths[searched], (0.25, 0.5, 0.75)).astype(np.int64).tolist()
    low = 0
    for high in (*bounds, int(lengths.max())):
        if low <= high:
            own = (lengths >= low) & (lengths <= high)
            yield Candidate("length", f"{low} to {high} words", own)
        low = high + 1


def _whole(example: Example) -> str:
    return example.text if example.pair is None else f"{example.text} {example.pair}"


# What is written


def findings(found: Slices) -> tuple[str, ...]:
    """What was looked at, kept and confirmed, in sentences."""
    return render_paragraphs("evaluation/slices.txt", "findings", found=found)


def write_slices(found: Slices, folder: Path) -> None:
    """Writes slices.json, the figure as slices.svg, and the page slices.html."""
    svg = save_figure(folder / "slices", draw_slices(found), found.as_json(), with_png=False)
    page = render(
        "evaluation/slices.html",
        found=found,
        findings=findings(found),
        svg=svg,
        head=HEAD,
        n_kept=N_KEPT,
        fewest=FEWEST,
    )
    write_text(folder / "slices.html", page)


def draw_slices(found: Slices) -> Figure:
    """Draws a forest plot for each task that has slices, the surest at the top: how many more
    mistakes inside than outside, on either half.
    """
    panels: dict[str, Panel] = {}
    by_task = grouped(found.slices, lambda one: one.task)
    for task, slices in by_task.items() if by_task else [("no slice was kept", [])]:
        names = [f"{one.kind} {one.name} ({one.n[0]})" for one in slices]
        first = [Estimate(one.searched, (one.searched, one.searched)) for one in slices]
        points = [Points("first half: as found", first, INK, "x")]
        for is_confirmed, colour in ((True, GAP), (False, BAR)):
            second = [
                Estimate(one.difference, one.interval)
                if one.is_significant == is_confirmed
                else None
                for one in slices
            ]
            verdict = "confirmed" if is_confirmed else "not confirmed"
            points.append(Points(f"second half: {verdict}", second, colour))
        panels[task] = names, points
    return draw_forest(panels, what="mistakes inside − outside, points", width=5.4)
