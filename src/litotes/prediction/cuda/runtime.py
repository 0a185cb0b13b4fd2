"""A model on a GPU: packed texts through kernels, in half precision where it costs no answer."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from litotes.core.registry import pick
from litotes.encoder.tokenizer import Pieces
from litotes.model.checkpoint import Model
from litotes.model.classifier import Classifier
from litotes.model.exits import Outputs
from litotes.model.runtime import Runtime, all_layers, compute_logits, static_tier
from litotes.prediction.cuda.buckets import BUCKETS, Buckets
from litotes.prediction.torch_runtime import TorchRuntime

PRECISIONS = {
    "auto": torch.float16,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
"""auto: as quick as bfloat16 and eight times as fine; what does not fit its range is computed in
float32.
"""


class CudaRuntime(TorchRuntime):
    """bucket: the most pieces computed at a time."""

    def __init__(
        self,
        model: Model,
        device: torch.device,
        *,
        precision: str = "auto",
        bucket: int | None = None,
    ) -> None:
        super().__init__(model, device)
        self.precision = pick(PRECISIONS, precision, "precision")
        classifier = in_precision(model.classifier, self.precision)
        self.buckets = Buckets(classifier, largest=bucket or BUCKETS[-1])

    @property
    def bucket_sizes(self) -> tuple[int, ...]:
        return self.buckets.sizes

    def compute(self, texts: Sequence[Pieces]) -> Outputs:
        """Every text that the table leaves goes to the end: a recorded pass has no exits."""
        if not texts:
            return super().compute(texts)
        tier = static_tier(self._model)
        return (
            self._compute_whole(texts) if tier is None else tier.answer(texts, self._compute_whole)
        )

    def _compute_whole(self, texts: Sequence[Pieces]) -> Outputs:
        return Outputs(self._whole_logits(texts), all_layers(self._model, len(texts)))

    def _whole_logits(self, texts: Sequence[Pieces]) -> dict[str, NDArray[np.float32]]:
        with self._turn:
            together = self.buckets.logits(texts)  # (text, class)
            lost = np.flatnonzero(~np.isfinite(together).all(axis=1))
            if len(lost) and self.precision != torch.float32:
                exact = compute_logits(self._model, [texts[place] for place in lost.tolist()])
                together[lost] = torch.cat(list(exact.values()), dim=1).numpy()
        ends = np.cumsum([task.n_outputs for task in self.tasks.values()])
        return dict(zip(self.tasks, np.split(together, ends[:-1], axis=1), strict=True))

    def to_torch(self) -> Runtime:
        """Explanations look at float32, without kernels."""
        return TorchRuntime(self._model, self._device)

    def identity(self) -> str:
        return f"{super().identity()} {self.precision}"

    def describe(self) -> str:
        precision = str(self.precision).removeprefix("torch.")
        name = torch.cuda.get_device_name(self._device)
        most = self.bucket_sizes[-1]
        return f"torch {torch.__version__}, {precision} on {name}, up to {most} pieces at a time."


def in_precision(classifier: Classifier, precision: torch.dtype) -> Classifier:
    """The classifier itself, or a copy whose encoder's products are computed in half precision;
    norms, heads and what attention learns stay float32.
    """
    if precision == torch.float32:
        return classifier
    half = deepcopy(classifier)
    for part in (half.encoder.embeddings, *half.encoder.blocks):
        for module in part.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                module.to(precision)
    return half
