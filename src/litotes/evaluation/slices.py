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
everywhere. So next to each difference stands the matched one (Mantel & Haenszel 1959): texts of one
variety, source and gold label, a stratum k, are compared with each other,

    RD = Σ w_k (e_in,k − e_out,k) / Σ w_k,   w_k = n_in,k n_out,k / n_k

with an interval of ±1.96 standard errors by Sato (1989, Biometrics 45, 1323), which also hold where
a stratum has one text or two of the slice. A variety is matched by source and label, a source by
variety and label, a cell by label. Where the interval holds 0, the slice may be no more than what
it was matched by.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from litotes.core.errors import UserError
from litotes.core.figures import BAR, GAP, INK, save_figure
from litotes.core.numbers import Counts
from litotes.core.pages import render, render_paragraphs
from litotes.core.registry import grouped
from litotes.core.storage import write_text
from litotes.core.values import Example
from litotes.data.corpus import ColumnNames, components, ties_of
from litotes.data.rewrites.signs import signs_of
from litotes.evaluation.evaluate import Predictions, TaskPredictions, kind_of_answer
from litotes.evaluation.forest import Panel, Points, draw_forest
from litotes.evaluation.scores import Bools, Interval, Result
from litotes.evaluation.shares import Z, exact_test, share_interval, share_test
from litotes.evaluation.significance import SIGNIFICANT, Estimate, Tested, correct

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_KEPT = 10
"""Slices of a task that go on to the second half."""


@dataclass(frozen=True)
class Slice(Tested):
    """A slice that was kept. Differences are error rates inside minus outside.

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
    derived: ClassVar = ("is_confirmed", "is_explained")

    @property
    def is_explained(self) -> bool:
        """True if its varieties, sources and labels may be all there is to it."""
        return self.matched_interval is None or self.matched_interval[0] <= 0

    @property
    def matched_by(self) -> str:
        """The properties by which its texts are matched."""
        known = {"variety": "source and label", "source": "variety and label", "cell": "label"}
        return known.get(self.kind, "variety, source and label")

    @property
    def is_confirmed(self) -> bool:
        return self.is_significant

    @property
    def verdict(self) -> str:
        if not self.is_confirmed:
            return "not confirmed"
        return "confirmed; unclear when matched" if self.is_explained else "confirmed"


@dataclass(frozen=True, repr=False)
class Slices(Result):
    """The slices kept, confirmed or not, the surest first. n_candidates: looked at, by task."""

    shown = ("n_candidates", "notes")
    slices: tuple[Slice, ...]
    n_candidates: Mapping[str, int]
    n_texts: Mapping[str, tuple[int, int]]
    notes: tuple[str, ...] = ()

    def confirmed(self) -> list[Slice]:
        return [one for one in self.slices if one.is_confirmed]


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
    """Chooses which texts are searched: half of them, with their groups. (text,)"""
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
    kept = []
    for number, candidate in enumerate(candidates):
        hits, n = _count(wrong[searched], candidate.own[searched])
        error, elsewhere = np.divide(hits, n).tolist()
        p = share_test(error, n[0], elsewhere, n[1])
        p = p / 2 if error > elsewhere else 1 - p / 2  # of no more mistakes inside than outside
        if p < SIGNIFICANT:
            kept.append((p, number, error - elsewhere))
    left = ~searched
    for _, number, first in sorted(kept)[:N_KEPT]:
        own, kind = candidates[number].own[left], candidates[number].kind
        hits, n = _count(wrong[left], own)
        error, elsewhere = np.divide(hits, n).tolist()
        p = exact_test(hits, n)
        matched = stratified_difference(wrong[left], own, _strata(result, kind)[left])
        yield Slice(
            task=result.task.name,
            kind=kind,
            name=candidates[number].name,
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


def _count(wrong: Bools, own: Bools) -> tuple[tuple[int, int], tuple[int, int]]:
    """The mistakes and the texts, inside and outside each. (text,) each"""
    inside, outside = wrong[own], wrong[~own]
    return (int(inside.sum()), int(outside.sum())), (len(inside), len(outside))


def _strata(result: TaskPredictions, kind: str) -> Counts:
    """Numbers each text's variety, source and gold label, without what the slice itself is."""
    varieties = ["" if kind in ("variety", "cell") else one.variety for one in result.examples]
    sources = ["" if kind in ("source", "cell") else one.source for one in result.examples]
    numbers: dict[Any, int] = {}
    keys = zip(varieties, sources, result.gold().tolist(), strict=True)
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys])


def stratified_difference(wrong: Bools, own: Bools, strata: Counts) -> Estimate | None:
    """The difference within strata with its interval; None where no stratum has both sides.

    (text,) each
    """
    _, stratum = np.unique(strata, return_inverse=True)
    sides = own, ~own, own & wrong, ~own & wrong
    counts = np.array([np.bincount(stratum, weights=side) for side in sides])  # (side, stratum)
    n_in, n_out, a, b = counts[:, counts[:2].min(0) > 0]  # (stratum,) each; a, b: mistakes
    if not len(n_in):
        return None
    n = n_in + n_out
    weights = n_in * n_out / n
    value = float(np.average(a / n_in - b / n_out, weights=weights))
    # Sato's P and Q
    by_difference = (n_in**2 * b - n_out**2 * a + n_in * n_out * (n_out - n_in) / 2) / n**2
    constant = (a * (n_out - b) + b * (n_in - a)) / (2 * n)
    variance = max((value * by_difference + constant).sum(), 0.0) / weights.sum() ** 2
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
    """Lists all slices with enough texts inside and outside, in both halves.

    searched (text,): the half that is searched; the limits of lengths are its quartiles. How many
    texts a slice has says nothing about mistakes, so both halves may be asked.
    """
    if min(searched.sum(), (~searched).sum()) < 2 * FEWEST:
        return []
    names_by_kind: dict[str, Iterable[Iterable[str | None]]] = {
        "word": map(words_of, examples),
        "length": _quarters(examples, searched),
        "feature": (signs_of(_whole(example)) for example in examples),
        "variety": ([example.variety] for example in examples),
        "source": ([example.source] for example in examples),
    }
    varieties, sources = (
        {getattr(one, name) for one in examples} for name in ("variety", "source")
    )
    if min(len(varieties), len(sources)) > 1:  # otherwise cells are varieties or sources
        name_of = ColumnNames(examples, "cell").name
        names_by_kind["cell"] = ([name_of(example)] for example in examples)
    found = []
    for kind, names_by_text in names_by_kind.items():
        pairs = ((name, place) for place, names in enumerate(names_by_text) for name in names)
        by_name = grouped(pairs, lambda pair: pair[0])
        for name in sorted(name for name in by_name if name):
            own = np.zeros(len(examples), dtype=np.bool_)
            own[[place for _, place in by_name[name]]] = True
            sides = [side[half] for side in (own, ~own) for half in (searched, ~searched)]
            if min(side.sum() for side in sides) >= FEWEST:
                found.append(Candidate(kind, name, own))
    return found


def words_of(example: Example) -> set[str]:
    """The words of a text in small letters."""
    return {word.casefold().replace("’", "'") for word in _WORD.findall(_whole(example))}


def _quarters(examples: Sequence[Example], searched: Bools) -> Iterator[list[str]]:
    """The quarter by the number of words that each text is in, between the quartiles of those that
    are searched.
    """
    lengths = np.array([len(_whole(example).split()) for example in examples])
    quartiles = np.quantile(lengths[searched], (0.25, 0.5, 0.75)).astype(np.int64)
    highest = [*quartiles.tolist(), int(lengths.max())]
    lowest = [0, *(quartiles + 1).tolist()]
    for number in np.searchsorted(quartiles, lengths):
        yield [f"{lowest[number]} to {highest[number]} words"]


def _whole(example: Example) -> str:
    return example.text if example.pair is None else f"{example.text} {example.pair}"


# What is written


def findings(found: Slices) -> tuple[str, ...]:
    """Says what was looked at, kept and confirmed, in sentences."""
    return render_paragraphs("evaluation/slices.txt", "findings", found=found)


def write_slices(found: Slices, folder: Path) -> None:
    """Writes slices.json, the figure as slices.svg, and the page slices.html."""
    svg = save_figure(folder / "slices", draw_slices(found), found.as_json(), with_png=False)
    page = render(
        "evaluation/slices.html",
        found=found,
        findings=findings(found),
        svg=svg,
        n_kept=N_KEPT,
        fewest=FEWEST,
    )
    write_text(folder / "slices.html", page)


def draw_slices(found: Slices) -> Figure:
    """Draws a forest plot for each task that has slices, the surest at the top: how many more
    mistakes inside than outside, on either half.
    """
    panels: dict[str, Panel] = {}
    by_task = grouped(found.slices, lambda one: one.task) or {"no slice was kept": []}
    for task, slices in by_task.items():
        first = [Estimate(one.searched, (one.searched, one.searched)) for one in slices]
        second = [(Estimate(one.difference, one.interval), one.is_confirmed) for one in slices]
        confirmed = [own if is_so else None for own, is_so in second]
        others = [None if is_so else own for own, is_so in second]
        panels[task] = (
            [f"{one.kind} {one.name} ({one.n[0]})" for one in slices],
            (
                Points("first half: as found", first, INK, "x"),
                Points("second half: confirmed", confirmed, GAP),
                Points("second half: not confirmed", others, BAR),
            ),
        )
    return draw_forest(panels, what="mistakes inside − outside, points", width=5.4)
