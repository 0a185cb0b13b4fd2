"""The attention heads that a model can do without.

Michel, Levy and Neubig 2019, arXiv 1905.10650, §4.1.

    I_h = mean over batches of |∂L / ∂ξ_h|, divided by the norm of I over its layer

where ξ_h = 1 is a factor on the output of attention head h.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import functional

from litotes.model.classifier import Classifier
from litotes.training.inputs import Inputs

BATCH = 32


def head_sensitivity(classifier: Classifier, inputs: Inputs, *, n_texts: int = 512) -> Tensor:
    """Measures how much the model's own answers depend on each head. (block, attention_head)

    The loss is that of the model's own answers taken as true, −log p of the likeliest label (for a
    number: its square), so no labels are needed.
    """
    classifier.eval()
    n_texts = min(n_texts, len(inputs.texts))
    with _head_gates(classifier) as gates:
        total = list(map(torch.zeros_like, gates))
        for start in range(0, n_texts, BATCH):
            logits = inputs.logits(classifier, range(start, min(start + BATCH, n_texts)))
            gradients = torch.autograd.grad(_surprise(list(logits.values())), gates)
            for layer, gradient in zip(total, gradients, strict=True):
                layer += gradient.abs()
    return torch.stack([layer / layer.norm().clamp(min=1e-12) for layer in total]).cpu()


def heads_to_keep(sensitivity: Tensor, share: float) -> list[list[int]]:
    """The attention heads to keep in every block when `share` of all are kept: the most needed
    ones, and at least one a block.
    """
    n_blocks, n_heads = sensitivity.shape
    kept = [{int(layer.argmax())} for layer in sensitivity]
    for place in sensitivity.flatten().argsort(descending=True).tolist():
        if sum(map(len, kept)) >= round(share * n_blocks * n_heads):
            break
        kept[place // n_heads].add(place % n_heads)
    return [sorted(heads) for heads in kept]


@contextmanager
def _head_gates(classifier: Classifier) -> Iterator[list[Tensor]]:
    """A factor of 1 on the output of every attention head, by block, while entered."""
    gates, hooks = [], []
    try:
        for attention in classifier.encoder.attentions:
            gate = torch.ones(attention.n_heads, device=classifier.device, requires_grad=True)
            hooks.append(attention.output.register_forward_pre_hook(_multiply_heads(gate)))
            gates.append(gate)
        yield gates
    finally:
        for hook in hooks:
            hook.remove()


def _multiply_heads(gate: Tensor) -> Callable[[object, tuple[Tensor]], tuple[Tensor]]:
    def multiply(_: object, inputs: tuple[Tensor]) -> tuple[Tensor]:
        (mixed,) = inputs  # (piece, attention_head × head_width)
        return ((mixed.unflatten(-1, (len(gate), -1)) * gate[:, None]).flatten(-2),)

    return multiply


def _surprise(logits: Sequence[Tensor]) -> Tensor:
    """The loss of the answers taken as true, over all tasks. logits: (text, class)"""
    parts = []
    for values in logits:
        is_number = values.shape[-1] == 1
        answers = values.argmax(-1)
        parts.append(
            values.square().mean() if is_number else functional.cross_entropy(values, answers)
        )
    return torch.stack(parts).sum()
