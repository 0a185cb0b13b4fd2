"""What a translation looked at: its attention to the source, word by word, standard and effective.

The output is read as if it had been given (forced decoding), so that every piece is decided by what
stands before it: the row of a target piece is the query that guessed it. Effective attention is
what of the weights reaches the output of the attention (explanation/effective_attention.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from litotes.core.figures import text_colour
from litotes.encoder.layout import Layout
from litotes.encoder.tokenizer import ReadText
from litotes.explanation.effective_attention import effective_attentions
from litotes.training.translation.attention import ACROSS, AttentionTrace
from litotes.training.translation.pairs import as_numbers, pack_sources
from litotes.training.translation.translator import Translation, Translator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("standard", "effective")
_MOST_NUMBERS = 400
"""Cells up to which their numbers are written too."""


@dataclass(frozen=True)
class SourceAttention:
    """Which source words each target word was made from.

    source, target: the words, with the special pieces in brackets. maps: {kind: (layer,
    attention_head, target word, source word)}; a row of the standard map adds up to 1.
    """

    translation: Translation
    source: tuple[str, ...]
    target: tuple[str, ...]
    maps: dict[str, Tensor]

    def mean(self, kind: str) -> Tensor:
        """Over layers and attention heads. (target word, source word)"""
        return self.maps[kind].mean((0, 1))

    def as_json(self) -> dict[str, Any]:
        return {
            "text": self.translation.text,
            "output": self.translation.output,
            "source": list(self.source),
            "target": list(self.target),
            "mean": {kind: _rounded(self.mean(kind)) for kind in KINDS},
            "maps": {kind: _rounded(self.maps[kind]) for kind in KINDS},
        }


def explain_translation(translator: Translator, translation: Translation) -> SourceAttention:
    """The attention to the source with which this output is decided."""
    network, tokenizer = translator.network, translator.tokenizer
    source, target = tokenizer.read([translation.text, translation.output])
    traces = _observe(translator, source, target)
    attended = []
    for trace in traces:
        weights, value = trace.weights[0].float(), trace.value[0].float()
        attended.append((weights, value, weights @ value))
    effective = effective_attentions(attended)
    standard = torch.stack([weights for weights, _, _ in attended])
    by_kind = {"standard": standard, "effective": torch.stack([one.maps for one in effective])}
    source_words, source_of = _words(source)
    # the first piece is given; the query of each piece guesses the one after it
    target_words, target_of = _words(target, skip=1)
    onto = _membership(source_of, len(source_words)).to(network.device)
    rows = _membership(target_of, len(target_words)).to(network.device)
    rows = rows / rows.sum(1, keepdim=True)
    maps = {kind: (rows @ some @ onto.T).cpu() for kind, some in by_kind.items()}
    return SourceAttention(translation, source_words, target_words, maps)


@torch.no_grad()
def _observe(translator: Translator, source: ReadText, target: ReadText) -> list[AttentionTrace]:
    """The attention to the source, layer by layer."""
    network, device = translator.network, translator.network.device
    traces: list[AttentionTrace] = []

    def keep(trace: AttentionTrace) -> None:
        if trace.kind == ACROSS:
            traces.append(trace)

    given = torch.tensor(target.pieces.ids[:-1], device=device)
    layout = Layout.of([len(given)], device, alike=True)
    network(pack_sources([as_numbers(source.pieces)], device), given, layout, observer=keep)
    return traces


def _words(read: ReadText, *, skip: int = 0) -> tuple[tuple[str, ...], list[int]]:
    """The words in order, special pieces among them, and the word of each piece from `skip` on."""
    names: list[str] = []
    owners: list[int] = []
    before: int | None = -1
    for place, word in enumerate(read.word_of()):
        if place < skip:
            continue
        if word is None or word != before:
            names.append(read.written[place] if word is None else read.words[word].written)
        owners.append(len(names) - 1)
        before = word
    return tuple(names), owners


def _membership(owners: Sequence[int], n_words: int) -> Tensor:
    """(word, piece), 1 where the piece is one of the word's."""
    return (torch.arange(n_words)[:, None] == torch.tensor(owners)).float()


def draw_source_attention(attention: SourceAttention) -> Figure:
    """Two maps side by side, means over layers and attention heads."""
    from matplotlib.figure import Figure  # takes half a second; only pictures need it

    n_rows, n_columns = len(attention.target), len(attention.source)
    size = (2 * (0.42 * n_columns + 1.4), 0.36 * n_rows + 1.6)
    picture = Figure(figsize=size, layout="constrained")
    axes = picture.subplots(1, 2, sharey=True)
    for ax, kind in zip(axes, KINDS, strict=True):
        values = attention.mean(kind).numpy()
        image = ax.imshow(values, cmap="YlGnBu", vmin=0, vmax=max(float(values.max()), 1e-6))
        ax.set_xticks(range(n_columns), attention.source, rotation=90, parse_math=False)
        ax.set_yticks(range(n_rows), attention.target, parse_math=False)
        ax.tick_params(length=0)
        ax.set_title(f"{kind} attention", fontsize=10)
        if values.size <= _MOST_NUMBERS:
            _write_numbers(ax, image, values)
        for spine in ax.spines.values():
            spine.set_visible(False)
    axes[0].set_ylabel("output")
    return picture


def _write_numbers(ax: Any, image: Any, values: np.ndarray) -> None:
    for (row, column), value in np.ndenumerate(values):
        if abs(value) >= 0.05:
            colour = text_colour(image, value)
            ax.text(
                column, row, f"{100 * value:.0f}", ha="center", va="center", color=colour, size=7
            )


def _rounded(values: Tensor) -> Any:
    return np.round(values.double().numpy(), 4).tolist()
