"""The models of request bodies.

Limits of length are not part of them but checked after them: too long is answered with 413, a wrong
shape with 422.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from litotes.explanation.attribution import METHODS
from litotes.service.problems import ProblemError
from litotes.service.settings import ServiceSettings

_SURROGATE = re.compile("[\ud800-\udfff]")
_MODEL = Field(default=None, description="One of GET /v1/models; null: the default one.")


def _check_text(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("blank", "blank")
    if not text.isascii() and _SURROGATE.search(text):
        raise PydanticCustomError("surrogate", "surrogate")
    return text


Text = Annotated[
    str, AfterValidator(_check_text), Field(json_schema_extra={"pattern": r"[^\s\x1c-\x1f]"})
]
"""Not only white space, as Python defines it, and no lone surrogates."""


def _check_method(name: str) -> str:
    if name not in METHODS:
        raise PydanticCustomError("unknown_method", "unknown")
    return name


MethodName = Annotated[
    str, AfterValidator(_check_method), Field(json_schema_extra={"enum": list(METHODS)})
]


class _StrictModel(BaseModel):
    """Values are not converted, and unknown keys are errors."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class OneText(_StrictModel):
    """A text to label."""

    text: Text = Field(description="Not blank.")
    model: str | None = _MODEL

    @property
    def all_texts(self) -> list[str]:
        return [self.text]


class ManyTexts(_StrictModel):
    """Several texts to label together."""

    texts: list[Text] = Field(min_length=1, description="None of them blank.")
    model: str | None = _MODEL

    @property
    def all_texts(self) -> list[str]:
        return self.texts


def _body_tag(body: Any) -> str:
    return "many" if isinstance(body, dict) and "texts" in body else "one"


PredictBody = Annotated[
    Annotated[OneText, Tag("one")] | Annotated[ManyTexts, Tag("many")], Discriminator(_body_tag)
]


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
        default=None, description="Those to ask beside it; null: occlusion, effective, standard."
    )
    faithfulness: bool = Field(
        default=False,
        description="Also measure how far each can be believed, which takes most of the time.",
    )
    model: str | None = _MODEL


def check_sizes(
    texts: Sequence[str], settings: ServiceSettings, *, max_characters: int | None = None
) -> None:
    if max_characters is None:
        max_characters = settings.max_characters
    max_texts = settings.max_texts_per_request
    if len(texts) > max_texts:
        sentence = f"A request may have {max_texts} texts. Send them in several."
        raise ProblemError("too-large", sentence)
    for number, text in enumerate(texts, start=1):
        if len(text) > max_characters:
            sentence = f"Text {number} has more than {max_characters:,} characters."
            raise ProblemError("too-large", f"{sentence} Cut it into parts.")
