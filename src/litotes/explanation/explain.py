"""One answer, explained: every method's weights and how faithful they are, which words left where,
and the attention maps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.progress import Watch, ignore_progress
from litotes.core.registry import pick
from litotes.core.values import Answer, Task
from litotes.explanation.attribution import METHODS, Question, WordWeights
from litotes.explanation.explanation import Explanation, Faithfulness, LayerMaps, Shading
from litotes.explanation.observation import Observation, observe
from litotes.explanation.trace import trace_of
from litotes.explanation.word_removal import faithfulness, order_of
from litotes.model.checkpoint import Model
from litotes.text.tokenizer import ReadText

METHOD = "occlusion"
"""The one shown first: the most faithful or close to it wherever we measured
(docs/results/inside.md).

The test takes words away, as it does itself.
"""


def explain(
    model: Model,
    read: ReadText,
    answers: Mapping[str, Answer],
    task: Task,
    *,
    method: str = METHOD,
    methods: Sequence[str] | None = None,
    is_tested: bool = True,
    watch: Watch = ignore_progress,
) -> Explanation:
    """Why the model gave its answer to `task`. answers: what it says of the text.

    methods: those to run as well as `method`; None: all. is_tested: how faithful each of them is,
    is measured as well.
    """
    chosen = chosen_methods(method, methods)
    if read.pieces.unreadable or not read.words:
        raise UserError(
            "The model's tokenizer finds no word that it knows in this text: there is nothing to"
            " explain."
        )
    observation = observe(model, [read], device=model.classifier.device)[0]
    label = 0 if task.is_regression else task.labels.index(str(answers[task.name].label))
    progress = _Progress(watch, [*chosen, "taking words away"])
    question = Question(model, observation, task, label, progress.report)
    return Explanation(
        read=read,
        task=task.name,
        answers=answers,
        probabilities=_probabilities(question),
        method=method,
        shadings=_shadings(question, chosen, progress, is_tested=is_tested),
        trace=trace_of(observation),
        layers=_maps(observation),
        model=_name(model),
    )


@dataclass
class _Progress:
    """How many of the steps are done. Also reported between the batches of a step, so that a caller
    who watches may stop there.
    """

    watch: Watch
    steps: Sequence[str]
    n_done: int = 0

    def report(self) -> None:
        step = self.steps[self.n_done] if self.n_done < len(self.steps) else ""
        self.watch("explaining", self.n_done, len(self.steps), step)


def _shadings(
    question: Question, chosen: Sequence[str], progress: _Progress, *, is_tested: bool
) -> dict[str, Shading]:
    weights: dict[str, WordWeights] = {}
    for name in chosen:
        progress.report()
        weights[name] = METHODS[name]().weigh(question)
        progress.n_done += 1
    progress.report()
    tested = _test(question, weights) if is_tested else {}
    progress.n_done += 1
    progress.report()
    shadings = {}
    for name, one in weights.items():
        is_signed = METHODS[name].is_signed
        shadings[name] = Shading(name, is_signed, one.weights, one.error, tested.get(name))
    return shadings


def _test(question: Question, weights: Mapping[str, WordWeights]) -> dict[str, Faithfulness]:
    orders = {name: order_of(question, one) for name, one in weights.items()}
    return faithfulness(question, orders)


def chosen_methods(method: str, methods: Sequence[str] | None = None) -> list[str]:
    """In the table's order; an unknown name is an error that names the nearest."""
    for name in (method, *(methods or ())):
        pick(METHODS, name, "method")
    return [name for name in METHODS if methods is None or name == method or name in methods]


def _probabilities(question: Question) -> dict[str, float]:
    task = question.task
    if task.is_regression:
        return {}
    logits = question.observation.logits[task.name][None]  # (1, class)
    _, probabilities = question.model.calibration_of(task.name).apply(logits.numpy())
    return dict(zip(task.labels, probabilities[0].tolist(), strict=True))


def _maps(observation: Observation) -> tuple[LayerMaps, ...]:
    layers = []
    for view, effective in zip(observation.layers, observation.effective, strict=True):
        layers.append(
            LayerMaps(
                heads=view.heads,
                origin=tuple(view.origin.tolist()),
                standard=view.weights.cpu(),
                effective=effective.maps.cpu(),
                n_null=tuple(effective.n_null.tolist()),
            )
        )
    return tuple(layers)


def _name(model: Model) -> str:
    """What is known of a model that has no name of its own."""
    name = f"{Path(model.base).name}, {model.classifier.head_name}"
    pruning = model.classifier.encoder.spec.pruning
    return name if pruning == "none" else f"{name}, {pruning}"
