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
from litotes.model.calibration import Calibration

LARGEST = 1e4
"""Of a sureness's numbers: e^10000 is certain beyond all doubt."""


@dataclass(frozen=True)
class Sureness:
    """σ(offset + slope · margin)"""

    offset: float
    slope: float

    def __post_init__(self) -> None:
        if not (_is_number(self.offset) and abs(self.offset) <= LARGEST):
            raise ValueError(f"an exit's offset must be a number, not {self.offset!r:.60}")
        if not (_is_number(self.slope) and 0 <= self.slope <= LARGEST):
            raise ValueError(f"an exit's slope must be a number from 0, not {self.slope!r:.60}")

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
            value = getattr(self, name)
            if not (_is_number(value) and 0 < value < 1):
                raise ValueError(f"{name} must be a number between 0 and 1, not {value!r:.60}")
        for name in ("n", "n_differ"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ValueError(f"{name} must be a count, not {value!r:.60}")
        if self.n_differ > self.n:
            raise ValueError(f"of {self.n} texts, {self.n_differ} cannot differ")

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
        if not (_is_number(self.threshold) and 0 < self.threshold <= 1):
            raise ValueError(
                f"the threshold of exits must be a number from 0 to 1, not {self.threshold!r:.60}"
            )

    @property
    def has_table(self) -> bool:
        """Whether texts may leave before the first layer."""
        return self.layers[0] == 0

    @property
    def inner_layers(self) -> tuple[int, ...]:
        """After how many layers of the encoder texts may leave; none, if only a table answers."""
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
        """How sure the exit after `layer` layers is of the task it is least sure of. (text,)

        logits: {task: (text, class)}
        """
        found = []
        for task, sureness in self.sureness[layer].items():
            margins = label_margins(logits[task], calibration.get(task, Calibration()))
            found.append(sureness.log_odds(margins))
        return np.asarray(np.minimum.reduce(found))

    def as_json(self) -> dict[str, Any]:
        sureness = {
            str(layer): {task: asdict(one) for task, one in by_task.items()}
            for layer, by_task in self.sureness.items()
        }
        return {
            "layers": list(self.layers),
            "sureness": sureness,
            "threshold": self.threshold,
            "promise": asdict(self.promise),
        }


def exits_from_json(content: Any, *, tasks: Mapping[str, Any], n_layers: int) -> Exits:
    """Reads and checks it; what cannot be the exits of this model is a ValueError.

    tasks: {name: labels}
    """
    _check_keys(content, {"layers", "sureness", "threshold", "promise"}, "the exits")
    layers = content["layers"]
    if not isinstance(layers, list) or not all(_is_layer(one, n_layers) for one in layers):
        raise ValueError(f"the layers of exits must be whole numbers from 0 to {n_layers - 1}")
    if not all(tasks.values()):
        raise ValueError("a task that is answered with a number has no exits")
    _check_keys(content["sureness"], set(map(str, layers)), "the sureness of exits")
    sureness = {}
    for layer in layers:
        by_task = content["sureness"][str(layer)]
        _check_keys(by_task, set(tasks), f"the exit after layer {layer}")
        sureness[layer] = {task: _sureness(by_task[task]) for task in tasks}
    _check_keys(content["promise"], {"allowed", "confidence", "n", "n_differ"}, "a promise")
    return Exits(tuple(layers), sureness, content["threshold"], Promise(**content["promise"]))


def label_margins(logits: NDArray[Any], calibration: Calibration) -> Floats:
    """By how much each text's label leads the next one, in logits.

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


def _sureness(content: Any) -> Sureness:
    _check_keys(content, {"offset", "slope"}, "a sureness")
    return Sureness(**content)


def _check_keys(content: Any, keys: set[str], what: str) -> None:
    if not isinstance(content, dict) or set(content) != keys:
        raise ValueError(f"{what} must have {', '.join(sorted(keys))}, not {content!r:.60}")


def _is_layer(value: Any, n_layers: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < n_layers


def _is_number(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value)  # type: ignore[arg-type]


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


@dataclass(frozen=True)
class Outputs:
    """What a model computed for some texts. logits: {task: (text, class)}.

    layers: after how many layers each text was answered, (text,); None: of a model without exits.
    """

    logits: dict[str, NDArray[np.float32]]
    layers: NDArray[np.int64] | None = None


def join_outputs(parts: Sequence[Outputs]) -> Outputs:
    """Those of several groups of texts, one after the other."""
    logits = {}
    for task in parts[0].logits:
        logits[task] = np.concatenate([part.logits[task] for part in parts])
    layers = [part.layers for part in parts if part.layers is not None]
    return Outputs(logits, np.concatenate(layers) if layers else None)
