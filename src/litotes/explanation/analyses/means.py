"""Means and their intervals over any number of texts, in constant memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor


class RunningMean:
    """The mean of one value of each text, or of a whole table of values; some may be absent.

    Welford's update, so that a small spread around a large mean is not lost to rounding.
    """

    def __init__(self, *shape: int) -> None:
        self.n = torch.zeros(shape, dtype=torch.float64)
        self._mean = torch.zeros(shape, dtype=torch.float64)
        self._squares = torch.zeros(shape, dtype=torch.float64)

    def add(self, values: Tensor | float) -> None:
        """The values of one text; NaN where it has none."""
        new = torch.as_tensor(values, dtype=torch.float64, device="cpu").expand(self.n.shape)
        known = ~new.isnan()
        self.n += known
        away = torch.where(known, new - self._mean, 0.0)
        self._mean += away / self.n.clamp(min=1)
        self._squares += torch.where(known, away * (new - self._mean), 0.0)

    @property
    def mean(self) -> Tensor:
        """NaN where no text had a value."""
        return torch.where(self.n > 0, self._mean, math.nan)

    @property
    def deviation(self) -> Tensor:
        """The standard deviation between texts; NaN where there are fewer than two."""
        variance = (self._squares / (self.n - 1).clamp(min=1)).clamp(min=0)
        return torch.where(self.n > 1, variance.sqrt(), math.nan)

    @property
    def half_width(self) -> Tensor:
        """Half of the mean's 95 % interval over texts, by Student's t: some words occur in few of
        them.
        """
        from scipy.stats import t  # takes a moment

        freedom = (self.n - 1).clamp(min=1)
        quantile = torch.as_tensor(t.ppf(0.975, freedom.numpy()), dtype=torch.float64)
        return quantile * self.deviation / self.n.clamp(min=1).sqrt()


def means(running: Mapping[str, RunningMean]) -> dict[str, Tensor]:
    return {name: one.mean for name, one in running.items()}


def half_widths(running: Mapping[str, RunningMean]) -> dict[str, Tensor]:
    return {name: one.half_width for name, one in running.items()}


Number = float | None
Table = tuple[tuple[Number, ...], ...]


def number(value: Tensor | float) -> Number:
    """As JSON may hold it: what could not be measured is null, not NaN."""
    plain = float(value)
    return None if math.isnan(plain) else plain


def numbers(values: Tensor | Sequence[float]) -> tuple[Number, ...]:
    return tuple(number(value) for value in values)


def table(values: Tensor) -> Table:
    """(row, column) as nested tuples."""
    return tuple(numbers(row) for row in values)


def tables(values: Mapping[str, Tensor]) -> dict[str, Table]:
    return {name: table(one) for name, one in values.items()}


def format_number(value: Number, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def format_interval(value: Number, half_width: Number, digits: int = 3) -> str:
    """`0.612 ± 0.014`; what was measured on one text has no interval."""
    if value is None or half_width is None:
        return format_number(value, digits)
    return f"{value:.{digits}f} ± {half_width:.{digits}f}"
