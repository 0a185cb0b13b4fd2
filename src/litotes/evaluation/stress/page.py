"""The report of a stress test: what hurts, the figure, every number, how it was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from litotes.core.article import Article, Part, page
from litotes.core.html import figure, folded, inline, row, table, words
from litotes.core.numbers import counted, format_signed
from litotes.core.text import markup
from litotes.data.rewrites.rewrite import Rewrite
from litotes.evaluation.stress.figure import N_ROWS
from litotes.evaluation.stress.result import ALL, Contrast, Measured, StressResult, StressRow

_HEAD = (
    "rewrite", "eWAVE", "texts", "flips", "control", "difference", "p", "probability", "difference",
    "p",
)  # fmt: skip
_METHOD = (
    "A rewrite changes a text by one feature of a variety of English, or perturbs it plainly; texts"
    " that the rule does not apply to are not counted.",
    "A flip is an answer whose label changes. The change is that of the probability of the label"
    " first given, in points; it falls under almost any rewrite, hence the control.",
    "The control misspells as many other words of the text as the rewrite changed, function words"
    " for function words: an equal edit distance in words, and no feature of any variety. Where"
    " only case, punctuation or emoji change there is none.",
    "Intervals are of 95 %: Wilson's for a share, Newcombe's (1998) for a difference of shares on"
    " the same texts, a bootstrap over texts for means.",
    "Differences to the control are tested by McNemar's exact test (flips) and by a paired"
    " permutation test (probability), corrected after Holm over all tests of all texts, and apart"
    " from that over all tests by variety. Rewrites with fewer than 20 texts are not tested.",
)
_CANNOT = (
    "A rewritten text is not a text of that variety: it carries one of its features, everywhere"
    " the rule finds a place, and none of the others.",
    "Rules find words, not meanings: a few rewrites in a hundred are not what a speaker would"
    " write. The reference of rewrites gives the share of good ones in a sample.",
    "What hurts more than its control hurts by itself; what hurts as much as its control may still"
    " hurt. A misspelling is a harsh control, since it can destroy a word.",
)


def page_html(result: StressResult, rewrites: Mapping[str, Rewrite], svg: str) -> str:
    """The whole page. svg: the figure, as a file would hold it."""
    caption = (
        f"Flips under each rewrite and under its control, of at most {N_ROWS} rewrites a task; in"
        " brackets the number of texts. * worse than the control after correction."
    )
    parts = [Part("Which rewrites change answers", figure(inline(svg, "stress"), caption))]
    parts += [
        Part(f"{task}: every rewrite", _task_tables(result, task, rewrites))
        for task in result.tasks()
    ]
    if result.varieties:
        parts.append(Part("Features by the variety they are common in", _varieties(result)))
    parts.append(Part("Texts before and after", _examples(result)))
    parts.append(Part("How it was measured", words([*_METHOD, *_measured(result)])))
    parts.append(Part("What this cannot say", words(_CANNOT)))
    article = Article(
        title=f"What features of a variety do to {result.model}",
        lead=f"{counted(result.n_texts, 'text')} of {result.data}, one feature at a time.",
        abstract=tuple(findings(result)),
        parts=tuple(parts),
        sources="All numbers are in stress.json.",
    )
    return page(article)


def findings(result: StressResult) -> list[str]:
    """What was found, in sentences."""
    said = []
    for task in result.tasks():
        rows = [row for row in result.overall(task) if row.control and row.control.flip_difference]
        worse = [row.rewrite for row in rows if row.is_worse_than_control]
        names = f": {', '.join(worse)}" if worse else ""
        said.append(
            f"{task}: {len(worse)} of {len(rows)} tested rewrites change answers more than their"
            f" controls do, after correction{names}."
        )
        most = [row for row in result.overall(task) if row.n >= 20][:3]
        if most:
            listed = ", ".join(f"{row.rewrite} ({100 * row.flips.value:.0f} %)" for row in most)
            said.append(f"{task}: most answers flip under {listed}.")
    return said


def _task_tables(result: StressResult, task: str, rewrites: Mapping[str, Rewrite]) -> str:
    rows = [_row(one, rewrites.get(one.rewrite)) for one in result.overall(task)]
    body = table(_HEAD, rows, caption="Flips in %, probability in points; p corrected.")
    cells = sorted({one.cell for one in result.rows if one.task == task} - {ALL})
    for cell in cells:
        chosen = [one for one in result.rows if one.task == task and one.cell == cell]
        chosen.sort(key=lambda one: (-one.flips.value, one.rewrite))
        lines = [_row(one, rewrites.get(one.rewrite)) for one in chosen]
        body += folded(f"Texts of {cell}", table(_HEAD, lines))
    return body


def _row(one: StressRow, rewrite: Rewrite | None) -> str:
    number = "" if rewrite is None or rewrite.feature is None else str(rewrite.feature)
    control = one.control
    flips = control.flip_difference if control else None
    change = control.change_difference if control else None
    values = [
        number,
        str(one.n),
        _percent(one.flips),
        _percent(control.flips) if control else "–",
        *_contrast(flips),
        _points(one.change),
        *_contrast(change),
    ]
    return row([one.rewrite], values, unsure=not one.is_worse_than_control)


def _percent(share: Measured) -> str:
    low, high = share.interval
    return f"{100 * share.value:.1f} ({100 * low:.1f}–{100 * high:.1f})"


def _points(mean: Measured) -> str:
    low, high = (format_signed(100 * end, 1) for end in mean.interval)
    return f"{format_signed(100 * mean.value, 1)} ({low} to {high})"


def _contrast(found: Contrast | None) -> tuple[str, str]:
    if found is None:
        return "–", "–"
    return _points(Measured(found.value, found.interval)), f"{found.adjusted_p:.3f}"


def _varieties(result: StressResult) -> str:
    rows = []
    for one in result.varieties:
        values = [str(one.n_rewrites), str(one.n), _percent(one.flips), _points(one.difference)]
        rows.append(row([one.task, one.variety], values))
    head = ("task", "common in", "rewrites", "texts", "flips", "less control")
    caption = "Features that eWAVE marks A or B in the variety, pooled; intervals draw whole texts."
    return table(head, rows, caption=caption)


def _examples(result: StressResult) -> str:
    items = []
    for name, versions in result.examples.items():
        lines = "".join(
            f"<li>{label}: {markup(text)}</li>"
            for label, text in zip(("before", "after", "control"), versions, strict=True)
            if text is not None
        )
        items.append(f"<h3>{markup(name)}</h3><ul>{lines}</ul>")
    return folded("The shortest text of each rewrite", "".join(items))


def _measured(result: StressResult) -> Sequence[str]:
    said = [f"Texts were drawn and rewritten with seed {result.seed}."]
    if result.not_applied:
        said.append(f"No text was found for {', '.join(result.not_applied)}.")
    return said
