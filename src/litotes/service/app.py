"""The service as an ASGI app: what is asked over HTTP is what Python and the command line ask,
answered by the same predictor.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from litotes.core.version import __version__
from litotes.service.api import api_routes
from litotes.service.middleware import GuardMiddleware
from litotes.service.openapi import description
from litotes.service.page_files import page_routes
from litotes.service.probes import probe_routes
from litotes.service.problems import raise_http_problem, raise_validation_problem, reraise
from litotes.service.settings import ServiceSettings
from litotes.service.state import Models, Service


class GuardedApp(FastAPI):
    """FastAPI behind the guard, without what FastAPI itself puts around an app (telemetry, which
    can be switched on from outside).
    """

    guard: GuardMiddleware

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.guard(scope, receive, send)

    async def call_unguarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        await Starlette.__call__(self, scope, receive, send)


def create_app(models: Models, *, settings: ServiceSettings | None = None) -> FastAPI:
    """models: predictors by name, the first answers by default; or a function that loads them once
    the service is up.

    What runs it finds the service's state in `app.state.service`.
    """
    service = Service(models, settings or ServiceSettings())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        service.close()

    app = GuardedApp(
        title="litotes",
        version=__version__,
        description="Sentiment and sarcasm of texts, and what the answers rest on.",
        docs_url=None,  # they load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # one path, one meaning
        lifespan=lifespan,
    )
    app.state.service = service
    for routes in (api_routes(service), probe_routes(service), page_routes()):
        app.include_router(routes)
    app.add_exception_handler(Exception, reraise)
    app.add_exception_handler(HTTPException, raise_http_problem)
    app.add_exception_handler(RequestValidationError, raise_validation_problem)
    app.guard = GuardMiddleware(app.call_unguarded, service)
    app.openapi = lambda: _once(app, service.settings)  # type: ignore[method-assign]
    return app


def _once(app: FastAPI, settings: ServiceSettings) -> dict[str, Any]:
    if app.openapi_schema is None:
        app.openapi_schema = description(app, settings)
    return app.openapi_schema
