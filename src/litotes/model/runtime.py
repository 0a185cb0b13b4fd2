"""What a predictor asks: pieces in, logits out, by torch or by ONNX Runtime."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.numbers import counted
from litotes.core.values import Task
from litotes.encoder.tokenizer import Pieces, PieceTokenizer
from litotes.model.calibration import Calibration
from litotes.model.label_sets import LabelSets
from litotes.model.outputs import Outputs

if TYPE_CHECKING:
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
        """What the model says of texts of any lengths, in the order they came; may be called from
        several threads.
        """

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

    @abstractmethod
    def identity(self) -> str:
        """A name for what decides the answers: equal for equal models computed the same way."""

    @abstractmethod
    def describe(self) -> str:
        """What computes the answers, in a sentence."""


def describe_threads(n_threads: int, n_at_once: int) -> str:
    """How a batch is computed, and how many at the same time."""
    threads = counted(n_threads, "thread")
    if n_at_once == 1:
        return threads
    return f"{threads} a batch, up to {n_at_once} batches at the same time"
