"""One text in a pruned model: which pieces and attention heads left at which layer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from litotes.explanation.observation import Observation


@dataclass(frozen=True)
class Trace:
    """One text on its way through the layers.

    left_after: for each piece the layer, from 0, after whose attention it left; None for those that
    stayed to the end.
    heads: the attention heads used in each layer, (layer, …); empty where no layer was looked at.
    """

    written: tuple[str, ...]
    left_after: tuple[int | None, ...]
    heads: tuple[tuple[int, ...], ...]

    @cached_property
    def seen(self) -> tuple[tuple[bool, ...], ...]:
        """Whether a layer sees the keys and values of a piece. (layer, piece)"""
        return tuple(
            tuple(left is None or left >= layer for left in self.left_after)
            for layer in range(len(self.heads))
        )

    def there(self, layer: int) -> tuple[str, ...]:
        """The pieces `layer` sees, in writing."""
        return tuple(compress(self.written, self.seen[layer]))


def trace_of(observation: Observation) -> Trace:
    left: list[int | None] = [None] * len(observation.read.written)
    for view in observation.layers:
        for place in set(view.origin.tolist()) - set(view.stayed.tolist()):
            if place >= 0:  # a fused piece stands for others
                left[place] = view.layer
    return Trace(
        observation.read.written, tuple(left), tuple(view.heads for view in observation.layers)
    )
