"""What every analysis has in common: a measure that adds up over the texts, a figure of its result
and a section of the report.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from litotes.core.text import one_line
from litotes.explanation.analyses.heads_table import by_head
from litotes.explanation.analyses.section import Section
from litotes.explanation.observation import Observation
from litotes.model.checkpoint import Model

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Result(ABC):
    """The numbers of one analysis.

    Subclasses hold numbers, words and nested tuples of them: what JSON can hold.

    n_texts: how many texts were measured.
    """

    n_texts: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def nothing_to_say(self) -> str | None:
        """Why these texts leave nothing to report, as the end of a sentence ("it says …"); the
        analysis is then left out. None: there is something.
        """
        return None

    @abstractmethod
    def findings(self) -> tuple[str, ...]:
        """The numbers in sentences, each with its evidence; nothing the numbers do not say."""


class Measure(ABC):
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
        self.n_layers, self.n_attention_heads = len(self.spec.walk), self.spec.n_attention_heads

    @classmethod
    def missing_package(cls) -> str | None:
        """What has to be installed first, as the end of a sentence ("needs …"); None: nothing."""
        return None

    def _by_head(self, observation: Observation, values: Sequence[Tensor]) -> Tensor:
        """Values of the attention heads a text still used, laid out for all of them.

        values: per layer one number for each head in it. (layer, attention_head), NaN for attention
        heads that are gone.
        """
        return by_head(observation.layers, values, self.n_attention_heads)

    @abstractmethod
    def add(self, observation: Observation) -> None:
        """Takes one text into account."""

    @abstractmethod
    def result(self) -> Result:
        """What was found over all texts added, of which there is at least one."""


@dataclass(frozen=True)
class Analysis:
    """An entry of `ANALYSES`.

    draw_figure, write_section: take the result of `measure`. Importing them must not import
    matplotlib, which takes half a second: the functions that draw do that.
    """

    measure: type[Measure]
    draw_figure: Callable[[Any], Figure]
    write_section: Callable[[Any], Section]

    def __repr__(self) -> str:
        return one_line(self, measure=self.measure.__module__)
