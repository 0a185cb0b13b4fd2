"""For those who watch over the service: whether it lives, whether it is ready, and its counters."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from litotes.service.api import json_response
from litotes.service.metrics import CONTENT_TYPE
from litotes.service.openapi import response_docs
from litotes.service.response_models import Status
from litotes.service.state import Service


def probe_routes(service: Service) -> APIRouter:
    routes = APIRouter()

    @routes.get("/live", **response_docs(Status, 400, 403, 405, 500))
    async def live() -> Response:
        """The process runs."""
        return json_response({"status": "live"})

    @routes.get("/ready", **response_docs(Status, 400, 403, 405, 500, 503))
    async def ready() -> Response:
        """The models are loaded and the service is not stopping."""
        service.check_ready()
        return json_response({"status": "ready"})

    @routes.get("/metrics", **response_docs(None, 400, 401, 403, 405, 500, media_type="text/plain"))
    async def metrics() -> Response:
        """Counters in the text format of Prometheus."""
        return Response(service.metrics.page(), media_type=CONTENT_TYPE)

    return routes
