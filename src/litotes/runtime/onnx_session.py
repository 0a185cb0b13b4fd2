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
from litotes.runtime.contents import FILE, HASH_OF, PIECES, SEGMENTS
from litotes.storage import sha256_of


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
        """Reads the file. n_threads: the cores one text may use; 1 leaves the others to other sessions."""
        runtime = _onnxruntime()
        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = n_threads, 1
        if not path.is_file():
            raise UserError(f"There is no {path}. Make it with `litotes export`.")
        try:
            session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            return cls(session, session.get_modelmeta().custom_metadata_map)
        except Exception as error:  # the library's errors have no common class
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise UserError(f"{path} is no file that litotes exported, or not a whole one ({reason}). Export the model again.") from error

    @classmethod
    def of_folder(cls, folder: Path, n_threads: int = 1) -> OnnxSession:
        """The export of a model folder; one made from other files than those beside it is refused."""
        session = cls.load(folder / FILE, n_threads)
        hashes = {name.removeprefix(HASH_OF): value for name, value in session.facts.items() if name.startswith(HASH_OF)}
        for name, sha256 in hashes.items():
            if Path(name).name != name or not (folder / name).is_file() or sha256_of(folder / name) != sha256:
                raise UserError(f"{folder / FILE} was not made from the {name} beside it. Export the model again.")
        if not hashes:
            raise UserError(f"{folder / FILE} does not say which model it was made from. Export the model again.")
        return session

    def logits(self, pieces: Pieces) -> dict[str, NDArray[np.float32]]:
        """The logits of every task for one text, (class,)."""
        names = [f"{task}.logits" for task in self.tasks]
        return dict(zip(self.tasks, self._session.run(names, self._feeds(pieces)), strict=True))

    def answers(self, pieces: Pieces) -> dict[str, Decided]:
        """The calibrated answer of every task that has labels."""
        names = [f"{task}.{output}" for task in self._labelled for output in ("label", "probabilities")]
        values = iter(self._session.run(names, self._feeds(pieces)))
        return {task: Decided(int(label), probabilities) for task, label, probabilities in zip(self._labelled, values, values, strict=True)}

    def _feeds(self, pieces: Pieces) -> dict[str, NDArray[np.int64]]:
        if not 1 <= len(pieces.ids) <= self.max_pieces:
            raise UserError(f"A text of {len(pieces.ids)} pieces; this model reads 1 to {self.max_pieces}. Use the model's own tokenizer.")
        return {PIECES: np.array(pieces.ids, dtype=np.int64), SEGMENTS: np.array(pieces.segments, dtype=np.int64)}


def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise UserError("Running an exported model needs the package onnxruntime: `pip install litotes[onnx]`.") from error
    return onnxruntime
