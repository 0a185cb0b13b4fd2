"""What every analysis has in common: it is shown one text after another, adds up, and says in the
end what it found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from litotes.explain.observation import Observation
from litotes.model.checkpoint import Model


@dataclass(frozen=True)
class Result(ABC):
    """Figures of one analysis.

    Subclasses hold numbers, words and nested tuples of them, so that JSON can.

    n_texts: how many texts it was measured on.
    """

    n_texts: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @abstractmethod
    def findings(self) -> tuple[str, ...]:
        """What the figures say, in sentences with their evidence; nothing that the figures do not
        say.
        """


class Analysis(ABC):
    """A measure over a corpus, in constant memory.

    A new one is one file and one line in `ANALYSES`; the first line of its docstring is what
    `litotes list analyses` shows, its keyword-only arguments are its options. It must not depend on
    the order of the texts, and it must bear pruned texts: a layer shows the pieces and attention
    heads that are still there, `View.origin` and `View.heads` say which.

    needs_base: asks for the encoder the model was tuned from (`Observation.base`); left out, with a
    word, where that is not given.
    """

    needs_base: ClassVar[bool] = False

    def __init__(self, model: Model) -> None:
        self.model = model
        self.spec = model.classifier.encoder.spec
        self.n_layers, self.n_attention_heads = len(self.spec.walk), self.spec.n_attention_heads

    @classmethod
    def lacks(cls) -> str | None:
        """What has to be installed before this analysis can be made, as the end of a sentence
        ("needs …"); None: nothing.
        """
        return None

    @abstractmethod
    def add(self, observation: Observation) -> None:
        """Takes one text into account."""

    @abstractmethod
    def result(self) -> Result:
        """What was found over all texts seen; there is one at least."""
