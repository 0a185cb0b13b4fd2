"""One answer, explained: every method's weights, how far to believe them, who left where, and the
maps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.progress import Watch, ignore_progress
from litotes.core.registry import pick
from litotes.core.values import Answer, Task
from litotes.explain.attribution import METHODS, Question, WordWeights
from litotes.explain.explanation import Explanation, Faithfulness, LayerMaps, Shading
from litotes.explain.observation import Observation, observe
from litotes.explain.trace import trace_of
from litotes.explain.word_removal import faithfulness, order_of
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

    methods: those to ask beside `method`; None: all. is_tested: how faithful each of them is, is
    measured as well.
    """
    chosen = chosen_methods(method, methods)
    if not read.words:
        raise UserError(
            "The model's tokenizer finds no word in this text: there is nothing to explain."
        )
    observation = observe(model, [read], device=model.classifier.device)[0]
    label = 0 if task.is_regression else task.labels.index(str(answers[task.name].label))
    weighed: dict[str, WordWeights] = {}

    def tell() -> None:
        """Also between the batches of a method: whoever watches may then end it."""
        watch(
            "explaining",
            len(weighed),
            len(chosen) + 1,
            [*chosen, "taking words away"][len(weighed)],
        )

    question = Question(model, observation, task, label, tell)
    for name in chosen:
        tell()
        weighed[name] = METHODS[name]().weigh(question)
    tell()
    tested = (
        faithfulness(question, {name: order_of(question, one) for name, one in weighed.items()})
        if is_tested
        else {}
    )
    watch("explaining", len(chosen) + 1, len(chosen) + 1, "")
    return Explanation(
        read=read,
        task=task.name,
        answers=answers,
        probabilities=_probabilities(question),
        method=method,
        shadings={name: _shading(name, one, tested.get(name)) for name, one in weighed.items()},
        trace=trace_of(observation),
        layers=_maps(observation),
        model=_name(model),
    )


def chosen_methods(method: str, methods: Sequence[str] | None = None) -> list[str]:
    """In the table's order; an unknown name is answered with the nearest."""
    for name in (method, *(methods or ())):
        pick(METHODS, name, "method")
    return [name for name in METHODS if methods is None or name == method or name in methods]


def _shading(name: str, weighed: WordWeights, tested: Faithfulness | None) -> Shading:
    return Shading(name, METHODS[name].is_signed, weighed.weights, weighed.error, tested)


def _probabilities(question: Question) -> dict[str, float]:
    task = question.task
    if task.is_regression:
        return {}
    logits = question.observation.logits[task.name][None]  # (1, class)
    _, probabilities = question.model.calibration_of(task.name).apply(logits.numpy())
    return dict(zip(task.labels, probabilities[0].tolist(), strict=True))


def _maps(observation: Observation) -> tuple[LayerMaps, ...]:
    return tuple(
        LayerMaps(
            heads=view.heads,
            origin=tuple(view.origin.tolist()),
            standard=view.weights.cpu(),
            effective=effective.maps.cpu(),
            n_null=tuple(effective.n_null.tolist()),
        )
        for view, effective in zip(observation.layers, observation.effective, strict=True)
    )


def _name(model: Model) -> str:
    """What is known of a model that has no name of its own."""
    pruning = model.classifier.encoder.spec.pruning
    return f"{Path(model.base).name}, {model.classifier.head_name}" + (
        "" if pruning == "none" else f", {pruning}"
    )
