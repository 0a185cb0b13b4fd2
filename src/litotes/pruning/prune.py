"""From a dense model to the fastest pruned one within a loss: fewer attention heads, budgets
learned, searched, settled, measured.

dense model → heads that its answers hang on least leave for good → training with budgets drawn at
every step (length drop), the dense model as teacher → for each target a search for the best shares
per layer → a few epochs with just those → loss on held-out texts, with its interval, and time
against the dense model → the fastest one within the loss → model folder, frontier.json

The dense model's epoch was chosen by its held-out texts, so it looks better on them than it is, and
every loss on them too large. Texts that its training never saw (`training.reserved`) judge fairly;
they do where there are any.
"""

from __future__ import annotations

from pathlib import Path

from litotes.core.device import choose_device
from litotes.core.errors import UserError
from litotes.core.progress import Watch, ignore_progress
from litotes.core.staging import clear_staged
from litotes.core.storage import LOCK, MANIFEST, find_foreign_file, locked
from litotes.model.checkpoint import Model, load_model
from litotes.model.folder import is_model_folder
from litotes.pruning.choice import Setting, choose
from litotes.pruning.context import PruneContext, make_context
from litotes.pruning.phases import explore, search, settle
from litotes.pruning.result import PruneResult, PruneSettings
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
    MANIFEST,
    LOCK,
}
"""What a pruning that was stopped, or that chose nothing, may have left."""


def prune(
    run: Path,
    source: str,
    out: Path,
    *,
    settings: PruneSettings | None = None,
    device: str | None = None,
    watch: Watch = ignore_progress,
) -> PruneResult:
    """Prunes the model of the folder `run` for the texts of `source` into `out`; a stopped one goes
    on where it was.
    """
    settings = settings or PruneSettings()
    dense = _load_dense_model(run)
    _check_folder(out)
    recipe = _pruning_recipe(dense, source)
    data = prepare(recipe)
    _check_tasks(dense, data)
    with locked(out):
        context = make_context(
            settings, recipe, data, dense, device=choose_device(device), folder=out, watch=watch
        )
        clear_staged(context.phases, below=True)
        return choose(context, _train_settings(context))


def _train_settings(context: PruneContext) -> list[Setting]:
    """A trained setting for each target that can be told from the others."""
    start = explore(context)
    targets = sorted(set(context.settings.targets))
    found = {target: search(context, start, target) for target in targets}
    # targets out of reach end in the same shares; the lowest stands for them
    different = {shares.shares: target for target, shares in reversed(found.items())}
    settings = []
    for target in sorted(different.values()):
        classifier = settle(context, start, target, found[target])
        settings.append(Setting(target, found[target], classifier))
    return settings


def _load_dense_model(run: Path) -> Model:
    model = load_model(run)
    if model.classifier.encoder.spec.pruning != "none":
        raise UserError(
            f"{run} is pruned already ({model.classifier.encoder.spec.pruning}). Prune the dense"
            " model it came from."
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


def _pruning_recipe(dense: Model, source: str) -> Recipe:
    """The recipe of the dense run, on the texts of `source`; for the same source the same texts are
    held out, by the same seed.
    """
    if "recipe" not in dense.facts:
        raise UserError(
            "The model does not say how it was trained. Prune one that `litotes train` has made."
        )
    trained = recipe_of(dict(dense.facts["recipe"]), "the model's recipe")
    recipe = trained.changed(data__source=source)
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
