"""The last phase: candidates are measured, the fastest within the loss becomes a model folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from litotes.core.storage import remove_folder, write_json
from litotes.encoder.spec import EncoderSpec
from litotes.evaluation.evaluate import CellScores, evaluate
from litotes.model.checkpoint import Model, save_model
from litotes.model.folder import write_trained_texts
from litotes.prediction.predictor import Predictor
from litotes.pruning.candidates import Candidate
from litotes.pruning.context import PruneContext
from litotes.pruning.cross_fitting import FoldAnswers
from litotes.pruning.frontier import Point
from litotes.pruning.measuring import measure_points
from litotes.pruning.result import PruneResult, TextCounts
from litotes.training.card import model_card


def choose(
    context: PruneContext, candidates: Sequence[Candidate], folds: Sequence[FoldAnswers] = ()
) -> PruneResult:
    """Measures the candidates and writes the chosen one as a model; nothing is chosen where all are
    expected to lose too much.
    """
    points = measure_points(context, candidates, folds)
    texts = _count_texts(context, folds)
    best = best_within(points, context.settings.loss, context.settings.sure)
    if best is None:
        return _write_frontier(context, points, texts, None, ())
    points = tuple(replace(point, chosen=point is best) for point in points)
    (candidate,) = [one for one in candidates if one.kind == "pruned" and one.target == best.target]
    model = _make_model(context, candidate, replace(best, chosen=True), texts)
    rows = _test(context, model)
    result = _write_frontier(context, points, texts, model, rows)
    write_json(context.folder / "scores.json", [row.as_json() for row in rows])
    if context.dense_texts is not None:
        write_trained_texts(context.folder, context.data.seen(), more=context.dense_texts)
    save_model(model, context.folder, card=model_card(model, rows))
    remove_folder(context.phases)
    return result


def best_within(points: Sequence[Point], budget: float, sure: float | None) -> Point | None:
    """The pruned point with the fewest operations whose loss is expected to be within the budget,
    or is with a probability of at least `sure`.

    Time follows operations, and its noise must not choose.
    """
    within = []
    for point in points:
        guess = point.best_guess
        is_within = guess.points <= budget if sure is None else guess.chance_within >= sure
        if point.kind == "pruned" and is_within:
            within.append(point)
    return max(within, key=lambda point: point.flops_ratio, default=None)


def _count_texts(context: PruneContext, folds: Sequence[FoldAnswers]) -> TextCounts:
    def count(texts: Sequence[object] | None) -> int:
        return 0 if texts is None else len(texts)

    in_folds = 0
    for fold in folds:
        in_folds += max((answers.n_texts for answers in fold.labelled.values()), default=0)
    return TextCounts(
        kept_apart=len(context.judged),
        in_folds=in_folds,
        n_folds=len(folds),
        unlabelled=count(None if context.unlabelled is None else context.unlabelled.pieces),
        held_out=count(None if context.reporting is None else context.reporting.pieces),
        test=count(None if context.data.test is None else context.data.test.examples),
    )


def _write_frontier(
    context: PruneContext,
    points: tuple[Point, ...],
    texts: TextCounts,
    model: Model | None,
    rows: tuple[CellScores, ...],
) -> PruneResult:
    notes = _notes(context, points, texts)
    result = PruneResult(context.settings, points, model, rows, notes, texts)
    write_json(context.folder / "frontier.json", result.as_json())
    return result


def _test(context: PruneContext, model: Model) -> tuple[CellScores, ...]:
    if context.data.test is None:
        return ()
    predictor = Predictor(model, device=str(context.device))
    return evaluate(predictor, context.data.test, seed=context.recipe.seed, watch=context.watch)


def _notes(context: PruneContext, points: Sequence[Point], texts: TextCounts) -> tuple[str, ...]:
    """What the user should know about the texts the choice was made by, and about what could not be
    reached.
    """
    notes = [*context.notes, texts.in_words()]
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


def _make_model(
    context: PruneContext, candidate: Candidate, point: Point, texts: TextCounts
) -> Model:
    """The pruned classifier, calibrated on the held-out texts, with the facts of its pruning."""
    classifier = candidate.classifier
    facts = _facts(context, classifier.encoder.spec, point, texts)
    classifier.eval()
    return replace(
        context.dense, classifier=classifier, calibration=candidate.calibration, facts=facts
    )


def _facts(
    context: PruneContext, spec: EncoderSpec, point: Point, texts: TextCounts
) -> dict[str, Any]:
    options = dict(spec.pruning_options)
    recipe = context.recipe.changed(model__pruning=spec.pruning, model__pruning_options=options)
    return {
        # not the dense run's: training must not take this for it
        "key": f"pruned-{context.key(point.target)}",
        "recipe": recipe.model_dump(mode="json"),
        "data": context.data.facts(n_train=len(context.train)),
        "dense": context.dense.facts["key"],
        "pruned": {**point.as_json(), "texts": texts.as_json()},
        "notes": [*context.data.notes, _in_words(point, context.settings.loss), texts.in_words()],
        "versions": {"torch": torch.__version__},
    }


def _in_words(point: Point, budget: float) -> str:
    expected = point.best_guess
    low, high = expected.interval
    words = (
        f"Pruned: {point.flops_ratio:.1f} times fewer operations than the dense model,"
        f" {point.n_heads} attention heads left in all; it is expected to lose"
        f" {expected.points:.1f} points of macro-F1 (95 % interval {low:.1f} to {high:.1f}),"
        f" at most {budget:g} with a probability of {expected.chance_within:.2f}."
    )
    for where, loss in (("held-out texts", point.reported), ("test split", point.test_loss)):
        if loss is not None:
            words += f" On the {where}, which had no part in the choice, it lost {loss.points:.1f}."
    return words
