"""attribution: which words push the answers."""

from __future__ import annotations

from collections.abc import Sequence

from litotes.core.html import row, table
from litotes.core.numbers import counted
from litotes.explanation.analyses.attribution.measure import FEWEST, N_WORDS, Push, Pushes
from litotes.explanation.analyses.means import format_interval
from litotes.explanation.analyses.section import Section


def write_section(result: Pushes) -> Section:
    return Section(
        title="Which words push the answers",
        asked=(
            (
                "Which words make the model answer as it does? Every word of a text gets a weight"
                " that says how far it pushes the answer towards a label or away from it. Here"
                " these weights are averaged over all texts a word occurs in, so that a word is"
                " told only if it pushes the same way again and again."
            ),
            (
                f"Words are weighed by {result.method}, in log odds of the label (of a number: in"
                " its own unit). There are other ways to weigh words, and they need not agree; the"
                " table of methods says how far they rank the words of a text alike, from 1 (the"
                " same order) over 0 (nothing in common) to −1. Where one of two methods knows no"
                " sign, sizes are compared."
            ),
        ),
        paper="What each method does, and whose it is: docs/how-to/explaining.md",
        caption=(
            "Above: the surest words for each label, with the number of texts they occur in."
            f" Below: Spearman’s correlation between the methods, mean over up to"
            f" {counted(result.n_compared, 'text')}."
        ),
        shows=(
            "Lists of words with their mean weights and intervals for each label, and a table of"
            f" correlations between {len(result.compared)} methods."
        ),
        believed=(
            (
                f"Weights are means over {counted(result.n_texts, 'text')}, or those of them a word"
                f" occurs in. A word is told if it occurs in at least {FEWEST} and its 95 %"
                f" interval lies on one side of 0; at most {N_WORDS} for a label, full stops,"
                " commas and the like aside. Among thousands of words some pass that line by"
                " chance."
            ),
            (
                "A word may push because of the company it keeps: weights belong to words in their"
                " texts, not to words alone."
            ),
            (
                "Where methods agree little, a list by one of them is one opinion. The section on"
                " belief, where it is there, says which opinion the model bears out."
            ),
        ),
        tables=_tables(result),
        first=result.findings()[:2],
    )


def _tables(result: Pushes) -> str:
    html = ""
    for task, labels in result.towards.items():
        for label, pushes in labels.items():
            html += _words_table(pushes, f"Towards {label} ({task})") if pushes else ""
    rows = []
    for place, method in enumerate(result.compared):
        cells = zip(result.agreement[place], result.agreement_half_width[place], strict=True)
        rows.append(row([method], [format_interval(value, width, 2) for value, width in cells]))
    caption = "Spearman’s correlation between methods, mean over texts"
    return html + table(["method", *result.compared], rows, caption=caption)


def _words_table(pushes: Sequence[Push], caption: str) -> str:
    rows = []
    for push in pushes:
        weight = format_interval(push.weight, push.half_width)
        rows.append(row([push.word], [weight, f"{push.n:,}"]))
    return table(["word", "weight", "texts"], rows, caption=caption)
