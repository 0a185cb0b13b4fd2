"""rollout: attention followed through all layers."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from litotes.encoder.attention.observer import TextAttention
from litotes.encoder.attention.survivors import FUSED
from litotes.explanation.attribution.method import Method, WordWeights, by_word
from litotes.explanation.attribution.question import Question


class Rollout(Method):
    """Attention weights multiplied through all layers, R_l = ½ (A_l + I) R_{l-1}; half of a piece
    stays itself.

    Abnar and Zuidema 2020, arXiv 2005.00928, §3; A is the mean over attention heads. What the head
    reads is the mean of its rows of R. Where pieces leave, the products are rectangular: rows of R
    are the pieces still there, columns all pieces of the text, and every row still adds up to 1. A
    fused piece's row is the plain mean of the rows it stands for (the pruning weighs them by
    importance, which a view does not show). A head that reads all pieces, those gone in the state
    they left in, reads the rows they left with.
    """

    is_signed: ClassVar[bool] = False

    def weigh(self, question: Question) -> WordWeights:
        classifier = question.model.classifier
        with torch.inference_mode():
            rows = roll_out(
                question.observation.layers,
                len(question.read.written),
                restore=classifier.encoder.pruning.restore,
            )  # (piece read, piece)
            read = rows[0] if classifier.firsts_only else rows.mean(0)
        return WordWeights(by_word(question.read, read))


def roll_out(views: tuple[TextAttention, ...], n_pieces: int, *, restore: bool) -> Tensor:
    """R after the last layer. (piece that goes on, piece of the text)"""
    flow = torch.eye(n_pieces, dtype=torch.float64)
    left = []
    for view in views:
        origin = view.origin.cpu()
        stays = torch.isin(origin, view.stayed.cpu()) & (origin != FUSED)
        left.append(flow[~stays & (origin != FUSED)])
        weights = view.weights.mean(0).double().cpu()  # (query, key)
        flow = (weights @ flow + flow) / 2
        gone, flow = flow[~stays], flow[stays]
        if _has_fused(view):
            flow = torch.cat([flow, gone.mean(0, keepdim=True)])
    if not restore:
        return flow
    return torch.cat([flow[:-1] if _has_fused(views[-1]) else flow, *left])


def _has_fused(view: TextAttention) -> bool:
    """Whether a piece that stands for those gone goes on to the next layer."""
    return bool((view.stayed == FUSED).any())
