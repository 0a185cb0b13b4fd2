"""The routes of /v1: labels, explanations, and what this service offers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from litotes.core.errors import UserError
from litotes.core.json_text import to_json
from litotes.core.progress import Watch
from litotes.core.version import __version__
from litotes.explanation.attribution import METHODS
from litotes.explanation.explain import METHOD
from litotes.explanation.word_maps import word_maps
from litotes.prediction.columns import as_json, columns_of
from litotes.prediction.predictor import Predictor
from litotes.service.batcher import QueueFull
from litotes.service.models import check_task
from litotes.service.openapi import response_docs
from litotes.service.problems import ProblemError, queue_full_error
from litotes.service.request_context import RequestContext
from litotes.service.request_models import ExplainBody, PredictBody, check_sizes
from litotes.service.response_models import Explanation, ModelList, Predictions
from litotes.service.settings import ServiceSettings

_DEFAULT_METHODS = ("occlusion", "effective", "standard")
"""For a request that names no methods: the most faithful one, and both kinds of attention, to be
compared.
"""
_POST_PROBLEMS = (400, 401, 403, 404, 405, 408, 413, 415, 422, 429, 500, 503, 504)
_GET_PROBLEMS = (400, 401, 403, 405, 500, 503)

router = APIRouter(prefix="/v1")


@router.post("/predict", **response_docs(Predictions, *_POST_PROBLEMS))
async def predict(body: PredictBody, request: Request) -> Response:
    """Labels and probabilities for one text or several, in their order."""
    context: RequestContext = request.state.context
    service, texts = context.service, body.all_texts
    check_sizes(texts, service.settings)
    name, predictor = service.models.pick(body.model)
    context.count_texts(texts)
    with queue_problems():
        job = service.batcher.submit(predictor, texts, context.deadline)
        predictions = await context.wait_for(job.future)
    columns = columns_of(predictor.tasks)
    answers = [as_json(prediction, columns) for prediction in predictions]
    return json_response({"model": name, "predictions": answers})


@router.post("/explain", **response_docs(Explanation, *_POST_PROBLEMS))
async def explain(body: ExplainBody, request: Request) -> Response:
    """What an answer rests on: words and their weights, who left at which layer, attention
    between words.
    """
    context: RequestContext = request.state.context
    service = context.service
    max_characters = service.settings.max_explained_characters
    check_sizes([body.text], service.settings, max_characters=max_characters)
    _, predictor = service.models.pick(body.model)
    check_task(predictor, body.task)
    context.count_texts([body.text])
    with queue_problems():
        work = partial(explanation_json, predictor, body)
        content = await context.wait_for(service.explainer.submit(work, context.deadline))
    return Response(content, media_type="application/json")


@router.get("/models", **response_docs(ModelList, *_GET_PROBLEMS))
async def models(request: Request) -> Response:
    """The models, the methods of explanation, and the limits."""
    context: RequestContext = request.state.context
    service = context.service
    content = {
        "models": service.models.descriptions,
        "methods": list(METHODS),
        "limits": _limits(service.settings),
        "version": __version__,
    }
    return json_response(content)


@contextmanager
def queue_problems() -> Iterator[None]:
    """Turns what a queue or the model raises for this request into the problem to answer with."""
    try:
        yield
    except QueueFull as full:
        raise queue_full_error(full.seconds) from full
    except UserError as error:
        raise ProblemError("unreadable-text", str(error)) from error


def explanation_json(predictor: Predictor, body: ExplainBody, watch: Watch) -> bytes:
    """Explains and encodes, all in the thread for explanations."""
    explanation = predictor.explain(
        body.text,
        task=body.task,
        method=body.method or METHOD,
        methods=_DEFAULT_METHODS if body.methods is None else body.methods,
        faithfulness=body.faithfulness,
        watch=watch,
    )
    return _to_json(explanation.as_json(maps=False) | {"layers": word_maps(explanation)})


def json_response(content: Any) -> Response:
    return Response(_to_json(content), media_type="application/json")


def _to_json(content: Any) -> bytes:
    return to_json(content).encode()


def _limits(settings: ServiceSettings) -> dict[str, float]:
    return {
        "texts": settings.max_texts_per_request,
        "characters": settings.max_characters,
        "explained_characters": settings.max_explained_characters,
        "body_bytes": settings.max_body_bytes,
        "seconds": settings.seconds,
    }
