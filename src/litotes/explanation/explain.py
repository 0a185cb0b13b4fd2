"""One answer, explained: every method's weights and how faithful they are, which words left where,
and the attention maps; and the explanation as a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from numpy.typing import NDArray

from litotes.core.errors import UserError, require_extra
from litotes.core.progress import Watch, ignore_progress
from litotes.core.registry import unknown_name
from litotes.core.storage import write_bytes, write_json, write_text
from litotes.core.values import Answer, Task, WordPrediction
from litotes.encoder.tokenizer import ReadText
from litotes.explanation.attribution import (
    ASKING,
    METHODS,
    Question,
    TextQuestion,
    available_methods,
    faithfulness,
    number_of,
    order_of,
)
from litotes.explanation.explanation import Explanation, Shading, Trace
from litotes.model.calibration import apply_to_each
from litotes.model.folder import name_model
from litotes.model.runtime import Runtime

if TYPE_CHECKING:
    from litotes.model.checkpoint import Model

METHOD = "occlusion"
"""The one shown first: the most faithful or close to it wherever we measured
(docs/results/effective-attention.md).

The test takes words away, as it does itself.
"""

FORMATS = (".html", ".json", ".svg", ".png")


def explain(
    model: Model | Runtime,
    read: ReadText,
    answers: Mapping[str, Answer],
    task: Task,
    *,
    method: str = METHOD,
    methods: Sequence[str] | None = None,
    is_tested: bool = True,
    answered_at_layer: int | None = None,
    watch: Watch = ignore_progress,
) -> Explanation:
    """Explains why the model gave its answer to `task`. answers: what it says of the text.

    model: a runtime is explained by the methods that ask for other answers alone (`ASKING`),
    without torch; what happens in its layers is not known. methods: those to run as well as
    `method`; None: all. is_tested: how faithful each of them is, is measured as well.
    answered_at_layer: after how many layers an exit is sure of all answers.
    """
    asks_only = isinstance(model, Runtime)
    chosen = chosen_methods(method, ASKING if asks_only and methods is None else methods)
    if read.pieces.unreadable or not read.words:
        raise UserError(
            "The model's tokenizer finds no word that it knows in this text: there is nothing to"
            " explain."
        )
    progress = _Progress(watch, chosen)
    look = _ask if asks_only else _look_inside
    label = number_of(answers[task.name], task)
    question, logits, seen = look(cast(Any, model), read, task, label, progress.report)
    return Explanation(
        read=read,
        task=task.name,
        answers=answers,
        probabilities=_probabilities(question, logits),
        method=method,
        shadings=_shadings(question, progress, is_tested=is_tested),
        answered_at_layer=answered_at_layer,
        **seen,
    )


_Seen = tuple[TextQuestion, NDArray[Any], dict[str, Any]]
"""The question, the logits of the text (1, class), and what the explanation says of the model."""


def _ask(
    runtime: Runtime, read: ReadText, task: Task, label: int, between: Callable[[], None]
) -> _Seen:
    question = TextQuestion.to_runtime(runtime, read, task, label, between)
    trace = Trace(read.written, (None,) * len(read.written), ())
    seen = {"trace": trace, "layers": (), "model": runtime.name}
    return question, question.logits([read.pieces]), seen


def _look_inside(
    model: Model, read: ReadText, task: Task, label: int, between: Callable[[], None]
) -> _Seen:
    from litotes.explanation.observation import layer_maps, observe, trace_of  # imports torch

    classifier = model.classifier
    [observation] = observe(model, [read], device=classifier.device)
    name = name_model(model.base, classifier.head_name, classifier.encoder.spec.pruning)
    seen = {"trace": trace_of(observation), "layers": layer_maps(observation), "model": name}
    question = Question.about(model, observation, task, label, between)
    return question, observation.logits[task.name][None].numpy(), seen


def chosen_methods(method: str, methods: Sequence[str] | None = None) -> list[str]:
    """Lists them in the table's order; an unknown name is an error that names the nearest, and one
    that needs torch says so where there is none.
    """
    available = available_methods()
    for name in (method, *(methods or ())):
        if name not in METHODS:
            raise UserError(unknown_name(name, METHODS, "method"))
        if name not in available:
            others = " or ".join(available)
            require_extra("train", f"The method {name!r}", instead=f"; {others} need nothing more")
    return [name for name in available if methods is None or name == method or name in methods]


@dataclass
class _Progress:
    """The progress through the methods; taking words away is one more step. Also reported between
    the batches of a step, so that a caller who watches may stop there.
    """

    watch: Watch
    methods: Sequence[str]
    n_done: int = 0

    def report(self) -> None:
        steps = [*self.methods, "taking words away", ""]
        self.watch("explaining", self.n_done, len(steps) - 1, steps[self.n_done])

    def step(self) -> None:
        self.n_done += 1
        self.report()


def _shadings(
    question: TextQuestion, progress: _Progress, *, is_tested: bool
) -> dict[str, Shading]:
    weights = {}
    progress.report()
    for name in progress.methods:
        # one of `ASKING` uses no more than a TextQuestion has; the others were given a Question
        weights[name] = METHODS[name]().weigh(cast(Question, question))
        progress.step()
    orders = {name: order_of(question, one) for name, one in weights.items()}
    tested = faithfulness(question, orders) if is_tested else {}
    progress.step()
    return {
        name: Shading(name, METHODS[name].is_signed, one.weights, one.error, tested.get(name))
        for name, one in weights.items()
    }


def _probabilities(question: TextQuestion, logits: NDArray[Any]) -> dict[str, float]:
    """logits: of the text, (1, class)"""
    if question.task.is_regression:
        return {}
    apply = partial(apply_to_each, question.calibration)
    _, probabilities = (apply if question.task.multi_label else question.calibration.apply)(logits)
    return dict(zip(question.task.labels, probabilities[0].tolist(), strict=True))


def check_format(file: Path) -> None:
    if file.suffix.lower() not in FORMATS:
        raise UserError(
            f"{file}: an explanation is written as {', '.join(FORMATS)}. End the name in one"
            " of them, e.g. why.html."
        )
    if file.suffix.lower() != ".json":  # these show what torch saw in every layer
        require_extra("train", f"{file}: a page or a picture", instead=", or write .json")


def write_explanation(
    explanation: Explanation, file: Path, *, locus: WordPrediction | None = None
) -> None:
    """A page (.html), the numbers (.json) or a picture (.svg, .png).

    locus: what a model of words marks in the same text, for a page and for the numbers.
    """
    check_format(file)
    suffix = file.suffix.lower()
    if suffix == ".html":
        from litotes.explanation.page import why_html

        write_text(file, why_html(explanation, locus))
    elif suffix == ".json":
        marks = {} if locus is None else {"locus": locus.as_json()}
        write_json(file, explanation.as_json() | marks)
    else:
        # drawing needs matplotlib, which is slow to import
        from litotes.core.figures import render_figure
        from litotes.explanation.figures import explanation_figure

        write_bytes(file, render_figure(explanation_figure(explanation), suffix[1:]))
