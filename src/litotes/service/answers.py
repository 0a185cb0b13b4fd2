"""The models of answers, for /openapi.json; the answers themselves are not built from them.

These docstrings are part of the schema.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Problem(BaseModel):
    """RFC 9457."""

    type: str = Field(description="urn:litotes:problem: and a name that stays.")
    title: str
    status: int
    detail: str = Field(description="What to do.")


class Answer(BaseModel):
    """The answer to one task; to a regression, a number without a probability. Where a text may
    have several labels, `label` is the list of those given, and `probability` null.
    """

    label: str | float | list[str]
    probability: float | None
    probabilities: dict[str, float] = Field(
        description="Of every label, in the order of GET /v1/models; none for a number."
    )
    labels: list[str] = Field(
        default=[],
        description="Those that are possible, where the model was calibrated to say (`unsure`).",
    )
    unsure: str | None = Field(
        default=None,
        description="Why the label should not be relied on: several are possible, or none is.",
    )


_LAYER = Field(
    default=0,
    description=(
        "Of a model with exits: after how many layers (0: by its table); else it is left out."
    ),
)


class Prediction(BaseModel):
    """A text with an answer for each of the model's tasks, under the task's name.

    One of several texts that has a problem has null in place of the answers.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Answer | None] = Field(init=False)

    text: str | None = Field(description="null: it was not a string, or is too long to repeat.")
    pair: str | None = Field(
        default=None, description="The second text, where two were sent; else it is left out."
    )
    truncated: bool = Field(
        description="The text is longer than the model reads; its end was not seen."
    )
    unreadable: bool = Field(
        description="The model knows no part of the text; its answers say nothing."
    )
    problem: Problem | None = Field(description="Of this text alone.")
    answered_at_layer: int = _LAYER


class Predictions(BaseModel):
    """In the order of the texts."""

    model: str
    predictions: list[Prediction]


class ExplainedWord(BaseModel):
    """start, end: where it stands in the text. left_at_layer: from 0, after which it left; null: it
    stayed.
    """

    word: str
    start: int
    end: int
    is_pair: bool
    left_at_layer: int | None


class ExplainedPiece(BaseModel):
    """A piece as the model reads it."""

    piece: str
    left_at_layer: int | None


class Shading(BaseModel):
    """One method's weight for every word."""

    model_config = ConfigDict(extra="allow")

    is_signed: bool
    weights: list[float]
    error: dict[str, float]


class Layer(BaseModel):
    """Attention between words, by kind: standard and effective. between: null when there are too
    many words.
    """

    attention_heads: int
    received: dict[str, list[float]]
    between: dict[str, list[list[float]]] | None


class Mark(BaseModel):
    """A part of the text that a model of words found. label: null of a span."""

    start: int
    end: int
    label: str | None


class Locus(BaseModel):
    """What a model of words marks in the text, such as where the sarcasm sits."""

    title: str
    marks: list[Mark]
    notes: list[str]


class Explanation(BaseModel):
    """What one answer rests on."""

    model_config = ConfigDict(extra="allow")

    text: str
    pair: str | None
    truncated: bool
    model: str
    task: str
    answers: dict[str, Answer]
    explained_label: str = Field(
        default="", description="Of several labels, the one that is explained; else left out."
    )
    probabilities: dict[str, float]
    method: str
    words: list[ExplainedWord]
    shadings: dict[str, Shading]
    pieces: list[ExplainedPiece]
    layers: list[Layer]
    locus: Locus | None = Field(
        default=None, description="Where the service has a model of words; else it is left out."
    )
    answered_at_layer: int = _LAYER


class Unsure(BaseModel):
    """coverage: by task, how often the truth is promised to be among `labels`. varieties: those
    that a request may name.
    """

    coverage: dict[str, float]
    varieties: list[str]


class ServedModel(BaseModel):
    """tasks: the labels of each; none for a number. unsure: only of a model that was calibrated."""

    name: str
    is_default: bool
    tasks: dict[str, list[str]]
    runtime: str
    about: list[str]
    most_pieces: int
    n_layers: int
    multi_label: list[str] = Field(description="The tasks that may have several labels at once.")
    pairs: bool = Field(description="Whether it has learned from pairs of texts.")
    unsure: Unsure | None = None


class Limits(BaseModel):
    """Of one request."""

    texts: int
    characters: int
    explained_characters: int
    body_bytes: int
    seconds: float


class ModelList(BaseModel):
    """What this service can do."""

    models: list[ServedModel]
    methods: list[str]
    limits: Limits
    version: str


class Status(BaseModel):
    """Of the service."""

    status: str


class LabelScore(BaseModel):
    """A label, with its probability or the model's output for it."""

    score: float
    label: str


class InferenceError(BaseModel):
    """Why there is no answer."""

    error: str = Field(description="What to do.")
    error_type: Literal["Validation", "Tokenizer", "Overloaded", "Backend", "Unhealthy"]
