"""patterns: what the maps look like."""

from __future__ import annotations

from litotes.core.html import row, table
from litotes.core.numbers import counted
from litotes.explanation.analyses.patterns.classes import CLASSES
from litotes.explanation.analyses.patterns.measure import FEWEST_PIECES, PatternShares
from litotes.explanation.analyses.section import Section, percent, percent_with_interval
from litotes.explanation.observation import KINDS


def write_section(result: PatternShares) -> Section:
    findings = result.findings()
    less = ", and effective less standard on the same texts" if len(result.kinds) > 1 else ""
    return Section(
        title="What the maps look like",
        asked=(
            "Drawn as pictures, attention maps fall into a few patterns. Vertical: "
            + "; ".join(f"{name}: {meaning}" for name, meaning in CLASSES.items()).removeprefix(
                "vertical: "
            )
            + ". Vertical maps lean on pieces every text has, and heterogeneous ones are the"
            " likeliest to follow what the text says. Where effective attention shows other"
            " patterns, a picture of standard attention shows what the output does not"
            " depend on.",
            (
                "A small network looks at every map and names its pattern; shares are counted in"
                " every text and averaged over texts. The network has learned from generated maps"
                " alone, so written rules give a second opinion."
            ),
        ),
        paper=(
            "Kovaleva et al. 2019, arXiv 1908.08593, section 4.1; Sun and Marasović 2021, section"
            " 3.1, table 2 and figure 4"
        ),
        caption=(
            f"Above: shares of all maps{less}, with 95 % intervals over texts. Below: the same by"
            " layer."
        ),
        shows=(
            f"Bars of the shares of {len(result.classes)} patterns for"
            f" {' and '.join(result.kinds)} attention{less}, and a line for each pattern over the"
            " layers."
        ),
        believed=_believed(result),
        tables=_tables(result),
        # whether the kinds differ, which stands after their shares; where they are one, its shares
        first=(findings[len(KINDS)] if len(result.kinds) > 1 else findings[0],),
    )


def _believed(result: PatternShares) -> tuple[str, ...]:
    kinds = result.kinds
    agreed = " and ".join(f"{percent(result.agreement[kind])} of the {kind} maps" for kind in kinds)
    sure = " and ".join(f"{percent(result.sure[kind])} for {kind} maps" for kind in kinds)
    return (
        (
            f"Intervals are over {result.n_large:,} of {counted(result.n_texts, 'text')}, those"
            f" with a map of {FEWEST_PIECES} pieces; smaller maps are not looked at. The maps of"
            " one text are not independent and count as one draw."
        ),
        (
            f"Written rules say the same as the network on {agreed}, looking at one map of every"
            " text. Where they differ, neither is known to be right."
        ),
        f"The network gives its own answers a mean probability of {sure}.",
        (
            "The intervals say how far the shares would move with other texts, not how often the"
            " network is wrong. A block needs a pair of texts or several sentences to be seen."
        ),
    )


def _tables(result: PatternShares) -> str:
    head = ["pattern", *result.kinds]
    if len(result.kinds) > 1:
        head.append("effective less standard")
    rows = [_class_row(result, name) for name in result.classes]
    html = table(head, rows, caption="Shares of all maps")
    for kind in result.kinds:
        layers = []
        for number, shares in enumerate(result.by_layer[kind]):
            layers.append(row([str(number + 1)], [percent(share) for share in shares]))
        caption = f"{kind.capitalize()} attention, by layer"
        html += table(["layer", *result.classes], layers, caption=caption)
    return html


def _class_row(result: PatternShares, name: str) -> str:
    cells = []
    for kind in result.kinds:
        share, width = result.shares[kind][name], result.half_width[kind][name]
        cells.append(percent_with_interval(share, width))
    if len(result.kinds) > 1:
        change, width = result.difference[name], result.difference_half_width[name]
        cells.append(percent_with_interval(change, width, signed=True))
    return row([name], cells)
