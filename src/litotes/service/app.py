"""The service as an ASGI app.

The same predictor answers here, in Python and on the command line.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from litotes.core.version import __version__
from litotes.service.guard import GuardedRequest
from litotes.service.openapi import openapi_schema
from litotes.service.problems import ProblemError
from litotes.service.routes import router
from litotes.service.settings import ServiceSettings
from litotes.service.state import Models, Service

if TYPE_CHECKING:
    from litotes.training.tagging.tagger import Tagger


class GuardedApp(FastAPI):
    """FastAPI behind the guard.

    It leaves out what FastAPI itself puts around an app: telemetry, which can be switched on from
    outside.
    """

    service: Service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = partial(Starlette.__call__, self)
        if scope["type"] == "http":
            await GuardedRequest(self.service, scope, receive, send).answer(app)
        else:
            await app(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = openapi_schema(self, self.service.settings)
        return self.openapi_schema


def create_app(
    models: Models,
    *,
    settings: ServiceSettings | None = None,
    load_locus: Callable[[], Tagger] | None = None,
) -> FastAPI:
    """models: predictors by name, of which the first is the default; or a function that loads them
    once the service is up. load_locus: loads, before them, a model of words whose marks are part of
    explanations.

    The server that runs the app finds the service's state in `app.state.service`.
    """
    service = Service(models, settings or ServiceSettings(), load_locus)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        try:
            yield
        finally:
            service.close()

    app = GuardedApp(
        title="litotes",
        version=__version__,
        description="Sentiment and sarcasm of texts, and what the answers rest on.",
        docs_url=None,  # these pages load scripts from other sites
        redoc_url=None,
        redirect_slashes=False,  # one path, one meaning
        lifespan=lifespan,
    )
    app.service = app.state.service = service
    app.include_router(router)
    for kind in (Exception, HTTPException):
        app.add_exception_handler(kind, _raise_problem)
    return app


async def _raise_problem(request: Request, error: Exception) -> NoReturn:
    """Starlette is to answer neither a bug nor an unknown path or method: the guard does."""
    if isinstance(error, HTTPException) and error.status_code == 404:
        raise ProblemError("unknown-path", "GET /openapi.json lists the paths there are.")
    if isinstance(error, HTTPException) and error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "another method")
        raise ProblemError("wrong-method", f"This path takes {allowed}.", Allow=allowed)
    raise error
