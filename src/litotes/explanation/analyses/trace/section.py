"""trace: what a pruned model leaves behind on its way."""

from __future__ import annotations

from collections.abc import Sequence

from litotes.core.html import row, table
from litotes.core.numbers import counted
from litotes.explanation.analyses.section import Section, heads_table, layers_table, size_of
from litotes.explanation.analyses.trace.measure import FEWEST, Traces, WordStay


def write_section(result: Traces) -> Section:
    return Section(
        title="What leaves, and when",
        asked=(
            (
                "A pruned model drops pieces of the text, and attention heads, while it reads: what"
                " has left in one layer is not seen by the next. Which words leave first shows what"
                " the model can do without. In a model that is not pruned everything stays, and"
                " this section has little to say."
            ),
            (
                "A layer sees a piece if its key and value are still there. The stay of a word is"
                " the share of the layers that see any of its pieces."
            ),
        ),
        paper=(
            "The figures of texts on their way are those of Nespolo et al., Figurative Language"
            " Understanding, appendix D"
        ),
        caption=(
            "Left: share of a text’s pieces that each layer sees, with its 95 % interval over"
            " texts. Right: share of texts that use a head. Below, where any leave: words by their"
            " mean stay, with the number of times they occur."
        ),
        shows=(
            "A line of the share of pieces seen over the layers, a heatmap of"
            f" {size_of(result.heads)} with the share of texts that use a head, and lists of the"
            " words that leave first and last."
        ),
        believed=(
            (
                f"Shares of pieces are means over {counted(result.n_texts, 'text')} with 95 %"
                " intervals."
            ),
            (
                f"Words are counted in lower case and told from {FEWEST} occurrences on; full"
                " stops, commas and the like are not told. A mean over so few is rough; the lists"
                " are the two ends of a ranking, and words at the ends owe some of their place to"
                " chance."
            ),
        ),
        tables=layers_table(
            {"share of pieces": (result.kept, result.kept_half_width)},
            "Share of pieces a layer sees",
        )
        + heads_table(result.heads, "Share of texts that use a head")
        + _words(result.first_to_leave, "First to leave")
        + _words(result.last_to_leave, "Last to leave"),
        first=result.findings()[:1],
    )


def _words(words: Sequence[WordStay], caption: str) -> str:
    if not words:
        return ""
    rows = [row([one.word], [f"{one.share:.2f}", str(one.n)]) for one in words]
    return table(["word", "stay", "n"], rows, caption=caption)
