"""The routes: labels, explanations, scores for clients of text-embeddings-inference, what this
service offers, probes and metrics, and the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.responses import Response

from litotes.core.errors import UserError
from litotes.core.json_text import to_json
from litotes.core.progress import Watch
from litotes.core.values import Prediction
from litotes.core.version import __version__
from litotes.explanation.attribution import available_methods
from litotes.explanation.explain import METHOD
from litotes.explanation.marked_words import marks_json
from litotes.prediction.answers import as_json
from litotes.prediction.predictor import Predictor, TokenizedText
from litotes.service.answers import Explanation, LabelScore, ModelList, Predictions, Status
from litotes.service.bodies import (
    ExplainBody,
    InferenceBody,
    Item,
    find_problem,
    read_explain_body,
    read_predict_body,
    read_values,
    sides_of,
    validate,
)
from litotes.service.guard import GuardedRequest
from litotes.service.models import pick_task
from litotes.service.openapi import describe_route
from litotes.service.problems import INFERENCE_PATH, ProblemError
from litotes.service.waiting import Answering

if TYPE_CHECKING:
    from litotes.training.tagging.tagger import Tagger

_DEFAULT_METHODS = tuple(
    name for name in ("occlusion", "effective", "standard") if name in available_methods()
)
"""For a request that names no methods: the most faithful one, and both kinds of attention, to be
compared.
"""
_POST_PROBLEMS = (400, 401, 403, 404, 405, 408, 413, 415, 422, 429, 500, 501, 503, 504)
_GET_PROBLEMS = (400, 403, 405, 500)

router = APIRouter()


@dataclass(frozen=True)
class Asked:
    """The items that a request wants labels for.

    problems: by the place of the item. tokenized: those without one.
    """

    model: str
    predictor: Predictor
    items: Sequence[Item]
    problems: dict[int, ProblemError]
    tokenized: Sequence[TokenizedText]


def tokenize(
    request: GuardedRequest, model: str, predictor: Predictor, items: Sequence[Item]
) -> Asked:
    request.count_texts(items)
    problems, good = {}, []
    for place, item in enumerate(items):
        problem = find_problem(item, request.settings.max_characters)
        if problem is None:
            good.append(sides_of(item))
        else:
            problems[place] = problem
    texts, pairs = [str(text) for text, _ in good], [pair for _, pair in good]
    tokenized = predictor.tokenize(texts, pairs if any(pairs) else None)
    return Asked(model, predictor, items, problems, tokenized)


async def compute(
    request: GuardedRequest, answering: Answering, texts: Sequence[TokenizedText]
) -> list[Prediction]:
    batcher = request.service.batcher
    return await request.wait_for(
        batcher.submit(request.client, answering, texts, request.deadline).future
    )


@contextmanager
def model_problems() -> Iterator[None]:
    """Turns what the model says against a text into the problem to answer with."""
    try:
        yield
    except UserError as error:
        raise ProblemError("unreadable-text", str(error)) from error


def json_response(content: Any) -> Response:
    return Response(to_json(content).encode(), media_type="application/json")


# Labels


@router.post("/v1/predict", **describe_route(Predictions, _POST_PROBLEMS, "OneText", "ManyTexts"))
async def predict(request: Request) -> Response:
    """Labels and probabilities for one text or several, in their order.

    Of several, each may fail alone, with a problem of its own in place of its answers.
    """
    guarded: GuardedRequest = request.state.guarded
    with model_problems():
        asked = await guarded.read(partial(read_asked, guarded))
        # texts with a problem never wait in the queue
        texts = asked.tokenized
        predictions = await compute(guarded, asked.predictor, texts) if texts else []
    guarded.service.metrics["bad_texts"].inc(len(asked.problems))
    answered, tasks, documents = iter(predictions), asked.predictor.tasks, []
    for place, item in enumerate(asked.items):
        problem = asked.problems.get(place)
        if problem is None:
            documents.append(as_json(next(answered), tasks))
        else:
            failed = as_json(Prediction("", {}, truncated=False), tasks)
            failed |= repeat_item(item, problem) | {"problem": problem.as_json()}
            documents.append(failed)
    return json_response({"model": asked.model, "predictions": documents})


def read_asked(request: GuardedRequest) -> Asked:
    body = read_predict_body(request.body, request.settings)
    model, predictor = request.service.models.pick(body.model, body.variety)
    return tokenize(request, model, predictor, body.items)


def repeat_item(item: Item, problem: ProblemError) -> dict[str, str | None]:
    """Repeats what was sent, but neither what is not a text nor a text that is too long."""
    sides = dict(zip(("text", "pair"), item if isinstance(item, list) else [item], strict=False))
    for name, text in sides.items():
        if not isinstance(text, str) or problem.name == "too-large":
            sides[name] = None
    return sides


# Scores for clients of text-embeddings-inference. Unlike there, every text of a batch is answered:
# a list of strings is as many texts, unless it is two and the model reads pairs.


@router.post(
    INFERENCE_PATH,
    **describe_route(
        list[LabelScore] | list[list[LabelScore]],
        _POST_PROBLEMS,
        "InferenceBody",
        is_inference=True,
    ),
)
async def scores(request: Request) -> Response:
    """The labels of one task with their scores, the highest first, in the shape of
    text-embeddings-inference.
    """
    guarded: GuardedRequest = request.state.guarded
    with model_problems():
        asked = await guarded.read(partial(read_inference, guarded))
        predictions = await compute(guarded, asked.answering, asked.tokenized)
    found = []
    for prediction in predictions:
        answer = prediction.answers[asked.task]
        # a regression has its number under the name of the task
        shares: dict[str, Any] = dict(answer.probabilities) or {asked.task: answer.label}
        by_label = [{"score": share, "label": label} for label, share in shares.items()]
        found.append(sorted(by_label, key=lambda one: one["score"], reverse=True))
    return json_response(found if asked.is_batch else found[0])


@dataclass(frozen=True)
class AskedScores:
    """Texts whose scores are wanted. is_batch: whether the answer is a list of lists."""

    answering: Answering
    task: str
    tokenized: Sequence[TokenizedText]
    is_batch: bool


def read_inference(request: GuardedRequest) -> AskedScores:
    body = validate(InferenceBody, read_values(request.body, request.settings))
    models, items = request.service.models, body.inputs
    model, predictor = models.pick(body.model)
    task = pick_task(predictor, body.task)
    has_lists = any(isinstance(item, list) for item in items)
    is_batch = has_lists or len(items) > 1
    if predictor.takes_pairs and len(items) == 2 and not has_lists:
        items, is_batch = [items], False
    asked = tokenize(request, model, predictor, items)
    for place, problem in asked.problems.items():  # the first ends the request
        where = f"Of `inputs` number {place}: " if is_batch else ""
        raise ProblemError(problem.name, where + problem.detail)
    for place, text in enumerate(asked.tokenized):
        if text.is_truncated and not body.truncate:
            which = f"Number {place} of `inputs`" if is_batch else "The text"
            raise ProblemError(
                "too-large",
                f'{which} is longer than the model reads. Shorten it, or send "truncate": true.',
            )
    answering = models.raw_scores(model, task) if body.raw_scores else predictor
    return AskedScores(answering, task, asked.tokenized, is_batch)


# Explanations


@router.post("/v1/explain", **describe_route(Explanation, _POST_PROBLEMS, "ExplainBody"))
async def explain(request: Request) -> Response:
    """What an answer rests on: words and their weights, who left at which layer, attention
    between words.
    """
    guarded: GuardedRequest = request.state.guarded
    service = guarded.service
    body = await guarded.read(partial(read_explain_body, guarded.body, guarded.settings))
    _, predictor = service.models.pick(body.model)
    pick_task(predictor, body.task)
    guarded.count_texts([body.text if body.pair is None else [body.text, body.pair]])
    work = partial(explanation_json, predictor, body, service.locus)
    with model_problems():
        content = await guarded.wait_for(
            service.explainer.submit(guarded.client, work, guarded.deadline)
        )
    return Response(content, media_type="application/json")


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
    content = explanation.as_json(maps=False) | {"layers": []}
    if explanation.layers:  # there are none where the model was only asked, without torch
        from litotes.explanation.explanation import word_maps  # imports torch

        content["layers"] = word_maps(explanation)
    if locus is not None:
        content["locus"] = marks_json(locus.predict(body.text))
    return to_json(content).encode()


# The service itself


@router.get("/v1/models", **describe_route(ModelList, (*_GET_PROBLEMS, 401, 503)))
async def models(request: Request) -> Response:
    """The models, the methods of explanation, and the limits."""
    guarded: GuardedRequest = request.state.guarded
    settings = guarded.settings
    limits = {
        "texts": settings.max_texts_per_request,
        "characters": settings.max_characters,
        "explained_characters": settings.max_explained_characters,
        "body_bytes": settings.max_body_bytes,
        "seconds": settings.seconds,
    }
    content = {
        "models": guarded.service.models.descriptions,
        "methods": list(available_methods()),
        "limits": limits,
        "version": __version__,
    }
    return json_response(content)


@router.get("/live", **describe_route(Status, _GET_PROBLEMS))
async def live() -> Response:
    """The process runs."""
    return json_response({"status": "live"})


@router.get("/ready", **describe_route(Status, (*_GET_PROBLEMS, 503)))
async def ready(request: Request) -> Response:
    """The models are loaded and the service is not stopping."""
    request.state.guarded.service.check_ready()
    return json_response({"status": "ready"})


@router.get("/metrics", **describe_route(str, (*_GET_PROBLEMS, 401)))
async def metrics(request: Request) -> Response:
    """Counters in the text format of Prometheus."""
    content = request.state.guarded.service.metrics.render()
    return Response(content, media_type=CONTENT_TYPE_LATEST)


# The page: files of the package, read once; no path is ever made from a request

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_PAGE = {
    file.name: Response(
        file.read_bytes(),
        headers={"Cache-Control": "no-cache"},
        media_type=_TYPES[file.name.rpartition(".")[2]],
    )
    for file in (files("litotes.service") / "page").iterdir()
}


@router.get("/", include_in_schema=False)
@router.get("/page/{name}", include_in_schema=False)
async def page(name: str = "index.html") -> Response:
    if name not in _PAGE:
        raise HTTPException(404)
    return _PAGE[name]
