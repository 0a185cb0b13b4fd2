"""What a predictor asks: pieces in, logits out, by torch or by ONNX Runtime."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.numbers import counted
from litotes.core.values import Task
from litotes.encoder.tokenizer import Pieces, PieceTokenizer
from litotes.model.calibration import Calibration, LabelSets
from litotes.model.exits import Outputs, StaticTier

if TYPE_CHECKING:
    from torch import Tensor

    from litotes.encoder.layout import Batch
    from litotes.model.checkpoint import Model


class Runtime(ABC):
    """A model that is ready to compute.

    name: encoder, head and pruning. facts: what is known about it (data, recipe, scores).
    n_at_once: how many calls of `logits` gain by being made at the same time. has_exits: whether
    texts may be answered before the last layer.
    """

    name: str
    n_layers: int
    tasks: Mapping[str, Task]
    tokenizer: PieceTokenizer
    calibration: Mapping[str, Calibration]
    label_sets: Mapping[str, LabelSets]
    facts: Mapping[str, Any]
    n_at_once: int
    has_exits: bool

    @abstractmethod
    def compute(self, texts: Sequence[Pieces]) -> Outputs:
        """Computes texts of any lengths, in the order they came; several threads may call it."""

    def logits(self, texts: Sequence[Pieces]) -> dict[str, NDArray[np.float32]]:
        """{task: (text, class)}"""
        return self.compute(texts).logits

    @abstractmethod
    def to_torch(self) -> Runtime:
        """The same model computed by torch."""

    def without_exits(self) -> Runtime:
        """The same model, in which every text goes to the end."""
        return self

    @abstractmethod
    def model(self) -> Model:
        """The model as torch computes it; explanations look inside."""

    def identity(self, variety: str | None = None) -> str:
        """A name for what decides the answers to texts of a variety: equal for equal models
        computed the same way.
        """
        settings = (
            self.tasks,
            sorted(self.calibration.items()),
            sorted(self.label_sets.items()),
            variety if self.label_sets else None,
            self.tokenizer.max_pieces,
            self.tokenizer.to_json(),
        )
        digest = hashlib.sha256(repr(settings).encode())
        for part in self.deciding():
            digest.update(part)
        return digest.hexdigest()

    @abstractmethod
    def deciding(self) -> Iterator[bytes]:
        """Yields what else decides the answers: the weights, and how they are computed."""

    @abstractmethod
    def describe(self) -> str:
        """Describes what computes the answers, in a sentence."""


def describe_threads(n_threads: int, n_at_once: int) -> str:
    """Describes how a batch is computed, and how many at the same time."""
    threads = counted(n_threads, "thread")
    if n_at_once == 1:
        return threads
    return f"{threads} a batch, up to {n_at_once} batches at the same time"


# What a model computes for texts, by torch: pieces in, logits out.


def compute_outputs(model: Model, texts: Sequence[Pieces]) -> Outputs:
    """Computes the answers: a text that the table is sure of is not computed at all; on a CPU
    others leave where an exit is sure of them, elsewhere all go to the end.
    """
    tier = static_tier(model)
    if tier is None:
        return _compute_in_layers(model, texts)
    return tier.answer(texts, partial(_compute_in_layers, model))


def static_tier(model: Model) -> StaticTier | None:
    """Returns what answers before the first layer; None: nothing does."""
    if model.exits is None or model.exits.table is None:
        return None
    n_layers = len(model.classifier.encoder.spec.walk)
    return StaticTier(model.exits.table, model.exits.rule, model.calibration, n_layers)


def _compute_in_layers(model: Model, texts: Sequence[Pieces]) -> Outputs:
    """Computes the answers of the encoder and its exits."""
    import torch

    exits, layers = model.exits, all_layers(model, len(texts))
    if exits is None or not exits.rule.inner_layers or model.classifier.device.type != "cpu":
        found = compute_logits(model, texts)
    else:
        reached = [torch.empty(0, dtype=torch.int64)]

        def answer(batch: Batch) -> dict[str, Tensor]:
            logits, own = exits.answer(model.classifier, batch, model.calibration)
            reached.append(own)
            return logits

        found = compute_logits(model, texts, ask=answer)
        layers = torch.cat(reached).numpy()
    return Outputs({task: own.numpy() for task, own in found.items()}, layers)


def all_layers(model: Model, n_texts: int) -> NDArray[np.int64] | None:
    """The layers of texts that all go to the end; None for a model without exits."""
    if model.exits is None:
        return None
    return np.full(n_texts, len(model.classifier.encoder.spec.walk), dtype=np.int64)


def compute_logits(
    model: Model,
    texts: Sequence[Pieces],
    *,
    ask: Callable[[Batch], Mapping[str, Tensor]] | None = None,
    between: Callable[[], None] = lambda: None,
) -> dict[str, Tensor]:
    """{task: (text, class)} on the CPU, computed where the model is. ask: what answers a batch;
    None: the whole classifier. between: called before every batch; may raise to end the work.
    """
    import torch

    from litotes.encoder.packing import batches_without_gradients, pack

    classifier = model.classifier
    parts = {name: [torch.empty(0, task.n_outputs)] for name, task in classifier.tasks.items()}
    lengths = [len(text.ids) for text in texts]
    with torch.inference_mode():
        for places in batches_without_gradients(lengths, classifier.device) if texts else ():
            between()
            batch = pack([texts[place] for place in places], device=classifier.device)
            for name, logits in (ask or classifier)(batch).items():
                parts[name].append(logits.float().cpu())
        return {name: torch.cat(logits) for name, logits in parts.items()}
