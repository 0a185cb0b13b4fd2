"""One run: a recipe becomes a trained, tested model folder.

corpus → no leaks → train / held out → texts as pieces → loop → calibration → model folder → scores
on the test split
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from litotes.core.errors import UserError
from litotes.core.json_text import read_as
from litotes.core.machine import choose_device
from litotes.core.progress import Watch, ignore_progress, prefix_watch
from litotes.core.registry import check_options, pick
from litotes.core.storage import write_json
from litotes.core.text import one_line
from litotes.core.values import Example, Task
from litotes.data.corpus import Corpus
from litotes.encoder import pretrained
from litotes.encoder.attention import PRUNINGS, WEIGHTINGS
from litotes.encoder.encoder import Encoder
from litotes.encoder.packing import TextSet, make_text_set
from litotes.evaluation.evaluate import CellScores, evaluate, score_warnings
from litotes.model.calibration import Calibration
from litotes.model.checkpoint import Model, load_model, save_model, save_parts
from litotes.model.classifier import Classifier
from litotes.model.folder import write_trained_texts
from litotes.model.heads import HEADS
from litotes.prediction.predictor import Predictor
from litotes.training.balancing import BALANCINGS
from litotes.training.card import model_card
from litotes.training.checkpoints import Checkpoints, RunState
from litotes.training.epoch_loop import RunContext
from litotes.training.facts import class_weight_facts, training_facts, training_notes
from litotes.training.held_out import fit_calibrations, held_out_score
from litotes.training.inputs import freeze, make_inputs
from litotes.training.lessons import Lessons
from litotes.training.loop import Loop
from litotes.training.processes import hold_folder, join_processes
from litotes.training.recipe import Recipe
from litotes.training.run_folder import check_parts_folder, find_finished_model
from litotes.training.teacher import Teacher
from litotes.training.training_data import TrainingData, prepare


@dataclass(frozen=True)
class Run:
    """What a finished run leaves behind: one model, or one per task."""

    folder: Path
    models: tuple[Model, ...]
    scores: tuple[CellScores, ...]
    notes: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        tasks = [task for model in self.models for task in model.classifier.tasks]
        return one_line(self, folder=str(self.folder), tasks=tasks, n_scores=len(self.scores))

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
    watch: Watch = ignore_progress,
    lessons: Lessons | None = None,
) -> Run:
    """Trains one classifier into the folder `out`; with `resume` goes on where a stopped run was.

    corpus: texts that are already in memory, in place of those of the recipe's `data.source`.
    lessons: answers of teachers to learn from besides the labels.
    """
    check_names(recipe)
    chosen = choose_device(device)
    train_all = _train_separately if recipe.model.separate else _train_one
    with join_processes(chosen.type) as processes:
        context = RunContext(chosen, out, recipe.key(), processes, watch, corpus, lessons)
        return train_all(recipe, context, resume=resume)


def check_names(recipe: Recipe) -> None:
    """Reports a wrong name before anything is read or written."""
    pick(HEADS, recipe.model.head, "head")
    check_options(WEIGHTINGS, recipe.model.weighting, "weighting", recipe.model.weighting_options)
    check_options(PRUNINGS, recipe.model.pruning, "pruning", recipe.model.pruning_options)
    pick(BALANCINGS, recipe.training.balancing, "balancing")


def _train_separately(recipe: Recipe, context: RunContext, *, resume: bool) -> Run:
    """A run per task in a folder of its own, and a folder around them that answers as one model."""
    tasks = list(prepare(recipe, context.corpus).train.tasks)
    check_parts_folder(context.folder, tasks)
    runs = []
    for task in tasks:
        alone = recipe.changed(data__tasks=[task], model__separate=False)
        here = replace(
            context, folder=context.folder / task, watch=prefix_watch(context.watch, task)
        )
        runs.append(_train_one(alone, here, resume=resume))
    whole = _join_runs(runs, context.folder)
    if context.processes.is_first:
        _write_recipe(recipe, whole.folder)
        _write_scores(whole.scores, whole.folder)
        save_parts(tasks, whole.folder)
    return whole


def _join_runs(runs: Sequence[Run], folder: Path) -> Run:
    """The runs of several tasks as one."""
    models: list[Model] = []
    rows: list[CellScores] = []
    notes: dict[str, None] = {}  # a set that keeps its order
    for run in runs:
        models += run.models
        rows += run.scores
        notes |= dict.fromkeys(run.notes)
    return Run(folder, tuple(models), tuple(rows), tuple(notes))


def _train_one(recipe: Recipe, context: RunContext, *, resume: bool) -> Run:
    data = prepare(recipe, context.corpus)
    # the same file name may hold other texts today
    key = f"{recipe.key()}-{data.fingerprint()[:16]}"
    if context.lessons is not None:
        key += f"-{context.lessons.key()}"
    context = replace(context, key=key)
    checkpoints = Checkpoints(context.folder / "checkpoints", key=context.key)
    with hold_folder(context.folder, context.processes):
        finished = find_finished_model(
            context.folder, context.key, checkpoints, resume=resume, load=load_model
        )
        if finished is None:
            model = _train_model(recipe, data, context, resume=resume)
            return _test_and_save(recipe, model, data, context, checkpoints)
        checkpoints.clear()  # left behind when the run was killed just after its last file
        return _read_finished_run(context.folder, finished)


def _train_model(recipe: Recipe, data: TrainingData, context: RunContext, *, resume: bool) -> Model:
    started = time.monotonic()
    source = pretrained.load(
        recipe.model.encoder, max_pieces=recipe.model.max_pieces, **_attention_choices(recipe)
    )
    tasks = list(data.train.tasks.values())
    classifier = _make_classifier(recipe, source.encoder, tasks).to(context.device)
    tokenize = partial(
        make_text_set, tasks=tasks, tokenizer=source.tokenizer, group_by=recipe.training.group_by
    )
    examples = [*data.train.examples, *_unlabelled_texts(context)]
    texts = tokenize(examples)
    held_out = None if data.held_out is None else tokenize(data.held_out.examples)
    if context.processes.is_first:
        _write_recipe(recipe, context.folder)
    teacher = None
    if context.lessons is not None:
        balanced = recipe.training.class_weights
        teacher = context.lessons.teacher_of(examples, texts, classifier.tasks, balanced=balanced)
    fit = partial(_fit, recipe, classifier, texts, held_out, context)
    state, calibration = fit(teacher=teacher, resume=resume)
    notes = training_notes(recipe, data, texts, state)
    if context.lessons is not None:
        notes += tuple(context.lessons.notes())
    seconds = time.monotonic() - started
    facts = training_facts(recipe, data, state, key=context.key, notes=notes, seconds=seconds)
    facts["class_weights"] = class_weight_facts(recipe, texts, classifier.tasks)
    return Model(
        classifier.eval(), source.tokenizer, source.name, source.sha256, calibration, facts
    )


def _unlabelled_texts(context: RunContext) -> tuple[Example, ...]:
    return () if context.lessons is None else context.lessons.unlabelled


def _make_classifier(recipe: Recipe, encoder: Encoder, tasks: Sequence[Task]) -> Classifier:
    torch.manual_seed(recipe.seed)  # the heads' first weights
    head, dropout = recipe.model.head, recipe.model.dropout
    return Classifier(encoder, tasks, head=head, dropout=dropout)


def _attention_choices(recipe: Recipe) -> dict[str, Any]:
    """The weighting and the pruning of the recipe, with their options."""
    return recipe.model.model_dump(
        include={"weighting", "weighting_options", "pruning", "pruning_options"}
    )


def _fit(
    recipe: Recipe,
    classifier: Classifier,
    texts: TextSet,
    held_out: TextSet | None,
    context: RunContext,
    *,
    teacher: Teacher | None,
    resume: bool,
) -> tuple[RunState, dict[str, Calibration]]:
    """Trains, and fits the calibration on the held-out texts."""
    settings, device = recipe.training, context.device
    n_frozen = settings.freeze_below
    freeze(classifier, n_frozen)
    inputs = make_inputs(texts, classifier, device, freeze_below=n_frozen, watch=context.watch)
    held_inputs, validate = None, None
    if held_out is not None:
        held_inputs = make_inputs(held_out, classifier, device, freeze_below=n_frozen)
        by_worst_group = settings.selection == "worst_group"
        validate = partial(held_out_score, classifier, held_inputs, worst_group=by_worst_group)
    loop = Loop(
        classifier,
        inputs,
        settings,
        seed=recipe.seed,
        context=context,
        validate=validate,
        teacher=teacher,
    )
    if resume:
        loop.resume()
    context.processes.wait()
    state = loop.run()
    if held_inputs is None:
        return state, {}
    return state, fit_calibrations(classifier, held_inputs, settings)


def _test_and_save(
    recipe: Recipe, model: Model, data: TrainingData, context: RunContext, checkpoints: Checkpoints
) -> Run:
    """Tests the model and writes the folder; the first process does it for all."""
    rows: tuple[CellScores, ...] = ()
    if data.test is not None:
        predictor = Predictor(model, device=str(context.device))
        rows = evaluate(predictor, data.test, seed=recipe.seed, watch=context.watch)
    notes = (*model.facts["notes"], *score_warnings(rows))
    model = replace(model, facts={**model.facts, "notes": list(notes)})
    if context.processes.is_first:
        _write_scores(rows, context.folder)
        write_trained_texts(context.folder, [*data.seen(), *_unlabelled_texts(context)])
        save_model(model, context.folder, card=model_card(model, rows))
        checkpoints.clear()
    context.processes.wait()
    return Run(context.folder, (model,), rows, notes)


def _read_finished_run(folder: Path, model: Model) -> Run:
    file, advice = folder / "scores.json", "Choose another --out."
    content = read_as(file, list[dict[str, Any]], advice=advice)
    try:
        rows = tuple(map(CellScores.from_json, content))
    except ValueError as error:
        raise UserError(f"{file}: damaged ({error}). {advice}") from error
    return Run(folder, (model,), rows, tuple(model.facts["notes"]))


def _write_recipe(recipe: Recipe, folder: Path) -> None:
    write_json(folder / "recipe.json", recipe.model_dump(mode="json"))


def _write_scores(rows: Sequence[CellScores], folder: Path) -> None:
    write_json(folder / "scores.json", [row.as_json() for row in rows])
