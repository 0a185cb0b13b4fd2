"""A figure whose axes are placed in inches.

Letters have known sizes here, so margins are known too; matplotlib would take seconds to find them
out for dozens of axes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_WIDTH = 10.6
"""Inches: a wider figure has to be shrunk on a page until its numbers cannot be read."""

LETTER_WIDTH = 0.075
"""Inches of a letter in a title or a name, on average and with some air."""


@dataclass(frozen=True)
class Box:
    """A place on a canvas, in inches from its upper left corner."""

    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True)
class Canvas:
    """A figure with its size in inches."""

    figure: Figure
    width: float
    height: float

    def axes(self, box: Box) -> Axes:
        bottom = self.height - box.top - box.height
        return self.figure.add_axes(
            (
                box.left / self.width,
                bottom / self.height,
                box.width / self.width,
                box.height / self.height,
            )
        )

    def chart(self, box: Box, *, left: float = 0.65) -> Axes:
        """Axes within a box that has to hold their title, numbers and labels as well; left: inches
        for what stands there.
        """
        return self.axes(
            Box(box.left + left, box.top + 0.3, box.width - left - 0.15, box.height - 0.8)
        )


def new_canvas(width: float, height: float) -> Canvas:
    from matplotlib.figure import Figure  # takes half a second; only figures need it

    return Canvas(Figure(figsize=(width, height)), width, height)
