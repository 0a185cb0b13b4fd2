"""The routes of /v1: labels, explanations, and what this service offers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from litotes.core.errors import UserError
from litotes.core.json_text import to_json
from litotes.core.progress import Watch
from litotes.core.values import Prediction
from litotes.core.version import __version__
from litotes.explanation.attribution import available_methods
from litotes.explanation.explain import METHOD
from litotes.explanation.explanation import Explanation as ModelExplanation
from litotes.explanation.marked_words import marks_json
from litotes.prediction.answers import as_json
from litotes.prediction.predictor import Predictor, TokenizedText
from litotes.service.batcher import QueueFull
from litotes.service.flat_json import Item
from litotes.service.models import check_task
from litotes.service.openapi import request_docs, response_docs
from litotes.service.problems import ProblemError, queue_full_error
from litotes.service.request_context import RequestContext
from litotes.service.request_models import (
    ExplainBody,
    find_item_problem,
    read_explain_body,
    read_predict_body,
    texts_of,
)
from litotes.service.response_models import Explanation, ModelList, Predictions
from litotes.service.settings import ServiceSettings

if TYPE_CHECKING:
    from litotes.training.tagging.tagger import Tagger

_DEFAULT_METHODS = tuple(
    name for name in ("occlusion", "effective", "standard") if name in available_methods()
)
"""For a request that names no methods: the most faithful one, and both kinds of attention, to be
compared.
"""
_POST_PROBLEMS = (400, 401, 403, 404, 405, 408, 413, 415, 422, 429, 500, 501, 503, 504)
_GET_PROBLEMS = (400, 401, 403, 405, 500, 503)

router = APIRouter(prefix="/v1")


@router.post(
    "/predict",
    **request_docs("OneText", "ManyTexts"),
    **response_docs(Predictions, *_POST_PROBLEMS),
)
async def predict(request: Request) -> Response:
    """Labels and probabilities for one text or several, in their order.

    Of several, each may fail alone, with a problem of its own in place of its answers.
    """
    context: RequestContext = request.state.context
    service = context.service
    with model_problems():
        asked = await context.read(partial(read_texts, context))
        predictions = await compute(context, asked) if asked.tokenized else []
    service.metrics.bad_texts.inc(len(asked.problems))
    return json_response({"model": asked.model, "predictions": documents(asked, predictions)})


@dataclass(frozen=True)
class AskedTexts:
    """What a request for labels asks for.

    problems: by the place of the text. tokenized: the texts without one.
    """

    model: str
    predictor: Predictor
    texts: Sequence[Item]
    problems: Mapping[int, ProblemError]
    tokenized: Sequence[TokenizedText]


def read_texts(context: RequestContext) -> AskedTexts:
    settings = context.service.settings
    body = read_predict_body(context.body, settings)
    model, predictor = context.service.models.pick(body.model, body.variety)
    context.count_texts(body.all_texts)
    good, problems = [], {}
    for place, item in enumerate(body.all_texts):
        problem = find_item_problem(item, max_characters=settings.max_characters)
        if problem is not None:
            problems[place] = problem
        else:
            good.append(item)
    return AskedTexts(model, predictor, body.all_texts, problems, tokenize(predictor, good))


def tokenize(predictor: Predictor, items: Sequence[Item]) -> list[TokenizedText]:
    """Texts and pairs without a problem."""
    texts, pairs = [], []
    for item in items:
        text, pair = texts_of(item)
        texts.append(str(text))
        pairs.append(None if pair is None else str(pair))
    return predictor.tokenize(texts, pairs if any(pairs) else None)


async def compute(context: RequestContext, asked: AskedTexts) -> list[Prediction]:
    """Of the texts without a problem; the others never wait in the queue."""
    job = context.service.batcher.submit(
        context.client, asked.predictor, asked.tokenized, context.deadline
    )
    return await context.wait_for(job.future)


def documents(asked: AskedTexts, predictions: Sequence[Prediction]) -> list[dict[str, Any]]:
    """The JSON of every text, in the order in which they were sent."""
    tasks, computed = asked.predictor.tasks, iter(predictions)
    made = []
    for place, item in enumerate(asked.texts):
        problem = asked.problems.get(place)
        if problem is None:
            made.append(as_json(next(computed), tasks))
        else:
            failed = as_json(Prediction("", {}, truncated=False), tasks)
            made.append(failed | _repeated(item, problem) | {"problem": problem.as_json()})
    return made


def _repeated(item: Item, problem: ProblemError) -> dict[str, str | None]:
    """What was sent; neither what is not a text nor a text of any length is repeated."""
    names = ("text", "pair")
    repeated = {}
    for name, text in zip(names, item if isinstance(item, list) else [item], strict=False):
        is_repeated = isinstance(text, str) and problem.name != "too-large"
        repeated[name] = str(text) if is_repeated else None
    return repeated


@router.post(
    "/explain", **request_docs("ExplainBody"), **response_docs(Explanation, *_POST_PROBLEMS)
)
async def explain(request: Request) -> Response:
    """What an answer rests on: words and their weights, who left at which layer, attention
    between words.
    """
    context: RequestContext = request.state.context
    service = context.service
    body = await context.read(partial(read_explain_body, context.body, service.settings))
    _, predictor = service.models.pick(body.model)
    check_task(predictor, body.task)
    context.count_texts([body.text if body.pair is None else [body.text, body.pair]])
    with model_problems():
        work = partial(explanation_json, predictor, body, service.locus)
        future = service.explainer.submit(context.client, work, context.deadline)
        content = await context.wait_for(future)
    return Response(content, media_type="application/json")


@router.get("/models", **response_docs(ModelList, *_GET_PROBLEMS))
async def models(request: Request) -> Response:
    """The models, the methods of explanation, and the limits."""
    context: RequestContext = request.state.context
    service = context.service
    content = {
        "models": service.models.descriptions,
        "methods": list(available_methods()),
        "limits": _limits(service.settings),
        "version": __version__,
    }
    return json_response(content)


@contextmanager
def model_problems() -> Iterator[None]:
    """Turns what a queue or the model raises for this request into the problem to answer with."""
    try:
        yield
    except QueueFull as full:
        raise queue_full_error(full.seconds) from full
    except UserError as error:
        raise ProblemError("unreadable-text", str(error)) from error


def explanation_json(
    predictor: Predictor, body: ExplainBody, locus: Tagger | None, watch: Watch
) -> bytes:
    """Explains and encodes, all in the thread for explanations. locus: marks words besides."""
    explanation = predictor.explain(
        body.text,
        pair=body.pair,
        task=body.task,
        method=body.method or METHOD,
        methods=_DEFAULT_METHODS if body.methods is None else body.methods,
        faithfulness=body.faithfulness,
        watch=watch,
    )
    content = explanation.as_json(maps=False) | {"layers": _layers(explanation)}
    if locus is not None:
        content["locus"] = marks_json(locus.predict(body.text))
    return _to_json(content)


def _layers(explanation: ModelExplanation) -> list[dict[str, Any]]:
    """None where the model was only asked."""
    if not explanation.layers:
        return []
    from litotes.explanation.explanation import word_maps  # imports torch

    return word_maps(explanation)


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
