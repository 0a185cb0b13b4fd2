"""/v1: labels, explanations, and what there is."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from litotes.core.errors import UserError
from litotes.core.progress import Watch
from litotes.core.version import __version__
from litotes.explain.attribution import METHODS
from litotes.explain.explain import METHOD
from litotes.explain.word_maps import word_maps
from litotes.predict.predictor import Predictor
from litotes.predict.tables.file import as_json
from litotes.service.batcher import QueueFull
from litotes.service.middleware import queue_full_error
from litotes.service.models import check_task
from litotes.service.openapi import response_docs
from litotes.service.problems import ProblemError
from litotes.service.request_context import RequestContext
from litotes.service.request_models import ExplainBody, PredictBody, check_sizes
from litotes.service.response_models import Explanation, ModelList, Predictions
from litotes.service.state import Service

_DEFAULT_METHODS = ("occlusion", "effective", "standard")
"""Asked where nobody says which methods: the most faithful one, and the two kinds of attention side
by side.
"""


def api_routes(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/v1")
    settings = service.settings

    @routes.post(
        "/predict",
        **response_docs(
            Predictions, 400, 401, 403, 404, 405, 408, 413, 415, 422, 429, 500, 503, 504
        ),
    )
    async def predict(body: PredictBody, request: Request) -> Response:
        """Labels and probabilities for one text or several, in their order."""
        context: RequestContext = request.state.context
        texts = body.all_texts
        check_sizes(texts, settings)
        name, predictor = service.models.pick(body.model)
        context.n_texts, context.n_characters = len(texts), sum(map(len, texts))
        try:
            job = service.batcher.submit(predictor, texts, context.deadline)
            predictions = await context.outcome(job.future)
        except QueueFull as full:
            raise queue_full_error(full.seconds) from full
        except UserError as error:
            raise ProblemError("unreadable-text", str(error)) from error
        return json_response(
            {"model": name, "predictions": [as_json(prediction) for prediction in predictions]}
        )

    @routes.post(
        "/explain",
        **response_docs(
            Explanation, 400, 401, 403, 404, 405, 408, 413, 415, 422, 429, 500, 503, 504
        ),
    )
    async def explain(body: ExplainBody, request: Request) -> Response:
        """What an answer rests on: words and their weights, who left at which layer, attention
        between words.
        """
        context: RequestContext = request.state.context
        check_sizes([body.text], settings, max_characters=settings.max_explained_characters)
        _, predictor = service.models.pick(body.model)
        check_task(predictor, body.task)
        context.n_texts, context.n_characters = 1, len(body.text)
        try:
            content = await context.outcome(
                service.explainer.submit(partial(explained, predictor, body), context.deadline)
            )
        except QueueFull as full:
            raise queue_full_error(full.seconds) from full
        except UserError as error:
            raise ProblemError("unreadable-text", str(error)) from error
        return Response(content, media_type="application/json")

    @routes.get("/models", **response_docs(ModelList, 400, 401, 403, 405, 500, 503))
    async def models() -> Response:
        """The models, the methods of explanation, and the limits."""
        limits = {
            "texts": settings.max_texts_per_request,
            "characters": settings.max_characters,
            "explained_characters": settings.max_explained_characters,
            "body_bytes": settings.max_body_bytes,
            "seconds": settings.seconds,
        }
        content = {
            "models": service.models.descriptions,
            "methods": list(METHODS),
            "limits": limits,
            "version": __version__,
        }
        return json_response(content)

    return routes


def explained(predictor: Predictor, body: ExplainBody, watch: Watch) -> bytes:
    """An explanation as JSON, made whole in the thread that explains."""
    explanation = predictor.explain(
        body.text,
        task=body.task,
        method=body.method or METHOD,
        methods=_DEFAULT_METHODS if body.methods is None else body.methods,
        faithfulness=body.faithfulness,
        watch=watch,
    )
    return _json(explanation.as_json(maps=False) | {"layers": word_maps(explanation)})


def json_response(content: Any) -> Response:
    return Response(_json(content), media_type="application/json")


def _json(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
