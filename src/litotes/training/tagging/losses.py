"""The loss of words: cross-entropy of each word's label, or of where a span begins and ends.

tagging:  L = Σ_w c_{y_w} · (−log p_w[y_w]) / Σ_w c_{y_w}        over all words of the batch
span:     L = 1/2n Σ_texts (−log softmax(s)_i − log softmax(e)_j)
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from litotes.core.values import MISSING, Task
from litotes.encoder.layout import Layout
from litotes.training.losses import class_weights


def label_weights(targets: Tensor, task: Task, *, balanced: bool) -> Tensor:
    """How much each label counts. (label,)"""
    return class_weights(targets, task) if balanced else torch.ones(len(task.labels))


def tag_loss(logits: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """The sum over words. logits (word, label), targets (word,)"""
    return functional.cross_entropy(
        logits.float(), targets, weight=weights, ignore_index=MISSING, reduction="sum"
    )


def span_loss(logits: Tensor, targets: Tensor, texts: Layout) -> Tensor:
    """The sum over texts. logits (position, [start, end]), targets (text, 2)"""
    rows = span_rows(logits.float(), texts)  # (text, position, 2)
    scores = rows.transpose(1, 2).flatten(0, 1)  # (text × 2, position)
    return functional.cross_entropy(
        scores, targets.flatten(), ignore_index=MISSING, reduction="sum"
    )


def total_weight(targets: Tensor, weights: Tensor | None) -> Tensor:
    """What a sum of losses is to be divided by. weights: of labels; None: each target counts 1."""
    known = targets[targets != MISSING]
    total = known.new_tensor(len(known)).float() if weights is None else weights[known].sum()
    return total.clamp(min=1e-6)


def span_rows(logits: Tensor, texts: Layout) -> Tensor:
    """Each text's positions as a row, −inf beyond its end. (text, position, 2)"""
    rows = logits.new_full((texts.n_texts, texts.longest, 2), -torch.inf)
    return rows.index_put((texts.texts, texts.positions), logits)
