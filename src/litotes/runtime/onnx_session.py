"""Runs an exported model: pieces of one text in, logits out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.data.pieces import Pieces
from litotes.errors import UserError
from litotes.runtime.encoder_graph import PIECES, SEGMENTS


@dataclass(frozen=True)
class Decided:
    """A task's answer as the file gives it: the number of the label, and the probability of every class (class,)."""

    label: int
    probabilities: NDArray[np.float64]


class OnnxSession:
    """An ONNX Runtime session over one file. facts: what the file says about itself."""

    def __init__(self, session: Any, facts: Mapping[str, str]) -> None:
        self._session, self.facts = session, facts
        labels: dict[str, list[str]] = json.loads(facts["tasks"])
        self.tasks = tuple(labels)
        self._labelled = [task for task in self.tasks if labels[task]]  # the others ask for a number
        self.max_pieces = int(facts["max_pieces"])
        self._outputs = [f"{task}.logits" for task in self.tasks]

    @classmethod
    def load(cls, path: Path, n_threads: int = 1) -> OnnxSession:
        """Reads the file. n_threads: the cores one text may use; 1 leaves the others to other sessions."""
        runtime = _onnxruntime()
        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = n_threads, 1
        session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return cls(session, session.get_modelmeta().custom_metadata_map)

    def logits(self, pieces: Pieces) -> dict[str, NDArray[np.float32]]:
        """The logits of every task for one text, (class,)."""
        return dict(zip(self.tasks, self._session.run(self._outputs, self._feeds(pieces)), strict=True))

    def answers(self, pieces: Pieces) -> dict[str, Decided]:
        """The calibrated answer of every task that has labels."""
        names = [f"{task}.{output}" for task in self._labelled for output in ("label", "probabilities")]
        values = iter(self._session.run(names, self._feeds(pieces)))
        return {task: Decided(int(label), probabilities) for task, label, probabilities in zip(self._labelled, values, values, strict=True)}

    def _feeds(self, pieces: Pieces) -> dict[str, NDArray[np.int64]]:
        if not 1 <= len(pieces.ids) <= self.max_pieces:
            raise UserError(
                f"A text of {len(pieces.ids)} pieces: this model reads 1 to {self.max_pieces}. Cut it with the model's tokenizer."
            )
        return {PIECES: np.array(pieces.ids, dtype=np.int64), SEGMENTS: np.array(pieces.segments, dtype=np.int64)}


def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise UserError("Running an exported model needs the package onnxruntime: `pip install litotes[onnx]`.") from error
    return onnxruntime
