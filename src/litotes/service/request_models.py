"""The models of request bodies, and how a body becomes one.

    bytes → at most so many flat values, read from left to right → their number → a model

Limits of length are not part of the models: too much is answered with 413, a wrong shape with 422.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from litotes.core.harmless import is_utf8
from litotes.explanation.attribution import available_methods
from litotes.service.flat_json import (
    FlatItem,
    FlatValue,
    NotJson,
    TooManyItems,
    WrongShape,
    read_flat_object,
)
from litotes.service.problems import ProblemError, wrong_shape_error
from litotes.service.settings import ServiceSettings

Body = TypeVar("Body", bound=BaseModel)

_TEXTS = (
    "One that is blank, too long or not a string has a problem of its own; the others are answered."
)
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


Text = Annotated[
    str, AfterValidator(_check_text), Field(json_schema_extra={"pattern": r"[^\s\x1c-\x1f]"})
]
"""Not only white space, as Python defines it, and no lone surrogates."""


_METHODS = available_methods()


def _check_method(name: str) -> str:
    if name not in _METHODS:
        raise PydanticCustomError("unknown_method", "unknown")
    return name


MethodName = Annotated[
    str, AfterValidator(_check_method), Field(json_schema_extra={"enum": list(_METHODS)})
]


class _StrictModel(BaseModel):
    """Values are not converted, and unknown keys are errors."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class OneText(_StrictModel):
    """A text to label."""

    text: Text = Field(description="Not blank.")
    model: str | None = _MODEL
    variety: str | None = _VARIETY

    @property
    def all_texts(self) -> list[FlatItem]:
        return [self.text]


class ManyTexts(_StrictModel):
    """Several texts to label together."""

    texts: list[FlatItem] = Field(min_length=1, description=_TEXTS)
    model: str | None = _MODEL
    variety: str | None = _VARIETY

    @property
    def all_texts(self) -> list[FlatItem]:
        return self.texts


PredictBody = OneText | ManyTexts


class ExplainBody(_StrictModel):
    """A text whose answer is to be explained."""

    text: Text = Field(
        description="Not blank, with at least one word the model's tokenizer knows of."
    )
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
    values = _read_values(body, settings.max_texts_per_request)
    model: type[PredictBody] = ManyTexts if "texts" in values else OneText
    made = _validate(model, values)
    if isinstance(made, OneText):
        _check_length(made.text, settings.max_characters)
    return made


def find_text_problem(text: FlatItem, *, max_characters: int) -> ProblemError | None:
    """What is wrong with one text of several."""
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
    made = _validate(ExplainBody, _read_values(body, len(_METHODS)))
    _check_length(made.text, settings.max_explained_characters)
    return made


def _read_values(body: bytes, max_items: int) -> dict[str, FlatValue]:
    if not body:
        raise wrong_shape_error([("missing", ())])
    try:
        return read_flat_object(body, max_items=max_items)
    except NotJson as error:
        raise ProblemError("bad-json", "The body must be one JSON object in UTF-8.") from error
    except WrongShape as wrong:
        raise wrong_shape_error([(wrong.kind, wrong.place)]) from wrong
    except TooManyItems as many:
        if many.key == "texts":
            sentence = f"A request may have {max_items} texts. Send them in several."
            raise ProblemError("too-large", sentence) from many
        raise wrong_shape_error([("too_long", (many.key,))]) from many


def _validate(model: type[Body], values: dict[str, FlatValue]) -> Body:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        raise wrong_shape_error([(one["type"], one["loc"]) for one in faults]) from error


def _check_length(text: str, max_characters: int) -> None:
    if len(text) > max_characters:
        raise _too_long_error("The text", max_characters)


def _too_long_error(name: str, max_characters: int) -> ProblemError:
    sentence = f"{name} has more than {max_characters:,} characters. Cut it into parts."
    return ProblemError("too-large", sentence)
