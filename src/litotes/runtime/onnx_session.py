"""Runs an exported model: pieces of one text in, logits out. Needs onnxruntime, not torch, so it is there at once."""

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
from litotes.runtime.contents import PIECES, SEGMENTS
from litotes.runtime.file_check import CheckedFile, checked_file
from litotes.runtime.folder_check import checked_folder


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
        self.max_pieces = int(facts["max_pieces"])
        self._labelled = [task for task in self.tasks if labels[task]]  # the others ask for a number

    @classmethod
    def load(cls, path: Path, n_threads: int = 1) -> OnnxSession:
        """Reads and checks the file. n_threads: the cores one text may use; 1 leaves the others to other sessions."""
        return cls.of(checked_file(path), n_threads)

    @classmethod
    def of_folder(cls, folder: Path, n_threads: int = 1) -> OnnxSession:
        """The export of a model folder; one made from other files than those beside it is refused."""
        return cls.of(checked_folder(folder), n_threads)

    @classmethod
    def of(cls, file: CheckedFile, n_threads: int = 1) -> OnnxSession:
        """The bytes that were checked are those that are run."""
        runtime = _onnxruntime()
        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = n_threads, 1
        options.add_session_config_entry("session.load_model_format", "ONNX")  # not what the bytes look like
        try:
            return cls(runtime.InferenceSession(file.content, options, providers=["CPUExecutionProvider"]), file.facts)
        except Exception as error:  # the library's errors have no common class
            raise UserError(f"{file.path} is no file that litotes exported ({_first_line(error)}). Export the model again.") from error

    def logits(self, pieces: Pieces) -> dict[str, NDArray[np.float32]]:
        """The logits of every task for one text, (class,)."""
        names = [f"{task}.logits" for task in self.tasks]
        return dict(zip(self.tasks, self._run(names, self._feeds(pieces)), strict=True))

    def answers(self, pieces: Pieces) -> dict[str, Decided]:
        """The calibrated answer of every task that has labels."""
        names = [f"{task}.{output}" for task in self._labelled for output in ("label", "probabilities")]
        values = iter(self._run(names, self._feeds(pieces)))
        return {task: Decided(int(label), probabilities) for task, label, probabilities in zip(self._labelled, values, values, strict=True)}

    def _run(self, names: list[str], feeds: Mapping[str, NDArray[np.int64]]) -> list[Any]:
        """Whether the operators of a file that nobody damaged by chance fit each other shows only here."""
        try:
            return self._session.run(names, feeds)
        except Exception as error:
            raise UserError(f"The exported model cannot read this text ({_first_line(error)}). Export the model again.") from error

    def _feeds(self, pieces: Pieces) -> dict[str, NDArray[np.int64]]:
        if not 1 <= len(pieces.ids) <= self.max_pieces:
            raise UserError(f"A text of {len(pieces.ids)} pieces; this model reads 1 to {self.max_pieces}. Use the model's own tokenizer.")
        return {PIECES: np.array(pieces.ids, dtype=np.int64), SEGMENTS: np.array(pieces.segments, dtype=np.int64)}


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise UserError("Running an exported model needs the package onnxruntime: `pip install litotes[onnx]`.") from error
    return onnxruntime
