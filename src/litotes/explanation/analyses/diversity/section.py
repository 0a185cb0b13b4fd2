"""diversity: whether the attention heads do different things, and which do one plain thing."""

from __future__ import annotations

from litotes.core.html import row, table
from litotes.core.numbers import counted
from litotes.explanation.analyses.diversity.measure import FEWEST_PIECES, NAMED, Diversity
from litotes.explanation.analyses.section import Section, heads_table, layers_table, size_of


def write_section(result: Diversity) -> Section:
    return Section(
        title="Do the heads do different things?",
        asked=(
            (
                "A layer has several attention heads so that each may look at something else. If"
                " all look at the same pieces, one would do. Here their weights are compared query"
                " by query: 0 bits means that all heads of the layer agree. How sure a head is, how"
                " widely it spreads its weights, and whether it does one plain job (look at the"
                " next piece, hold the pieces of a word together) is measured too."
            ),
            (
                "In a formula: the Jensen-Shannon divergence, the entropy of the heads’ mean less"
                " the mean of their entropies, in bits."
            ),
        ),
        paper=(
            "Correia, Niculae and Martins 2019, arXiv 1909.00015, section 5; Voita et al. 2019,"
            " arXiv 1905.09418"
        ),
        caption=(
            "Above: divergence by layer with its 95 % interval over texts. Framed: a head that"
            f" does that job at least {NAMED:.0%} of the time."
        ),
        shows=(
            "A line of the divergence between attention heads over the layers, and heatmaps of"
            f" {size_of(result.entropy)}: entropy, largest weight, and how much each head looks at"
            " the previous, the same and the next piece or within its word."
        ),
        believed=(
            (
                f"Means over {counted(result.n_texts, 'text')}; the intervals of the divergence are"
                f" over texts. A layer that sees fewer than {FEWEST_PIECES} pieces of a text does"
                " not count for the divergence, nor for where a head looks."
            ),
            (
                "Entropy and largest weight depend on length: a long text has more places to spread"
                " weights over."
            ),
            (
                f"That a head does a job at least {NAMED:.0%} of the time is a line drawn by us;"
                " the heatmaps show who stands close to it."
            ),
            (
                "A plain job is not yet a use: whether the answer needs the head only its removal"
                " can tell."
            ),
        ),
        tables=_tables(result),
        first=result.findings()[:1],
    )


def _tables(result: Diversity) -> str:
    html = layers_table(
        {"divergence, bits": (result.divergence, result.divergence_half_width)},
        "Divergence between the heads of a layer",
    )
    html += _roles_table(result) if result.named else ""
    html += heads_table(result.entropy, "Entropy, bits a query")
    html += heads_table(result.confidence, "Mean of the largest weight")
    html += heads_table(result.density, "Share of weights above 0")
    html += heads_table(result.alpha, "α as learned", digits=3) if result.alpha else ""
    for job, values in result.positional.items():
        html += heads_table(values, f"Share of queries that weigh the {job} most")
    return html + heads_table(result.merging, "Weight on the other pieces of the same word")


def _roles_table(result: Diversity) -> str:
    rows = []
    for head in result.named:
        place = [str(head.layer + 1), str(head.attention_head + 1)]
        rows.append(row([head.job], [*place, f"{head.strength:.2f}"]))
    return table(["job", "layer", "head", "strength"], rows, caption="Heads with a plain job")
