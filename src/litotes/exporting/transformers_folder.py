"""A model as a folder that `transformers.AutoModelForSequenceClassification` loads.

Our linear head is y = W h + b of the first piece. The classifiers of `transformers` have another
layer and an activation before that, y = W' act(V h + v) + b', which are chosen such that nothing is
left of them:

    tanh         V = 2⁻¹⁶ I, v = 0      tanh x = x in float32 for numbers as small as these;
                                        W' = 2¹⁶ W
    ReLU, GELU   V = I, v = c           act x = x for x large enough, and h + c is, because a
                                        normed h has a bound: |h_j| ≤ |γ_j| √width + |β_j|;
                                        b' = b − W c
    norm         V = Γ⁻¹, v = −Γ⁻¹ β    ModernBERT norms once more after its activation, which may
                                        be none at all. What V h + v leaves of a normed h = Γ z + β
                                        is normed already: W' = W Γ, b' = b + W β

Logits are the same within float32's rounding. In float16 the small numbers of the first kind would
be lost, and neither is a good beginning for further training.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from litotes.core.errors import UserError
from litotes.core.storage import check_is_free, json_bytes, write_folder
from litotes.core.text import markdown
from litotes.core.values import Task
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import FAMILIES, config_from_spec
from litotes.encoder.pretrained import to_family_tensors, tokenizer_config
from litotes.model.checkpoint import Model, load_model
from litotes.model.folder import ModelFolder
from litotes.training.card import card_header

_SMALL = 2.0**-16
_GELU_IS_LINEAR = 6.0
"""From here on GELU(x) = x in float32."""


def export_to_transformers(folder: ModelFolder, out: Path) -> None:
    """Writes the folder `out`, or says why `transformers` cannot compute this model."""
    if folder.parts:
        raise UserError(
            f"{folder} holds a model per task, and transformers loads one: name it, e.g. --model"
            f" {folder.models[0].path}."
        )
    check_is_free(out)
    model = load_model(folder)
    task, spec = _check_shape(model), model.classifier.encoder.spec
    files = {
        "model.safetensors": to_bytes(_tensors(model, task), metadata={"format": "pt"}),
        "config.json": json_bytes(_config(model, task)),
        "tokenizer.json": model.tokenizer.to_json().encode(),
        "tokenizer_config.json": json_bytes(tokenizer_config(model.tokenizer, spec)),
        "README.md": _card(model, task).encode(),
    }

    def fill(staged: Path) -> None:
        for name, content in files.items():
            (staged / name).write_bytes(content)

    write_folder(out, fill)


def _check_shape(model: Model) -> Task:
    """The only task of a model that `transformers` can compute."""
    classifier, spec = model.classifier, model.classifier.encoder.spec
    instead = "Export it to ONNX instead: leave out --to."
    if len(classifier.tasks) > 1:
        raise UserError(
            f"The model answers {' and '.join(classifier.tasks)} at once, and a classifier of"
            " transformers answers one task. Train a model per task (--set model.separate=true)"
            " and export each."
        )
    if classifier.head_name != "linear":
        raise UserError(
            f"The head {classifier.head_name} has no counterpart in transformers, whose"
            " classifiers read the first piece alone. Train with --set model.head=linear, or"
            f" leave out --to."
        )
    if spec.weighting != "softmax":
        raise UserError(
            f"transformers computes attention by softmax, and this model by {spec.weighting}."
            f" {instead}"
        )
    if spec.pruning != "none" or spec.heads_kept:
        raise UserError(
            f"transformers cannot remove pieces or attention heads, which this model does."
            f" {instead}"
        )
    (task,) = classifier.tasks.values()
    return task


def _tensors(model: Model, task: Task) -> dict[str, Tensor]:
    encoder = model.classifier.encoder
    prefix = FAMILIES[encoder.spec.family].prefix
    inner_name, output_name, activation = FAMILIES[encoder.spec.family].classifier
    tensors = {f"{prefix}{name}": tensor for name, tensor in to_family_tensors(encoder).items()}
    heads: Any = model.classifier.heads
    output: nn.Linear = heads[task.name].output
    weight, offset = output.weight.double().cpu(), output.bias.double().cpu()
    inner_weight = torch.eye(encoder.spec.width, dtype=torch.float64)
    inner_offset = torch.zeros(encoder.spec.width, dtype=torch.float64)
    if activation == "tanh":
        inner_weight, weight = _SMALL * inner_weight, weight / _SMALL
    elif activation == "norm":
        scale, shift = _last_norm(encoder)
        if not scale.all():
            raise UserError(
                "The encoder's final norm multiplies a channel by 0, which a classifier of"
                " transformers cannot undo. Export it to ONNX instead: leave out --to."
            )
        inner_weight, inner_offset = inner_weight / scale, -shift / scale
        weight, offset = weight * scale, offset + weight @ shift
        # the second norm divides by √(1 + ε)
        ones = torch.ones(encoder.spec.width)
        tensors["head.norm.weight"] = ones * (1 + encoder.spec.norm_epsilon) ** 0.5
        if encoder.spec.norm_bias:
            tensors["head.norm.bias"] = 0 * ones
    else:
        inner_offset = _bound_of_states(encoder) + _GELU_IS_LINEAR
        offset = offset - weight @ inner_offset
    layers = {inner_name: (inner_weight, inner_offset), output_name: (weight, offset)}
    for name, (layer_weight, layer_offset) in layers.items():
        tensors[f"{name}.weight"] = layer_weight.detach().float().contiguous()
        tensors[f"{name}.bias"] = layer_offset.detach().float().contiguous()
    return tensors


def _bound_of_states(encoder: Encoder) -> Tensor:
    """Bounds all hidden states, rounded up to a number that float32 adds exactly. (width,)"""
    scale, shift = _last_norm(encoder)
    return (scale.abs() * encoder.spec.width**0.5 + shift.abs()).ceil()


def _last_norm(encoder: Encoder) -> tuple[Tensor, Tensor]:
    """The γ and β of the norm that hidden states come from. (width,) both"""
    norm = encoder.final_norm or encoder.block(encoder.spec.walk[-1]).outer_norm
    scale = norm.weight.detach().cpu().double()
    if norm.bias is None:
        return scale, torch.zeros_like(scale)
    return scale, norm.bias.detach().cpu().double()


def _config(model: Model, task: Task) -> dict[str, Any]:
    spec = model.classifier.encoder.spec
    architecture = FAMILIES[spec.family].architecture.removesuffix("Model")
    labels = task.labels or (task.name,)
    kind = "multi_label" if task.multi_label else "single_label"
    return (
        config_from_spec(spec)
        | FAMILIES[spec.family].classifier_config
        | {
            "architectures": [f"{architecture}ForSequenceClassification"],
            "id2label": {str(number): label for number, label in enumerate(labels)},
            "label2id": {label: number for number, label in enumerate(labels)},
            "problem_type": "regression" if task.is_regression else f"{kind}_classification",
        }
    )


def _card(model: Model, task: Task) -> str:
    calibration = model.calibration_of(task.name)
    lines = [
        *card_header(model, (), library="transformers"),
        "",
        f"# {markdown(task.name)} classifier",
        "",
        "Trained by litotes and written for `transformers`; load it by",
        "`AutoModelForSequenceClassification.from_pretrained`, in float32 or bfloat16. Its",
        "classifier is made for answering: to train further, start from the litotes model.",
    ]
    if calibration.temperature != 1:
        lines += [
            "",
            f"Divide the logits by the temperature {calibration.temperature:.6g} before"
            f" {'the sigmoid' if task.multi_label else 'softmax'}:",
            "`transformers` does not, and its probabilities are otherwise not calibrated.",
        ]
    if calibration.thresholds is not None:
        pairs = zip(task.labels, calibration.thresholds, strict=True)
        least = ", ".join(f"{markdown(label)} {one:.6g}" for label, one in pairs)
        lines += [
            "",
            f"A text has each label whose probability, after the temperature, reaches: {least}.",
        ]
    if calibration.threshold is not None:
        lines += [
            "",
            f"{markdown(task.labels[1])} is the answer from a probability of",
            f"{calibration.threshold:.6g} on, after the temperature; `transformers` takes the",
            "likelier label.",
        ]
    return "\n".join(lines) + "\n"
