"""All who take part, made once for every group that lets them run: the same weights with the same
tokenizer, texts to logits.

    hf-…         the `transformers` model in torch, padded
    ort-…        the `transformers` model in ONNX Runtime, float32 and int8
    litotes-…    our packed encoder in torch, and our own files, dense and pruned, float32 and int8

Whose library is absent is left out with a word. Files lie in a temporary folder and are gone
afterwards.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
import torch

from litotes.bench import hugging_face
from litotes.bench import onnx_baseline as onnx_baseline
from litotes.bench.batching import LogitFunction, Logits
from litotes.bench.lines import Candidate
from litotes.bench.onnx_baseline import BaselineSession
from litotes.bench.subject import Subject
from litotes.core.processor import n_cores
from litotes.export.model_graph import build_onnx
from litotes.runtime.onnx.session import OnnxSession
from litotes.runtime.torch_runtime import TorchRuntime
from litotes.runtime.workers import Workers
from litotes.text.tokenizer import Pieces

PACKED = "litotes-packed"
SHORT = {"float32": "fp32", "int8": "int8"}
"""Precisions, and what they are called in the opponent's lines."""
OWN = {
    "litotes-dense": ("dense", "float32"),
    "litotes-dense-int8": ("dense", "int8"),
    "litotes-pruned": ("pruned", "float32"),
    "litotes-pruned-int8": ("pruned", "int8"),
}
"""Our files: the names of their lines, and what is in them."""
N_LOOKED_AT = 64
"""Texts int8 looks at when a file is written."""


@dataclass(frozen=True)
class Benchmark:
    """Everybody, made when first asked for. absent: libraries that are not installed."""

    subject: Subject
    texts: tuple[str, ...]
    folder: Path
    n_cores: int
    absent: tuple[str, ...]

    def present(
        self, makers: Mapping[str, Callable[[], Candidate]]
    ) -> tuple[dict[str, Candidate], dict[str, str]]:
        """The candidates that can be made, and for each of the others the library that is missing."""
        missing = {name: library for name in makers if (library := self.missing_for(name))}
        return {name: make() for name, make in makers.items() if name not in missing}, missing

    def missing_for(self, name: str) -> str | None:
        """The library a line needs and has not got; a line's name begins with whom it stands for."""
        needed: tuple[str, ...] = ("onnx", "onnxruntime")
        if name.startswith("hf-"):
            needed = ("transformers",)
        elif name.startswith("ort-"):
            needed = ("transformers", *needed)
        elif name.startswith(PACKED):
            needed = ()
        return next((library for library in needed if library in self.absent), None)

    @cached_property
    def lengths(self) -> list[int]:
        """The pieces of every text."""
        return [len(text.ids) for text in self.subject.dense.tokenizer.encode(self.texts)]

    def as_json(self) -> dict[str, Any]:
        """What a reader has to know about the models and the texts."""
        return self.subject.as_json() | {
            "mean_pieces": round(statistics.mean(self.lengths), 1),
            "most_pieces": max(self.lengths),
        }

    def transformers(self) -> LogitFunction:
        """In as many threads as torch was given; the texts of one call are padded."""
        tokenizer, opponent, padding = (
            self.subject.dense.tokenizer,
            self._baseline,
            self._padding_piece,
        )

        def ask(texts: Sequence[str]) -> Logits:
            with torch.inference_mode():
                return opponent(**hugging_face.padded(tokenizer.encode(texts), padding)).numpy()

        return ask

    def onnx_runtime(self, precision: str, *, n_threads: int) -> LogitFunction:
        """The texts of one call are padded."""
        return self._asking(self._baseline_session(precision, n_threads).logits)

    def onnx_runtime_workers(self, precision: str, n_workers: int) -> LogitFunction:
        """The opponent's file with our scheduling: texts of equal length together, without padding,
        one thread a worker.
        """
        # is asked for nothing else than one of ours
        session = cast("OnnxSession", self._baseline_session(precision, 1))
        return self._asking(Workers(session, n_workers).logits)

    def packed(self) -> LogitFunction:
        """Our dense encoder in torch, as `Predictor` runs it."""
        return self._asking(TorchRuntime(self.subject.dense, torch.device("cpu")).logits)

    def own(self, name: str, *, n_threads: int) -> LogitFunction:
        """One of our files, by its name in OWN, for texts of one length."""
        return self._asking(OnnxSession.load(self.own_file(name), n_threads).logits)

    def own_workers(self, name: str, n_workers: int) -> LogitFunction:
        """The same for texts of any length, as `Predictor` runs it."""
        return self._asking(Workers(OnnxSession.load(self.own_file(name)), n_workers).logits)

    def own_file(self, name: str) -> Path:
        kind, precision = OWN[name]
        file = self.folder / f"{name}.onnx"
        if not file.exists():
            model = self.subject.of(kind)
            looked_at = model.tokenizer.encode(self.texts[:N_LOOKED_AT])
            file.write_bytes(build_onnx(model, precision=precision, texts=looked_at, made_from={}))
        return file

    def _asking(self, logits: Callable[[Sequence[Pieces]], Mapping[str, Logits]]) -> LogitFunction:
        """From pieces to texts: the tokenizer before, the tasks side by side after."""
        tokenizer = self.subject.dense.tokenizer
        return lambda texts: np.concatenate(list(logits(tokenizer.encode(texts)).values()), axis=1)

    def _baseline_session(self, precision: str, n_threads: int) -> BaselineSession:
        return BaselineSession(
            self._baseline_files[precision], n_threads=n_threads, padding_piece=self._padding_piece
        )

    @cached_property
    def _baseline(self) -> hugging_face.Baseline:
        return hugging_face.same_weights(self.subject.dense)

    @cached_property
    def _baseline_files(self) -> dict[str, Path]:
        return onnx_baseline.write(self._baseline, self.folder)

    @property
    def _padding_piece(self) -> int:
        return self.subject.dense.classifier.encoder.spec.padding_piece


@contextmanager
def open_benchmark(subject: Subject, texts: Sequence[str]) -> Iterator[Benchmark]:
    absent = tuple(
        library for library in ("transformers", "onnx", "onnxruntime") if find_spec(library) is None
    )
    with TemporaryDirectory(prefix="litotes-bench-", ignore_cleanup_errors=True) as folder:
        yield Benchmark(subject, tuple(texts), Path(folder), n_cores(), absent)
