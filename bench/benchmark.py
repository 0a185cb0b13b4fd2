"""The models that are compared, made once for all groups: the same weights with the same
tokenizer, texts to logits.

    hf-…         the `transformers` model in torch, padded
    ort-…        the `transformers` model in ONNX Runtime, float32 and int8
    ct2-…, ov-…  the `transformers` model in CTranslate2 and in OpenVINO, float32 and int8
    litotes-…    our packed encoder in torch, and our own files, dense and pruned, float32 and int8

A model whose library is not installed is left out and reported. Files lie in a temporary folder
and are deleted afterwards.
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

from bench import ctranslate2_rival, hugging_face, onnx_baseline
from bench.batching import LogitFunction, Logits
from bench.lines import Candidate
from bench.onnx_baseline import BaselineSession
from bench.openvino_rival import OpenVinoRival
from bench.rivals import RIVALS, Rival
from bench.subject import Subject
from litotes.core.machine import n_cores
from litotes.core.storage import write_bytes
from litotes.encoder.tokenizer import Pieces
from litotes.exporting.model_graph import build_onnx
from litotes.prediction.onnx_runtime import OnnxSession, Workers
from litotes.prediction.torch_runtime import TorchRuntime

PACKED = "litotes-packed"
SHORT = {"float32": "fp32", "int8": "int8"}
"""Precisions, and what they are called in the lines of ONNX Runtime."""
OWN = {
    "litotes-dense": ("dense", "float32"),
    "litotes-dense-int8": ("dense", "int8"),
    "litotes-pruned": ("pruned", "float32"),
    "litotes-pruned-int8": ("pruned", "int8"),
}
"""Our files: the names of their lines, and what is in them."""
N_CALIBRATION = 64
"""Texts that int8 takes its ranges from when a file is written."""
LIBRARIES = ("transformers", "onnx", "onnxruntime", "ctranslate2", "openvino")

Makers = dict[str, Callable[[], Candidate]]
"""What makes the candidates, by the names of their lines."""


@dataclass(frozen=True)
class Benchmark:
    """Makes the models when they are first needed. absent: libraries that are not installed."""

    subject: Subject
    texts: tuple[str, ...]
    folder: Path
    n_cores: int
    absent: tuple[str, ...]

    def make_candidates(self, makers: Makers) -> tuple[dict[str, Candidate], dict[str, str]]:
        """The candidates that can be made, and for each of the others the missing library."""
        candidates, missing = {}, {}
        for name, make in makers.items():
            library = self.missing_for(name)
            if library is None:
                candidates[name] = make()
            else:
                missing[name] = library
        return candidates, missing

    def missing_for(self, name: str) -> str | None:
        """The library a line needs and does not have; a line's name begins with its model's."""
        needed: tuple[str, ...] = ("onnx", "onnxruntime")
        if name.startswith("hf-"):
            needed = ("transformers",)
        elif name.startswith("ort-"):
            needed = ("transformers", *needed)
        elif name.startswith("ov-"):
            needed = ("transformers", *needed, "openvino")
        elif name.startswith("ct2-"):
            needed = ("transformers", "ctranslate2")
        elif name.startswith(PACKED):
            needed = ()
        return next((library for library in needed if library in self.absent), None)

    @cached_property
    def pieces(self) -> list[Pieces]:
        """Of every text."""
        return self.subject.dense.tokenizer.encode(self.texts)

    @cached_property
    def lengths(self) -> list[int]:
        """How many pieces every text has."""
        return [len(text.ids) for text in self.pieces]

    def as_json(self) -> dict[str, Any]:
        """What a reader has to know about the models and the texts."""
        mean = round(statistics.mean(self.lengths), 1)
        return self.subject.as_json() | {"mean_pieces": mean, "most_pieces": max(self.lengths)}

    def transformers(self) -> LogitFunction:
        """In as many threads as torch was given; the texts of one call are padded."""
        tokenizer, baseline = self.subject.dense.tokenizer, self._baseline
        padding = self._padding_piece

        def logits_of(texts: Sequence[str]) -> Logits:
            with torch.inference_mode():
                return baseline(**hugging_face.padded(tokenizer.encode(texts), padding)).numpy()

        return logits_of

    def onnx_runtime(self, precision: str, *, n_threads: int) -> LogitFunction:
        """The texts of one call are padded."""
        return self._from_texts(self._baseline_session(precision, n_threads).logits)

    def onnx_runtime_workers(self, precision: str, n_workers: int) -> LogitFunction:
        """The same file with our scheduling: texts of equal length together, without padding, one
        thread a worker.
        """
        # Workers use what both kinds of session have
        session = cast("OnnxSession", self._baseline_session(precision, 1))
        workers = Workers(session, n_workers)
        return self._from_texts(lambda texts: workers.compute(texts).logits)

    def rival(self, name: str, n_streams: int) -> Rival:
        """One of RIVALS, on all cores."""
        library, precision = RIVALS[name]
        if library == "ctranslate2":
            return ctranslate2_rival.CTranslate2Rival(
                ctranslate2_rival.convert(self.subject.dense, self.folder),
                self._baseline,
                precision,
                n_streams=n_streams,
                n_threads=self.n_cores,
            )
        return OpenVinoRival(
            self._baseline_files["float32"] if precision == "float32" else self._static_int8_file,
            n_streams=n_streams,
            n_threads=self.n_cores,
            padding_piece=self._padding_piece,
        )

    def packed(self) -> LogitFunction:
        """Our dense encoder in torch, as `Predictor` runs it."""
        runtime = TorchRuntime(self.subject.dense, torch.device("cpu"))
        return self._from_texts(runtime.logits)

    def own(self, name: str, *, n_threads: int) -> LogitFunction:
        """One of our files, by its name in OWN, for texts of one length."""
        return self._from_texts(OnnxSession.load(self.own_file(name), n_threads).logits)

    def own_workers(self, name: str, n_workers: int) -> LogitFunction:
        """The same for texts of any length, as `Predictor` runs it."""
        session = OnnxSession.load(self.own_file(name))
        workers = Workers(session, n_workers)
        return self._from_texts(lambda texts: workers.compute(texts).logits)

    def own_file(self, name: str) -> Path:
        kind, precision = OWN[name]
        file = self.folder / f"{name}.onnx"
        if not file.exists():
            model = self.subject.of(kind)
            texts = model.tokenizer.encode(self.texts[:N_CALIBRATION])
            write_bytes(file, build_onnx(model, precision=precision, texts=texts, made_from={}))
        return file

    def from_pieces(self, logits: Callable[[Sequence[Pieces]], Logits]) -> LogitFunction:
        """A model of pieces as one of texts: the tokenizer before it."""
        tokenizer = self.subject.dense.tokenizer
        return lambda texts: logits(tokenizer.encode(texts))

    def _from_texts(
        self, logits: Callable[[Sequence[Pieces]], Mapping[str, Logits]]
    ) -> LogitFunction:
        """The same for one whose tasks are apart; they are put side by side."""
        return self.from_pieces(lambda pieces: np.concatenate([*logits(pieces).values()], axis=1))

    def _baseline_session(self, precision: str, n_threads: int) -> BaselineSession:
        return BaselineSession(
            self._baseline_files[precision], n_threads=n_threads, padding_piece=self._padding_piece
        )

    @cached_property
    def _baseline(self) -> hugging_face.Baseline:
        return hugging_face.with_same_weights(self.subject.dense)

    @cached_property
    def _baseline_files(self) -> dict[str, Path]:
        return onnx_baseline.write_onnx_files(self._baseline, self.folder)

    @cached_property
    def _static_int8_file(self) -> Path:
        file = self.folder / "baseline-static-int8.onnx"
        onnx_baseline.write_static_int8(
            self._baseline_files["float32"],
            file,
            self.pieces[:N_CALIBRATION],
            padding_piece=self._padding_piece,
        )
        return file

    @property
    def _padding_piece(self) -> int:
        return self.subject.dense.classifier.encoder.spec.padding_piece


@contextmanager
def open_benchmark(subject: Subject, texts: Sequence[str]) -> Iterator[Benchmark]:
    absent = tuple(library for library in LIBRARIES if find_spec(library) is None)
    with TemporaryDirectory(prefix="litotes-bench-", ignore_cleanup_errors=True) as folder:
        yield Benchmark(subject, tuple(texts), Path(folder), n_cores(), absent)
