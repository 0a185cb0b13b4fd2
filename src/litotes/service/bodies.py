"""What may be asked: the bodies of requests, and what is wrong with them.

    bytes → no more parts than a request can have → JSON → a model → texts, each with its problem

Limits of length are not part of the models: too much is answered with 413, a wrong shape with 422.
"""

from __future__ import annotations

import json
import re
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from litotes.core.text import is_utf8
from litotes.explanation.attribution import available_methods
from litotes.service.problems import ProblemError, wrong_shape
from litotes.service.settings import ServiceSettings

Body = TypeVar("Body", bound=BaseModel)
Item = str | bool | int | float | list[Any] | None
"""What stands in a list of texts: a text, a list of two, or what is neither."""

_METHODS = available_methods()
_MOST_SIDES = 2
_FAULT = "litotes"
"""The kind of our own errors, whose messages end a sentence."""


def find_fault(text: object) -> str | None:
    """Finds what is wrong with a text, as the end of a sentence."""
    if not isinstance(text, str):
        return "is not a string"
    if not text.strip():
        return "is blank: there is nothing to read"
    return None if is_utf8(text) else "holds half of a surrogate pair, which is no character"


def _check_text(text: str, info: ValidationInfo) -> str:
    """Checks a text that is asked about alone; the context says how long it may be."""
    most: Any = info.context
    if len(text) > most:
        raise _too_long(f"The {info.field_name}", most)
    if fault := find_fault(text):
        raise PydanticCustomError(_FAULT, fault)
    return text


def _check_item(fewest: int, item: Item) -> Item:
    """fewest: how many texts a list has at least."""
    sides = item if isinstance(item, list) else [item]
    if isinstance(item, list) and not fewest <= len(item) <= _MOST_SIDES:
        wanted = "two texts" if fewest == _MOST_SIDES else "one text or two"
        raise PydanticCustomError(_FAULT, f"is a list, and not of {wanted}")
    if any(isinstance(side, dict | list) for side in sides):
        raise PydanticCustomError(_FAULT, "must be a string")
    return item


def _as_list(inputs: object) -> object:
    if not isinstance(inputs, str | list):
        raise PydanticCustomError(_FAULT, "must be a string or a list")
    return [inputs] if isinstance(inputs, str) else inputs


def _items(one: dict[str, Any], fewest: int, *, or_one: bool = False) -> dict[str, Any]:
    """The JSON schema of a list of texts and lists of texts. one: that of a text."""
    sides = {"type": "array", "items": one, "minItems": fewest, "maxItems": _MOST_SIDES}
    several = {"type": "array", "items": {"anyOf": [one, sides]}, "minItems": 1}
    return {"anyOf": [one, several]} if or_one else several


TEXT_PATTERN = r"[^\s\x1c-\x1f]"
"""Not only white space, as Python defines it."""
_TEXT_SCHEMA = {"type": "string", "pattern": TEXT_PATTERN}
Text = Annotated[
    str, AfterValidator(_check_text), Field(json_schema_extra={"pattern": TEXT_PATTERN})
]
"""And no lone surrogates."""
Texts = Annotated[
    list[Annotated[Any, AfterValidator(partial(_check_item, _MOST_SIDES))]],
    WithJsonSchema(_items({"type": ["string", "boolean", "number", "null"]}, _MOST_SIDES)),
]
Inputs = Annotated[
    list[Annotated[Any, AfterValidator(partial(_check_item, 1))]],
    BeforeValidator(_as_list),
    WithJsonSchema(_items(_TEXT_SCHEMA, 1, or_one=True)),
]
if TYPE_CHECKING:
    MethodName = str
else:
    MethodName = Literal[_METHODS]

_PAIR = Field(default=None, description="The second text, for a model of pairs; not blank.")
_MODEL = Field(default=None, description="One of GET /v1/models; null: the default one.")
_VARIETY = Field(
    default=None,
    description="Of all texts, one of those the model was calibrated for; null: not known.",
)


class StrictModel(BaseModel):
    """Values are not converted, and unknown keys are errors."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class OneText(StrictModel):
    """A text to label, or two."""

    text: Text = Field(description="Not blank.")
    pair: Text | None = _PAIR
    model: str | None = _MODEL
    variety: str | None = _VARIETY

    @property
    def items(self) -> list[Item]:
        return [self.text if self.pair is None else [self.text, self.pair]]


class ManyTexts(StrictModel):
    """Several texts to label together."""

    texts: Texts = Field(
        min_length=1,
        description=(
            "Each a text, or a list of two for a model of pairs. One that is blank, too long or not"
            " a string has a problem of its own; the others are answered."
        ),
    )
    model: str | None = _MODEL
    variety: str | None = _VARIETY

    @property
    def items(self) -> list[Item]:
        return self.texts


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
        description="Those to ask in addition; null: occlusion, effective, standard.",
    )
    faithfulness: bool = Field(
        default=False,
        description="Also measure how far each can be believed, which takes most of the time.",
    )
    model: str | None = _MODEL


class InferenceBody(StrictModel):
    """A text, a pair of texts, or several of both, as text-embeddings-inference takes them."""

    inputs: Inputs = Field(
        min_length=1,
        description=(
            "A string; a list of strings (two are a pair for a model of pairs, else each is a"
            " text); or a list with lists of one string or two."
        ),
    )
    truncate: bool | None = Field(
        default=None, description="Whether the end of a text that is too long may go unread."
    )
    truncation_direction: Literal["Right", "right"] = Field(
        default="Right", description="No other is offered."
    )
    raw_scores: bool = Field(
        default=False, description="Give the model's outputs in place of probabilities."
    )
    task: str | None = Field(default=None, description="null: the model's first one.")
    model: str | None = _MODEL


REQUESTS: tuple[type[StrictModel], ...] = (OneText, ManyTexts, ExplainBody, InferenceBody)

_PARTS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{,]', re.DOTALL)
_BEGINNING = re.compile(r'\s*\{(\s*"(?:texts|inputs)"\s*:\s*\[)?')
_PARTS_OF_A_TEXT, _OTHER_PARTS = 6, 160


def read_values(body: bytes, settings: ServiceSettings) -> dict[str, Any]:
    """The JSON object of a body.

    Parts are counted first: a megabyte of `[[],[],…]` takes the library, or pydantic's own reader,
    a tenth of a second, in which nothing else is answered; to count takes a hundredth.
    """
    if not body:
        raise wrong_shape("The body is missing.")
    most = settings.max_texts_per_request
    try:
        text = body.decode("utf-8-sig")
        most_parts = _PARTS_OF_A_TEXT * most + _OTHER_PARTS
        if sum(1 for _ in islice(_PARTS.finditer(text), most_parts + 1)) > most_parts:
            beginning = _BEGINNING.match(text)
            if beginning is None:
                raise ValueError("too long to be read for what it is")
            if beginning[1]:
                raise _too_many(most)
            raise wrong_shape("The body has more parts than anything that may be asked.")
        values = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ProblemError("bad-json", "The body must be one JSON object in UTF-8.") from error
    if not isinstance(values, dict):
        raise wrong_shape("The body must be a JSON object.")
    for name in ("texts", "inputs"):
        if isinstance(values.get(name), list) and len(values[name]) > most:
            raise _too_many(most)
    return values


def _refuse_constant(name: str) -> NoReturn:
    """JSON has no NaN and no Infinity, although Python reads them."""
    raise ValueError(name)


def _too_many(most: int) -> ProblemError:
    return ProblemError("too-large", f"A request may have {most} texts. Send them in several.")


def validate(model: type[Body], values: dict[str, Any], most_characters: int = 0) -> Body:
    """most_characters: of a text that is asked about alone."""
    try:
        return model.model_validate(values, context=most_characters)
    except ValidationError as error:
        faults = map(_sentence, error.errors(include_url=False))
        raise wrong_shape(*dict.fromkeys(faults)) from error


def _sentence(error: Any) -> str:
    """Words an error: of a strict model it repeats no value, and no key that is not known."""
    if error["type"] == "extra_forbidden":
        return "There is a key that is not known here, or `text` or `pair` next to `texts`."
    joined = " " if error["type"] == _FAULT else ": "
    return f"`{'.'.join(map(str, error['loc']))}`{joined}{error['msg']}."


def read_predict_body(body: bytes, settings: ServiceSettings) -> OneText | ManyTexts:
    values = read_values(body, settings)
    model: type[OneText | ManyTexts] = ManyTexts if "texts" in values else OneText
    return validate(model, values, settings.max_characters)


def read_explain_body(body: bytes, settings: ServiceSettings) -> ExplainBody:
    return validate(ExplainBody, read_values(body, settings), settings.max_explained_characters)


def _too_long(name: str, most: int) -> ProblemError:
    sentence = f"{name} has more than {most:,} characters. Cut it into parts."
    return ProblemError("too-large", sentence)


def sides_of(item: Item) -> tuple[Any, Any]:
    """A text, and the second one or None."""
    text, pair, *_ = (*item, None) if isinstance(item, list) else (item, None)
    return text, pair


def find_problem(item: Item, most_characters: int) -> ProblemError | None:
    """Finds what is wrong with one text of several, or with one of its two."""
    for text in item if isinstance(item, list) else [item]:
        if isinstance(text, str) and len(text) > most_characters:
            return _too_long("It", most_characters)
        if fault := find_fault(text):
            return ProblemError("unreadable-text", f"It {fault}. Send text, or leave it out.")
    return None
