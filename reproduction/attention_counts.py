"""Counts over many pairs how sparse each attention head of a translation model is."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import torch
from torch import Tensor

from litotes.encoder.attention.entmax import Entmax
from litotes.encoder.layout import Layout
from litotes.encoder.walk import LayerTrace
from litotes.training.translation.model import ACROSS, SELF, EncoderDecoder
from litotes.training.translation.pairs import PairSet

ENCODER = "encoder self"
KINDS = (ENCODER, SELF, ACROSS)
_BATCH_PIECES = 8192


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
    weightings = {
        ENCODER: [one.weighting for one in model.encoder.attentions],
        **{kind: [one.weighting for one in model.decoder.attentions(kind)] for kind in KINDS[1:]},
    }
    return {
        kind: [one.alpha.tolist() for one in some if isinstance(one, Entmax)]
        for kind, some in weightings.items()
    }
