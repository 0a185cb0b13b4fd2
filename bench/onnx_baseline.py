"""The baseline in our own runtime: the `transformers` model in ONNX Runtime, as people export it,
float32 and int8.

Traced by `torch.onnx.export` (its older path: the file is a tenth faster here than that of the
newer one, and needs no further package), quantised by `onnxruntime.quantization.quantize_dynamic`
with its own settings. Texts may be padded; one text needs none.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.batching import Logits
from bench.hugging_face import Baseline
from litotes.encoder.tokenizer import Pieces
from litotes.model.exits import Outputs

INPUTS = ("input_ids", "attention_mask")
ALL_TASKS = "all tasks"
OPSET = 17


def write_onnx_files(baseline: Baseline, folder: Path) -> dict[str, Path]:
    """The two files by precision."""
    files = {precision: folder / f"baseline-{precision}.onnx" for precision in ("float32", "int8")}
    _export(baseline, files["float32"])
    _quantize(files["float32"], files["int8"])
    return files


def _export(baseline: Baseline, file: Path) -> None:
    example = torch.ones(2, 7, dtype=torch.long)  # (text, piece), both of any size in the file
    axes = {name: {0: "text", 1: "piece"} for name in INPUTS} | {"logits": {0: "text"}}
    with warnings.catch_warnings(), torch.no_grad():
        # that the older path is old, and of what a trace cannot see
        warnings.simplefilter("ignore")
        torch.onnx.export(
            baseline,
            (example, example),
            str(file),
            input_names=list(INPUTS),
            output_names=["logits"],
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )


def _quantize(float32: Path, int8: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with _no_advice():
        quantize_dynamic(float32, int8, weight_type=QuantType.QInt8)


def write_static_int8(
    float32: Path, int8: Path, texts: Sequence[Pieces], *, padding_piece: int
) -> None:
    """The float32 file with the steps of weights, by channel, and of activations, from these texts,
    beside every product with weights: the form in which other engines read int8.
    """
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    with _no_advice():
        quantize_static(
            float32,
            int8,
            _reader([feeds([text], padding_piece) for text in texts]),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            activation_type=QuantType.QInt8,
            weight_type=QuantType.QInt8,
            extra_options={"MatMulConstBOnly": True, "ActivationSymmetric": True},
        )


def _reader(known: Sequence[dict[str, Any]]) -> Any:
    """What ONNX Runtime asks for inputs, one after the other."""
    from onnxruntime.quantization import CalibrationDataReader

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.left = iter(known)

        def get_next(self) -> dict[str, Any] | None:
            return next(self.left, None)

    return Reader()


@contextmanager
def _no_advice() -> Iterator[None]:
    """About a preparation that does not go through with this graph."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


class BaselineSession:
    """A session over one of the files, with what `runtime.workers` needs of a session: it can be
    run with our scheduling.
    """

    def __init__(self, file: Path, *, n_threads: int, padding_piece: int) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = n_threads, 1
        self._session = onnxruntime.InferenceSession(
            str(file), options, providers=["CPUExecutionProvider"]
        )
        self._padding_piece = padding_piece
        self.n_outputs = {ALL_TASKS: self._session.get_outputs()[0].shape[1]}
        self.has_exits = False

    def compute(self, texts: Sequence[Pieces]) -> Outputs:
        return Outputs(self.logits(texts), None)

    def logits(self, texts: Sequence[Pieces]) -> dict[str, Logits]:
        """The logits of all tasks side by side, (text, class); texts of different lengths are
        padded.
        """
        return {ALL_TASKS: self._session.run(["logits"], feeds(texts, self._padding_piece))[0]}


def feeds(texts: Sequence[Pieces], padding_piece: int) -> dict[str, Any]:
    """Pieces filled up to the longest text, and which of them are real; both (text, longest)."""
    lengths = [len(text.ids) for text in texts]
    pieces = np.full((len(texts), max(lengths)), padding_piece, dtype=np.int64)
    live = np.zeros_like(pieces)
    for row, (text, length) in enumerate(zip(texts, lengths, strict=True)):
        pieces[row, :length] = text.ids
        live[row, :length] = 1
    return dict(zip(INPUTS, (pieces, live), strict=True))
