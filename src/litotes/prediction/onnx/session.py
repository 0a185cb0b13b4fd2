"""Runs an exported model: pieces of texts of one length in, logits out.

Needs onnxruntime, not torch, so that it is ready at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import UserError, reason_of
from litotes.encoder.tokenizer import Pieces
from litotes.model.folder import ModelFolder
from litotes.model.outputs import Outputs, join_outputs
from litotes.prediction.onnx.file_check import MOST_LETTERS, CheckedFile, check_file
from litotes.prediction.onnx.file_format import LAYERS, ONE_BY_ONE, PIECES, SEGMENTS
from litotes.prediction.onnx.folder_check import check_folder
from litotes.prediction.onnx.model_check import has_branches, tasks_of


class OnnxSession:
    """An ONNX Runtime session over one file. facts: what the file says about itself."""

    def __init__(self, session: Any, file: CheckedFile) -> None:
        self._session, self.facts, self.sha256 = session, file.facts, file.sha256
        self.n_outputs = {task: len(labels) or 1 for task, labels in tasks_of(file.facts).items()}
        """By task: its labels, or one number."""
        self.tasks = tuple(self.n_outputs)
        self.max_pieces = int(file.facts["max_pieces"])
        self._one_by_one, self.has_exits = ONE_BY_ONE in file.facts, has_branches(file.facts)

    @classmethod
    def load(cls, path: Path, n_threads: int = 1) -> OnnxSession:
        """Reads and checks the file. n_threads: the cores one text may use; 1 leaves the others to
        other sessions.
        """
        return cls.from_file(check_file(path), n_threads)

    @classmethod
    def from_folder(cls, folder: ModelFolder, n_threads: int = 1) -> OnnxSession:
        """The export of a model folder, if it was made from the files next to it."""
        return cls.from_file(check_folder(folder).file, n_threads)

    @classmethod
    def from_file(cls, file: CheckedFile, n_threads: int = 1) -> OnnxSession:
        """The bytes that were checked are those that are run."""
        import onnxruntime as runtime  # takes a moment

        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = n_threads, 1
        # its errors become our sentence; they need not be on the terminal as well
        options.log_severity_level = 4
        # what the bytes look like must not decide
        options.add_session_config_entry("session.load_model_format", "ONNX")
        try:
            return cls(
                runtime.InferenceSession(file.content, options, providers=["CPUExecutionProvider"]),
                file,
            )
        except Exception as error:  # the library's errors have no common class
            raise UserError(
                f"ONNX Runtime {runtime.__version__} cannot run {file.path} ({_reason(error)})."
                " Export the model again, or install the newest: `pip install -U onnxruntime`."
            ) from error

    def logits(self, group: Sequence[Pieces]) -> dict[str, NDArray[np.float32]]:
        """{task: (text, class)}"""
        return self.compute(group).logits

    def compute(self, group: Sequence[Pieces]) -> Outputs:
        """What the model says of one text, or of several of equal length: of each as if it were
        alone.
        """
        self._check_lengths(group)
        if self._one_by_one and len(group) > 1:
            return join_outputs([self.compute([text]) for text in group])
        feeds = {
            PIECES: np.array([pieces.ids for pieces in group], dtype=np.int64),
            SEGMENTS: np.array([pieces.segments for pieces in group], dtype=np.int64),
        }
        names = [f"{task}.logits" for task in self.tasks] + [LAYERS] * self.has_exits
        try:
            found = self._session.run(names, feeds)
        # whether the operators of a carefully changed file fit each other shows only here
        except Exception as error:
            raise UserError(
                f"The exported model cannot read this text ({_reason(error)}). Export the model"
                " again."
            ) from error
        layers = found.pop() if self.has_exits else None
        return Outputs(dict(zip(self.tasks, found, strict=True)), layers)

    def _check_lengths(self, group: Sequence[Pieces]) -> None:
        lengths = sorted({len(pieces.ids) for pieces in group})
        if len(lengths) != 1:
            raise UserError(
                f"A group is one text or several of equal length; this one has texts of {lengths}"
                " pieces. Sort them by length."
            )
        if not 1 <= lengths[0] <= self.max_pieces:
            raise UserError(
                f"A text of {lengths[0]} pieces; this model reads 1 to {self.max_pieces}. Use the"
                " model's own tokenizer."
            )


def _reason(error: Exception) -> str:
    return reason_of(error)[:MOST_LETTERS]
