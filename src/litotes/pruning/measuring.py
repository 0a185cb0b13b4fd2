"""Candidates measured: operations, time, what they lost, and what they are expected to lose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from litotes.encoder.packing import TextSet, make_text_set
from litotes.pruning.candidates import Candidate, answer_texts, count_operations
from litotes.pruning.context import PruneContext
from litotes.pruning.cross_fitting import FoldAnswers
from litotes.pruning.expected_loss import draw_losses
from litotes.pruning.frontier import (
    NO_LOSS,
    Loss,
    Point,
    join_tasks,
    measure_loss,
    speed_ratios,
)
from litotes.pruning.loss import Answers, estimate_losses
from litotes.pruning.plan import has_learned_all
from litotes.pruning.search import first_texts

N_TIMED = 128
"""Texts that speed is measured on."""

ByTask = Mapping[str, Answers]


@dataclass(frozen=True)
class Measured:
    """What all candidates answer: to the texts that choose, without a label, to those that report
    and to the test split; None where there are none.
    """

    judged: ByTask
    unlabelled: ByTask | None
    reporting: ByTask | None
    test: ByTask | None


def measure_points(
    context: PruneContext, candidates: Sequence[Candidate], folds: Sequence[FoldAnswers]
) -> tuple[Point, ...]:
    """The frontier: dense, then a point for each candidate."""
    dense, judged = context.dense.classifier, context.judged
    some = first_texts(judged, N_TIMED)
    classifiers = [candidate.classifier for candidate in candidates]
    speeds = speed_ratios(dense, classifiers, some, n_rounds=3, watch=context.watch)
    n_dense = count_operations(dense, judged)
    ratios = [n_dense / count_operations(one, judged) for one in classifiers]
    measured = _measure_answers(context, candidates)
    expected = _expected_losses(context, ratios, measured, folds)
    agreement = _agreement(measured)
    points = [_dense_point(context, measured)]
    for place, candidate in enumerate(candidates):
        points.append(
            Point(
                candidate.target,
                candidate.found.shares,
                n_heads=_count_heads(candidate),
                flops_ratio=ratios[place],
                speed_ratio=speeds[place],
                loss=_loss(context, measured.judged, place),
                test_loss=_loss_of(context, measured.test, place),
                divergence=candidate.found.divergence,
                kind=candidate.kind,
                expected=expected[place],
                reported=_loss_of(context, measured.reporting, place),
                agreement=agreement[place],
            )
        )
    return tuple(points)


def _dense_point(context: PruneContext, measured: Measured) -> Point:
    encoder = context.dense.classifier.encoder
    return Point(
        1.0,
        (1.0,) * len(encoder.spec.walk),
        n_heads=sum(attention.n_heads for attention in encoder.attentions),
        flops_ratio=1.0,
        speed_ratio=1.0,
        loss=NO_LOSS,
        test_loss=None if measured.test is None else NO_LOSS,
        divergence=0.0,
        kind="dense",
        expected=NO_LOSS,
        reported=None if measured.reporting is None else NO_LOSS,
        agreement=1.0,
    )


def _measure_answers(context: PruneContext, candidates: Sequence[Candidate]) -> Measured:
    def ask(texts: TextSet | None, *, labelled: bool = True) -> ByTask | None:
        if texts is None:
            return None
        return answer_texts(context, candidates, texts, labelled=labelled)

    judged = answer_texts(context, candidates, context.judged, labelled=True)
    unlabelled = ask(context.unlabelled, labelled=False)
    return Measured(judged, unlabelled, ask(context.reporting), ask(_test_texts(context)))


def _test_texts(context: PruneContext) -> TextSet | None:
    test, dense = context.data.test, context.dense
    if test is None:
        return None
    return make_text_set(test.examples, list(dense.classifier.tasks.values()), dense.tokenizer)


def _expected_losses(
    context: PruneContext,
    ratios: Sequence[float],
    measured: Measured,
    folds: Sequence[FoldAnswers],
) -> list[Loss]:
    """What each candidate is expected to lose on new texts."""
    more = measured.unlabelled or {}
    draws = {}
    # texts that the dense model has learned make every loss look large
    is_judge = not (folds and has_learned_all(context.dense, context.data))
    for number, (task, answers) in enumerate(measured.judged.items()):
        direct = estimate_losses(answers, more.get(task)) if is_judge else None
        asked = [fold for fold in folds if fold.labelled[task].n_texts]
        others = [estimate_losses(fold.labelled[task], fold.unlabelled.get(task)) for fold in asked]
        draws[task] = draw_losses(ratios, direct, others, seed=number)  # (draw, candidate)
    losses = []
    for place in range(len(ratios)):
        own = {task: values[:, place] for task, values in draws.items()}
        means = {task: float(values.mean()) for task, values in own.items()}
        losses.append(join_tasks(means, own, budget=context.settings.loss))
    return losses


def _agreement(measured: Measured) -> list[float]:
    """The share of texts answered as by dense, of the task with the smallest, by candidate."""
    asked = measured.unlabelled or measured.judged
    by_task = [answers.agreement().tolist() for answers in asked.values()]
    return [min(shares) for shares in zip(*by_task, strict=True)]


def _loss_of(context: PruneContext, answers: ByTask | None, place: int) -> Loss | None:
    return None if answers is None else _loss(context, answers, place)


def _loss(context: PruneContext, answers: ByTask, place: int) -> Loss:
    return measure_loss(answers, place + 1, budget=context.settings.loss)


def _count_heads(candidate: Candidate) -> int:
    return sum(attention.n_heads for attention in candidate.classifier.encoder.attentions)
