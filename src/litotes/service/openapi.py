"""The schema in /openapi.json: each status a route may answer with, its headers, its content."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from litotes.service.problems import MEDIA_TYPE, PROBLEM_KINDS
from litotes.service.request_context import is_asking_path
from litotes.service.request_models import ExplainBody, ManyTexts, OneText
from litotes.service.response_models import Problem
from litotes.service.settings import ServiceSettings
from litotes.service.tei_models import InferenceBody

_PROBLEM_SCHEMA = {"$ref": "#/components/schemas/Problem"}
_HEADERS_BY_STATUS = {
    401: {"WWW-Authenticate": {"required": True, "schema": {"type": "string", "const": "Bearer"}}},
    405: {"Allow": {"required": True, "schema": {"type": "string"}}},
    429: {"Retry-After": {"required": True, "schema": {"type": "integer", "minimum": 1}}},
    503: {"Retry-After": {"required": True, "schema": {"type": "integer", "minimum": 1}}},
}
ID_HEADER = {
    "X-Request-Id": {
        "required": True,
        "schema": {"type": "string"},
        "description": "Under which the request is in the log.",
    }
}


def request_docs(*models: str) -> dict[str, Any]:
    """Keyword arguments for a route's decorator: a body of one of these models.

    FastAPI does not read the body itself: it would read all of it before anyone looks at it.
    """
    references = [{"$ref": f"#/components/schemas/{model}"} for model in models]
    schema = references[0] if len(references) == 1 else {"oneOf": references}
    content = {"application/json": {"schema": schema}}
    return {"openapi_extra": {"requestBody": {"content": content, "required": True}}}


def response_docs(
    answer: type[BaseModel] | None, *statuses: int, media_type: str = "application/json"
) -> dict[str, Any]:
    """Keyword arguments for a route's decorator: its success (200) and its problems.

    answer: the model of the JSON it answers with; None where that is not JSON.
    """
    success: dict[str, Any] = {"description": "The answer.", "headers": ID_HEADER}
    if answer is None:
        success["content"] = {media_type: {"schema": {"type": "string"}}}
    else:
        success["model"] = answer
    responses = {200: success}
    for status in statuses:
        responses[status] = problem_docs(status) | {
            "content": {MEDIA_TYPE: {"schema": _PROBLEM_SCHEMA}}
        }
    return {"response_model": None, "responses": responses}


def problem_docs(status: int) -> dict[str, Any]:
    """What is said of a status, without the content of its answer."""
    titles = [kind.title for kind in PROBLEM_KINDS.values() if kind.status == status]
    return {
        "description": "; ".join(titles) + ".",
        "headers": ID_HEADER | _HEADERS_BY_STATUS.get(status, {}),
    }


def openapi_schema(app: FastAPI, settings: ServiceSettings) -> dict[str, Any]:
    """FastAPI's schema with the limits of this service, and with its token if it has one."""
    content = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    schemas = content["components"]["schemas"]
    for model in (Problem, OneText, ManyTexts, ExplainBody, InferenceBody):
        schemas[model.__name__] = model.model_json_schema()
    _set_limits(schemas, settings)
    if settings.token is not None:
        _require_token(content)
    return content


def _set_limits(schemas: dict[str, Any], settings: ServiceSettings) -> None:
    longest = {
        "OneText": settings.max_characters,
        "ExplainBody": settings.max_explained_characters,
    }
    for name, most in longest.items():
        own = schemas[name]["properties"]
        own["text"]["maxLength"] = most
        own["pair"]["anyOf"][0]["maxLength"] = most
    many = schemas["ManyTexts"]["properties"]["texts"]
    many["maxItems"] = settings.max_texts_per_request
    text, several = schemas["InferenceBody"]["properties"]["inputs"]["anyOf"]
    several["maxItems"] = settings.max_texts_per_request
    text["maxLength"] = settings.max_characters


def _require_token(content: dict[str, Any]) -> None:
    content["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, operations in content["paths"].items():
        if is_asking_path(path) or path == "/metrics":
            for operation in operations.values():
                operation["security"] = [{"token": []}]
