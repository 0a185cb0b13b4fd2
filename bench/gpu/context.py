"""What all groups share: the texts, the models made once, and how often and how long to measure."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.batching import Logits
from bench.gpu.models import (
    BERT_BASE,
    balance_labels,
    copy_to,
    model_of_size,
    with_prunings,
)
from bench.gpu.turns import Attempts, Clock, clock_of
from bench.subject import fresh_model
from litotes.core.progress import Watch, ignore_progress
from litotes.encoder import pretrained
from litotes.encoder.tokenizer import Pieces
from litotes.model.checkpoint import Model, load_model
from litotes.model.runtime import Runtime, compute_logits
from litotes.pruning.cost import flops

MOST_SECONDS = 450.0
"""After which nothing new is begun: a run ends within eight minutes."""


@dataclass(frozen=True)
class GpuBench:
    """A run of the GPU's benches.

    encoder: the small one, by name. sizes: of the large one. trained: a model whose labels mean
    something, a folder or a built-in one. buckets: sizes of buckets to compare. n_rows: of the
    table that is answered from CSV to CSV; None: there is none.
    """

    device: torch.device
    texts: tuple[str, ...]
    n_rounds: int = 5
    encoder: str = "minilm"
    sizes: Mapping[str, int] = field(default_factory=lambda: dict(BERT_BASE))
    trained: str | Path = "builtin"
    buckets: tuple[int, ...] = (1024, 2048, 4096, 8192, 16384, 32768)
    is_quick: bool = False
    n_rows: int | None = None
    deadline: float = field(default_factory=lambda: time.monotonic() + MOST_SECONDS)
    watch: Watch = ignore_progress

    def attempts(self) -> Attempts:
        return Attempts(self.deadline)

    @property
    def dtype(self) -> torch.dtype:
        """What the opponents compute in: bfloat16 where it is fast."""
        return torch.bfloat16 if self.device.type == "cuda" else torch.float32

    @property
    def clock(self) -> Clock:
        """For single kernels."""
        return clock_of(self.device)

    @cached_property
    def loaded(self) -> pretrained.Pretrained:
        return pretrained.load(self.encoder)

    @cached_property
    def pieces(self) -> list[Pieces]:
        return self.loaded.tokenizer.encode(self.texts)

    @cached_property
    def lengths(self) -> list[int]:
        return [len(text.ids) for text in self.pieces]

    @cached_property
    def large(self) -> dict[str, Model]:
        """dense, pruned and cascade, of the given sizes."""
        return self._with_prunings(model_of_size(self.loaded, self.sizes))

    @cached_property
    def small(self) -> dict[str, Model]:
        """The same with the encoder as it is."""
        return self._with_prunings(fresh_model(self.loaded))

    @cached_property
    def trained_model(self) -> Model:
        return load_model(self.trained)

    def _with_prunings(self, dense: Model) -> dict[str, Model]:
        balance_labels(dense, self.plain_logits)
        return with_prunings(dense, self.lengths)

    def plain_logits(self, model: Model) -> dict[str, Any]:
        """What torch alone answers in float32, on the device. {task: (text, class)}"""
        pieces = self.pieces_for(model)
        return compute_logits(copy_to(model, self.device), pieces)

    def reference(self, model: Model) -> Logits:
        """The same, tasks side by side. (text, class)"""
        return side_by_side(self.plain_logits(model))

    def pieces_for(self, model: Model) -> list[Pieces]:
        """The texts as the model's own tokenizer reads them."""
        if model.tokenizer is self.loaded.tokenizer:
            return self.pieces
        return model.tokenizer.encode(self.texts)

    def runtime(
        self, model: Model, *, precision: str = "auto", bucket: int | None = None
    ) -> Runtime:
        """Ours."""
        from litotes.prediction.cuda_runtime import CudaRuntime

        own = copy_to(model, torch.device("cpu"))
        return CudaRuntime(own, self.device, precision=precision, bucket=bucket)

    def ours(
        self, model: Model, *, precision: str = "auto", bucket: int | None = None
    ) -> Callable[[object], Logits]:
        """Pieces to logits, all texts at once."""
        runtime = self.runtime(model, precision=precision, bucket=bucket)
        pieces = self.pieces_for(model)
        return lambda _: side_by_side(runtime.logits(pieces))

    def operations(self, model: Model) -> int:
        classifier = model.classifier
        lengths = [len(text.ids) for text in self.pieces_for(model)]
        return flops(classifier.encoder, lengths, firsts_only=classifier.firsts_only).total

    def as_json(self) -> dict[str, Any]:
        """What a reader has to know about the texts and the models."""
        dense, pruned = (self.operations(self.large[kind]) for kind in ("dense", "pruned"))
        return {
            "sizes": dict(self.sizes),
            "encoder": Path(self.encoder).name,
            "trained": Path(self.trained).name,
            "pruned_shares": self.large["pruned"].classifier.encoder.spec.pruning_options["shares"],
            "times_fewer_operations": round(dense / pruned, 3),
            "n_pieces": sum(self.lengths),
            "mean_pieces": round(float(np.mean(self.lengths)), 1),
            "most_pieces": max(self.lengths),
        }


def side_by_side(logits: Mapping[str, Any]) -> Logits:
    """{task: (text, class)} → (text, class of all tasks)"""
    return np.concatenate([np.asarray(values) for values in logits.values()], axis=1)


def repeat_to(texts: Sequence[str], n: int) -> tuple[str, ...]:
    """So many texts, from the start again where there are fewer."""
    return tuple(islice(cycle(texts), max(n, len(texts))))


def quick(bench: GpuBench) -> GpuBench:
    """The same for a first look."""
    return replace(bench, is_quick=True, n_rounds=1, buckets=bench.buckets[:1])
