"""change: what fine-tuning changed."""

from __future__ import annotations

from litotes.core.numbers import counted
from litotes.explanation.analyses.change.measure import Change
from litotes.explanation.analyses.section import Section, heads_table, layers_table, size_of


def write_section(result: Change) -> Section:
    return Section(
        title="What fine-tuning changed",
        asked=(
            (
                "A fine-tuned model starts from an encoder that was trained for something else."
                " Which attention heads look elsewhere once it has learned its task? Both models"
                " read the same texts, and the two maps of every head are compared: 1 means that"
                " the head looks exactly where it did before. Layers that changed are where the"
                " task has left its traces."
            ),
            (
                "In a formula: the cosine of the two maps laid flat, Σ before × after / (‖before‖"
                " ‖after‖)."
            ),
        ),
        paper=(
            "Kovaleva et al. 2019, arXiv 1908.08593, section 4.3; Sun and Marasović 2021, section"
            " 3.3, figure 3"
        ),
        caption=(
            "Above: mean over the heads of a layer with its 95 % interval over texts. Below: every"
            " head. Dark: as before."
        ),
        shows=(
            f"A line for {' and one for '.join(result.kinds)} attention over the layers, and below"
            f" it heatmaps of {size_of(result.similarity['standard'])} with the cosine before and"
            " after fine-tuning."
        ),
        believed=(
            (
                f"Intervals are over {counted(result.n_texts, 'text')}. They say nothing about"
                " another fine-tuning of the same encoder: that is one sample here, and another"
                " seed may change other layers."
            ),
            (
                "Weights are never negative, so two standard maps are always somewhat alike."
                " Compare layers with one another, not with 0."
            ),
            "Where a model is pruned, only the pieces and heads that are still there are compared.",
        ),
        tables=layers_table(
            {
                kind: (result.by_layer[kind], result.by_layer_half_width[kind])
                for kind in result.kinds
            },
            "Cosine before and after, mean over the heads of a layer",
        )
        + "".join(
            heads_table(result.similarity[kind], f"Cosine before and after, {kind} attention")
            for kind in result.kinds
        ),
        first=result.findings(),
    )
