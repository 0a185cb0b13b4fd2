"""Routes for the operators of the service: liveness, readiness and metrics."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from litotes.service.api import json_response
from litotes.service.metrics import CONTENT_TYPE
from litotes.service.openapi import response_docs
from litotes.service.request_context import RequestContext
from litotes.service.response_models import Status

router = APIRouter()


@router.get("/live", **response_docs(Status, 400, 403, 405, 500))
async def live() -> Response:
    """The process runs."""
    return json_response({"status": "live"})


@router.get("/ready", **response_docs(Status, 400, 403, 405, 500, 503))
async def ready(request: Request) -> Response:
    """The models are loaded and the service is not stopping."""
    context: RequestContext = request.state.context
    context.service.check_ready()
    return json_response({"status": "ready"})


@router.get("/metrics", **response_docs(None, 400, 401, 403, 405, 500, media_type="text/plain"))
async def metrics(request: Request) -> Response:
    """Counters in the text format of Prometheus."""
    context: RequestContext = request.state.context
    return Response(context.service.metrics.render(), media_type=CONTENT_TYPE)
