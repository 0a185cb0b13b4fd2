"""The models of the GPU's benches: one of BERT-base's size with random weights, and the bundled
encoder, each dense, pruned to a given share of the operations, and with the authors' cascade.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from bench.subject import fresh_model, with_pruning
from litotes.encoder.attention.pruning import Learned
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import EncoderSpec
from litotes.encoder.pretrained import Pretrained
from litotes.encoder.reshaping import rebuild_encoder
from litotes.model.checkpoint import Model
from litotes.model.heads import Head, HeadPerTask
from litotes.pruning.cost import flops

BERT_BASE: Mapping[str, int] = {
    "width": 768,
    "n_layers": 12,
    "n_attention_heads": 12,
    "inner_width": 3072,
}
TIMES_FEWER = 2.5
"""Operations of the dense encoder for one of the pruned encoder's."""
SMALLEST_STEP = 0.3
"""No layer is asked to keep less than this share of the layer before it."""
INITIAL_SPREAD = 0.02
"""The standard deviation of BERT's weights before its training."""


def random_encoder(spec: EncoderSpec) -> Encoder:
    """Weights as BERT's before training, the same ones every time."""
    torch.manual_seed(0)
    encoder = Encoder(spec)
    for module in encoder.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=INITIAL_SPREAD)
    return encoder.eval()


def model_of_size(loaded: Pretrained, sizes: Mapping[str, int]) -> Model:
    """A random encoder of another size that reads the same pieces."""
    choices: dict[str, Any] = dict(sizes)
    encoder = random_encoder(replace(loaded.encoder.spec, **choices))
    return fresh_model(Pretrained(encoder, loaded.tokenizer, "random", None))


def with_prunings(dense: Model, lengths: Sequence[int]) -> dict[str, Model]:
    """The three that are compared, by the ends of their lines' names."""
    shares = shares_for(dense.classifier.encoder, lengths)
    return {
        "dense": dense,
        "pruned": with_pruning(dense, "learned", {"shares": shares}),
        "cascade": with_pruning(dense, "cascade", {}),
    }


def shares_for(
    encoder: Encoder, lengths: Sequence[int], times_fewer: float = TIMES_FEWER
) -> list[float]:
    """Shares after each layer, each the same part of the one before, with which texts of these
    lengths take so many times fewer operations. The head reads first pieces alone.
    """
    dense = flops(encoder, lengths, firsts_only=True).total
    pruned = rebuild_encoder(encoder, pruning="learned")
    assert isinstance(pruned.pruning, Learned)
    low, high = SMALLEST_STEP, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        pruned.pruning.shares = _geometric(middle, pruned.pruning.n_layers)
        if dense / flops(pruned, lengths, firsts_only=True).total > times_fewer:
            low = middle
        else:
            high = middle
    return list(_geometric(low, pruned.pruning.n_layers))


def _geometric(step: float, n_layers: int) -> tuple[float, ...]:
    return tuple(round(step ** (layer + 1), 6) for layer in range(n_layers))


def copy_to(model: Model, device: torch.device, dtype: torch.dtype = torch.float32) -> Model:
    """A copy of its own: no line may change the weights of another."""
    return replace(model, classifier=deepcopy(model.classifier).to(device, dtype).eval())


def balance_labels(model: Model, logits_of: Callable[[Model], Any]) -> None:
    """Shifts the outputs of fresh heads so that every label wins somewhere: where all texts get
    the same label, a comparison of labels would show nothing. logits_of: {task: (text, class)}
    """
    heads = model.classifier.heads
    assert isinstance(heads, HeadPerTask)
    with torch.no_grad():
        for task, logits in logits_of(model).items():
            head = heads[task]
            assert isinstance(head, Head)
            middle = torch.as_tensor(logits).median(0).values  # (class,)
            head.output.bias.sub_(middle.to(head.output.bias))
