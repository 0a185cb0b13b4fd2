"""What the attention of a translation model does over some pairs, by kind, layer and attention
head.

    density     the share of the keys a query may read that get weight
    diversity   JS = H(mean over heads of p) − mean over heads of H(p), in bits, mean over queries
    alpha       of α-entmax, as trained

as Correia, Niculae & Martins 2019 (arXiv 1909.00015), §5 and figures 2 to 5, count them for the
encoder, the decoder and the attention between both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from litotes.encoder.attention.entmax import Entmax
from litotes.encoder.attention.observer import LayerTrace
from litotes.encoder.attention.weighting import Weighting
from litotes.encoder.walk import Encoding
from litotes.training.translation.attention import ACROSS, SELF, AttentionTrace
from litotes.training.translation.model import EncoderDecoder
from litotes.training.translation.pairs import PairBatch, PairSet

ENCODER = "encoder self"
KINDS = (ENCODER, SELF, ACROSS)
_BATCH_PIECES = 8192


@dataclass
class _Sums:
    """Of one layer's queries so far. used: (attention_head,)"""

    used: Tensor
    divergence: float = 0.0
    n_queries: int = 0

    def add(self, weights: Tensor, n_readable: Tensor) -> None:
        """weights: (query, attention_head, key); n_readable: keys each query may read. (query,)"""
        self.used += ((weights > 0).sum(-1) / n_readable[:, None]).sum(0)
        self.divergence += float((_bits(weights.mean(1)) - _bits(weights).mean(1)).sum())
        self.n_queries += len(weights)


def _bits(weights: Tensor) -> Tensor:
    """The entropy of the last axis."""
    return -torch.special.xlogy(weights, weights).sum(-1) / torch.log(torch.tensor(2.0))


@dataclass
class AttentionStatistics:
    """Sums by kind and layer."""

    sums: dict[tuple[str, int], _Sums] = field(default_factory=dict)

    def add(self, kind: str, layer: int, weights: Tensor, is_live: Tensor) -> None:
        """weights: (text, attention_head, query, key); is_live: which of all pairs of query and key
        are real, and may be read. (text, query, key)
        """
        rows = weights.float().transpose(1, 2)  # (text, query, attention_head, key)
        is_query = is_live.any(-1)
        place = kind, layer
        if place not in self.sums:
            self.sums[place] = _Sums(torch.zeros(weights.shape[1], device=weights.device))
        self.sums[place].add(rows[is_query], is_live.sum(-1)[is_query])

    def as_json(self) -> dict[str, Any]:
        """{"density": {kind: (layer, attention_head)}, "diversity": {kind: (layer,)}}"""
        density: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
        diversity: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for (kind, _), sums in sorted(self.sums.items(), key=lambda one: one[0]):
            density[kind].append((sums.used / sums.n_queries).tolist())
            diversity[kind].append(sums.divergence / sums.n_queries)
        return {"density": density, "diversity": diversity}


@torch.no_grad()
def measure_attention(model: EncoderDecoder, pairs: PairSet) -> dict[str, Any]:
    """Over all pairs, with the targets as they are given."""
    model.eval()
    found = AttentionStatistics()
    for places in pairs.batches(_BATCH_PIECES):
        _observe(model, pairs.pack(places, model.device), found)
    return found.as_json() | {"alpha": alphas(model)}


def _observe(model: EncoderDecoder, batch: PairBatch, found: AttentionStatistics) -> None:
    sources, targets = batch.sources.layout, batch.layout
    source_live = _real(sources.counts, sources.longest)
    target_live = _real(targets.counts, targets.longest)
    own = target_live[:, :, None] & target_live[:, None, :]
    live = {
        ENCODER: source_live[:, :, None] & source_live[:, None, :],
        SELF: own & torch.ones_like(own[0]).tril(),
        ACROSS: target_live[:, :, None] & source_live[:, None, :],
    }

    def see_encoder(trace: LayerTrace) -> None:
        (weights,) = trace.attention.weights
        found.add(ENCODER, trace.layer, weights, live[ENCODER])

    def see_decoder(trace: AttentionTrace) -> None:
        found.add(trace.kind, trace.layer, trace.weights, live[trace.kind])

    encoding: Encoding = model.read(batch.sources, observer=see_encoder)
    model.decoder(batch.pieces, targets, encoding, observer=see_decoder)


def _real(counts: Tensor, longest: int) -> Tensor:
    """(text, place)"""
    return torch.arange(longest, device=counts.device) < counts[:, None]


def alphas(model: EncoderDecoder) -> dict[str, list[list[float]]]:
    """{kind: (layer, attention_head)}; empty lists for other weightings than entmax."""
    weightings: dict[str, Sequence[Weighting]] = {
        ENCODER: [one.weighting for one in model.encoder.attentions],
        SELF: [one.weighting for one in model.decoder.attentions(SELF)],
        ACROSS: [one.weighting for one in model.decoder.attentions(ACROSS)],
    }
    return {
        kind: [one.alpha.tolist() for one in some if isinstance(one, Entmax)]
        for kind, some in weightings.items()
    }
