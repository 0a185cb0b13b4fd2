"""The service as an ASGI app.

The same predictor answers here, in Python and on the command line.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from litotes.core.version import __version__
from litotes.service import api, probes, tei_route
from litotes.service.middleware import GuardMiddleware
from litotes.service.openapi import openapi_schema
from litotes.service.page_files import page_routes
from litotes.service.problems import raise_http_problem, reraise
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
    guard: GuardMiddleware

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.guard(scope, receive, send)

    async def call_unguarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        await Starlette.__call__(self, scope, receive, send)

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
    app.guard = GuardMiddleware(app.call_unguarded, service)
    for router in (api.router, tei_route.router, probes.router, page_routes()):
        app.include_router(router)
    app.add_exception_handler(Exception, reraise)
    app.add_exception_handler(HTTPException, raise_http_problem)
    return app
