"""What a model folder says about its training: the facts in `litotes.json`, the notes in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from litotes.core.values import Task
from litotes.encoder.packing import TextSet
from litotes.training.checkpoints import RunState
from litotes.training.losses import task_weights
from litotes.training.recipe import Recipe
from litotes.training.training_data import TrainingData


def training_facts(
    recipe: Recipe,
    data: TrainingData,
    state: RunState,
    *,
    key: str,
    notes: Sequence[str],
    seconds: float,
) -> dict[str, Any]:
    return {
        "key": key,
        "recipe": recipe.model_dump(mode="json"),
        "data": data_facts(data, n_train=len(data.train)),
        "best_epoch": state.best_epoch,
        "history": state.history,
        "notes": list(notes),
        "versions": {"torch": torch.__version__},
        "seconds": round(seconds, 1),
        "seconds_per_step": state.seconds / max(state.step, 1),
    }


def class_weight_facts(
    recipe: Recipe, texts: TextSet, tasks: Mapping[str, Task]
) -> dict[str, list[float]]:
    """How much each class counted: answers lean by as much, and a student must know."""
    weights = task_weights(texts.targets, tasks, balanced=recipe.training.class_weights)
    return {task: weight.tolist() for task, weight in weights.items()}


def data_facts(data: TrainingData, *, n_train: int) -> dict[str, Any]:
    """n_pairs: of the texts learned from, where there are any."""
    n_pairs = sum(example.pair is not None for example in data.train)
    pairs = {"n_pairs": n_pairs} if n_pairs else {}
    name, sha256 = data.whole.name, data.whole.fingerprint()
    return {"name": name, "sha256": sha256, "n_train": n_train, **pairs}


def training_notes(
    recipe: Recipe, data: TrainingData, texts: TextSet, state: RunState
) -> tuple[str, ...]:
    """What the user should know about the data and about the choice of the epoch.

    texts: those learned from.
    """
    notes = list(data.notes)
    if texts.n_truncated:
        notes.append(
            f"{texts.n_truncated} of {len(texts)} training texts are longer than the encoder reads"
            f" and were cut at {max(texts.lengths)} pieces."
        )
    if texts.n_unreadable:
        notes.append(
            f"{texts.n_unreadable} of {len(texts)} training texts are unreadable: the encoder knows"
            " no part of them. Leave them out, or choose another encoder."
        )
    if data.held_out is None:
        notes += _notes_without_held_out(recipe)
    elif state.best_score is None:
        notes.append(
            "The held-out texts of every task (or group) show one answer alone and cannot tell"
            " epochs apart: the last one was taken."
        )
    return tuple(notes)


def _notes_without_held_out(recipe: Recipe) -> list[str]:
    notes = []
    if recipe.training.calibration != "none":
        notes.append(
            "Not calibrated: training.held_out is 0, so there are no texts to fit temperature and"
            " threshold on."
        )
    if recipe.training.selection == "worst_group":
        notes.append(
            "training.selection = worst_group chose nothing: training.held_out is 0, so the last"
            " epoch was taken."
        )
    return notes
