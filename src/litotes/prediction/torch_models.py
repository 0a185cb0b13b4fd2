"""Models as torch runs them: the one door through which a predictor comes to torch, whose import
takes seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from litotes.core.errors import UserError
from litotes.core.machine import choose_device
from litotes.kernels.encode import kernels_wanted
from litotes.model.checkpoint import Model, load_model
from litotes.model.folder import FileContent, ModelFolder
from litotes.model.heads import HEADS
from litotes.model.runtime import Runtime
from litotes.prediction.torch_runtime import TorchRuntime


def load_runtimes(
    folders: Sequence[ModelFolder],
    files: Mapping[Path, FileContent],
    *,
    device: str | None,
    precision: str | None,
    n_cores: int | None,
) -> list[Runtime]:
    """The models of some folders. n_cores: what the process may compute with; None: all."""
    if n_cores is not None:
        torch.set_num_threads(n_cores)
    loaded = [load_model(folder, files=files) for folder in folders]
    return [run_by_torch(model, device, precision) for model in loaded]


def load_on_cpu(folder: ModelFolder) -> Runtime:
    return TorchRuntime(load_model(folder), torch.device("cpu"))


def run_by_torch(model: Model, device: str | None, precision: str | None) -> TorchRuntime:
    """A model with kernels and half precision on a GPU, where they know it, else on the plain path.

    precision: auto, float32, bfloat16 or float16; None: auto.
    """
    place, classifier = choose_device(device), model.classifier
    if kernels_wanted(place):
        # they import Triton
        from litotes.kernels.triton_operations import has_kernels
        from litotes.prediction.cuda.runtime import CudaRuntime

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
