"""OpenVINO: the baseline's ONNX file of ONNX Runtime, read by OpenVINO, in float32 and in int8.

For int8 the file gets the steps of weights and activations from ONNX Runtime's `quantize_static`,
symmetric and by channel, which OpenVINO turns into its own int8 products: its own quantiser is a
dozen packages more. Dynamic steps, those of `ort-int8-…`, it runs slower than float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.batching import Logits
from bench.onnx_baseline import feeds
from litotes.encoder.tokenizer import Pieces


class OpenVinoRival:
    """The file, compiled: `n_streams` batches at once, each on its share of the threads; texts of a
    batch are padded.
    """

    def __init__(self, file: Path, *, n_streams: int, n_threads: int, padding_piece: int) -> None:
        import openvino

        core = openvino.Core()
        options = {
            "NUM_STREAMS": n_streams,
            "INFERENCE_NUM_THREADS": n_threads,
            "INFERENCE_PRECISION_HINT": "f32",  # never rounded to bf16 behind our back
        }
        compiled = core.compile_model(core.read_model(file), "CPU", options)
        self._queue = openvino.AsyncInferQueue(compiled, n_streams)
        self._queue.set_callback(_keep)
        self._padding_piece = padding_piece

    def logits(self, batches: Sequence[Sequence[Pieces]]) -> list[Logits]:
        """Of each batch, (text, class of all tasks)."""
        found: dict[int, Logits] = {}
        for number, batch in enumerate(batches):
            self._queue.start_async(feeds(batch, self._padding_piece), (found, number))
        self._queue.wait_all()
        return [found[number] for number in range(len(batches))]


def _keep(request: Any, place: tuple[dict[int, Logits], int]) -> None:
    found, number = place
    found[number] = request.get_output_tensor(0).data.copy()
