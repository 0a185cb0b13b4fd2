"""The models of request bodies, and how a body becomes one.

    bytes → at most so many flat values, read from left to right → their number → a model

Limits of length are not part of the models: too much is answered with 413, a wrong shape with 422.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from litotes.core.text import is_utf8
from litotes.explanation.attribution import available_methods
from litotes.service.flat_json import (
    MOST_IN_PAIR,
    FlatItem,
    FlatValue,
    Item,
    NotJson,
    TooManyItems,
    WrongShape,
    read_flat_object,
)
from litotes.service.problems import ProblemError, wrong_shape_error
from litotes.service.settings import ServiceSettings

Body = TypeVar("Body", bound=BaseModel)

_TEXTS = (
    "Each a text, or a list of two for a model of pairs. One that is blank, too long or not a"
    " string has a problem of its own; the others are answered."
)
_PAIR = Field(default=None, description="The second text, for a model of pairs; not blank.")
_MODEL = Field(default=None, description="One of GET /v1/models; null: the default one.")
_VARIETY = Field(
    default=None,
    description="Of all texts, one of those the model was calibrated for; null: not known.",
)


def _check_text(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("blank", "blank")
    if not is_utf8(text):
        raise PydanticCustomError("surrogate", "surrogate")
    return text


TEXT_PATTERN = r"[^\s\x1c-\x1f]"
"""Not only white space, as Python defines it."""
Text = Annotated[
    str, AfterValidator(_check_text), Field(json_schema_extra={"pattern": TEXT_PATTERN})
]
"""And no lone surrogates."""


_METHODS = available_methods()


def _check_method(name: str) -> str:
    if name not in _METHODS:
        raise PydanticCustomError("unknown_method", "unknown")
    return name


MethodName = Annotated[
    str, AfterValidator(_check_method), Field(json_schema_extra={"enum": list(_METHODS)})
]


class StrictModel(BaseModel):
    """Values are not converted, and unknown keys are errors."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


PairItem = Annotated[list[FlatItem], Field(min_length=MOST_IN_PAIR, max_length=MOST_IN_PAIR)]


class OneText(StrictModel):
    """A text to label, or two."""

    text: Text = Field(description="Not blank.")
    pair: Text | None = _PAIR
    model: str | None = _MODEL
    variety: str | None = _VARIETY

    @property
    def all_texts(self) -> list[Item]:
        return [self.text if self.pair is None else [self.text, self.pair]]


class ManyTexts(StrictModel):
    """Several texts to label together."""

    texts: list[FlatItem | PairItem] = Field(min_length=1, description=_TEXTS)
    model: str | None = _MODEL
    variety: str | None = _VARIETY

    @property
    def all_texts(self) -> list[Item]:
        return self.texts


PredictBody = OneText | ManyTexts


class ExplainBody(StrictModel):
    """A text, or two, whose answer is to be explained."""

    text: Text = Field(
        description="Not blank, with at least one word the model's tokenizer knows of."
    )
    pair: Text | None = _PAIR
    task: str | None = Field(
        default=None, description="Which answer; null: that to the model's first task."
    )
    method: MethodName | None = Field(
        default=None, description="The one to show first; null: occlusion."
    )
    methods: list[MethodName] | None = Field(
        default=None,
        max_length=len(_METHODS),
        description="Those to ask beside it; null: occlusion, effective, standard.",
    )
    faithfulness: bool = Field(
        default=False,
        description="Also measure how far each can be believed, which takes most of the time.",
    )
    model: str | None = _MODEL


def read_predict_body(body: bytes, settings: ServiceSettings) -> PredictBody:
    values = read_values(
        body, settings.max_texts_per_request, fewest_in_pair={"texts": MOST_IN_PAIR}
    )
    model: type[PredictBody] = ManyTexts if "texts" in values else OneText
    made = validate(model, values)
    if isinstance(made, OneText):
        _check_lengths(made, settings.max_characters)
    return made


def texts_of(item: Item) -> tuple[FlatItem, FlatItem]:
    """A text and the second one; null: it has none."""
    if not isinstance(item, list):
        return item, None
    text, *others = item
    return text, others[0] if others else None


def find_item_problem(item: Item, *, max_characters: int) -> ProblemError | None:
    """What is wrong with one text of several, or with one of its two."""
    for text in item if isinstance(item, list) else [item]:
        problem = _find_text_problem(text, max_characters=max_characters)
        if problem is not None:
            return problem
    return None


def _find_text_problem(text: FlatItem, *, max_characters: int) -> ProblemError | None:
    if not isinstance(text, str):
        return ProblemError(
            "unreadable-text", "It is not a string. Send it as one, or leave it out."
        )
    if len(text) > max_characters:
        return _too_long_error("It", max_characters)
    if not text.strip():
        return ProblemError(
            "unreadable-text", "It is blank: there is nothing to label. Leave it out."
        )
    if not is_utf8(text):
        return ProblemError(
            "unreadable-text",
            "It holds half of a surrogate pair, which is no character. Send it as UTF-8.",
        )
    return None


def read_explain_body(body: bytes, settings: ServiceSettings) -> ExplainBody:
    made = validate(ExplainBody, read_values(body, len(_METHODS)))
    _check_lengths(made, settings.max_explained_characters)
    return made


def read_values(
    body: bytes, max_items: int, *, fewest_in_pair: Mapping[str, int] | None = None
) -> dict[str, FlatValue]:
    """Of a body, by their keys. fewest_in_pair: see `read_flat_object`."""
    if not body:
        raise wrong_shape_error([("missing", ())])
    try:
        return read_flat_object(body, max_items=max_items, fewest_in_pair=fewest_in_pair)
    except NotJson as error:
        raise ProblemError("bad-json", "The body must be one JSON object in UTF-8.") from error
    except WrongShape as wrong:
        raise wrong_shape_error([(wrong.kind, wrong.place)]) from wrong
    except TooManyItems as many:
        if many.key in ("texts", "inputs"):
            sentence = f"A request may have {max_items} texts. Send them in several."
            raise ProblemError("too-large", sentence) from many
        raise wrong_shape_error([("too_long", (many.key,))]) from many


def validate(model: type[Body], values: dict[str, FlatValue]) -> Body:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        raise wrong_shape_error([(one["type"], one["loc"]) for one in faults]) from error


def _check_lengths(body: OneText | ExplainBody, max_characters: int) -> None:
    for name, text in (("The text", body.text), ("The pair", body.pair)):
        if text is not None and len(text) > max_characters:
            raise _too_long_error(name, max_characters)


def _too_long_error(name: str, max_characters: int) -> ProblemError:
    sentence = f"{name} has more than {max_characters:,} characters. Cut it into parts."
    return ProblemError("too-large", sentence)
