"""The attention of a translation model in one translation, word by word, standard and effective."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from litotes.core.figures import new_figure, text_colour
from litotes.encoder.layout import Layout
from litotes.encoder.tokenizer import ReadText
from litotes.explanation.effective_attention import effective_attentions
from litotes.training.translation.model import ACROSS, AttentionTrace
from litotes.training.translation.pairs import as_numbers, pack_sources
from litotes.training.translation.translator import Translation, Translator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAPS = ("standard", "effective")
_MOST_NUMBERS = 400
"""Cells up to which their numbers are written too."""


@dataclass(frozen=True)
class SourceAttention:
    """The source words that each target word was made from.

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
        def rounded(values: Tensor) -> Any:
            return np.round(values.double().numpy(), 4).tolist()

        return {
            "text": self.translation.text,
            "output": self.translation.output,
            "source": list(self.source),
            "target": list(self.target),
            "mean": {kind: rounded(self.mean(kind)) for kind in MAPS},
            "maps": {kind: rounded(self.maps[kind]) for kind in MAPS},
        }


@torch.no_grad()
def explain_translation(translator: Translator, translation: Translation) -> SourceAttention:
    """Shows the attention to the source with which this output is decided.

    The output is read as if it had been given (forced decoding), so that every piece is decided by
    what stands before it: the row of a target piece is the query that guessed it. Effective
    attention is what of the weights reaches the output of the attention
    (explanation/effective_attention.py).
    """
    network, device = translator.network, translator.network.device
    source, target = translator.tokenizer.read([translation.text, translation.output])
    attended = []

    def keep(trace: AttentionTrace) -> None:
        if trace.kind == ACROSS:
            weights, value = trace.weights[0].float(), trace.value[0].float()
            attended.append((weights, value, weights @ value))

    given = torch.tensor(target.pieces.ids[:-1], device=device)
    layout = Layout.of([len(given)], device, alike=True)
    network(pack_sources([as_numbers(source.pieces)], device), given, layout, observer=keep)
    standard = torch.stack([weights for weights, _, _ in attended])
    effective = torch.stack([one.maps for one in effective_attentions(attended)])
    source_words, onto = _words(source)
    # the first piece is given; the query of each piece guesses the one after it
    target_words, rows = _words(target, skip=1)
    onto, rows = onto.to(device), rows.to(device)
    rows = rows / rows.sum(1, keepdim=True)
    both = zip(MAPS, (standard, effective), strict=True)
    maps = {kind: (rows @ some @ onto.T).cpu() for kind, some in both}
    return SourceAttention(translation, source_words, target_words, maps)


def _words(read: ReadText, *, skip: int = 0) -> tuple[tuple[str, ...], Tensor]:
    """The words in order, special pieces among them, and which pieces from `skip` on are whose,
    (word, piece).
    """
    begins, names = [], []
    for place, (before, word) in enumerate(pairwise((-1, *read.word_of()))):
        begins.append(word is None or word != before)
        if begins[-1]:
            names.append(read.written[place] if word is None else read.words[word].written)
    owners = torch.tensor(begins)[skip:].cumsum(0) - 1
    return tuple(names[skip:]), functional.one_hot(owners).T.float()


def draw_source_attention(attention: SourceAttention) -> Figure:
    """Draws two maps side by side, means over layers and attention heads."""
    n_rows, n_columns = len(attention.target), len(attention.source)
    picture = new_figure(2 * (0.42 * n_columns + 1.4), 0.36 * n_rows + 1.6)
    axes = picture.subplots(1, 2, sharey=True)
    for ax, kind in zip(axes, MAPS, strict=True):
        values = attention.mean(kind).numpy()
        image = ax.imshow(values, cmap="YlGnBu", vmin=0, vmax=max(float(values.max()), 1e-6))
        ax.set_xticks(range(n_columns), attention.source, rotation=90, parse_math=False)
        ax.set_yticks(range(n_rows), attention.target, parse_math=False)
        ax.tick_params(length=0)
        ax.set_title(f"{kind} attention", fontsize=10)
        ax.spines[:].set_visible(False)
        if values.size <= _MOST_NUMBERS:
            for row, column in np.argwhere(np.abs(values) >= 0.05):
                value = values[row, column]
                colour = text_colour(image, value)
                centred = {"ha": "center", "va": "center", "size": 7, "color": colour}
                ax.text(column, row, f"{100 * value:.0f}", **centred)
    axes[0].set_ylabel("output")
    return picture
