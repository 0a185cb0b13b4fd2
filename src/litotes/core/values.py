"""The values that flow between the stages: frozen, nothing kept between calls.

source → Example → Batch → Encoding → logits → Prediction

A model of whole texts answers with a Prediction, a model of words with a WordPrediction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from litotes.core.text import one_line

CLASSIFICATION = "classification"
TRANSLATION = "translation"

KINDS = {
    CLASSIFICATION: "labels for whole texts",
    "tagging": "a label for every word",
    "span": "a stretch of words, or none",
    TRANSLATION: "texts, from an encoder-decoder",
}
"""Each kind, and what its models answer. A folder or a recipe that names none is of the first."""

WORD_KINDS = ("tagging", "span")
"""Those that answer words."""


Label = str | float | tuple[str, ...]
"""A word; a number; or, of a task with several labels for one text, those it has."""

MISSING = -100
"""Target of a text that carries no label for a task; such texts add nothing to that task's loss."""

UNREADABLE_NOTE = "unreadable: the model knows no part of it"
"""The note people see where an answer to such a text is shown."""


@dataclass(frozen=True)
class Task:
    """A question asked of a text: the words it may be answered with, or none of them when the
    answer is a number.

    coverage: the probability with which a set of labels is promised to hold the truth; None: no
    sets are given. multi_label: a text may have several of the labels, or none. has_exits: whether
    the model that answers it lets texts leave early.
    """

    name: str
    labels: tuple[str, ...]
    coverage: float | None = field(default=None, repr=False)
    multi_label: bool = field(default=False, repr=False)
    has_exits: bool = field(default=False, repr=False)

    @property
    def is_regression(self) -> bool:
        return not self.labels

    @property
    def is_choice(self) -> bool:
        """True if it is answered with exactly one of its labels."""
        return bool(self.labels) and not self.multi_label

    @property
    def n_outputs(self) -> int:
        return len(self.labels) or 1


@dataclass(frozen=True)
class Example:
    """One text (or a pair of texts) with its gold labels.

    `group` names what a split must keep together besides the text itself (paraphrases of one tweet,
    say).
    """

    text: str
    labels: Mapping[str, Label]
    pair: str | None = None
    variety: str | None = None
    source: str | None = None
    split: str = "train"
    group: str | None = None


@dataclass(frozen=True)
class BadText:
    """A text that cannot be asked about, as far as it is known, and a sentence that says why."""

    text: str
    problem: str


def why_unsure(possible: tuple[str, ...] | None) -> str | None:
    """The sentence for labels that are still possible; None for exactly one, or where that is not
    known.
    """
    if possible is None or len(possible) == 1:
        return None
    if not possible:
        return "no label is likely enough"
    return f"several labels are possible: {', '.join(possible)}"


@dataclass(frozen=True)
class Answer:
    """A task's answer for one text: the label, its probability, and that of every label.

    For a regression the number, None, and no probabilities. Of a task with several labels for one
    text, `label` is those that were given, without a probability of their own. labels: those that
    are still possible at the coverage the model was calibrated for (`litotes calibrate`); None: it
    was not.
    """

    label: Label
    probability: float | None
    probabilities: Mapping[str, float] = field(default_factory=dict)
    labels: tuple[str, ...] | None = None

    @property
    def unsure(self) -> str | None:
        """The reason not to rely on the label; None: it is the only one in `labels`, or the
        model has not been calibrated to say.
        """
        return why_unsure(self.labels)

    def __repr__(self) -> str:
        shown = {
            "label": self.label,
            "probability": self.probability,
            "probabilities": self.probabilities or None,
            "labels": self.labels,
        }
        return one_line(self, **{name: value for name, value in shown.items() if value is not None})

    def as_json(self) -> dict[str, Any]:
        """With `labels` and `unsure` where the model was calibrated to give them."""
        content: dict[str, Any] = {
            "label": list(self.label) if isinstance(self.label, tuple) else self.label,
            "probability": self.probability,
            "probabilities": dict(self.probabilities),
        }
        if self.labels is not None:
            content |= {"labels": list(self.labels), "unsure": self.unsure}
        return content


@dataclass(frozen=True)
class Prediction:
    """All answers for one text.

    truncated: whether the text had to be cut to the encoder's length. unreadable: whether the model
    knows not one piece of it, so that the answers say nothing about it; of a pair, no piece of
    either text; of several models, whether this holds for one of them. problem: why the text could
    not be asked about; there are no answers then.

    answered_at_layer: after how many layers the text was answered by a model with exits, of several
    models the most; None where no model has exits. pair: the second text of a pair.
    """

    text: str
    answers: Mapping[str, Answer]
    truncated: bool
    unreadable: bool = False
    problem: str | None = None
    answered_at_layer: int | None = None
    pair: str | None = None

    def __repr__(self) -> str:
        answers = {task: _answer_text(answer) for task, answer in self.answers.items()}
        shown = {"text": self.text, "pair": self.pair} | vars(self) | {"answers": answers}
        # what is not said of most texts is left out
        told = {name: one for name, one in shown.items() if one is not None and one is not False}
        return one_line(self, **told)

    def _repr_html_(self) -> str:
        """The text and a row for each task, as notebooks show it; of three labels or more, a row
        for each of them.
        """
        from litotes.core.pages import render  # imports numpy, which `litotes --help` does without

        texts = {"label_text": label_text, "unreadable_note": UNREADABLE_NOTE}
        return render("core/prediction.html", shown=self, **texts)


def label_text(label: Label, *, digits: int) -> str:
    """A label as people read it; several with commas between, and "none" where there is none."""
    if isinstance(label, tuple):
        return ", ".join(label) or "none"
    return label if isinstance(label, str) else f"{label:z.{digits}f}"


def _answer_text(answer: Answer) -> str:
    if answer.unsure is not None:
        return f"unsure ({answer.unsure})"
    share = "" if answer.probability is None else f" {answer.probability:.3f}"
    return label_text(answer.label, digits=3) + share


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
        """The stretch that a model of spans found."""
        return self.stretches[0] if self.kind == "span" and self.stretches else None

    @property
    def tags(self) -> tuple[str | None, ...]:
        return tuple(word.label for word in self.words)

    def marks(self) -> tuple[Mark, ...]:
        """Selects what is marked in the text: its span or entities; of two labels, or O and others,
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
