"""Classification: labels (or numbers) for whole texts, one task or several at once.

corpus → no leaks → train / held out → texts as pieces → trainer → calibration → scores on the test
split → model folder
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from litotes.core.errors import UserError
from litotes.core.json_text import read_as
from litotes.core.progress import Milestone, prefix_watch
from litotes.core.registry import check_options, pick
from litotes.core.storage import MANIFEST, find_foreign_file, write_json
from litotes.encoder import pretrained
from litotes.encoder.attention import PRUNINGS, WEIGHTINGS
from litotes.encoder.encoder import recompute
from litotes.encoder.packing import TextSet, make_text_set
from litotes.evaluation.evaluate import CellScores, evaluate, score_warnings
from litotes.kernels.encode import kernels_wanted, uses_kernels
from litotes.model.checkpoint import Model, load_model, save_model, save_parts
from litotes.model.classifier import Classifier
from litotes.model.folder import DESCRIPTION, write_trained_texts
from litotes.model.heads import HEADS
from litotes.prediction.predictor import Predictor
from litotes.training.balancing import BALANCINGS
from litotes.training.card import model_card
from litotes.training.checkpoints import RunState
from litotes.training.course import Course, Run
from litotes.training.held_out import fit_calibrations, held_out_score, score_name
from litotes.training.inputs import Inputs, PieceInputs, freeze, make_inputs
from litotes.training.lessons import Lessons
from litotes.training.losses import TaskLosses, Teacher
from litotes.training.objective import ALONE, Objective, derive_seed, shuffled
from litotes.training.processes import Processes
from litotes.training.recipe import Recipe, TrainingSettings
from litotes.training.trainer import RunContext, Trainer
from litotes.training.training_data import TrainingData, prepare

if TYPE_CHECKING:
    from litotes.training.captured import CapturedSteps

COMPILING = "compiling kernels, about a minute the first time on a machine"


class Classification(Objective):
    """A classifier learns the labels of `inputs`, and answers of a teacher besides."""

    def __init__(
        self,
        classifier: Classifier,
        inputs: Inputs,
        settings: TrainingSettings,
        *,
        seed: int,
        device: torch.device,
        processes: Processes = ALONE,
        validate: Callable[[], float | None] | None = None,
        teacher: Teacher | None = None,
    ) -> None:
        if settings.pieces_at_once is not None and settings.groups != "none":
            raise UserError(
                f"pieces_at_once does not go with groups = {settings.groups}, which weighs a batch"
                " by the losses of all its texts. Leave one of them out."
            )
        self.classifier, self.inputs = classifier, inputs
        tasks, texts = classifier.tasks, inputs.texts
        self.lengths = texts.lengths
        self.task_losses = TaskLosses(
            texts, tasks, settings, device=device, processes=processes, teacher=teacher
        )
        super().__init__(
            classifier,
            classifier.encoder,
            settings,
            seed=seed,
            n_steps=-(-len(texts) // settings.batch_texts) * settings.epochs,
            device=device,
            processes=processes,
            balancing=pick(BALANCINGS, settings.balancing, "balancing")(len(tasks)).to(device),
            buffers=dict(self.task_losses.group_loss.named_buffers()),
            validate=validate,
            patience=settings.patience,
        )
        by_worst_group = settings.selection == "worst_group"
        self.score_name = score_name(tasks.values(), worst_group=by_worst_group)
        self.captured = self._capture()

    def batches(self, epoch: int) -> list[list[int]]:
        seed = derive_seed(self.seed, "order", epoch)
        return shuffled(len(self.inputs.texts), self.settings.batch_texts, seed)

    def losses(self, batch: Sequence[int], step: int) -> Iterator[Sequence[Tensor]]:
        share = self.processes.share(batch)
        sent = self.task_losses.send(batch)
        # fewer texts than processes: one text without weight keeps every parameter in the graph
        for part in self.divide(share or batch[:1], self.lengths):
            own = self.task_losses.send(part if share else [-1])
            recomputed = recompute(self.encoder, self.settings.recompute_activations)
            with self.autocast(), recomputed:
                logits = self.inputs.logits(self.classifier, part)
            yield self.task_losses.of_batch(logits, batch=sent, own=own)

    def take_step(self, batch: Sequence[int], step: int) -> Tensor:
        captured = self.captured
        if (
            captured is not None
            and captured.can_take
            and len(self.divide(batch, self.lengths)) == 1
        ):
            loss = captured.take(batch)
            if loss is not None:
                return loss
        return super().take_step(batch, step)

    def opening(self) -> list[str]:
        """Which steps a GPU takes one by one because of the settings; why the first one is slow."""
        settings = self.settings
        words: list[str] = []
        if settings.recompute_activations and kernels_wanted(self.device):
            found = "activations are computed again: no kernels, no recorded steps"
            words.append(Milestone(found))
        elif settings.pieces_at_once is not None and self.captured is not None:
            found = f"batches of more than {settings.pieces_at_once} pieces are not recorded"
            words.append(Milestone(found))
        if uses_kernels(self.encoder) and not settings.recompute_activations:
            # until the first step is done this stands where its loss will
            words.append(COMPILING)
        return words

    def _capture(self) -> CapturedSteps | None:
        """Steps that are recorded and replayed, where they can be."""
        if not isinstance(self.inputs, PieceInputs) or not uses_kernels(self.encoder):
            return None
        from litotes.training.captured import CapturedSteps, can_capture  # imports Triton

        if not can_capture(self, self.classifier):
            return None
        return CapturedSteps(self, self.classifier, self.inputs.texts, self.task_losses)


class ClassificationCourse(Course):
    """From a `Recipe` to the folder of a classifier, or of one a task."""

    data: TrainingData
    model: Model
    objective: Classification

    def __init__(
        self, recipe: Recipe, *, corpus: Any = None, lessons: Lessons | None = None
    ) -> None:
        super().__init__(recipe, corpus=corpus, lessons=lessons)
        check_names(recipe)
        self.data = prepare(recipe, corpus)
        self.key = f"{recipe.key()}-{self.data.fingerprint()[:16]}"
        self.unlabelled = () if lessons is None else lessons.unlabelled
        if lessons is not None:
            self.key += f"-{lessons.key()}"

    def run(self, context: RunContext, *, resume: bool) -> Run:
        if self.recipe.model.separate:
            return self._run_separately(context, resume=resume)
        return super().run(context, resume=resume)

    def begin(self, context: RunContext, *, resume: bool) -> Objective:
        recipe, data, settings = self.recipe, self.data, self.recipe.training
        source = pretrained.load(
            recipe.model.encoder,
            max_pieces=recipe.model.max_pieces,
            **recipe.model.attention_choices(),
        )
        tasks = list(data.train.tasks.values())
        torch.manual_seed(recipe.seed)  # the heads' first weights
        classifier = Classifier(
            source.encoder, tasks, head=recipe.model.head, dropout=recipe.model.dropout
        ).to(context.device)
        self.model = Model(classifier, source.tokenizer, source.name, source.sha256)
        tokenize = partial(
            make_text_set, tasks=tasks, tokenizer=source.tokenizer, group_by=settings.group_by
        )
        examples = [*data.train.examples, *self.unlabelled]
        texts, self.held_out, validate, teacher = tokenize(examples), None, None, None
        if self.lessons is not None:
            teacher = self.lessons.teacher_of(
                examples, texts, classifier.tasks, balanced=settings.class_weights
            )
        freeze(classifier, settings.freeze_below)
        make = partial(
            make_inputs,
            classifier=classifier,
            device=context.device,
            freeze_below=settings.freeze_below,
        )
        inputs = make(texts, watch=context.watch)
        if data.held_out is not None:
            self.held_out = make(tokenize(data.held_out.examples))
            by_worst_group = settings.selection == "worst_group"
            validate = partial(
                held_out_score, classifier, self.held_out, worst_group=by_worst_group
            )
        self.objective = Classification(
            classifier,
            inputs,
            settings,
            seed=recipe.seed,
            device=context.device,
            processes=context.processes,
            validate=validate,
            teacher=teacher,
        )
        return self.objective

    def test(self, state: RunState, context: RunContext) -> Run:
        recipe, data, classifier = self.recipe, self.data, self.model.classifier
        calibration = {}
        if self.held_out is not None:
            calibration = fit_calibrations(classifier, self.held_out, recipe.training)
        texts = self.objective.inputs.texts
        notes = training_notes(recipe, data, texts, state.best_score)
        notes += [] if self.lessons is None else self.lessons.notes()
        facts = self.facts(state, data.facts(n_train=len(data.train)), notes)
        # answers lean by as much, and a student must know
        weights = self.objective.task_losses.class_weights
        facts["class_weights"] = {task: weight.tolist() for task, weight in weights.items()}
        model = replace(self.model, calibration=calibration, facts=facts)
        classifier.eval()
        rows: tuple[CellScores, ...] = ()
        if data.test is not None:
            predictor = Predictor(model, device=str(context.device))
            rows = evaluate(predictor, data.test, seed=recipe.seed, watch=context.watch)
        facts["notes"] += score_warnings(rows)
        return Run(context.folder, (model,), rows, tuple(facts["notes"]))

    def save(self, run: Run) -> None:
        write_json(run.folder / "scores.json", [row.as_json() for row in run.scores])
        write_trained_texts(run.folder, [*self.data.seen(), *self.unlabelled])
        save_model(run.model, run.folder, card=model_card(run.model, run.scores))

    def load(self, folder: Path) -> tuple[str, Run]:
        model = load_model(folder)
        file, advice = folder / "scores.json", "Choose another --out."
        content = read_as(file, list[dict[str, Any]], advice=advice)
        try:
            rows = tuple(map(CellScores.from_json, content))
        except ValueError as error:
            raise UserError(f"{file}: damaged ({error}). {advice}") from error
        return str(model.facts.get("key")), Run(folder, (model,), rows, tuple(model.facts["notes"]))

    def _run_separately(self, context: RunContext, *, resume: bool) -> Run:
        """A run per task in a folder of its own, and a folder around them that answers as one."""
        folder, tasks = context.folder, list(self.data.train.tasks)
        ours = {*tasks, DESCRIPTION, MANIFEST, "recipe.json", "scores.json"}
        is_other = folder.exists() and not folder.is_dir()
        if is_other or find_foreign_file(folder, ours) is not None:
            raise UserError(
                f"{folder} holds files that are not of a run with a model per task. Choose an empty"
                " or a new folder for --out."
            )
        runs = []
        for task in tasks:
            alone = self.recipe.changed(data__tasks=[task], model__separate=False)
            watch = prefix_watch(context.watch, task)
            here = replace(context, folder=folder / task, watch=watch)
            course = ClassificationCourse(alone, corpus=self.corpus, lessons=self.lessons)
            runs.append(course.run(here, resume=resume))
        rows = tuple(row for run in runs for row in run.scores)
        notes = dict.fromkeys(note for run in runs for note in run.notes)
        if context.processes.is_first:
            write_json(folder / "recipe.json", self.recipe.model_dump(mode="json"))
            write_json(folder / "scores.json", [row.as_json() for row in rows])
            save_parts(tasks, folder)
        return Run(folder, tuple(run.model for run in runs), rows, tuple(notes))


def check_names(recipe: Recipe) -> None:
    """Reports a wrong name before anything is read or written."""
    pick(HEADS, recipe.model.head, "head")
    check_options(WEIGHTINGS, recipe.model.weighting, "weighting", recipe.model.weighting_options)
    check_options(PRUNINGS, recipe.model.pruning, "pruning", recipe.model.pruning_options)
    pick(BALANCINGS, recipe.training.balancing, "balancing")


def train_classifier(
    classifier: Classifier,
    inputs: Inputs,
    settings: TrainingSettings,
    *,
    seed: int,
    context: RunContext,
    validate: Callable[[], float | None] | None = None,
    teacher: Teacher | None = None,
    resume: bool = False,
) -> RunState:
    """Trains a classifier that is there already; writes checkpoints and a history alone."""
    objective = Classification(
        classifier,
        inputs,
        settings,
        seed=seed,
        device=context.device,
        processes=context.processes,
        validate=validate,
        teacher=teacher,
    )
    return Trainer(objective, context).run(resume=resume)


def training_notes(
    recipe: Recipe, data: TrainingData, texts: TextSet, best_score: float | None
) -> list[str]:
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
    elif best_score is None:
        notes.append(
            "The held-out texts of every task (or group) show one answer alone and cannot tell"
            " epochs apart: the last one was taken."
        )
    return notes


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
