"""token_types: what [CLS] looks at."""

from __future__ import annotations

from litotes.core.html import row, table
from litotes.core.numbers import counted
from litotes.explanation.analyses.means import format_interval
from litotes.explanation.analyses.section import Section, heads_table, size_of
from litotes.explanation.analyses.token_types.result import FIRST, SEPARATOR, SPECIAL, TokenTypes


def write_section(result: TokenTypes) -> Section:
    return Section(
        title=f"What {FIRST} looks at",
        asked=(
            (
                f"The encoder puts a piece of its own before every text, {FIRST}, and one behind"
                f" it, {SEPARATOR}. Many models answer from {FIRST} alone. So it matters what"
                f" {FIRST} looks at in the last layer: at words that carry meaning, at punctuation,"
                f" or at {SEPARATOR}, which says nothing about the text? Attention to {SEPARATOR}"
                " has been read as a head that has nothing to do; if it shrinks once only"
                " effective attention counts, it was never there for the output."
            ),
            (
                f"The weight of a type is the largest that {FIRST} gives to any piece of that type"
                " (of a word, its first piece), averaged over the texts that have one. Below it,"
                " for every layer, what the other pieces give to the two."
            ),
        ),
        paper=(
            "Kovaleva et al. 2019, arXiv 1908.08593; Sun and Marasović 2021, section 3.2, figures"
            " 1, 5 and 6"
        ),
        caption=(
            f"Above: what {FIRST} gives to each type in the last layer, by attention head, with 95"
            f" % intervals over the n texts that have it. Below: what other pieces give to {FIRST}"
            f" and {SEPARATOR}; a dash marks a mean below 0."
        ),
        shows=(
            f"A panel for each of {len(result.types)} types of pieces with the weights of every"
            f" attention head, {' and '.join(result.kinds)}, and heatmaps of"
            f" {size_of(result.from_others[FIRST]['standard'])} with the weight given to {FIRST}"
            f" and to {SEPARATOR}."
        ),
        believed=_believed(result),
        tables=_tables(result),
        first=result.findings()[: len(result.kinds)],
    )


def _believed(result: TokenTypes) -> tuple[str, ...]:
    rarest = min(result.types, key=lambda name: result.n_with[name])
    return (
        (
            f"Means over {counted(result.n_texts, 'text')}; texts that lack a type do not count for"
            f" it ({rarest}: {result.n_with[rarest]:,})."
        ),
        (
            "Differences are taken text by text, so that their intervals are narrower than those of"
            " the two means."
        ),
        (
            "The largest of many is larger than the largest of one: a type with many pieces in a"
            " text has an advantage over one with a single piece. Compare standard with effective"
            f" rather than nouns with {SEPARATOR}."
        ),
        (
            "Nouns, pronouns and verbs are found by a tagger that makes mistakes;"
            " docs/results/effective_attention/parts_of_speech.md says how many."
        ),
        f"A model whose head reads all pieces answers from more than {FIRST}.",
    )


def _tables(result: TokenTypes) -> str:
    difference = ["standard less effective"] if len(result.kinds) > 1 else []
    head = ["type", *result.kinds, *difference, "texts"]
    rows = [_type_row(result, name) for name in result.types]
    html = table(head, rows, caption=f"From {FIRST} in the last layer, mean over heads")
    for kind in result.kinds:
        html += _by_head(result, kind)
    for name in SPECIAL:
        for kind in result.kinds:
            caption = f"To {name} from other pieces, {kind} attention"
            html += heads_table(result.from_others[name][kind], caption, digits=3)
    return html


def _type_row(result: TokenTypes, name: str) -> str:
    cells = []
    for kind in result.kinds:
        weight, width = result.by_type[kind][name], result.by_type_half_width[kind][name]
        cells.append(format_interval(weight, width))
    if len(result.kinds) > 1:
        cells.append(format_interval(result.difference[name], result.difference_half_width[name]))
    return row([name], [*cells, f"{result.n_with[name]:,}"])


def _by_head(result: TokenTypes, kind: str) -> str:
    rows = []
    for place, name in enumerate(result.types):
        values, widths = result.from_first[kind][place], result.from_first_half_width[kind][place]
        cells = zip(values, widths, strict=True)
        rows.append(row([name], [format_interval(value, width) for value, width in cells]))
    n_heads = len(result.from_first[kind][0])
    head = ["type", *(f"head {number + 1}" for number in range(n_heads))]
    return table(head, rows, caption=f"From {FIRST} in the last layer by head, {kind} attention")
