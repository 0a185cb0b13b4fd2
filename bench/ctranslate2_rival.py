"""CTranslate2: the `transformers` encoder in its own format, by its own converter, and the head
outside.

It takes texts of different lengths and leaves padding out of its products by itself. Weights are
kept in float32; in int8 it rounds them when it loads the model and activations while it runs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.batching import Logits
from bench.hugging_face import Baseline, quiet, save_encoder
from litotes.encoder.tokenizer import Pieces
from litotes.model.checkpoint import Model

_ENCODER, _CONVERTED = "ctranslate2-from", "ctranslate2"


def convert(model: Model, folder: Path) -> Path:
    """The folder of the converted encoder, inside the given one."""
    converted = folder / _CONVERTED
    if not converted.exists():
        from ctranslate2.converters import TransformersConverter

        save_encoder(model, folder / _ENCODER)
        prepare(folder / _ENCODER)
        with quiet():
            TransformersConverter(str(folder / _ENCODER)).convert(str(converted))
    return converted


def prepare(folder: Path) -> None:
    """Writes what the converter asks for besides: how positions are counted, a setting that
    `transformers` 5 has dropped along with its other values, and a tokenizer to which it adds no
    special pieces that the encoder does not know.
    """
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config = {"position_embedding_type": "absolute"} | config
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    tokenizer: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast"}
    unknown = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"].get("unk_token")
    if unknown is not None:
        tokenizer["unk_token"] = unknown
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer), "utf-8")


class CTranslate2Rival:
    """An encoder over the converted folder: `n_streams` batches at once, each on its share of the
    threads.
    """

    def __init__(
        self, folder: Path, baseline: Baseline, precision: str, *, n_streams: int, n_threads: int
    ) -> None:
        import ctranslate2

        self._encoder = ctranslate2.Encoder(
            str(folder),
            device="cpu",
            compute_type=precision,
            inter_threads=n_streams,
            intra_threads=max(n_threads // n_streams, 1),
        )
        self._baseline = baseline
        self._pool = ThreadPoolExecutor(n_streams)

    def logits(self, batches: Sequence[Sequence[Pieces]]) -> list[Logits]:
        """Of each batch, (text, class of all tasks)."""
        return list(self._pool.map(self._logits, batches))

    def _logits(self, batch: Sequence[Pieces]) -> Logits:
        output = self._encoder.forward_batch([text.ids for text in batch])
        hidden = torch.from_numpy(np.asarray(output.last_hidden_state))  # (text, piece, width)
        lengths = torch.tensor([len(text.ids) for text in batch])
        live = torch.arange(hidden.shape[1]) < lengths[:, None]  # (text, piece)
        with torch.inference_mode():
            return self._baseline.answer(hidden, live).numpy()
