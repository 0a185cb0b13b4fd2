"""`POST /predict`: labels with their scores, for clients of text-embeddings-inference.

Unlike there, every text of a batch is answered: a list of strings is as many texts, unless it is
two and the model reads pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from litotes.core.values import Prediction, Task
from litotes.prediction.predictor import TokenizedText
from litotes.service.api import json_response, model_problems, tokenize
from litotes.service.models import check_task
from litotes.service.openapi import ID_HEADER, problem_docs, request_docs
from litotes.service.problems import ProblemError
from litotes.service.request_context import RequestContext
from litotes.service.tei_models import (
    PATH,
    InferenceBody,
    InferenceError,
    LabelScore,
    read_inference_body,
    read_inputs,
)
from litotes.service.waiting_jobs import Answering

router = APIRouter()

_PROBLEMS = (400, 401, 403, 404, 405, 408, 413, 415, 422, 429, 500, 501, 503, 504)
_ERRORS = {"model": InferenceError}


@router.post(
    PATH,
    response_model=None,
    responses={
        200: {
            "description": "The answer.",
            "headers": ID_HEADER,
            "model": list[LabelScore] | list[list[LabelScore]],
        },
        **{status: problem_docs(status) | _ERRORS for status in _PROBLEMS},
    },
    **request_docs("InferenceBody"),
)
async def scores(request: Request) -> Response:
    """The labels of one task with their scores, the highest first, in the shape of
    text-embeddings-inference.
    """
    context: RequestContext = request.state.context
    with model_problems():
        asked = await context.read(partial(_read, context))
        batcher = context.service.batcher
        job = batcher.submit(context.client, asked.answering, asked.tokenized, context.deadline)
        predictions = await context.wait_for(job.future)
    found = [label_scores(one, asked.task) for one in predictions]
    return json_response(found if asked.is_batch else found[0])


class _Asked:
    """What a request asks for, read and cut into pieces."""

    def __init__(self, context: RequestContext, body: InferenceBody) -> None:
        service = context.service
        name, predictor = service.models.pick(body.model)
        check_task(predictor, body.task)
        self.task = predictor.tasks[body.task or next(iter(predictor.tasks))]
        asked = read_inputs(body, service.settings, takes_pairs=predictor.takes_pairs)
        self.is_batch = asked.is_batch
        context.count_texts(asked.items)
        self.tokenized = tokenize(predictor, asked.items)
        if not body.truncate:
            _check_lengths(self.tokenized, asked.is_batch)
        self.answering: Answering = predictor
        if body.raw_scores:
            self.answering = service.models.raw_scores(name, self.task.name)


def _read(context: RequestContext) -> _Asked:
    return _Asked(context, read_inference_body(context.body, context.service.settings))


def _check_lengths(texts: Sequence[TokenizedText], is_batch: bool) -> None:
    for place, text in enumerate(texts):
        if text.is_truncated:
            which = f"Number {place} of `inputs`" if is_batch else "The text"
            raise ProblemError(
                "too-large",
                f'{which} is longer than the model reads. Shorten it, or send "truncate": true.',
            )


def label_scores(prediction: Prediction, task: Task) -> list[dict[str, Any]]:
    """The highest first; of a regression its number, under the name of the task."""
    answer = prediction.answers[task.name]
    shares: dict[str, Any] = dict(answer.probabilities) or {task.name: answer.label}
    found = [{"score": share, "label": label} for label, share in shares.items()]
    return sorted(found, key=lambda one: one["score"], reverse=True)
