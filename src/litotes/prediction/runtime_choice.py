"""The runtime that computes: the one that is named, or else what is fastest."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from litotes.core.errors import UserError, require_extra
from litotes.core.machine import choose_device, is_cpu
from litotes.core.registry import unknown_name
from litotes.model.builtin import BUILTIN, is_builtin, name_of, resolve_model
from litotes.model.folder import ModelFolder, read_files
from litotes.prediction.onnx_file import has_export

if TYPE_CHECKING:
    from litotes.model.checkpoint import Model
    from litotes.prediction.torch_runtime import TorchRuntime

RUNTIMES = ("torch", "onnx")


def choose_runtime(
    folders: Sequence[ModelFolder],
    device: str | None,
    runtime: str | None,
    precision: str | None = None,
) -> tuple[str, list[str]]:
    """Chooses one runtime for all these folders, and says what the user should know about it.

    What the choice needs and is not installed is an error, before anything is loaded.
    """
    if runtime is not None and runtime not in RUNTIMES:
        raise UserError(unknown_name(runtime, RUNTIMES, "runtime"))
    plain = [folder for folder in folders if not has_export(folder)]
    is_free = precision in (None, "auto")
    if runtime == "onnx":
        if device not in (None, "cpu"):
            raise UserError(
                "The ONNX runtime computes on the CPU: leave --device out, or use --runtime torch."
            )
        if not is_free:
            raise UserError(
                "An ONNX file has the precision it was exported with: leave --precision out, or use"
                " --runtime torch."
            )
        for folder in plain:
            if is_builtin(folder.path):  # of other models the folder is looked into
                raise UserError(
                    f"{name_of(folder.path)} has no ONNX export: use --runtime torch (`pip install"
                    f" 'litotes[train]'`), or make one where that is installed:"
                    f" {_export_command(folder)}."
                )
        return "onnx", []
    could_be = runtime is None and is_free and len(plain) < len(folders) and is_cpu(device)
    if could_be and not plain:
        return "onnx", []
    _require_torch(plain)
    if not could_be:
        return "torch", []
    name, command = name_of(plain[0].path), _export_command(plain[0])
    return "torch", [f"Run by torch: {name} has no export. Make it with {command}."]


def _require_torch(plain: Sequence[ModelFolder]) -> None:
    """The sentence names what would do without torch: an export of the models that have none."""
    if not plain:
        require_extra("train", "The torch runtime")
        return
    where = f"; or export it where that is installed: {_export_command(plain[0])}"
    if plain[0].path == resolve_model(BUILTIN):
        where = ", or, in a source checkout that has it, run `make light` once"
    name = name_of(plain[0].path)
    require_extra("train", f"{name} has no ONNX export, and torch", instead=where)


def _export_command(folder: ModelFolder) -> str:
    """Words the command after which the model needs no torch; a built-in one is copied."""
    out = " --out FOLDER" if is_builtin(folder.path) else ""
    return f"`litotes export --model {name_of(folder.path)}{out}`"


# A predictor comes to torch through these doors alone, for its import takes seconds.


def load_by_torch(
    folders: Sequence[ModelFolder],
    *,
    device: str | None,
    precision: str | None,
    n_cores: int | None,
) -> list[TorchRuntime]:
    """The models of some folders. n_cores: what the process may compute with; None: all."""
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read_files, folders)  # while torch is imported
        import torch

        from litotes.model.checkpoint import load_model
    if n_cores is not None:
        torch.set_num_threads(n_cores)
    loaded = [load_model(folder, files=reading.result()) for folder in folders]
    return [run_by_torch(model, device, precision) for model in loaded]


def run_by_torch(model: Model, device: str | None, precision: str | None) -> TorchRuntime:
    """A model with kernels and half precision on a GPU, where they know it, else on the plain path.

    precision: auto, float32, bfloat16 or float16; None: auto.
    """
    from litotes.kernels.encode import kernels_wanted
    from litotes.model.heads import HEADS
    from litotes.prediction.torch_runtime import TorchRuntime

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
