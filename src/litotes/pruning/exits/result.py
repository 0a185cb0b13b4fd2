"""What exits are asked for, and what came out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from litotes.core.machine import machine
from litotes.core.text import one_line
from litotes.model.checkpoint import Model


@dataclass(frozen=True)
class ExitSettings:
    """layers: after how many layers texts may leave; empty: after each of the middle ones. static:
    also before the first of them, by a table over pieces; the same as 0 among the layers.

    differ: the share of texts that may be answered otherwise than by the whole model. confidence:
    of that promise. seed: of how texts are divided. n_rounds: of the measurement of speed.
    """

    layers: tuple[int, ...] = ()
    differ: float = 0.01
    confidence: float = 0.95
    seed: int = 0
    n_rounds: int = 5
    static: bool = False


@dataclass(frozen=True)
class ExitRow:
    """One exit, or the end of the model, on the texts that were only measured.

    share: of texts answered there. differ: of these, answered otherwise than by the whole model;
    None where there are none.
    agrees: of all texts, had all been answered there. ece: of how sure it is of each task, by task.
    """

    layer: int
    share: float
    differ: float | None
    agrees: float
    ece: dict[str, float]


@dataclass(frozen=True)
class ExitsResult:
    """All of it on n texts by which nothing was chosen.

    differ, interval: the share answered otherwise than by the whole model, with its 95 % interval.
    flops_ratio: times fewer operations; speed_ratio: times as fast, by torch, taking turns.
    worst_ratio: times as slow where no text leaves.
    """

    model: Model
    settings: ExitSettings
    rows: tuple[ExitRow, ...]
    n: int
    differ: float
    interval: tuple[float, float]
    flops_ratio: float
    speed_ratio: float
    worst_ratio: float
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return one_line(
            self,
            layers=[row.layer for row in self.rows],
            differ=self.differ,
            flops_ratio=self.flops_ratio,
        )

    def as_json(self) -> dict[str, Any]:
        assert self.model.exits is not None
        content = asdict(self)
        del content["model"], content["settings"]
        rule = self.model.exits.rule
        settings = asdict(self.settings) | {"layers": list(rule.layers)}
        measured = {"machine": machine(), "settings": settings, "exits": rule.as_json()}
        return measured | content
