"""What every analysis has in common: means over the texts, a result, its figure and what a report
says of it.

An analysis is one file with a `Result` and an `Analysis`. Its words are templates next to it:
NAME.txt, a paragraph for each finding, and NAME.html, its section of the report.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import nan
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from unicodedata import category

import numpy as np
import torch
from scipy.special import stdtrit
from torch import Tensor

from litotes.core.numbers import Floats, format_signed
from litotes.core.pages import render_paragraphs
from litotes.explanation.observation import KINDS, Observation
from litotes.model.checkpoint import Model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Number = float | None
"""As JSON may hold it: what could not be measured is null, not NaN."""
Table = Sequence[Sequence[Number]]

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
        # without a shape they take that of the first values
        self.n = self._mean = self._squares = np.zeros(shape)

    def add(self, values: Any) -> None:
        """The values of one text; NaN where it has none."""
        new = torch.as_tensor(values, dtype=torch.float64, device="cpu").numpy()
        known = ~np.isnan(new)
        self.n = self.n + known
        away = np.where(known, new - self._mean, 0.0)
        self._mean = self._mean + away / np.maximum(self.n, 1)
        self._squares = self._squares + np.where(known, away * (new - self._mean), 0.0)

    @property
    def mean(self) -> Floats:
        """NaN where no text had a value."""
        return np.where(self.n > 0, self._mean, nan)

    @property
    def half_width(self) -> Floats:
        """Half of the mean's 95 % interval over texts; NaN where fewer than two had a value.

        By Student's t: some words occur in few texts.
        """
        freedom = np.maximum(self.n - 1, 1)
        variance = np.where(self.n > 1, self._squares / freedom, nan)
        return np.asarray(stdtrit(freedom, 0.975) * np.sqrt(variance / np.maximum(self.n, 1)))


class Means(dict[str, Any]):
    """Running means by name, of whatever shapes the values have; nested as they are."""

    def add(self, values: Mapping[str, Any]) -> None:
        """The values of one text."""
        for name, value in values.items():
            kind = Means if isinstance(value, Mapping) else RunningMean
            self.setdefault(name, kind()).add(value)


def named(names: Iterable[str], values: Tensor) -> dict[str, Tensor]:
    return dict(zip(names, values, strict=True))


def means(running: RunningMean | Means) -> Any:
    """The means as JSON may hold them: numbers, lists of them, or a dict."""
    return _numbers_of(running, "mean")


def half_widths(running: RunningMean | Means) -> Any:
    """Halves of the 95 % intervals, in the same form."""
    return _numbers_of(running, "half_width")


def _numbers_of(running: RunningMean | Means, statistic: str) -> Any:
    if isinstance(running, Means):
        return {name: _numbers_of(one, statistic) for name, one in running.items()}
    return plain(getattr(running, statistic))


def plain(values: Floats) -> Any:
    """A number, or nested lists of numbers; None for NaN."""
    nested = np.asarray(values, object)
    nested[np.isnan(values)] = None
    return nested.tolist()


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
    """Tells whether the word is a full stop, a comma or the like: nearly every text has them, and
    what happens to them is no finding.
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
        """Says why these texts leave nothing to report, as the end of a sentence ("it says …"); the
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


Found = TypeVar("Found", bound=Result)


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
        self.n_texts, self.means = 0, Means()

    @classmethod
    def missing_package(cls) -> str | None:
        """Says what to install first, as the end of a sentence ("needs …"); None: nothing."""
        return None

    def add(self, observation: Observation) -> None:
        """Takes one text into account."""
        self.n_texts += 1
        self.means.add(self.measure(observation))

    @abstractmethod
    def measure(self, observation: Observation) -> Mapping[str, Any]:
        """Returns the values to average over the texts, by the result's fields: numbers, arrays or
        dicts of them, NaN where the text has no value; nothing of a text that says nothing.
        """

    @abstractmethod
    def result(self) -> Result:
        """Returns what was found over all texts added, of which there is at least one."""

    def means_as(self, kind: type[Found], **more: Any) -> Found:
        """A result with the means under their names and, where it has a field NAME_half_width,
        halves of their intervals. more: the other fields; what no text had is None.
        """
        found: dict[str, Any] = {}
        for field in fields(kind):
            name = field.name.removesuffix("_half_width")
            statistic = means if name == field.name else half_widths
            found[field.name] = statistic(self.means[name]) if name in self.means else None
        return kind(**found | {"n_texts": self.n_texts} | more)

    def by_head(
        self, observation: Observation, layers: Iterable[Mapping[str, Tensor]]
    ) -> dict[str, Tensor]:
        """Values of the attention heads a text still used, laid out for all of them.

        layers: for each of them, by name, one number for each head in it. {name: (layer,
        attention_head)}, NaN for attention heads that are gone.
        """
        tables: defaultdict[str, Tensor] = defaultdict(
            lambda: torch.full(self.shape, nan, dtype=torch.float64)
        )
        for place, (view, shown) in enumerate(zip(observation.layers, layers, strict=True)):
            for name, values in shown.items():
                tables[name][place, list(view.heads)] = values.double().cpu()
        return dict(tables)
