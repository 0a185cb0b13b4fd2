"""From a dense model to the fastest pruned one within a loss: fewer attention heads, budgets
learned, searched, settled, measured.

dense model → heads that its answers hang on least leave for good → training with budgets drawn at
every step (length drop), the dense model as teacher → for each target a search for the best shares
per layer → a few epochs with just those → the same with each fold of the training texts left out,
if asked → the loss on texts kept apart and out of fold, and from both the loss to be expected → the
fastest one expected to be within the budget → model folder, frontier.json

The dense model's epoch was chosen by its held-out texts, so it looks better on them than it is, and
every loss on them too large. Texts that its training never saw (`training.reserved`) judge fairly;
they do where there are any.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from litotes.core.machine import choose_device, machine
from litotes.core.progress import Watch, ignore_progress
from litotes.core.storage import clear_staged, locked, remove_folder, write_json
from litotes.core.text import one_line
from litotes.evaluation.evaluate import CellScores, evaluate
from litotes.model.checkpoint import Model, save_model
from litotes.model.classifier import seconds_in_turns
from litotes.model.folder import write_trained_texts
from litotes.prediction.predictor import Predictor
from litotes.pruning.frontier import NO_LOSS, Loss, Point, best_within, join_tasks, measure_loss
from litotes.pruning.losses import Answers, draw_losses, estimate_losses
from litotes.pruning.phases import (
    Candidate,
    FoldAnswers,
    answer_texts,
    count_operations,
    cross_fit,
    first_texts,
    train_candidates,
)
from litotes.pruning.plan import PrunePlan, PruneSettings, plan_pruning
from litotes.training.card import model_card

N_TIMED = 128
"""Texts that speed is measured on."""
_ROUNDS = 3
_MOST_TIMES = 50
"""More texts than so many times those there are is no advice."""

ByTask = Mapping[str, Answers]

REFUSAL = (
    "{claim}: the best, {0.flops_ratio:.1f} times fewer operations, is expected to lose"
    " {1.points:.1f} ({1.interval[0]:.1f} to {1.interval[1]:.1f}), within the budget with a"
    " probability of {1.chance_within:.2f}; {more}. Allow more with --loss{less} or try milder"
    " --factors; what is trained is kept."
)
PRUNED = (
    "Pruned: {0.flops_ratio:.1f} times fewer operations than the dense model, {0.n_heads} attention"
    " heads left in all; it is expected to lose {1.points:.1f} points of macro-F1 (95 % interval"
    " {1.interval[0]:.1f} to {1.interval[1]:.1f}), at most {budget:g} with a probability of"
    " {1.chance_within:.2f}."
)
SLOWER = (
    "{0.flops_ratio:.1f} times fewer operations were no faster here ({0.speed_ratio:.2f} times"
    " dense): the texts or the model are too small for it to matter."
)
"""0: the point, 1: what it is expected to lose."""


def prune(
    model: str | Path,
    data: str,
    out: str | Path,
    *,
    settings: PruneSettings | None = None,
    exclude: Sequence[str] | None = None,
    device: str | None = None,
    watch: Watch = ignore_progress,
) -> PruneResult:
    """Finds the fastest pruning of a dense model within a loss of macro-F1 (`settings.loss`).

    exclude: sources excluded from training; None: those the model was trained without. The
    pruned model, if one was found, is in `out`; a search that was stopped is continued.
    """
    plan = plan_pruning(model, data, out, settings=settings, exclude=exclude)
    return carry_out(plan, device=device, watch=watch)


def carry_out(
    plan: PrunePlan, *, device: str | None = None, watch: Watch = ignore_progress
) -> PruneResult:
    """Does what `plan_pruning` has checked."""
    plan = replace(plan, device=choose_device(device), watch=watch)
    plan.dense.classifier.to(plan.device)
    with locked(plan.out):
        clear_staged(plan.phases, below=True)
        candidates = train_candidates(plan)
        return _choose(plan, candidates, cross_fit(plan, candidates))


@dataclass(frozen=True)
class TextCounts:
    """The numbers of texts that chose, and that only reported.

    kept_apart: labelled, answered by the models to choose from. in_folds: labelled, answered by
    models that were trained without them. unlabelled: by agreement alone. held_out, test: no part
    in the choice.
    """

    kept_apart: int
    in_folds: int = 0
    n_folds: int = 0
    unlabelled: int = 0
    held_out: int = 0
    test: int = 0

    def in_words(self) -> str:
        chose = {
            f"{self.kept_apart} labelled texts kept apart": True,
            f"{self.in_folds} training texts in {self.n_folds} folds": self.in_folds,
            f"the agreement on {self.unlabelled} texts without a label": self.unlabelled,
        }
        told = {
            f"{self.held_out} held-out texts": self.held_out,
            f"{self.test} texts of the test split": self.test,
        }
        by, reported = (" and ".join(filter(some.get, some)) for some in (chose, told))
        if reported:
            return f"Chosen by {by}; reported by {reported}, which had no part in the choice."
        return f"Chosen by {by}; no other texts report what it loses (--held-out names some)."

    def as_json(self) -> dict[str, Any]:
        chose = {"kept_apart": self.kept_apart, "in_folds": self.in_folds, "folds": self.n_folds}
        return {
            "chosen_by": {**chose, "unlabelled": self.unlabelled},
            "reported_by": {"held_out": self.held_out, "test": self.test},
        }


@dataclass(frozen=True)
class PruneResult:
    """The frontier, and the model chosen from it with its scores on the test split; None where no
    point is within the loss.
    """

    settings: PruneSettings
    points: tuple[Point, ...]
    model: Model | None
    scores: tuple[CellScores, ...]
    notes: tuple[str, ...] = ()
    texts: TextCounts | None = None

    def __repr__(self) -> str:
        chosen = None if self.chosen is None else self.chosen.flops_ratio
        return one_line(self, n_points=len(self.points), flops_ratio=chosen, model=self.model)

    @property
    def chosen(self) -> Point | None:
        return next((point for point in self.points if point.chosen), None)

    def refusal(self) -> str:
        """Says why nothing was chosen, and what would be needed."""
        budget, sure = self.settings.loss, self.settings.sure
        pruned = [point for point in self.points if point.kind == "pruned"]
        if sure is None:
            best = min(pruned, key=lambda point: point.expected.points)
            claim, less = f"No setting is expected to lose at most {budget:g} points", ""
        else:
            best = max(pruned, key=lambda point: point.expected.chance_within)
            claim = f"No setting loses at most {budget:g} points with a certainty of {sure:g}"
            less = ", ask for less with --confidence,"
        more = self._more_texts(best.expected)
        return REFUSAL.format(best, best.expected, claim=claim, more=more, less=less)

    def _more_texts(self, guess: Loss) -> str:
        """Estimates how many more labelled texts would settle it; errors fall as 1 / √n."""
        width, texts = guess.interval[1] - guess.interval[0], self.texts or TextCounts(0)
        n_labelled = texts.kept_apart + texts.in_folds
        margin = abs(self.settings.loss - guess.points)
        if not n_labelled or margin < width / 100:
            return "it lies so near the budget that no number of texts would tell"
        # quantiles of the normal distribution: one side at 95 %, both sides of the interval
        needed = 1.645 * width / (2 * 1.96) / margin
        n_more = math.ceil(n_labelled * max(needed**2 - 1, 0) / 50) * 50
        if not n_more:
            return f"the {n_labelled} labelled texts suffice to tell, and more would not change it"
        if n_more > _MOST_TIMES * n_labelled:
            return f"more than {_MOST_TIMES} times the {n_labelled} labelled texts would be needed"
        how = "" if texts.n_folds else ", --cross-fit 4"
        return (
            f"about {n_more:,} more labelled texts than these {n_labelled:,} would tell (a larger"
            f" training.reserved{how})"
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "machine": machine(),
            "budget": {"loss": self.settings.loss, "sure": self.settings.sure},
            "texts": None if self.texts is None else self.texts.as_json(),
            "points": [point.as_json() for point in self.points],
            "notes": list(self.notes),
        }


def _choose(
    plan: PrunePlan, candidates: Sequence[Candidate], folds: Sequence[FoldAnswers]
) -> PruneResult:
    """Measures the candidates and writes the chosen one as a model; nothing is chosen where all are
    expected to lose too much.
    """
    points, texts = _measure(plan, candidates, folds), _count_texts(plan, folds)
    best = best_within(points, plan.settings.loss, plan.settings.sure)
    points = tuple(replace(point, chosen=point is best) for point in points)
    result = PruneResult(plan.settings, points, None, (), _notes(plan, points, texts), texts)
    for candidate, point in zip(candidates, points, strict=True):
        if point.chosen:
            model = _make_model(plan, candidate, point, texts)
            rows: tuple[CellScores, ...] = ()
            if plan.data.test is not None:
                predictor = Predictor(model, device=str(plan.device))
                rows = evaluate(predictor, plan.data.test, seed=plan.recipe.seed, watch=plan.watch)
            result = replace(result, model=model, scores=rows)
    write_json(plan.out / "frontier.json", result.as_json())
    if result.model is not None:
        write_json(plan.out / "scores.json", [row.as_json() for row in result.scores])
        if plan.dense_texts is not None:
            write_trained_texts(plan.out, plan.data.seen(), more=plan.dense_texts)
        save_model(result.model, plan.out, card=model_card(result.model, result.scores))
        remove_folder(plan.phases)
    return result


def _count_texts(plan: PrunePlan, folds: Sequence[FoldAnswers]) -> TextCounts:
    counts = {name: len(part.pieces) for name, part in plan.texts.items()}
    in_folds = [[answers.n_texts for answers in fold.labelled.values()] for fold in folds]
    return TextCounts(
        counts["judged"],
        sum(max(n_texts, default=0) for n_texts in in_folds),
        len(folds),
        *(counts.get(name, 0) for name in ("unlabelled", "reported", "test")),
    )


def _measure(
    plan: PrunePlan, candidates: Sequence[Candidate], folds: Sequence[FoldAnswers]
) -> tuple[Point, ...]:
    """The frontier: a point for each candidate, of which dense is the first."""
    judged = plan.texts["judged"]
    some = first_texts(judged, N_TIMED)
    timed = {str(place): (one.classifier, some) for place, one in enumerate(candidates)}
    times = seconds_in_turns(timed, what="prune: rounds", n_rounds=_ROUNDS, watch=plan.watch)
    seconds = list(times.values())
    operations = [count_operations(one.classifier, judged) for one in candidates]
    ratios = [operations[0] / own for own in operations]
    answers = {
        name: answer_texts(plan, candidates, part, labelled=name != "unlabelled")
        for name, part in plan.texts.items()
        if name not in ("train", "held_out")
    }
    expected = [NO_LOSS, *_expected_losses(plan, ratios[1:], answers, folds)]
    asked = answers.get("unlabelled") or answers["judged"]
    agreement = [1.0, *np.min([task.agreement() for task in asked.values()], axis=0).tolist()]
    points = []
    for place, one in enumerate(candidates):
        shown = {
            name: measure_loss(own, place, budget=plan.settings.loss) if place else NO_LOSS
            for name, own in answers.items()
            if name != "unlabelled"
        }
        point = Point(
            one.target,
            one.found.shares,
            n_heads=sum(attention.n_heads for attention in one.classifier.encoder.attentions),
            flops_ratio=ratios[place],
            speed_ratio=seconds[0] / seconds[place],
            loss=shown["judged"],
            test_loss=shown.get("test"),
            divergence=one.found.divergence,
            kind=one.kind,
            expected=expected[place],
            reported=shown.get("reported"),
            agreement=agreement[place],
        )
        points.append(point)
    return tuple(points)


def _expected_losses(
    plan: PrunePlan,
    ratios: Sequence[float],
    answers: Mapping[str, ByTask],
    folds: Sequence[FoldAnswers],
) -> list[Loss]:
    """Estimates the loss of each candidate on new texts."""
    more = answers.get("unlabelled", {})
    draws = {}
    # texts that the dense model has learned make every loss look large
    is_judge = not (folds and plan.learned_all)
    for number, (task, shown) in enumerate(answers["judged"].items()):
        direct = estimate_losses(shown, more.get(task)) if is_judge else None
        asked = [fold for fold in folds if fold.labelled[task].n_texts]
        others = [estimate_losses(fold.labelled[task], fold.unlabelled.get(task)) for fold in asked]
        draws[task] = draw_losses(ratios, direct, others, seed=number)  # (draw, candidate)
    losses = []
    for place in range(len(ratios)):
        own = {task: values[:, place] for task, values in draws.items()}
        means = {task: float(values.mean()) for task, values in own.items()}
        losses.append(join_tasks(means, own, budget=plan.settings.loss))
    return losses


def _notes(plan: PrunePlan, points: Sequence[Point], texts: TextCounts) -> tuple[str, ...]:
    """Lists what the user should know about the texts the choice was made by, and about what could
    not be reached.
    """
    notes = [*plan.notes, texts.in_words()]
    highest = max(point.flops_ratio for point in points)
    if highest < 0.95 * max(plan.settings.targets):
        notes.append(
            f"More than {highest:.1f} times fewer operations cannot be reached by removing pieces"
            " from this model."
        )
    chosen = next((point for point in points if point.chosen), None)
    if chosen is not None and chosen.speed_ratio < 1:
        notes.append(SLOWER.format(chosen))
    return tuple(notes)


def _make_model(plan: PrunePlan, candidate: Candidate, point: Point, texts: TextCounts) -> Model:
    """The pruned classifier, calibrated on the held-out texts, with the facts of its pruning."""
    classifier = candidate.classifier.eval()
    spec = classifier.encoder.spec
    options = dict(spec.pruning_options)
    recipe = plan.recipe.changed(model__pruning=spec.pruning, model__pruning_options=options)
    words = PRUNED.format(point, point.expected, budget=plan.settings.loss)
    for where, loss in (("held-out texts", point.reported), ("test split", point.test_loss)):
        if loss is not None:
            words += f" On the {where}, which had no part in the choice, it lost {loss.points:.1f}."
    facts = {
        # not the dense run's: training must not take this for it
        "key": f"pruned-{plan.key(point.target)}",
        "recipe": recipe.model_dump(mode="json"),
        "data": plan.data.facts(n_train=len(plan.texts["train"])),
        "dense": plan.dense.facts["key"],
        "pruned": {**point.as_json(), "texts": texts.as_json()},
        "notes": [*plan.data.notes, words, texts.in_words()],
        "versions": {"torch": torch.__version__},
    }
    return replace(
        plan.dense, classifier=classifier, calibration=candidate.calibration, facts=facts
    )
