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
from litotes.service.batcher import Full
from litotes.service.described import described
from litotes.service.exchange import Exchange
from litotes.service.guard import busy
from litotes.service.models import check_task
from litotes.service.problems import Refusal
from litotes.service.requests import ExplainBody, PredictBody, check_sizes
from litotes.service.responses import Explanation, ModelList, Predictions
from litotes.service.state import Service

_SHOWN = ("occlusion", "effective", "standard")
"""Asked where nobody says which methods: the most faithful one, and the two kinds of attention side
by side.
"""


def api_routes(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/v1")
    settings = service.settings

    @routes.post(
        "/predict",
        **described(Predictions, 400, 401, 403, 404, 405, 408, 413, 415, 422, 429, 500, 503, 504),
    )
    async def predict(body: PredictBody, request: Request) -> Response:
        """Labels and probabilities for one text or several, in their order."""
        exchange: Exchange = request.state.exchange
        texts = body.all_texts
        check_sizes(texts, settings)
        name, predictor = service.models.pick(body.model)
        exchange.n_texts, exchange.n_characters = len(texts), sum(map(len, texts))
        try:
            job = service.batcher.submit(predictor, texts, exchange.deadline)
            predictions = await exchange.outcome(job.future)
        except Full as full:
            raise busy(full.seconds) from full
        except UserError as error:
            raise Refusal("unreadable-text", str(error)) from error
        return json_response(
            {"model": name, "predictions": [as_json(prediction) for prediction in predictions]}
        )

    @routes.post(
        "/explain",
        **described(Explanation, 400, 401, 403, 404, 405, 408, 413, 415, 422, 429, 500, 503, 504),
    )
    async def explain(body: ExplainBody, request: Request) -> Response:
        """What an answer rests on: words and their weights, who left at which layer, attention
        between words.
        """
        exchange: Exchange = request.state.exchange
        check_sizes([body.text], settings, most_characters=settings.most_explained_characters)
        _, predictor = service.models.pick(body.model)
        check_task(predictor, body.task)
        exchange.n_texts, exchange.n_characters = 1, len(body.text)
        try:
            content = await exchange.outcome(
                service.explainer.submit(partial(explained, predictor, body), exchange.deadline)
            )
        except Full as full:
            raise busy(full.seconds) from full
        except UserError as error:
            raise Refusal("unreadable-text", str(error)) from error
        return Response(content, media_type="application/json")

    @routes.get("/models", **described(ModelList, 400, 401, 403, 405, 500, 503))
    async def models() -> Response:
        """The models, the methods of explanation, and the limits."""
        limits = {
            "texts": settings.texts_in_a_request,
            "characters": settings.most_characters,
            "explained_characters": settings.most_explained_characters,
            "body_bytes": settings.most_body_bytes,
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
        methods=_SHOWN if body.methods is None else body.methods,
        faithfulness=body.faithfulness,
        watch=watch,
    )
    return _json(explanation.as_json(maps=False) | {"layers": word_maps(explanation)})


def json_response(content: Any) -> Response:
    return Response(_json(content), media_type="application/json")


def _json(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
