"""What of the paper's findings holds in measured translations: counted, not judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from litotes.training.translation.attention_statistics import KINDS
from reproduction.translation_numbers import BASELINE, NAMES

Found = Mapping[str, Any]
"""{weighting: numbers} of one direction."""


def findings(directions: Mapping[str, Found]) -> list[str]:
    lines = ["| finding | weighting | here | verdict |", "|---|---|---|---|"]
    sparse = [
        (weighting, [found for found in directions.values() if {BASELINE, weighting} <= {*found}])
        for weighting in ("entmax", "learned")
    ]
    lines += [_accuracy(weighting, some) for weighting, some in sparse if some]
    lines += [_diversity(weighting, some) for weighting, some in sparse if some]
    return [*lines, *_alpha(directions.values()), ""]


def _accuracy(weighting: str, some: Sequence[Found]) -> str:
    """In how many directions BLEU is lost, by the intervals over texts and over seeds."""
    moved = [found[weighting]["difference"]["bleu"] for found in some]
    by_texts = sum(one["interval"][1] < 0 for one in moved)
    by_seeds = sum((one["over_seeds"] or (0, 0))[1] < 0 for one in moved)
    low, high = density_range(some, weighting)
    here = f"{' and '.join(map(signed, moved))} BLEU, at a density of {low:.2f} to {high:.2f}"
    verdict = "no loss seen"
    if by_texts:
        verdict = f"**a loss** in {by_texts} of {len(moved)} over texts, in {by_seeds} over seeds"
    return f"| no cost in accuracy | {NAMES[weighting]} | {here} | {verdict} |"


def _diversity(weighting: str, some: Sequence[Found]) -> str:
    mine, theirs = (
        [value for found in some for value in _diversities(found[name])]
        for name in (weighting, BASELINE)
    )
    n_more = sum(one > other for one, other in zip(mine, theirs, strict=True))
    here = f"in {n_more} of {len(mine)} attentions; {fmean(mine):.2f} bits in the mean,"
    verdict = "**held**" if 2 * n_more > len(mine) else "**did not hold**"
    return (
        f"| heads are more diverse | {NAMES[weighting]} | {here} softmax {fmean(theirs):.2f} |"
        f" {verdict} |"
    )


def _diversities(one: Mapping[str, Any]) -> list[float]:
    """Of every layer of every kind."""
    return [value for kind in KINDS for value in one["attention"]["diversity"][kind]]


def _alpha(directions: Iterable[Found]) -> list[str]:
    """α of the layers of each kind; layers differ where not even their most extreme heads meet."""
    learned = [found["learned"]["attention"]["alpha"] for found in directions if "learned" in found]
    if not learned:
        return []
    said, apart = [], []
    for kind in KINDS:
        by_layer = zip(*(one[kind] for one in learned), strict=True)
        layers = [[value for heads in some for value in heads] for some in by_layer]
        said.append(f"{kind} {', '.join(f'{fmean(heads):.2f}' for heads in layers)}")
        if any(max(one) < min(other) for one in layers for other in layers):
            apart.append(kind)
    here = f"mean α from the first layer to the last: {'; '.join(said)}"
    verdict = f"**held** in {', '.join(apart)}" if apart else "not seen"
    return [f"| layers prefer different α | {NAMES['learned']} | {here} | {verdict} |"]


def density_range(some: Iterable[Found], weighting: str) -> tuple[float, float]:
    """Of the means over layers, by direction and kind of attention."""
    means = [
        fmean(found[weighting]["attention"]["density"][kind])
        for found in some
        if weighting in found
        for kind in KINDS
    ]
    return min(means), max(means)


def signed(moved: Mapping[str, Any]) -> str:
    low, high = moved["interval"]
    return f"{moved['value']:+.2f} ({low:+.2f} to {high:+.2f})"
