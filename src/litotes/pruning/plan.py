"""What a pruning needs, checked before hours of work: folder, model, texts, room on the disk."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.storage import LOCK, MANIFEST, find_foreign_file
from litotes.core.values import Example
from litotes.data.corpus import Corpus
from litotes.model.checkpoint import Model, load_model
from litotes.model.folder import TRAINED_TEXTS, is_model_folder, read_trained_texts
from litotes.pruning.more_texts import read_more_texts
from litotes.pruning.result import PruneSettings
from litotes.training.recipe import Recipe, recipe_of
from litotes.training.training_data import TrainingData, prepare

OUR_FILES = {
    "phases",
    "frontier.json",
    "frontier.svg",
    "scores.json",
    "model.safetensors",
    "tokenizer.json",
    "README.md",
    TRAINED_TEXTS,
    MANIFEST,
    LOCK,
}
"""What a pruning that was stopped, or that chose nothing, may have left."""
_N_STATES = 6
"""The weights that a training in progress keeps: two states, each with Adam's two averages."""
_N_ENOUGH = 100
"""With fewer texts to choose by, one answer is more than a point of macro-F1."""


@dataclass(frozen=True)
class PrunePlan:
    """All that a pruning starts from. notes: what the user should know before it does."""

    settings: PruneSettings
    recipe: Recipe
    data: TrainingData
    dense: Model
    dense_texts: frozenset[str] | None  # hashes of the texts it was trained on
    out: Path
    notes: tuple[str, ...]
    unlabelled: tuple[Example, ...] = ()  # only agreement counts
    reporting: Corpus | None = None  # labelled, and no part of the choice


def plan_pruning(
    run: str | Path,
    source: str,
    out: Path,
    *,
    settings: PruneSettings,
    avoid: Sequence[str] | None = None,
) -> PrunePlan:
    """Checks everything that would otherwise fail at the end.

    avoid: corpora whose texts are not learned from; None: those the dense model was trained
    without.
    """
    _check_folder(out)
    dense = _load_dense_model(run)
    recipe = _pruning_recipe(dense, source, avoid)
    data = prepare(recipe)
    _check_tasks(dense, data)
    n_judged = _count_judged(dense, judged_texts(data))
    _check_disk(dense, out, settings)
    known = read_trained_texts(run)
    unlabelled, reporting, notes = read_more_texts(settings, data, dense, known)
    if settings.folds:
        n_judged += len(fold_texts(dense, data))
    notes = (*_notes(dense, data, n_judged), *notes)
    return PrunePlan(settings, recipe, data, dense, known, out, notes, unlabelled, reporting)


def fold_texts(dense: Model, data: TrainingData) -> tuple[Example, ...]:
    """The texts that are divided into folds: all labelled ones but those that judge the dense
    model's own prunings.
    """
    examples = data.train.examples
    is_judge = data.reserved is None and not has_learned_all(dense, data)
    if data.held_out is not None and not is_judge:
        examples += data.held_out.examples
    return examples


def judged_texts(data: TrainingData) -> Corpus:
    """The texts that the choice is made by."""
    judged = data.held_out if data.reserved is None else data.reserved
    assert judged is not None  # a pruning's recipe always holds texts out
    return judged


def _load_dense_model(run: str | Path) -> Model:
    model = load_model(run)
    if model.classifier.encoder.spec.pruning != "none":
        raise UserError(
            f"{run} is pruned already ({model.classifier.encoder.spec.pruning}). Prune the dense"
            " model it came from."
        )
    if model.exits is not None:
        raise UserError(
            f"{run} has exits. Prune the model it was made from, and add exits to the pruned one."
        )
    for task in model.classifier.tasks.values():
        if task.multi_label:
            raise UserError(
                f"This model may give {task.name} several labels, and a pruning is chosen by the"
                " macro-F1 of one. Choose a model without that task."
            )
    if all(task.is_regression for task in model.classifier.tasks.values()):
        raise UserError(
            "All tasks of this model are answered with a number; a pruning is chosen by macro-F1."
            " Choose a classifier."
        )
    return model


def _check_folder(out: Path) -> None:
    if is_model_folder(out):
        raise UserError(f"{out} already holds a model. Choose another --out.")
    foreign = find_foreign_file(out, OUR_FILES)
    if foreign is not None:
        raise UserError(
            f"{out} holds files that are not of a pruning ({foreign}). Choose an empty or a new"
            " folder for --out."
        )


def _pruning_recipe(dense: Model, source: str, avoid: Sequence[str] | None) -> Recipe:
    """The recipe of the dense run, on the texts of `source`; for the same source the same texts are
    held out, by the same seed.
    """
    if "recipe" not in dense.facts:
        raise UserError(
            "The model does not say how it was trained. Prune one that `litotes train` has made."
        )
    trained = recipe_of(dict(dense.facts["recipe"]), "the model's recipe")
    recipe = trained.changed(data__source=source)
    if avoid is not None:
        recipe = recipe.changed(data__avoid=list(avoid))
    return recipe if recipe.training.held_out else recipe.changed(training__held_out=0.1)


def _check_tasks(dense: Model, data: TrainingData) -> None:
    """The labels of the source must be those the model answers with."""
    name_of_data = data.train.name
    for name, task in dense.classifier.tasks.items():
        same_task = data.train.tasks.get(name)
        if same_task is None:
            raise UserError(
                f"{name_of_data} has no labels for {name}, which this model answers. Choose"
                " another source."
            )
        if same_task.labels != task.labels:
            raise UserError(
                f"{name_of_data} answers {name} with"
                f" {', '.join(same_task.labels) or 'a number'}, the model with"
                f" {', '.join(task.labels) or 'a number'}. Choose a source with the same labels."
            )


def _count_judged(dense: Model, judged: Corpus) -> int:
    """How many texts there are to choose by, in the task that has the fewest."""
    counts = []
    for name, task in dense.classifier.tasks.items():
        if task.is_regression:
            continue
        n = sum(example.labels.get(name) in task.labels for example in judged)
        if not n:
            raise UserError(
                f"None of the {len(judged)} texts of {judged.name} that are held out to choose by"
                f" has a label for {name}. Hold out more: train with --set training.held_out=0.2,"
                " or choose another --data."
            )
        counts.append(n)
    return min(counts)


def _check_disk(dense: Model, out: Path, settings: PruneSettings) -> None:
    """The weights of every phase are kept until a model is chosen."""
    n_bytes = sum(tensor.nbytes for tensor in dense.classifier.state_dict().values())
    n_trained = 1 + len(set(settings.targets)) + 2 * settings.control
    # a fold has a dense model of its own, and its weights go when its answers are known
    n_kept = n_trained + _N_STATES + bool(settings.folds) * (1 + n_trained)
    kept = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    place = next(path for path in (out, *out.resolve().parents) if path.is_dir())
    free = shutil.disk_usage(place).free
    needed = n_kept * n_bytes - kept
    if free < needed:
        raise UserError(
            f"Pruning needs about {needed / 1e9:.1f} GB in {out} until a model is chosen, and"
            f" {free / 1e9:.1f} GB are free. Make room, choose another --out, or fewer --targets."
        )


def _notes(dense: Model, data: TrainingData, n_judged: int) -> list[str]:
    notes = []
    if data.reserved is None and has_learned_all(dense, data):
        notes.append(
            "The dense model was trained with held_out = 0, so it has learned the very texts that"
            " are chosen by, and losses on them come out too large. Train it with --set"
            " training.held_out=0.1."
        )
    if n_judged < _N_ENOUGH:
        notes.append(
            f"There are {n_judged} texts to choose by: one answer is worth about"
            f" {100 / n_judged:.1f} points of macro-F1, so that a small --loss can hardly be shown."
        )
    return notes


def has_learned_all(dense: Model, data: TrainingData) -> bool:
    """Whether the dense model was trained on these very texts without holding any out."""
    recipe = recipe_of(dict(dense.facts["recipe"]), "the model's recipe")
    is_same_data = dense.facts["data"]["sha256"] == data.whole.fingerprint()
    return is_same_data and not recipe.training.held_out
