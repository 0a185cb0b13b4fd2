"""Where a translation model looks: in one translation, word by word, standard and effective; and
over many pairs, counted by kind, layer and attention head.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from litotes.core.figures import new_figure, text_colour
from litotes.encoder.attention.entmax import Entmax
from litotes.encoder.attention.weighting import Weighting
from litotes.encoder.layout import Layout
from litotes.encoder.tokenizer import ReadText
from litotes.encoder.walk import LayerTrace
from litotes.explanation.effective_attention import effective_attentions
from litotes.training.translation.model import ACROSS, SELF, AttentionTrace, EncoderDecoder
from litotes.training.translation.pairs import PairSet, as_numbers, pack_sources
from litotes.training.translation.translator import Translation, Translator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAPS = ("standard", "effective")
ENCODER = "encoder self"
KINDS = (ENCODER, SELF, ACROSS)
_MOST_NUMBERS = 400
"""Cells up to which their numbers are written too."""
_BATCH_PIECES = 8192


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
    names: list[str] = []
    owners: list[int] = []
    before: int | None = -1
    for place, word in list(enumerate(read.word_of()))[skip:]:
        if word is None or word != before:
            names.append(read.written[place] if word is None else read.words[word].written)
        owners.append(len(names) - 1)
        before = word
    return tuple(names), (torch.arange(len(names))[:, None] == torch.tensor(owners)).float()


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
        for (row, column), value in np.ndenumerate(values):
            if abs(value) >= 0.05 and values.size <= _MOST_NUMBERS:
                style = {"ha": "center", "va": "center", "size": 7}
                colour = text_colour(image, value)
                ax.text(column, row, f"{100 * value:.0f}", color=colour, **style)
        ax.spines[:].set_visible(False)
    axes[0].set_ylabel("output")
    return picture


@torch.no_grad()
def measure_attention(model: EncoderDecoder, pairs: PairSet) -> dict[str, Any]:
    """Counts over all pairs, with the targets as they are given, what each attention does.

        density     the share of the keys a query may read that get weight
        diversity   JS = H(mean over heads of p) − mean over heads of H(p), in bits, mean over
                    queries
        alpha       of α-entmax, as trained

    as Correia, Niculae & Martins 2019 (arXiv 1909.00015), §5 and figures 2 to 5, count them for the
    encoder, the decoder and the attention between both.
    {"density", "alpha": {kind: (layer, attention_head)}, "diversity": {kind: (layer,)}}
    """
    model.eval()
    sums: dict[tuple[str, int], list[Any]] = defaultdict(lambda: [0.0, 0.0, 0])
    live: dict[str, Tensor] = {}

    def add(kind: str, layer: int, weights: Tensor) -> None:
        """weights: (text, attention_head, query, key)"""
        rows = weights.float().transpose(1, 2)  # (text, query, attention_head, key)
        is_query, n_readable = live[kind].any(-1), live[kind].sum(-1)
        rows, found = rows[is_query], sums[kind, layer]
        found[0] = found[0] + ((rows > 0).sum(-1) / n_readable[is_query][:, None]).sum(0)
        found[1] += float((_bits(rows.mean(1)) - _bits(rows).mean(1)).sum())
        found[2] += len(rows)

    def see_encoder(trace: LayerTrace) -> None:
        (weights,) = trace.attention.weights
        add(ENCODER, trace.layer, weights)

    for places in pairs.batches(_BATCH_PIECES):
        batch = pairs.pack(places, model.device)
        source, target = _real(batch.sources.layout), _real(batch.layout)
        own = target[:, :, None] & target[:, None, :]
        # which pairs of query and key are real, and may be read (text, query, key)
        live[ENCODER] = source[:, :, None] & source[:, None, :]
        live[SELF] = own & torch.ones_like(own[0]).tril()
        live[ACROSS] = target[:, :, None] & source[:, None, :]
        encoding = model.read(batch.sources, observer=see_encoder)
        model.decoder(
            batch.pieces,
            batch.layout,
            encoding,
            observer=lambda trace: add(trace.kind, trace.layer, trace.weights),
        )
    density: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
    diversity: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for (kind, _), (used, divergence, n_queries) in sorted(sums.items()):
        density[kind].append((used / n_queries).tolist())
        diversity[kind].append(divergence / n_queries)
    return {"density": density, "diversity": diversity, "alpha": _alphas(model)}


def _bits(weights: Tensor) -> Tensor:
    """The entropy of the last axis."""
    return -torch.special.xlogy(weights, weights).sum(-1) / torch.log(torch.tensor(2.0))


def _real(layout: Layout) -> Tensor:
    """(text, place)"""
    return torch.arange(layout.longest, device=layout.device) < layout.counts[:, None]


def _alphas(model: EncoderDecoder) -> dict[str, list[list[float]]]:
    """{kind: (layer, attention_head)}; empty lists for other weightings than entmax."""
    weightings: dict[str, Sequence[Weighting]] = {
        ENCODER: [one.weighting for one in model.encoder.attentions],
        **{kind: [one.weighting for one in model.decoder.attentions(kind)] for kind in KINDS[1:]},
    }
    return {
        kind: [one.alpha.tolist() for one in some if isinstance(one, Entmax)]
        for kind, some in weightings.items()
    }
