"""The bodies of `POST /predict`, in the shape that clients of text-embeddings-inference send.

    "inputs": "a text"                              one text      [{"score": …, "label": …}, …]
    "inputs": ["a text", "another"]                 one pair, by a model of pairs; else two texts
    "inputs": [["a text"], ["a text", "another"]]   several       [[{…}, …], [{…}, …]]

Errors have its shape too: {"error": a sentence, "error_type": its kind}.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from litotes.core.json_text import to_json
from litotes.service.flat_json import MOST_IN_PAIR, Item
from litotes.service.problems import PROBLEM_KINDS, ProblemError, wrong_shape_error
from litotes.service.request_models import (
    TEXT_PATTERN,
    StrictModel,
    find_item_problem,
    read_values,
    validate,
)
from litotes.service.settings import ServiceSettings

PATH = "/predict"

_ERROR_TYPES = {
    "unreadable-text": "Tokenizer",
    "busy": "Overloaded",
    "too-late": "Overloaded",
    "bug": "Backend",
    "loading": "Unhealthy",
    "draining": "Unhealthy",
}
"""By the name of a problem; any other is a Validation."""


def _check_direction(name: str) -> str:
    if name.casefold() != "right":
        raise PydanticCustomError("unknown_direction", "unknown")
    return name


Direction = Annotated[
    str, AfterValidator(_check_direction), Field(json_schema_extra={"enum": ["Right", "right"]})
]


def _check_inputs(inputs: Any) -> str | list[Any]:
    if not isinstance(inputs, str | list):
        raise PydanticCustomError("inputs_type", "neither")
    return inputs


_TEXT_SCHEMA = {"type": "string", "pattern": TEXT_PATTERN}
_SIDES_SCHEMA = {
    "type": "array",
    "items": _TEXT_SCHEMA,
    "minItems": 1,
    "maxItems": MOST_IN_PAIR,
}
Inputs = Annotated[
    Any,
    AfterValidator(_check_inputs),
    WithJsonSchema(
        {
            "anyOf": [
                _TEXT_SCHEMA,
                {
                    "type": "array",
                    "items": {"anyOf": [_TEXT_SCHEMA, _SIDES_SCHEMA]},
                    "minItems": 1,
                },
            ]
        }
    ),
]
"""What stands in the lists is checked item by item: an error names the place."""


class InferenceBody(StrictModel):
    """A text, a pair of texts, or several of both, as text-embeddings-inference takes them."""

    inputs: Inputs = Field(
        description=(
            "A string; a list of strings (two are a pair for a model of pairs, else each is a"
            " text); or a list with lists of one string or two."
        )
    )
    truncate: bool | None = Field(
        default=None, description="Whether the end of a text that is too long may go unread."
    )
    truncation_direction: Direction = Field(default="Right", description="No other is offered.")
    raw_scores: bool = Field(
        default=False, description="Give the model's outputs in place of probabilities."
    )
    task: str | None = Field(default=None, description="null: the model's first one.")
    model: str | None = Field(
        default=None, description="One of GET /v1/models; null: the default one."
    )


class LabelScore(BaseModel):
    """A label, with its probability or the model's output for it."""

    score: float
    label: str


class InferenceError(BaseModel):
    """Why there is no answer."""

    error: str = Field(description="What to do.")
    error_type: Literal["Validation", "Tokenizer", "Overloaded", "Backend", "Unhealthy"]


@dataclass(frozen=True)
class AskedInputs:
    """items: texts, or lists of two. is_batch: whether the answer is a list of lists."""

    items: Sequence[Item]
    is_batch: bool


def read_inference_body(body: bytes, settings: ServiceSettings) -> InferenceBody:
    values = read_values(body, settings.max_texts_per_request, fewest_in_pair={"inputs": 1})
    return validate(InferenceBody, values)


def read_inputs(
    body: InferenceBody, settings: ServiceSettings, *, takes_pairs: bool
) -> AskedInputs:
    """What the inputs mean to this model; the first that is wrong ends the request."""
    asked = _asked(body.inputs, takes_pairs=takes_pairs)
    if not asked.items:
        raise wrong_shape_error([("too_short", ("inputs",))])
    for place, item in enumerate(asked.items):
        problem = find_item_problem(item, max_characters=settings.max_characters)
        if problem is not None:
            where = f"Of `inputs` number {place}: " if asked.is_batch else ""
            raise ProblemError(problem.name, where + problem.detail)
    return asked


def _asked(inputs: str | list[Any], *, takes_pairs: bool) -> AskedInputs:
    if isinstance(inputs, str):
        return AskedInputs([inputs], is_batch=False)
    if any(isinstance(item, list) for item in inputs):
        return AskedInputs(inputs, is_batch=True)
    if takes_pairs and len(inputs) == MOST_IN_PAIR:
        return AskedInputs([inputs], is_batch=False)
    return AskedInputs(inputs, is_batch=len(inputs) > 1)


def error_body(problem: ProblemError) -> bytes:
    """A problem in the shape of text-embeddings-inference."""
    sentence = f"{PROBLEM_KINDS[problem.name].title}. {problem.detail}"
    kind = _ERROR_TYPES.get(problem.name, "Validation")
    return to_json({"error": sentence, "error_type": kind}).encode()
