"""The description in /openapi.json: every status a route may answer, with its headers and what it
holds.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from litotes.service.problems import MEDIA_TYPE, PROBLEM_KINDS
from litotes.service.response_models import Problem
from litotes.service.settings import ServiceSettings

_PROBLEM = {"$ref": "#/components/schemas/Problem"}
_HEADERS = {
    401: {"WWW-Authenticate": {"required": True, "schema": {"type": "string", "const": "Bearer"}}},
    405: {"Allow": {"required": True, "schema": {"type": "string"}}},
    429: {"Retry-After": {"required": True, "schema": {"type": "integer", "minimum": 1}}},
    503: {"Retry-After": {"required": True, "schema": {"type": "integer", "minimum": 1}}},
}
_ID = {
    "X-Request-Id": {
        "required": True,
        "schema": {"type": "string"},
        "description": "Under which the request is in the log.",
    }
}


def response_docs(
    answer: type[BaseModel] | None, *statuses: int, media_type: str = "application/json"
) -> dict[str, Any]:
    """For a route's decorator: its answers, good (200) and bad. answer None: no JSON."""
    good: dict[str, Any] = {"description": "The answer.", "headers": _ID}
    if answer is None:
        good["content"] = {media_type: {"schema": {"type": "string"}}}
    else:
        good["model"] = answer
    return {
        "response_model": None,
        "responses": {200: good, **{status: _problem(status) for status in statuses}},
    }


def _problem(status: int) -> dict[str, Any]:
    titles = [kind.title for kind in PROBLEM_KINDS.values() if kind.status == status]
    return {
        "description": "; ".join(titles) + ".",
        "headers": _ID | _HEADERS.get(status, {}),
        "content": {MEDIA_TYPE: {"schema": _PROBLEM}},
    }


def description(app: FastAPI, settings: ServiceSettings) -> dict[str, Any]:
    """FastAPI's, with the limits of this service and with the token where there is one."""
    content = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    schemas = content["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own, which are never sent
        schemas.pop(name, None)
    schemas["Problem"] = Problem.model_json_schema()
    schemas["OneText"]["properties"]["text"]["maxLength"] = settings.max_characters
    many = schemas["ManyTexts"]["properties"]["texts"]
    many["maxItems"], many["items"]["maxLength"] = (
        settings.max_texts_per_request,
        settings.max_characters,
    )
    schemas["ExplainBody"]["properties"]["text"]["maxLength"] = settings.max_explained_characters
    if settings.token is not None:
        content["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, operations in content["paths"].items():
            if path.startswith("/v1/") or path == "/metrics":
                for operation in operations.values():
                    operation["security"] = [{"token": []}]
    return content
