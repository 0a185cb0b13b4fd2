"""A model computed by torch: texts packed without padding, on a CPU or a GPU. A predictor comes to
torch through this door alone, for its import takes seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from threading import Lock

import torch

from litotes.core.errors import UserError
from litotes.core.machine import choose_device
from litotes.encoder.tokenizer import Pieces
from litotes.kernels.encode import kernels_wanted
from litotes.model.checkpoint import Model, load_model
from litotes.model.exits import Outputs
from litotes.model.folder import FileContent, ModelFolder, name_model
from litotes.model.heads import HEADS
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
        """How many threads a batch is computed with, and how many batches gain by being computed at
        the same time: if only one, the others wait for their turn.

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


def load_runtimes(
    folders: Sequence[ModelFolder],
    files: Mapping[Path, FileContent] | None = None,
    *,
    device: str | None,
    precision: str | None = None,
    n_cores: int | None = None,
) -> list[TorchRuntime]:
    """The models of some folders. files: those that have been read already. n_cores: what the
    process may compute with; None: all.
    """
    if n_cores is not None:
        torch.set_num_threads(n_cores)
    loaded = [load_model(folder, files=files) for folder in folders]
    return [run_by_torch(model, device, precision) for model in loaded]


def run_by_torch(model: Model, device: str | None, precision: str | None) -> TorchRuntime:
    """A model with kernels and half precision on a GPU, where they know it, else on the plain path.

    precision: auto, float32, bfloat16 or float16; None: auto.
    """
    place, classifier = choose_device(device), model.classifier
    if kernels_wanted(place):
        # they import Triton
        from litotes.kernels.triton_operations import has_kernels
        from litotes.prediction.cuda_runtime import CudaRuntime

        # a pass can be recorded if the device alone can compute the head
        needs_lengths = HEADS[classifier.head_name].needs_lengths
        if not needs_lengths and has_kernels(classifier.encoder):
            return CudaRuntime(model, place, precision=precision or "auto")
    if precision not in (None, "auto", "float32"):
        raise UserError(
            f"The precision {precision} needs a CUDA device and kernels that know the model; here"
            " answers are computed in float32. Leave --precision out."
        )
    return TorchRuntime(model, place)
