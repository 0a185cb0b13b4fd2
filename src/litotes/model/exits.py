"""When a text may leave early: how sure each exit is of its answer, and how sure is sure enough.

    margin_k   = the lead of the label an exit gives over the next, in logits, for task k
    sureness_k = σ(a_k + b_k · margin_k)         the chance that the whole model says the same
    leaves     = sureness_k ≥ threshold for every task k

a and b are fitted for every exit and task (Platt 1999); one threshold holds for all exits. It was
chosen so that the share of texts answered otherwise than by the whole model stays within what was
allowed (`Promise`; pruning/exits/control.py). Nothing here needs torch: the exported file's writer
and the torch runtime follow the same rule.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from io import BytesIO
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.numbers import Floats
from litotes.encoder.tokenizer import Pieces
from litotes.model.calibration import Calibration, is_number, require_share, require_whole

LARGEST = 1e4
"""Of a sureness's numbers: e^10000 is certain beyond all doubt."""


@dataclass(frozen=True)
class Sureness:
    """σ(offset + slope · margin)"""

    offset: float
    slope: float

    def __post_init__(self) -> None:
        for value, least in ((self.offset, -LARGEST), (self.slope, 0)):
            if not is_number(value) or not least <= value <= LARGEST:
                raise ValueError(f"an exit's offset or slope cannot be {value!r:.60}")

    def log_odds(self, margins: Floats) -> Floats:
        """(text,) → (text,)"""
        return self.offset + self.slope * margins


@dataclass(frozen=True)
class Promise:
    """At most a share `allowed` of texts like those tested is answered otherwise than by the whole
    model; of choices made like this one, a share `confidence` keeps the promise.

    n: the texts the threshold was tested on; n_differ: how many of them are answered otherwise.
    """

    allowed: float
    confidence: float
    n: int
    n_differ: int

    def __post_init__(self) -> None:
        for name in ("allowed", "confidence"):
            require_share(getattr(self, name), name)
        for name in ("n", "n_differ"):
            require_whole(getattr(self, name), 0, name)

    def in_words(self) -> str:
        return (
            f"at most {100 * self.allowed:g} % of texts like these are answered otherwise than by"
            f" the whole model, with a confidence of {100 * self.confidence:g} %"
            f" ({self.n_differ} of the {self.n} texts it was tested on)"
        )


@dataclass(frozen=True)
class Exits:
    """Where texts may leave. layers: after how many layers, ascending; 0: by a table over pieces,
    before the first one (static_table.py).

    sureness: {layer: {task: …}}. threshold: 1: no text ever leaves.
    """

    layers: tuple[int, ...]
    sureness: Mapping[int, Mapping[str, Sureness]]
    threshold: float
    promise: Promise

    def __post_init__(self) -> None:
        if not self.layers or list(self.layers) != sorted(set(self.layers)):
            raise ValueError("the layers of exits must be different and ascending")
        if set(self.sureness) != set(self.layers):
            raise ValueError("every exit must say how sure it is")
        if self.threshold != 1:
            require_share(self.threshold, "the threshold of exits")

    @property
    def has_table(self) -> bool:
        """True if texts may leave before the first layer."""
        return self.layers[0] == 0

    @property
    def inner_layers(self) -> tuple[int, ...]:
        """The layers of the encoder after which texts may leave; none, if only a table answers."""
        return self.layers[int(self.has_table) :]

    @property
    def cut(self) -> float:
        """The threshold as log-odds: infinite where no text ever leaves."""
        if self.threshold == 1:
            return math.inf
        return math.log(self.threshold / (1 - self.threshold))

    def log_odds(
        self,
        layer: int,
        logits: Mapping[str, NDArray[Any]],
        calibration: Mapping[str, Calibration],
    ) -> Floats:
        """Computes how sure the exit after `layer` layers is of its least sure task. (text,)

        logits: {task: (text, class)}
        """
        found = []
        for task, sureness in self.sureness[layer].items():
            margins = label_margins(logits[task], calibration.get(task, Calibration()))
            found.append(sureness.log_odds(margins))
        return np.asarray(np.minimum.reduce(found))

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def exits_from_json(content: Any, *, tasks: Mapping[str, Any], n_layers: int) -> Exits:
    """The exits of a model; what they cannot be is a ValueError, a TypeError or a LookupError.

    tasks: {name: labels}
    """
    sureness = {}
    for layer, by_task in content["sureness"].items():
        sureness[int(layer)] = {task: Sureness(**own) for task, own in by_task.items()}
        if by_task.keys() != tasks.keys() or not all(tasks.values()):
            raise ValueError("an exit answers all tasks of a model, none of them with a number")
    layers, promise = tuple(content["layers"]), Promise(**content["promise"])
    exits = Exits(**{**content, "layers": layers, "sureness": sureness, "promise": promise})
    if not 0 <= exits.layers[0] <= exits.layers[-1] < n_layers:
        raise ValueError(f"the layers of exits must be whole numbers from 0 to {n_layers - 1}")
    return exits


def label_margins(logits: NDArray[Any], calibration: Calibration) -> Floats:
    """Measures how far each text's label leads the next one, in logits.

    Where a threshold t decides between two, P ≥ t is z₁ − z₀ ≥ T · ln(t / (1 − t)), and the margin
    is the distance from it. (text, class) → (text,)
    """
    precise = np.asarray(logits, dtype=np.float64)
    if calibration.threshold is None:
        best = np.partition(precise, -2, axis=1)[:, -2:]  # (text, 2): the second, the first
        return np.asarray(best[:, 1] - best[:, 0])
    odds = calibration.threshold / (1 - calibration.threshold)
    lead = precise[:, 1] - precise[:, 0] - calibration.temperature * math.log(odds)
    return np.asarray(np.abs(lead))


# The exit before the first layer: a table with a few numbers for every piece, and nothing else.
#
#     y_k = b_k + 1/√n Σ_t W_k[piece_t]            for task k, over all n pieces of a text
#
# Linear in counts of pieces, as fastText is in words (Joulin et al. 2017, arXiv 1607.01759, §2.1),
# but taught by the model's own answers (pruning/exits/static.py). √n, because the sum of n pieces
# that say nothing grows with it. It costs less than the tokenizer, so it is asked first, before
# texts
# are put into groups; those it is sure of (exits.py) never reach the encoder.
#
# Nothing here needs torch: an exported model asks the same table.
#
#     table.npy   (1 + piece, class of all tasks), float16; the first row is b

TABLE = "table.npy"
STORED = np.dtype("<f2")


@dataclass(frozen=True, eq=False)
class StaticTable:
    """rows: (1 + piece, class of all tasks). n_outputs: classes by task, as the columns stand."""

    rows: NDArray[np.float16]
    n_outputs: Mapping[str, int]

    @cached_property
    def _weights(self) -> NDArray[np.float32]:
        """The rows as they are added: a sum in float16 would lose what it adds."""
        return self.rows.astype(np.float32)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def logits(self, texts: Sequence[Pieces]) -> dict[str, NDArray[np.float32]]:
        """{task: (text, class)}; of a text in a batch the very numbers that it has alone."""
        lengths = np.array([len(text.ids) for text in texts], np.intp)  # (text,): at least 1
        ids = chain.from_iterable(text.ids for text in texts)
        pieces = np.fromiter(ids, np.intp, int(lengths.sum()))
        starts = np.cumsum(lengths) - lengths
        sums = np.add.reduceat(self._weights[1 + pieces], starts, axis=0)  # (text, class)
        together = self._weights[0] + sums / np.sqrt(lengths, dtype=np.float32)[:, None]
        ends = np.cumsum(list(self.n_outputs.values()))[:-1]
        return dict(zip(self.n_outputs, np.split(together, ends, axis=1), strict=True))

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
    start = BytesIO()  # what such a file begins with; nothing else of it is believed
    header = {"descr": STORED.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(start, header)
    n_before = start.tell()
    is_whole = len(content) == n_before + shape[0] * shape[1] * STORED.itemsize
    if not is_whole or not content.startswith(start.getvalue()):
        raise ValueError(f"{TABLE} is not {shape} in float16")
    rows = np.frombuffer(content, STORED, offset=n_before).reshape(shape)
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
        """Answers the texts that the table is sure of; `others` computes the rest."""
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


@dataclass(frozen=True)
class Outputs:
    """The outputs of a model for some texts. logits: {task: (text, class)}.

    layers: after how many layers each text was answered, (text,); None: of a model without exits.
    """

    logits: dict[str, NDArray[np.float32]]
    layers: NDArray[np.int64] | None = None
