"""A model computed by torch, as fast as its device allows."""

from __future__ import annotations

import torch

from litotes.core.errors import UserError
from litotes.encoder.device_encoding import kernels_wanted
from litotes.model.checkpoint import Model
from litotes.model.classifier import Classifier
from litotes.model.heads import HEADS
from litotes.prediction.torch_runtime import TorchRuntime


def open_torch_runtime(
    model: Model, device: torch.device, precision: str | None = None
) -> TorchRuntime:
    """Kernels and half precision on a GPU, where they know the model; else the plain path.

    precision: auto, float32, bfloat16 or float16; None: auto.
    """
    if kernels_wanted(device) and _is_known(model.classifier):
        from litotes.prediction.cuda.runtime import CudaRuntime

        return CudaRuntime(model, device, precision=precision or "auto")
    if precision not in (None, "auto", "float32"):
        raise UserError(
            f"The precision {precision} needs a CUDA device and kernels that know the model; here"
            " answers are computed in float32. Leave --precision out."
        )
    return TorchRuntime(model, device)


def _is_known(classifier: Classifier) -> bool:
    """Whether a pass can be recorded: kernels for the encoder, and a head that the device alone can
    compute.
    """
    from litotes.encoder.kernel_walk import has_kernels  # imports Triton

    return not HEADS[classifier.head_name].needs_lengths and has_kernels(classifier.encoder)
