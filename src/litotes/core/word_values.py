"""What a model of words answers: a label for each word, or one stretch of words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from litotes.core.one_line import one_line


@dataclass(frozen=True)
class WordAnswer:
    """A word, where it stands in its text, and its label with its probability.

    label: None in a model of spans, which has none, and for a word that was not read.
    """

    written: str
    start: int
    end: int
    label: str | None = None
    probability: float | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "word": self.written,
            "start": self.start,
            "end": self.end,
            "label": self.label,
            "probability": self.probability,
        }


@dataclass(frozen=True)
class Stretch:
    """Words that belong together: from the word `first` to the word before `last`.

    start, end: where it stands in the text. kind: of an entity; None of a model's one span.
    """

    written: str
    start: int
    end: int
    first: int
    last: int
    kind: str | None = None

    def as_json(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "text": self.written,
            "start": self.start,
            "end": self.end,
            "words": [self.first, self.last],
        }
        return content if self.kind is None else {"label": self.kind, **content}


@dataclass(frozen=True)
class Mark:
    """A part of a text to be drawn. label: None of a span, which needs none."""

    start: int
    end: int
    label: str | None
    probability: float | None = None


@dataclass(frozen=True)
class WordPrediction:
    """All that a model of words answers about one text.

    labels: those that a word may have. stretches: of a model of entities those it found; of a model
    of spans its span, or none.
    probability: of the span, or of there being none; None in a model of tags. truncated: whether a
    part of the text was not read. problem: why the text could not be asked about.
    """

    text: str
    task: str
    kind: str
    labels: tuple[str, ...] = ()
    words: tuple[WordAnswer, ...] = ()
    stretches: tuple[Stretch, ...] = ()
    probability: float | None = None
    truncated: bool = False
    unreadable: bool = False
    problem: str | None = None

    def __repr__(self) -> str:
        if self.kind == "span":
            return one_line(self, text=self.text, span=self.span and self.span.written)
        return one_line(self, text=self.text, tags=[word.label for word in self.words])

    @property
    def span(self) -> Stretch | None:
        """Of a model of spans, the stretch it found."""
        return self.stretches[0] if self.kind == "span" and self.stretches else None

    @property
    def tags(self) -> tuple[str | None, ...]:
        return tuple(word.label for word in self.words)

    def marks(self) -> tuple[Mark, ...]:
        """What is to be seen in the text: its span or entities; of two labels, or of O and others,
        the words that do not have the first; of any other labels every word.
        """
        if self.stretches:
            return tuple(Mark(one.start, one.end, one.kind) for one in self.stretches)
        plain = self.labels[0] if len(self.labels) == 2 or "O" in self.labels[:1] else None
        marked = [word for word in self.words if word.label not in (None, plain)]
        return tuple(Mark(one.start, one.end, one.label, one.probability) for one in marked)

    def as_json(self) -> dict[str, Any]:
        content: dict[str, Any] = {"text": self.text}
        if self.problem is None:
            content[self.task] = self._answer()
        content |= {"truncated": self.truncated, "unreadable": self.unreadable}
        return content if self.problem is None else content | {"problem": self.problem}

    def _answer(self) -> Any:
        if self.kind == "span":
            span = None if self.span is None else self.span.as_json()
            return {"span": span, "probability": self.probability}
        words = [word.as_json() for word in self.words]
        if not self.stretches:
            return {"words": words}
        return {"words": words, "entities": [one.as_json() for one in self.stretches]}
