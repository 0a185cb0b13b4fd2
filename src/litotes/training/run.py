"""One run: a recipe becomes a trained, tested model folder.

corpus → no leaks → train / held out → texts as pieces → loop → calibration → model folder → scores
on the test split
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from litotes.attention import PRUNINGS, WEIGHTINGS
from litotes.core.device import choose_device
from litotes.core.errors import UserError
from litotes.core.progress import Watch, prefixed, unwatched
from litotes.core.registry import check_options, pick
from litotes.core.storage import LOCK, is_staged, locked, write_json
from litotes.data.corpus import Corpus
from litotes.encoders import pretrained
from litotes.evaluation.evaluate import CellScores, evaluate, warnings_of
from litotes.heads import HEADS
from litotes.model.calibration import Calibration
from litotes.model.checkpoint import Model, load_model, save_model, save_parts
from litotes.model.classifier import Classifier
from litotes.model.folder import DESCRIPTION, is_model_folder
from litotes.predict.predictor import Predictor
from litotes.text.packing import TextSet, text_set
from litotes.training.balancing import BALANCINGS
from litotes.training.card import model_card
from litotes.training.checkpoints import Checkpoints, RunState
from litotes.training.held_out import fit_calibrations, held_out_score
from litotes.training.inputs import freeze, make_inputs
from litotes.training.loop import Loop, RunContext
from litotes.training.processes import join_processes
from litotes.training.recipe import Recipe
from litotes.training.training_data import TrainingData, prepare

OUR_FILES = ("recipe.json", "history.jsonl", "checkpoints", "tensorboard", LOCK)
"""What a run that was killed before its first checkpoint may have left."""

LAST_FILES = ("scores.json", "model.safetensors", "tokenizer.json", "README.md", "config.json")
"""What one that was killed in its very last moments may have left beside them: litotes.json comes
after these.
"""


@dataclass(frozen=True)
class Run:
    """What a finished run leaves behind: one model, or one per task."""

    folder: Path
    models: tuple[Model, ...]
    scores: tuple[CellScores, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def model(self) -> Model:
        """The only model."""
        (model,) = self.models
        return model


def train(
    recipe: Recipe,
    out: Path,
    *,
    corpus: Corpus | None = None,
    device: str | None = None,
    resume: bool = False,
    watch: Watch = unwatched,
) -> Run:
    """Trains one classifier into the folder `out`; with `resume` goes on where a stopped run was.

    corpus: texts that are already in memory, in place of those of the recipe's `data.source`.
    """
    check_names(recipe)
    chosen = choose_device(device)
    with join_processes(chosen.type) as processes:
        context = RunContext(chosen, out, recipe.key(), processes, watch, corpus)
        return (
            _train_separately(recipe, context, resume=resume)
            if recipe.model.separate
            else _train_one(recipe, context, resume=resume)
        )


def check_names(recipe: Recipe) -> None:
    """Tells a wrong name before anything is read or written."""
    pick(HEADS, recipe.model.head, "head")
    check_options(WEIGHTINGS, recipe.model.weighting, "weighting", recipe.model.weighting_options)
    check_options(PRUNINGS, recipe.model.pruning, "pruning", recipe.model.pruning_options)
    pick(BALANCINGS, recipe.training.balancing, "balancing")


def attention_choices(recipe: Recipe) -> dict[str, Any]:
    """What the recipe chooses for attention."""
    return recipe.model.model_dump(
        include={"weighting", "weighting_options", "pruning", "pruning_options"}
    )


def _train_one(recipe: Recipe, context: RunContext, *, resume: bool) -> Run:
    prepared = prepare(recipe, context.corpus)
    # the same file name may hold other texts today
    context = replace(context, key=f"{recipe.key()}-{prepared.fingerprint()[:16]}")
    checkpoints = Checkpoints(context.folder / "checkpoints", key=context.key)
    with ExitStack() as stack:
        if context.processes.is_first:
            stack.enter_context(locked(context.folder))
        context.processes.wait()  # until the first one has made the folder
        if _is_finished(context.key, context.folder, checkpoints, resume=resume):
            return finished_run(context.folder, checkpoints)
        return _train(recipe, prepared, context, checkpoints, resume=resume)


def _train(
    recipe: Recipe,
    prepared: TrainingData,
    context: RunContext,
    checkpoints: Checkpoints,
    *,
    resume: bool,
) -> Run:
    started = time.monotonic()
    source = pretrained.load(
        recipe.model.encoder, max_pieces=recipe.model.max_pieces, **attention_choices(recipe)
    )
    torch.manual_seed(recipe.seed)  # the heads' first weights
    tasks = list(prepared.train.tasks.values())
    classifier = Classifier(
        source.encoder, tasks, head=recipe.model.head, dropout=recipe.model.dropout
    ).to(context.device)
    texts = _texts(recipe, prepared.train, prepared, source)
    held_out = (
        _texts(recipe, prepared.held_out, prepared, source)
        if prepared.held_out is not None
        else None
    )
    if context.processes.is_first:
        write_json(context.folder / "recipe.json", recipe.model_dump(mode="json"))
    state, calibration = _fit(recipe, classifier, texts, held_out, context, resume=resume)
    notes = (*prepared.notes, *_truncation_note(texts), *_held_out_notes(recipe, prepared, state))
    facts = _facts(
        recipe, prepared, state, key=context.key, notes=notes, seconds=time.monotonic() - started
    )
    model = Model(
        classifier.eval(), source.tokenizer, source.name, source.sha256, calibration, facts
    )
    return _finish(recipe, model, prepared, context, checkpoints)


def _train_separately(recipe: Recipe, context: RunContext, *, resume: bool) -> Run:
    """A run per task in a folder of its own, and a folder around them that answers as one model."""
    prepared = prepare(recipe, context.corpus)
    _check_parts(context.folder, list(prepared.train.tasks))
    runs = []
    for task in prepared.train.tasks:
        alone = recipe.changed(data__tasks=[task], model__separate=False)
        here = replace(context, folder=context.folder / task, watch=prefixed(context.watch, task))
        runs.append(_train_one(alone, here, resume=resume))
    notes = tuple(dict.fromkeys(note for run in runs for note in run.notes))
    rows = tuple(row for run in runs for row in run.scores)
    if context.processes.is_first:
        write_json(context.folder / "recipe.json", recipe.model_dump(mode="json"))
        write_json(context.folder / "scores.json", [row.as_json() for row in rows])
        save_parts(list(prepared.train.tasks), context.folder)
    return Run(context.folder, tuple(model for run in runs for model in run.models), rows, notes)


def finished_run(folder: Path, checkpoints: Checkpoints) -> Run:
    """A run that was trained before, read back."""
    model = load_model(folder)
    checkpoints.clear()  # left behind when the run was killed just after its last file
    rows = tuple(
        CellScores.from_json(row) for row in json.loads((folder / "scores.json").read_text("utf-8"))
    )
    return Run(folder, (model,), rows, tuple(model.facts["notes"]))


def _fit(
    recipe: Recipe,
    classifier: Classifier,
    texts: TextSet,
    held_out: TextSet | None,
    context: RunContext,
    *,
    resume: bool,
) -> tuple[RunState, dict[str, Calibration]]:
    """Trains, and fits the calibration on the held-out texts."""
    settings = recipe.training
    freeze(classifier, settings.freeze_below)
    source = make_inputs(
        texts, classifier, context.device, freeze_below=settings.freeze_below, watch=context.watch
    )
    held = (
        make_inputs(held_out, classifier, context.device, freeze_below=settings.freeze_below)
        if held_out is not None
        else None
    )
    validate = (
        partial(held_out_score, classifier, held, worst_group=settings.selection == "worst_group")
        if held is not None
        else None
    )
    loop = Loop(classifier, source, settings, seed=recipe.seed, context=context, validate=validate)
    if resume:
        loop.resume()
    context.processes.wait()
    state = loop.run()
    if held is None or settings.calibration == "none":
        return state, {}
    by_group = settings.selection == "worst_group"
    return state, fit_calibrations(
        classifier, held, with_threshold=settings.calibration == "full", by_group=by_group
    )


def _finish(
    recipe: Recipe,
    model: Model,
    prepared: TrainingData,
    context: RunContext,
    checkpoints: Checkpoints,
) -> Run:
    """Tests the model and writes the folder; the first process does it for all."""
    predictor = Predictor(model, device=str(context.device))
    rows = (
        evaluate(predictor, prepared.test, seed=recipe.seed, watch=context.watch)
        if prepared.test is not None
        else ()
    )
    notes = (*model.facts["notes"], *warnings_of(rows))
    model = replace(model, facts={**model.facts, "notes": list(notes)})
    if context.processes.is_first:
        write_json(context.folder / "scores.json", [row.as_json() for row in rows])
        save_model(model, context.folder, card=model_card(model, rows))
        checkpoints.clear()
    context.processes.wait()
    return Run(context.folder, (model,), rows, notes)


def _check_parts(out: Path, tasks: Sequence[str]) -> None:
    """What lies in the folder of a run per task must be of such a run."""
    ours = {*tasks, DESCRIPTION, "recipe.json", "scores.json"}
    if out.exists() and (
        not out.is_dir()
        or any(path.name not in ours and not is_staged(path) for path in out.iterdir())
    ):
        raise UserError(
            f"{out} holds files that are not of a run with a model per task. Choose an empty or a"
            " new folder for --out."
        )


def _is_finished(key: str, out: Path, checkpoints: Checkpoints, *, resume: bool) -> bool:
    """Whether `out` already holds this very run; anything else in the way is a mistake to be told
    before work starts.
    """
    found = checkpoints.stored_key()
    if (out / DESCRIPTION).is_file():
        if not resume:
            raise UserError(
                f"{out} already holds a trained model. Choose another --out, or take it as it is"
                " with --resume."
            )
        found = str(load_model(out).facts.get("key"))
    elif found is not None and not resume:
        raise UserError(
            f"{out} holds a run that was stopped. Go on with --resume, or choose another --out."
        )
    elif found is None and _holds_strange_files(out):
        raise UserError(
            f"{out} holds files that are not of a run. Choose an empty or a new folder for --out."
        )
    if found is not None and found != key:
        raise UserError(
            f"{out} holds a run of another recipe or on other data. Choose another --out, or start"
            " it as it was started."
        )
    return (out / DESCRIPTION).is_file()


def _holds_strange_files(out: Path) -> bool:
    names = {path.name for path in out.iterdir() if not is_staged(path)}
    ours = {*OUR_FILES, *LAST_FILES} if "recipe.json" in names else {*OUR_FILES}
    return not names <= ours


def _texts(
    recipe: Recipe, corpus: Corpus, prepared: TrainingData, source: pretrained.Pretrained
) -> TextSet:
    tasks = prepared.train.tasks.values()
    return text_set(corpus.examples, tasks, source.tokenizer, group_by=recipe.training.group_by)


def _held_out_notes(recipe: Recipe, prepared: TrainingData, state: RunState) -> list[str]:
    if prepared.held_out is not None:
        blind = (
            "The held-out texts of every task (or group) show one answer alone and cannot tell"
            " epochs apart: the last one was taken."
        )
        return [blind] if state.best_score is None else []
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


def _truncation_note(texts: TextSet) -> list[str]:
    if not texts.n_truncated:
        return []
    return [
        f"{texts.n_truncated} of {len(texts)} training texts are longer than the encoder reads and"
        f" were cut at {max(texts.lengths)} pieces."
    ]


def _facts(
    recipe: Recipe,
    prepared: TrainingData,
    state: RunState,
    *,
    key: str,
    notes: tuple[str, ...],
    seconds: float,
) -> dict[str, Any]:
    return {
        "key": key,
        "recipe": recipe.model_dump(mode="json"),
        "data": {
            "name": prepared.whole.name,
            "sha256": prepared.whole.fingerprint(),
            "n_train": len(prepared.train),
        },
        "best_epoch": state.best_epoch,
        "history": state.history,
        "notes": list(notes),
        "versions": {"torch": torch.__version__},
        "seconds": round(seconds, 1),
        "seconds_per_step": state.seconds / max(state.step, 1),
    }
