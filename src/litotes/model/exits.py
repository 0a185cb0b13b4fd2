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

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.numbers import Floats
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
