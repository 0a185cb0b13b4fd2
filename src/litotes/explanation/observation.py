"""One text as a model saw it: its pieces and the attention of every layer.

The input of every analysis and every attribution method.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from litotes.encoder.encoder import Encoder
from litotes.encoder.packing import pack
from litotes.encoder.tokenizer import ReadText
from litotes.encoder.walk import LayerTrace, TextAttention
from litotes.explanation.effective_attention import EffectiveAttention, effective_attentions
from litotes.explanation.explanation import LayerMaps, Trace
from litotes.model.checkpoint import Model

KINDS = ("standard", "effective")
"""The two maps of an attention head: its weights, and the part of them that reaches the output."""

_MOST_SQUARES = 192**2
"""Texts are observed together as long as their number times the longest one squared is less: the
maps of a batch are at most as many, by layers and attention heads, and memory stays flat however
many texts there are. A longer text is observed alone.
"""


@dataclass(frozen=True)
class Observation:
    """The behaviour of a model on one text.

    layers: its attention, layer by layer. logits: {task: (class,)}.
    base: the attention of the encoder the model was tuned from, where that is known; it saw the
    same pieces.
    cache: what was computed about this text at some cost, for other analyses to use again.
    """

    read: ReadText
    layers: tuple[TextAttention, ...]
    logits: Mapping[str, Tensor]
    base: tuple[TextAttention, ...] | None = None
    cache: dict[Hashable, Any] = field(default_factory=dict, compare=False)

    @cached_property
    def effective(self) -> tuple[EffectiveAttention, ...]:
        """The part of every layer's attention that reaches its output; computed once."""
        return _effective(self.layers)

    @cached_property
    def maps(self) -> list[dict[str, Tensor]]:
        """Layer by layer, {kind: (attention_head, query, key)}"""
        return _maps(self.layers, self.effective)

    @cached_property
    def base_maps(self) -> list[dict[str, Tensor]]:
        """The same of the encoder that the model was tuned from."""
        layers = self.base or ()
        return _maps(layers, _effective(layers))


def observe(
    model: Model,
    texts: Sequence[ReadText],
    *,
    base: Encoder | None = None,
    device: str | torch.device = "cpu",
) -> list[Observation]:
    """The texts together, as one batch; a text's maps do not depend on its batch mates.

    Model and base must be on `device`.
    """
    batch = pack([text.pieces for text in texts], device=device)
    traces: list[LayerTrace] = []
    base_traces: list[LayerTrace] = []
    with torch.inference_mode():
        logits = model.classifier(batch, observer=traces.append)  # {task: (text, class)}
        if base is not None:
            base(batch, observer=base_traces.append)
        by_task = {task: values.float().cpu() for task, values in logits.items()}
    layers, base_layers = _by_text(traces, len(texts)), _by_text(base_traces, len(texts))
    observations = []
    for place, text in enumerate(texts):
        own = {task: values[place] for task, values in by_task.items()}
        observations.append(Observation(text, layers[place], own, base_layers[place] or None))
    return observations


def in_batches(texts: Sequence[ReadText]) -> Iterator[list[ReadText]]:
    """The texts in order, as many at a time as may be observed together."""
    batch: list[ReadText] = []
    longest = 0
    for text in texts:
        longest = max(longest, len(text.pieces.ids))
        # an accelerator fills rows up to the longest
        if batch and (len(batch) + 1) * longest**2 > _MOST_SQUARES:
            yield batch
            batch, longest = [], len(text.pieces.ids)
        batch.append(text)
    if batch:
        yield batch


def _by_text(traces: Sequence[LayerTrace], n_texts: int) -> list[tuple[TextAttention, ...]]:
    views = [list(trace.by_text()) for trace in traces]
    return [tuple(layer[text] for layer in views) for text in range(n_texts)]


def _effective(layers: Sequence[TextAttention]) -> tuple[EffectiveAttention, ...]:
    return effective_attentions([(view.weights, view.value, view.mixed) for view in layers])


def _maps(
    layers: Sequence[TextAttention], effective: Sequence[EffectiveAttention]
) -> list[dict[str, Tensor]]:
    both = zip(layers, effective, strict=True)
    return [{"standard": view.weights, "effective": one.maps} for view, one in both]


def layer_maps(observation: Observation) -> tuple[LayerMaps, ...]:
    return tuple(
        LayerMaps(
            heads=view.heads,
            origin=tuple(view.origin.tolist()),
            standard=view.weights.cpu(),
            effective=effective.maps.cpu(),
            n_null=tuple(effective.n_null.tolist()),
        )
        for view, effective in zip(observation.layers, observation.effective, strict=True)
    )


def trace_of(observation: Observation) -> Trace:
    left: list[int | None] = [None] * len(observation.read.written)
    for view in observation.layers:
        for place in set(view.origin.tolist()) - set(view.stayed.tolist()):
            if place >= 0:  # a fused piece stands for others
                left[place] = view.layer
    return Trace(
        observation.read.written, tuple(left), tuple(view.heads for view in observation.layers)
    )
