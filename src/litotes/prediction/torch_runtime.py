"""A model computed by torch: texts packed without padding, on a CPU or a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from threading import Lock

import torch

from litotes.encoder.tokenizer import Pieces
from litotes.model.checkpoint import Model
from litotes.model.exits import Outputs
from litotes.model.folder import name_model
from litotes.model.runtime import Runtime, compute_outputs, describe_threads


class TorchRuntime(Runtime):
    """A model on a CPU or a GPU."""

    def __init__(self, model: Model, device: torch.device) -> None:
        self._model, self._device = model, device
        model.classifier.to(device).eval()
        self.tasks, self.tokenizer = model.classifier.tasks, model.tokenizer
        self.calibration, self.facts = model.calibration, model.facts
        spec = model.classifier.encoder.spec
        self.name = name_model(model.base, model.classifier.head_name, spec.pruning)
        self.n_layers, self.has_exits = spec.n_layers, model.exits is not None
        self.label_sets = model.label_sets
        # torch itself uses all cores; two batches at once would only share them
        self.n_at_once = 1
        self._turn: AbstractContextManager[object] = Lock()

    @property
    def is_on_cpu(self) -> bool:
        return self._device.type == "cpu"

    def use_threads(self, n_threads: int, *, n_at_once: int) -> None:
        """Sets how many threads compute a batch, and how many batches gain by being computed at the
        same time: if only one, the others wait for their turn.

        The first holds for everything that torch computes in this process, in threads that begin
        after this one.
        """
        torch.set_num_threads(n_threads)
        self.n_at_once, self._turn = n_at_once, Lock() if n_at_once == 1 else nullcontext()

    def compute(self, texts: Sequence[Pieces]) -> Outputs:
        with self._turn:
            return compute_outputs(self._model, texts)

    def to_torch(self) -> Runtime:
        return self

    def without_exits(self) -> Runtime:
        if self._model.exits is None:
            return self
        return TorchRuntime(replace(self._model, exits=None), self._device)

    def model(self) -> Model:
        return self._model

    def deciding(self) -> Iterator[bytes]:
        classifier, exits = self._model.classifier, self._model.exits
        settings = "torch", self._device.type, classifier.encoder.spec, classifier.head_name
        yield repr(settings).encode()
        tensors = dict(classifier.state_dict())
        if exits is not None:
            yield repr((exits.rule, exits.table and exits.table.sha256)).encode()
            tensors |= {f"exits.{name}": own for name, own in exits.heads.state_dict().items()}
        for name, tensor in tensors.items():
            yield name.encode()
            yield tensor.cpu().contiguous().numpy().tobytes()

    def describe(self) -> str:
        threads = ""
        if self.is_on_cpu:
            threads = f", {describe_threads(torch.get_num_threads(), self.n_at_once)}"
        return f"torch {torch.__version__}, float32 on {self._device}{threads}."
