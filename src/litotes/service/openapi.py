"""The schema in /openapi.json: each status a route may answer with, its headers, its content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from litotes.service.answers import InferenceError, Problem
from litotes.service.bodies import REQUESTS
from litotes.service.guard import needs_token
from litotes.service.problems import MEDIA_TYPE, PROBLEM_KINDS
from litotes.service.settings import ServiceSettings

_RETRY = {"Retry-After": {"required": True, "schema": {"type": "integer", "minimum": 1}}}
_HEADERS_BY_STATUS = {
    401: {"WWW-Authenticate": {"required": True, "schema": {"type": "string", "const": "Bearer"}}},
    405: {"Allow": {"required": True, "schema": {"type": "string"}}},
    429: _RETRY,
    503: _RETRY,
}
_ID_HEADER = {
    "X-Request-Id": {
        "required": True,
        "schema": {"type": "string"},
        "description": "Under which the request is in the log.",
    }
}


def _reference(model: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{model}"}


def describe_route(
    answer: Any, statuses: Sequence[int], *asked: str, is_inference: bool = False
) -> dict[str, Any]:
    """Keyword arguments for a route's decorator: what it is asked, its success, its problems.

    answer: the model of its JSON; `str` for text. asked: models, one of which the body has. FastAPI
    does not read the body itself: it would read all of it before anyone looks at it.
    """
    success: dict[str, Any] = {"description": "The answer.", "headers": _ID_HEADER}
    if answer is str:
        success["content"] = {"text/plain": {"schema": {"type": "string"}}}
    else:
        success["model"] = answer
    responses = {200: success}
    media_type, failure = MEDIA_TYPE, "Problem"
    if is_inference:
        media_type, failure = "application/json", "InferenceError"
    for status in statuses:
        titles = [kind.title for kind in PROBLEM_KINDS.values() if kind.status == status]
        responses[status] = {
            "description": "; ".join(titles) + ".",
            "headers": _ID_HEADER | _HEADERS_BY_STATUS.get(status, {}),
            "content": {media_type: {"schema": _reference(failure)}},
        }
    described: dict[str, Any] = {"response_model": None, "responses": responses}
    if asked:
        content = {"application/json": {"schema": {"oneOf": list(map(_reference, asked))}}}
        described["openapi_extra"] = {"requestBody": {"content": content, "required": True}}
    return described


def openapi_schema(app: FastAPI, settings: ServiceSettings) -> dict[str, Any]:
    """FastAPI's schema with the limits of this service, and with its token if it has one."""
    content = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    schemas = content["components"]["schemas"]
    models: tuple[type[BaseModel], ...] = (Problem, InferenceError, *REQUESTS)
    for model in models:
        schemas[model.__name__] = model.model_json_schema()
    _set_limits(schemas, settings)
    if settings.token is not None:
        content["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, operations in content["paths"].items():
            if needs_token(path):
                for operation in operations.values():
                    operation["security"] = [{"token": []}]
    return content


def _set_limits(schemas: dict[str, Any], settings: ServiceSettings) -> None:
    one, many, explained, inference = (schemas[model.__name__]["properties"] for model in REQUESTS)
    text, several = inference["inputs"]["anyOf"]
    text["maxLength"] = settings.max_characters
    for texts in (many["texts"], several):
        texts["maxItems"] = settings.max_texts_per_request
    for body, most in (
        (one, settings.max_characters),
        (explained, settings.max_explained_characters),
    ):
        body["text"]["maxLength"] = body["pair"]["anyOf"][0]["maxLength"] = most
