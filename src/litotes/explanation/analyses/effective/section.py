"""effective: how much of the attention counts."""

from __future__ import annotations

from litotes.core.numbers import counted
from litotes.explanation.analyses.effective.measure import Effective
from litotes.explanation.analyses.means import format_interval
from litotes.explanation.analyses.section import Section, heads_table, size_of


def write_section(result: Effective) -> Section:
    return Section(
        title="How much of the attention counts",
        asked=(
            (
                "For every piece of a text an attention head takes a weighted mean over all"
                " pieces, and nothing but that mean goes on. In a text with more pieces than the"
                f" head is wide ({result.head_width} numbers here), quite different weights can"
                " give the very same mean. So a part of the weights makes no difference to"
                " anything that follows. Take it away, and what is left is called effective"
                " attention: the part that reaches the output."
            ),
            (
                "In a formula: the weights A are split into A⊥ and a rest that lies in the left"
                " null space of the values V, so that A⊥ V = A V. What is measured is how long the"
                " rest is beside the whole, ‖A − A⊥‖ / ‖A‖: 0 if all of a map reaches the output, 1"
                " if none of it does. Being a ratio of lengths it is no share: with the effective"
                " part’s it does not add up to 1, their squares do."
            ),
        ),
        paper=(
            "Brunner et al. 2020, arXiv 1908.04211; Sun and Marasović 2021, arXiv 2105.08855,"
            " section 2"
        ),
        caption=(
            "Means over texts for every attention head. Dark is much. The dimension of what can"
            " hide is shown where heads differ in it, as they do in a pruned model."
        ),
        shows=(
            f"Heatmaps of {size_of(result.null_share)}: the length of the part that does nothing"
            " beside that of the map, the likeness of the map and its effective part, the share of"
            " the effective map below 0 and, where heads differ in it, the dimension of the null"
            " space."
        ),
        believed=_believed(result),
        tables=heads_table(
            result.null_share,
            "Length of the part that does nothing beside that of the map, ‖A − A⊥‖ / ‖A‖",
        )
        + heads_table(result.cosine, "Cosine of the map and its effective part")
        + heads_table(result.n_null, "Dimension of the null space, mean over texts", digits=1)
        + heads_table(result.negative, "Share of the effective map below 0"),
        first=result.findings()[:1],
    )


def _believed(result: Effective) -> tuple[str, ...]:
    mean = format_interval(result.mean_null_share, result.mean_null_share_half_width)
    return (
        (
            f"The part that does nothing is {mean} times as long as the map, mean over heads (95 %"
            f" interval over {counted(result.n_texts, 'text')})."
        ),
        (
            "What is called effective gives the heads’ outputs back with a relative error of at"
            f" most {result.error:.0e} in any layer of any text: the split is exact up to rounding."
        ),
        (
            f"The longer a text, the longer this part; up to {result.head_width} pieces its length"
            " is 0 as a rule. It tells models apart only on the same texts."
        ),
        (
            "Effective weights may be negative and need not add up to 1. They say what reaches the"
            " output of one layer, not what the answer rests on."
        ),
    )
