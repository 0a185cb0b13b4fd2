"""Slices as sentences, and as a page with the figure and every number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from litotes.core.article import Article, Part, page
from litotes.core.figures import save_figure
from litotes.core.html import figure, inline, row, table, words
from litotes.core.numbers import format_signed
from litotes.core.storage import write_text
from litotes.evaluation.slices.figure import figure as draw_figure
from litotes.evaluation.slices.search import N_KEPT, Slice, Slices

HEAD = (
    "task",
    "slice",
    "n / others",
    "error",
    "elsewhere",
    "first half",
    "second half (95 % interval)",
    "p",
    "p corrected",
    "matched (95 % interval)",
    "",
)
_METHOD = (
    "The texts are divided at random in two halves. On the first every word, quarter of lengths,"
    " variety, source, cell and visible feature with at least 20 texts, and 20 others, in each half"
    f" is tested; at most {N_KEPT} of a task, those with the smallest p below 0.05, are kept.",
    "On the second half these alone are tested (Fisher's exact test, one-sided), with Holm's"
    " correction over all of them. Intervals are Newcombe's.",
    "Matched: texts of one variety, source and gold label are compared with each other (Mantel and"
    " Haenszel, with Sato's variance); a variety by source and label alone, a source by variety and"
    " label, a cell by label. Where that interval holds 0, the slice may be no more than what it"
    " was matched by.",
    "The differences of the first half are those that a search has chosen and are too large.",
)
_CANNOT = (
    "Why a model is worse on a slice. A word may stand for a topic, a place or a style.",
    "That a slice which was not confirmed is harmless: half of the texts may be too few to see it.",
)

_BY_ALL = "matched by variety, source and label"
_MATCHED = {
    "variety": "matched by source and label",
    "source": "matched by variety and label",
    "cell": "matched by label",
}
"""By what the texts of a slice are matched, by its kind."""


def write_slices(found: Slices, folder: Path) -> None:
    """Writes slices.json, the figure as slices.svg, and the page slices.html."""
    svg = save_figure(folder / "slices", draw_figure(found), found.as_json(), with_png=False)
    write_text(folder / "slices.html", page_html(found, svg.decode("utf-8")))


def findings(found: Slices) -> Iterator[str]:
    """What was looked at, kept and confirmed."""
    for task, n_candidates in found.n_candidates.items():
        kept = [one for one in found.slices if one.task == task]
        confirmed = [one for one in kept if one.is_confirmed]
        n = " and ".join(f"{half:,}" for half in found.n_texts[task])
        yield (
            f"{task}: {n_candidates:,} slices looked at in halves of {n} texts, {len(kept)} kept,"
            f" {len(confirmed) or 'none'} confirmed."
        )
    for one in found.confirmed():
        yield f"{one.task}, {name_of(one)}: {_sentence(one)}"


def page_html(found: Slices, svg: str) -> str:
    """The whole page. svg: the figure, as a file would hold it."""
    caption = "Slices that were kept, with the number of their texts in the second half."
    rows = []
    for one in found.slices:
        names, values = [one.task, name_of(one)], list(numbers_of(one))
        verdict = verdict_of(one)
        rows.append(row(names, values, verdict=verdict, unsure=not one.is_confirmed))
    parts = [
        Part("Where the model is worse", figure(inline(svg, "slices"), caption)),
        Part("Every slice that was kept", table(HEAD, rows)),
        Part("How it was measured", words(_METHOD)),
        Part("What this cannot say", words(_CANNOT)),
    ]
    article = Article(
        title="Texts on which the model is worse",
        lead="Found on one half of the texts, confirmed on the other.",
        abstract=(*findings(found), *found.notes),
        parts=tuple(parts),
        sources="All numbers are in slices.json.",
    )
    return page(article)


def verdict_of(one: Slice) -> str:
    if not one.is_confirmed:
        return "not confirmed"
    return "confirmed; unclear when matched" if one.is_explained else "confirmed"


def numbers_of(one: Slice) -> Iterator[str]:
    """The cells of a table after its names."""
    yield f"{one.n[0]} / {one.n[1]}"
    yield f"{one.error:.3f}"
    yield f"{one.error_elsewhere:.3f}"
    yield format_signed(one.searched, 3)
    yield _with_interval(one.difference, one.interval)
    yield _p(one.p)
    yield _p(one.adjusted_p)
    if one.matched is None or one.matched_interval is None:
        yield "–"
    else:
        yield _with_interval(one.matched, one.matched_interval)


def name_of(one: Slice) -> str:
    return f"{one.kind} {one.name}"


def _sentence(one: Slice) -> str:
    more = f"; {_MATCHED.get(one.kind, _BY_ALL)} it may be nothing" if one.is_explained else ""
    if one.matched is None:
        more = "; no texts are alike enough to be matched"
    return (
        f"{100 * one.error:.1f} % mistakes against {100 * one.error_elsewhere:.1f} % elsewhere"
        f" ({_with_interval(one.difference, one.interval)}, p corrected {_p(one.adjusted_p)})"
        f"{more}."
    )


def _p(value: float) -> str:
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def _with_interval(value: float, interval: tuple[float, float]) -> str:
    low, high = (format_signed(end, 3) for end in interval)
    return f"{format_signed(value, 3)} ({low} to {high})"
