"""The last phase: every setting is measured, the fastest within the loss becomes a model folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from litotes.core.storage import remove_folder, write_json
from litotes.encoders.spec import EncoderSpec
from litotes.evaluation.evaluate import CellScores, evaluate
from litotes.model.checkpoint import Model, save_model
from litotes.model.classifier import Classifier
from litotes.model.trained_texts import write_trained_texts
from litotes.prediction.predictor import Predictor
from litotes.pruning.context import PruneContext
from litotes.pruning.cost import flops
from litotes.pruning.frontier import Loss, Point, measure_loss, speed_ratios
from litotes.pruning.result import PruneResult
from litotes.pruning.search import FoundShares, first_texts
from litotes.text.packing import TextSet, make_text_set
from litotes.training.card import model_card
from litotes.training.facts import data_facts
from litotes.training.held_out import fit_calibrations
from litotes.training.inputs import PieceInputs, all_logits

N_TIMED = 128
"""Texts that speed is measured on."""


@dataclass(frozen=True)
class Setting:
    """The shares found for a target, and the classifier trained with them."""

    target: float
    found: FoundShares
    classifier: Classifier


def choose(context: PruneContext, settings: Sequence[Setting]) -> PruneResult:
    """Measures the settings and writes the chosen one as a model; nothing is chosen where all lose
    too much.
    """
    points = measure_points(context, settings)
    best = _best_within(points, context.settings.sure)
    if best is None:
        return _write_frontier(context, points, None, ())
    points = tuple(replace(point, chosen=point is best) for point in points)
    (setting,) = [setting for setting in settings if setting.target == best.target]
    model = _make_model(context, setting.classifier, replace(best, chosen=True))
    rows = _test(context, model)
    result = _write_frontier(context, points, model, rows)
    write_json(context.folder / "scores.json", [row.as_json() for row in rows])
    if context.dense_texts is not None:
        write_trained_texts(context.folder, context.data.seen(), more=context.dense_texts)
    save_model(model, context.folder, card=model_card(model, rows))
    remove_folder(context.phases)
    return result


def _best_within(points: Sequence[Point], sure: float) -> Point | None:
    """The point with the fewest operations whose loss is surely within the budget.

    Time follows operations, and its noise must not choose.
    """
    within = [point for point in points if point.loss.chance_within >= sure]
    return max(within, key=lambda point: point.flops_ratio, default=None)


def _write_frontier(
    context: PruneContext,
    points: tuple[Point, ...],
    model: Model | None,
    rows: tuple[CellScores, ...],
) -> PruneResult:
    result = PruneResult(context.settings, points, model, rows, _notes(context, points))
    write_json(context.folder / "frontier.json", result.as_json())
    return result


def measure_points(context: PruneContext, settings: Sequence[Setting]) -> tuple[Point, ...]:
    """A point of the frontier for each setting."""
    dense, judged = context.dense.classifier, context.judged
    classifiers = [setting.classifier for setting in settings]
    some = first_texts(judged, N_TIMED)
    speeds = speed_ratios(dense, classifiers, some, n_rounds=3, watch=context.watch)
    judged_answers = _logits(context, dense, judged)
    test = _test_texts(context)
    test_answers = None if test is None else _logits(context, dense, test)
    points = []
    for setting, speed in zip(settings, speeds, strict=True):
        loss = _loss(context, setting.classifier, judged, judged_answers)
        test_loss = None
        if test is not None and test_answers is not None:
            test_loss = _loss(context, setting.classifier, test, test_answers)
        points.append(_make_point(context, setting, speed, loss, test_loss))
    return tuple(points)


def _make_point(
    context: PruneContext, setting: Setting, speed: float, loss: Loss, test_loss: Loss | None
) -> Point:
    dense, classifier = context.dense.classifier, setting.classifier
    n_dense, n_pruned = (_n_operations(one, context.judged) for one in (dense, classifier))
    return Point(
        setting.target,
        setting.found.shares,
        n_heads=sum(attention.n_heads for attention in classifier.encoder.attentions),
        flops_ratio=n_dense / n_pruned,
        speed_ratio=speed,
        loss=loss,
        test_loss=test_loss,
        divergence=setting.found.divergence,
    )


def _test_texts(context: PruneContext) -> TextSet | None:
    test, dense = context.data.test, context.dense
    if test is None:
        return None
    return make_text_set(test.examples, list(dense.classifier.tasks.values()), dense.tokenizer)


def _loss(
    context: PruneContext, classifier: Classifier, texts: TextSet, dense: Mapping[str, Tensor]
) -> Loss:
    pruned = _logits(context, classifier, texts)
    return measure_loss(classifier, texts, dense, pruned, budget=context.settings.loss)


def _logits(context: PruneContext, classifier: Classifier, texts: TextSet) -> dict[str, Tensor]:
    return all_logits(PieceInputs(texts, context.device), classifier)


def _n_operations(classifier: Classifier, texts: TextSet) -> int:
    return flops(classifier.encoder, texts.lengths, firsts_only=classifier.firsts_only).total


def _test(context: PruneContext, model: Model) -> tuple[CellScores, ...]:
    if context.data.test is None:
        return ()
    predictor = Predictor(model, device=str(context.device))
    return evaluate(predictor, context.data.test, seed=context.recipe.seed, watch=context.watch)


def _notes(context: PruneContext, points: Sequence[Point]) -> tuple[str, ...]:
    """What the user should know about the texts the choice was made by, and about what could not be
    reached.
    """
    notes = list(context.notes)
    highest = max(point.flops_ratio for point in points)
    if highest < 0.95 * max(context.settings.targets):
        notes.append(
            f"More than {highest:.1f} times fewer operations cannot be reached by removing pieces"
            " from this model."
        )
    chosen = next((point for point in points if point.chosen), None)
    if chosen is not None and chosen.speed_ratio < 1:
        notes.append(
            f"{chosen.flops_ratio:.1f} times fewer operations were no faster here"
            f" ({chosen.speed_ratio:.2f} times dense): the texts or the model are too small for it"
            " to matter."
        )
    return tuple(notes)


def _make_model(context: PruneContext, classifier: Classifier, point: Point) -> Model:
    """The pruned classifier, calibrated on the held-out texts, with the facts of its pruning."""
    held_out = PieceInputs(context.held_out, context.device)
    calibration = fit_calibrations(classifier, held_out, context.recipe.training)
    facts = _facts(context, classifier.encoder.spec, point)
    classifier.eval()
    return replace(context.dense, classifier=classifier, calibration=calibration, facts=facts)


def _facts(context: PruneContext, spec: EncoderSpec, point: Point) -> dict[str, Any]:
    options = dict(spec.pruning_options)
    recipe = context.recipe.changed(model__pruning=spec.pruning, model__pruning_options=options)
    return {
        # not the dense run's: training must not take this for it
        "key": f"pruned-{context.key(point.target)}",
        "recipe": recipe.model_dump(mode="json"),
        "data": data_facts(context.data, n_train=len(context.train)),
        "dense": context.dense.facts["key"],
        "pruned": point.as_json(),
        "notes": [*context.data.notes, _in_words(point)],
        "versions": {"torch": torch.__version__},
    }


def _in_words(point: Point) -> str:
    low, high = point.loss.interval
    return (
        f"Pruned: {point.flops_ratio:.1f} times fewer operations than the dense model,"
        f" {point.n_heads} attention heads left in all; it lost {point.loss.points:.1f} points of"
        f" macro-F1 on texts kept apart (95 % interval {low:.1f} to {high:.1f})."
    )
