"""The GPU's benches on a CPU: a tiny encoder, and plain torch in the place of what needs a GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from bench.gpu.context import GpuBench
from bench.gpu.opponents import AttendPacked, MakeAttention
from litotes.data.corpus import SENTIMENT
from litotes.encoder import pretrained
from litotes.encoder.layout import Layout
from litotes.model.checkpoint import Model, save_model
from litotes.model.classifier import Classifier
from litotes.prediction.torch_runtime import TorchRuntime

TEXTS = (
    "the tea is great",
    "a queue",
    "it is not bad and i love the queue for the tea " * 2,
    "hate great tea and a bad queue",
) * 3
SIZES = {"width": 16, "n_layers": 3, "n_attention_heads": 2, "inner_width": 24}
CPU = torch.device("cpu")


class PlainRuntime(TorchRuntime):
    """Answers as torch does, whatever is asked of a GPU."""

    made: list[tuple[str, int | None]]

    def __init__(
        self,
        model: Model,
        device: torch.device,
        *,
        precision: str = "auto",
        bucket: int | None = None,
    ) -> None:
        super().__init__(model, device)
        type(self).made.append((precision, bucket))


def module(name: str, **content: Any) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(content)
    return made


@pytest.fixture(autouse=True)
def runtimes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int | None]]:
    """What was asked of our runtime: precision and bucket."""
    PlainRuntime.made = []
    inside = module("litotes.prediction.cuda_runtime", CudaRuntime=PlainRuntime)
    monkeypatch.setitem(sys.modules, "litotes.prediction.cuda_runtime", inside)
    return PlainRuntime.made


@pytest.fixture(scope="module")
def trained_folder(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    loaded = pretrained.load(str(tiny_folder))
    torch.manual_seed(0)
    classifier = Classifier(loaded.encoder, (SENTIMENT,), head="linear", dropout=0.0).eval()
    folder = tmp_path_factory.mktemp("gpu") / "trained"
    save_model(Model(classifier, loaded.tokenizer, "tiny", None), folder, card="")
    return folder


@pytest.fixture
def bench_with(tiny_folder: Path, trained_folder: Path) -> Callable[..., GpuBench]:
    """A run on the tiny encoder, quick unless said otherwise."""

    def make(**choices: Any) -> GpuBench:
        usual: dict[str, Any] = {
            "n_rounds": 2,
            "encoder": str(tiny_folder),
            "sizes": SIZES,
            "trained": trained_folder,
            "buckets": (64, 128),
            "is_quick": True,
        }
        return GpuBench(CPU, TEXTS, **usual | choices)

    return make


@pytest.fixture
def one_by_one() -> MakeAttention:
    """Torch's attention, text by text, where there is none for packed texts."""

    def make(layout: Layout) -> AttendPacked:
        def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            mixed, texts = [], [part.split(layout.lengths) for part in (query, key, value)]
            for parts in zip(*texts, strict=True):
                rows = [part.transpose(0, 1)[None] for part in parts]
                mixed.append(functional.scaled_dot_product_attention(*rows)[0].transpose(0, 1))
            return torch.cat(mixed)

        return attend

    return make
