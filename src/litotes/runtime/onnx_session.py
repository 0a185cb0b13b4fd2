"""Runs an exported model: pieces of texts of one length in, logits out. Needs onnxruntime, not torch, so it is there at once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.data.pieces import Pieces
from litotes.errors import UserError
from litotes.runtime.contents import FILE, HASH_OF, PIECES, SEGMENTS
from litotes.storage import sha256_of


class OnnxSession:
    """An ONNX Runtime session over one file. facts: what the file says about itself."""

    def __init__(self, session: Any, facts: Mapping[str, str]) -> None:
        self._session, self.facts = session, facts
        self.tasks = tuple(json.loads(facts["tasks"]))
        self.max_pieces = int(facts["max_pieces"])

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

    def logits(self, group: Sequence[Pieces]) -> dict[str, NDArray[np.float32]]:
        """The logits of every task for one text, or for several of equal length, (text, class): each as if it were alone."""
        lengths = sorted({len(pieces.ids) for pieces in group})
        if len(lengths) != 1:
            raise UserError(f"A group is one text or several of equal length; this one has texts of {lengths} pieces. Sort them by length.")
        if not 1 <= lengths[0] <= self.max_pieces:
            raise UserError(f"A text of {lengths[0]} pieces; this model reads 1 to {self.max_pieces}. Use the model's own tokenizer.")
        feeds = {
            PIECES: np.array([pieces.ids for pieces in group], dtype=np.int64),
            SEGMENTS: np.array([pieces.segments for pieces in group], dtype=np.int64),
        }
        names = [f"{task}.logits" for task in self.tasks]
        return dict(zip(self.tasks, self._session.run(names, feeds), strict=True))


def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise UserError("Running an exported model needs the package onnxruntime: `pip install litotes[onnx]`.") from error
    return onnxruntime
