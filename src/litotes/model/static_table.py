"""The exit before the first layer: a table with a few numbers for every piece, and nothing else.

    y_k = b_k + 1/√n Σ_t W_k[piece_t]            for task k, over all n pieces of a text

Linear in counts of pieces, as fastText is in words (Joulin et al. 2017, arXiv 1607.01759, §2.1),
but taught by the model's own answers (pruning/exits/static.py). √n, because the sum of n pieces
that say nothing grows with it. It costs less than the tokenizer, so it is asked first, before texts
are put into groups; those it is sure of (exits.py) never reach the encoder.

Nothing here needs torch: an exported model asks the same table.

    table.npy   (1 + piece, class of all tasks), float16; the first row is b
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from litotes.encoder.tokenizer import Pieces
from litotes.model.calibration import Calibration
from litotes.model.exits import Exits
from litotes.model.outputs import Outputs

TABLE = "table.npy"
STORED = np.dtype("<f2")


@dataclass(frozen=True, eq=False)
class StaticTable:
    """rows: (1 + piece, class of all tasks). n_outputs: classes by task, as the columns stand."""

    rows: NDArray[np.float16]
    n_outputs: Mapping[str, int]

    @cached_property
    def _weights(self) -> NDArray[np.float32]:
        """As they are added: a sum in float16 would lose what it adds."""
        return self.rows.astype(np.float32)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def logits(self, texts: Sequence[Pieces]) -> dict[str, NDArray[np.float32]]:
        """{task: (text, class)}; of a text in a batch the very numbers that it has alone."""
        together = self._logits(texts)
        ends = np.cumsum(list(self.n_outputs.values()))[:-1]
        return dict(zip(self.n_outputs, np.split(together, ends, axis=1), strict=True))

    def _logits(self, texts: Sequence[Pieces]) -> NDArray[np.float32]:
        if not texts:
            return np.empty((0, self.rows.shape[1]), dtype=np.float32)
        lengths = np.array([len(text.ids) for text in texts])  # (text,): at least 1
        pieces = np.fromiter(
            chain.from_iterable(text.ids for text in texts), np.intp, int(lengths.sum())
        )
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        sums = np.add.reduceat(self._weights[1 + pieces], starts, axis=0)  # (text, class)
        found: NDArray[np.float32] = (
            self._weights[0] + sums / np.sqrt(lengths, dtype=np.float32)[:, None]
        )
        return found

    def to_bytes(self) -> bytes:
        """The content of the file."""
        target = BytesIO()
        np.save(target, self.rows.astype(STORED), allow_pickle=False)
        return target.getvalue()


def parse_table(content: bytes, *, n_pieces: int, n_outputs: Mapping[str, int]) -> StaticTable:
    """Checks what was read from the file; what cannot be the table of this model is a ValueError.

    n_pieces: those of the vocabulary.
    """
    shape = (1 + n_pieces, sum(n_outputs.values()))
    stream = BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError(f"{TABLE} is of another version")
    found, is_by_column, dtype = np.lib.format.read_array_header_1_0(stream)
    if (found, is_by_column, dtype) != (shape, False, STORED):
        raise ValueError(f"{TABLE} must be {shape} in float16, not {found} in {dtype}")
    values = content[stream.tell() :]
    if len(values) != shape[0] * shape[1] * STORED.itemsize:
        raise ValueError(f"{TABLE} has {len(values)} bytes of numbers, which is not its shape")
    rows = np.frombuffer(values, STORED).reshape(shape)
    if not np.isfinite(rows).all():
        raise ValueError(f"{TABLE} holds what is no number")
    return StaticTable(rows, dict(n_outputs))


@dataclass(frozen=True)
class StaticTier:
    """The table with the rule by which a text may be answered by it alone."""

    table: StaticTable
    rule: Exits
    calibration: Mapping[str, Calibration]
    n_layers: int

    def answer(
        self, texts: Sequence[Pieces], others: Callable[[Sequence[Pieces]], Outputs]
    ) -> Outputs:
        """What the table is sure of, and of the other texts what `others` computes."""
        logits = self.table.logits(texts)
        is_sure = self.rule.log_odds(0, logits, self.calibration) >= self.rule.cut
        layers = np.where(is_sure, 0, self.n_layers)
        (places,) = np.nonzero(~is_sure)
        if len(places):
            rest = others([texts[place] for place in places.tolist()])
            for task, own in rest.logits.items():
                logits[task][places] = own
            if rest.layers is not None:
                layers[places] = rest.layers
        return Outputs(logits, layers)
