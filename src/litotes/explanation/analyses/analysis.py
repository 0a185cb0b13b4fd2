"""What every analysis has in common: means over the texts, a result, its figure and what a report
says of it.

An analysis is one file with a `Result` and an `Analysis`. Its words are templates beside it:
NAME.txt, a paragraph for each finding, and NAME.html, its section of the report.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from unicodedata import category

import torch
from scipy.special import stdtrit
from torch import Tensor

from litotes.core.numbers import format_signed
from litotes.core.pages import render_paragraphs
from litotes.explanation.observation import KINDS, Observation
from litotes.model.checkpoint import Model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Number = float | None
"""As JSON may hold it: what could not be measured is null, not NaN."""
Table = tuple[tuple[Number, ...], ...]

_NOTHING = 1e-6
"""What rounding may leave between two maps that are the same."""

_TELLING = "!?…"
"""Marks that may well push an answer."""


class RunningMean:
    """The mean of one value of each text, or of a whole table of values, in constant memory; some
    may be absent.

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
    def half_width(self) -> Tensor:
        """Half of the mean's 95 % interval over texts; NaN where fewer than two had a value.

        By Student's t: some words occur in few texts.
        """
        freedom = (self.n - 1).clamp(min=1)
        variance = torch.where(self.n > 1, (self._squares / freedom).clamp(min=0), math.nan)
        quantile = torch.as_tensor(stdtrit(freedom.numpy(), 0.975), dtype=torch.float64)
        return quantile * (variance / self.n.clamp(min=1)).sqrt()


def by_kind(*shape: int) -> dict[str, RunningMean]:
    """A mean for standard attention, and one for its effective part."""
    return {kind: RunningMean(*shape) for kind in KINDS}


def means(running: Any, names: Sequence[str] | None = None) -> Any:
    """The means as JSON may hold them; of a dict, a dict. names: of the values of each, which then
    become a dict too.
    """
    return _numbers_of(running, "mean", names)


def half_widths(running: Any, names: Sequence[str] | None = None) -> Any:
    """Halves of the 95 % intervals, in the same form."""
    return _numbers_of(running, "half_width", names)


def _numbers_of(running: Any, statistic: str, names: Sequence[str] | None) -> Any:
    if isinstance(running, Mapping):
        return {key: _numbers_of(one, statistic, names) for key, one in running.items()}
    values = plain(getattr(running, statistic))
    return values if names is None else dict(zip(names, values, strict=True))


def plain(values: Tensor | float) -> Any:
    """A number, or nested tuples of numbers; None for NaN."""
    if isinstance(values, Tensor) and values.ndim:
        return tuple(plain(part) for part in values)
    number = float(values)
    return None if math.isnan(number) else number


def kinds_shown(numbers: Mapping[str, Iterable[Number]]) -> tuple[str, ...]:
    """Standard and effective attention; the first alone where their numbers are the same, as in
    texts too short to hide any attention.
    """
    for one, other in zip(numbers["standard"], numbers["effective"], strict=True):
        if None in (one, other) and one is not other:
            return KINDS
        if one is not None and other is not None and abs(one - other) >= _NOTHING:
            return KINDS
    return KINDS[:1]


def is_plain_mark(word: str) -> bool:
    """Whether it is a full stop, a comma or the like: nearly every text has them, and what happens
    to them is no finding.
    """
    return len(word) == 1 and category(word).startswith("P") and word not in _TELLING


def interval(value: Number, half_width: Number = None, digits: int = 3) -> str:
    """`0.612 ± 0.014`; what was measured on one text has no interval."""
    if value is None:
        return "–"
    width = "" if half_width is None else f" ± {half_width:.{digits}f}"
    return f"{value:.{digits}f}{width}"


def percent(value: Number, half_width: Number = None, *, signed: bool = False) -> str:
    """`17.6 ± 0.8`, `+3.1 ± 0.4`: in per cent, or in points of it."""
    if value is None:
        return "–"
    text = format_signed(100 * value, 1) if signed else f"{100 * value:.1f}"
    return text if half_width is None else f"{text} ± {100 * half_width:.1f}"


@dataclass(frozen=True)
class Result(ABC):
    """The numbers of one analysis.

    Subclasses hold numbers, words and nested tuples of them: what JSON can hold.

    name: in `ANALYSES`, and of the templates. n_texts: how many texts were measured.
    """

    name: ClassVar[str]
    n_texts: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def nothing_to_say(self) -> str | None:
        """Why these texts leave nothing to report, as the end of a sentence ("it says …"); the
        analysis is then left out. None: there is something.
        """
        return None

    def findings(self) -> tuple[str, ...]:
        """The numbers in sentences, each with its evidence; nothing the numbers do not say."""
        template = f"explanation/analyses/{self.name}.txt"
        values = {"result": self, "interval": interval, "percent": percent}
        return render_paragraphs(template, "findings", **values)

    def highlights(self) -> tuple[str, ...]:
        """The findings that stand at the top of a report."""
        return self.findings()[:1]

    @abstractmethod
    def figure(self) -> Figure:
        """A drawing of the numbers."""


class Analysis(ABC):
    """A measure over the texts of a corpus, in constant memory.

    The first line of its docstring is what `litotes list analyses` shows, its keyword-only
    arguments are its options. It must not depend on the order of the texts, and it must accept
    pruned texts: a layer shows the pieces and attention heads that are left in it;
    `TextAttention.origin` and `TextAttention.heads` say which.

    needs_base: needs the encoder that the model was tuned from (`Observation.base`); where that is
    not given, the analysis is left out and the report says so.
    """

    needs_base: ClassVar[bool] = False

    def __init__(self, model: Model) -> None:
        self.model = model
        self.spec = model.classifier.encoder.spec
        # (layer, attention_head)
        self.shape = len(self.spec.walk), self.spec.n_attention_heads
        self.n_texts = 0

    @classmethod
    def missing_package(cls) -> str | None:
        """What has to be installed first, as the end of a sentence ("needs …"); None: nothing."""
        return None

    def by_head(self, observation: Observation, values: Iterable[Tensor]) -> Tensor:
        """Values of the attention heads a text still used, laid out for all of them.

        values: per layer one number for each head in it. (layer, attention_head), NaN for attention
        heads that are gone.
        """
        whole = torch.full(self.shape, math.nan, dtype=torch.float64)
        for row, view, shown in zip(whole, observation.layers, values, strict=True):
            row[list(view.heads)] = shown.double().cpu()
        return whole

    @abstractmethod
    def add(self, observation: Observation) -> None:
        """Takes one text into account."""

    @abstractmethod
    def result(self) -> Result:
        """What was found over all texts added, of which there is at least one."""
