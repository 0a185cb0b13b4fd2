"""Classification: labels (or numbers) for whole texts, one task or several at once.

corpus → no leaks → train / held out → texts as pieces → trainer → calibration → scores on the test
split → model folder
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from litotes.core.errors import UserError
from litotes.core.json_text import read_as
from litotes.core.progress import Milestone, Watch, ignore_progress, prefix_watch
from litotes.core.registry import pick
from litotes.core.storage import MANIFEST, write_json
from litotes.core.values import Example
from litotes.encoder import pretrained
from litotes.encoder.encoder import recompute
from litotes.encoder.packing import TextSet, make_text_set
from litotes.evaluation.evaluate import CellScores, evaluate, score_warnings
from litotes.kernels.encode import kernels_wanted, uses_kernels
from litotes.model.checkpoint import Model, load_model, save_model, save_parts
from litotes.model.classifier import Classifier
from litotes.model.folder import DESCRIPTION, write_trained_texts
from litotes.prediction.predictor import Predictor
from litotes.training.balancing import BALANCINGS
from litotes.training.card import model_card
from litotes.training.checkpoints import RunState
from litotes.training.course import Course, Run, refuse_foreign
from litotes.training.held_out import fit_calibrations, held_out_score, score_name
from litotes.training.inputs import HiddenInputs, Inputs, freeze
from litotes.training.lessons import Lessons
from litotes.training.losses import TaskLosses, Teacher
from litotes.training.objective import Objective, RunContext
from litotes.training.recipe import Recipe, TrainingSettings
from litotes.training.training_data import TrainingData, prepare

if TYPE_CHECKING:
    from litotes.training.captured import CapturedSteps

COMPILING = "compiling kernels, about a minute the first time on a machine"


class Classification(Objective):
    """A classifier learns the labels of `inputs`, and answers of a teacher besides.

    held_out: texts that choose the epoch.
    """

    def __init__(
        self,
        classifier: Classifier,
        inputs: Inputs,
        settings: TrainingSettings,
        context: RunContext,
        *,
        seed: int,
        held_out: Inputs | None = None,
        teacher: Teacher | None = None,
    ) -> None:
        if settings.pieces_at_once is not None and settings.groups != "none":
            raise UserError(
                f"pieces_at_once does not go with groups = {settings.groups}, which weighs a batch"
                " by the losses of all its texts. Leave one of them out."
            )
        self.classifier, self.inputs, tasks = classifier, inputs, classifier.tasks
        self.task_losses = TaskLosses(
            inputs.texts,
            tasks,
            settings,
            device=context.device,
            processes=context.processes,
            teacher=teacher,
        )
        by_worst_group, validate = settings.selection == "worst_group", None
        if held_out is not None:
            validate = partial(held_out_score, classifier, held_out, worst_group=by_worst_group)
        balancing = pick(BALANCINGS, settings.balancing, "balancing")(len(tasks))
        super().__init__(
            classifier,
            classifier.encoder,
            settings,
            context,
            seed=seed,
            lengths=inputs.texts.lengths,
            balancing=balancing.to(context.device),
            buffers=dict(self.task_losses.group_loss.named_buffers()),
            validate=validate,
        )
        self.score_name = score_name(tasks.values(), worst_group=by_worst_group)
        self.captured = self._capture()

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
        loss = None
        if self.captured is not None and len(self.divide(batch, self.lengths)) == 1:
            loss = self.captured.take(batch)
        return super().take_step(batch, step) if loss is None else loss

    def opening(self) -> list[str]:
        """Says which steps a GPU takes one by one due to settings, and why the first is slow."""
        settings = self.settings
        words: list[str] = []
        if settings.recompute_activations and kernels_wanted(self.device):
            words.append(Milestone("activations are computed again: no kernels, no recorded steps"))
        elif settings.pieces_at_once is not None and self.captured is not None:
            most = settings.pieces_at_once
            words.append(Milestone(f"batches of more than {most} pieces are not recorded"))
        if uses_kernels(self.encoder) and not settings.recompute_activations:
            # until the first step is done this stands where its loss will
            words.append(COMPILING)
        return words

    def _capture(self) -> CapturedSteps | None:
        """Steps that are recorded and replayed, where they can be."""
        if not uses_kernels(self.encoder):
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
        self.data = prepare(recipe, corpus)
        self.key = f"{recipe.key()}-{self.data.fingerprint()[:16]}"
        self.unlabelled = () if lessons is None else lessons.unlabelled
        if lessons is not None:
            self.key += f"-{lessons.key()}"

    def run(self, context: RunContext, *, resume: bool) -> Run:
        if self.recipe.model.separate:
            return self._run_separately(context, resume=resume)
        return super().run(context, resume=resume)

    def begin(self, context: RunContext) -> Objective:
        recipe, data, settings = self.recipe, self.data, self.recipe.training
        source = pretrained.load(recipe.model.encoder, **recipe.model.attention_choices())
        tasks = list(data.train.tasks.values())
        torch.manual_seed(recipe.seed)  # the heads' first weights
        classifier = Classifier(
            source.encoder, tasks, head=recipe.model.head, dropout=recipe.model.dropout
        ).to(context.device)
        self.model = Model(classifier, source.tokenizer, source.name, source.sha256)
        freeze(classifier, settings.freeze_below)
        examples = [*data.train.examples, *self.unlabelled]
        inputs, teacher = self._read(examples, context, watch=context.watch), None
        if self.lessons is not None:
            teacher = self.lessons.teacher_of(
                examples, inputs.texts, classifier.tasks, balanced=settings.class_weights
            )
        self.held_out = None
        if data.held_out is not None:
            self.held_out = self._read(data.held_out.examples, context)
        self.objective = Classification(
            classifier,
            inputs,
            settings,
            context,
            seed=recipe.seed,
            held_out=self.held_out,
            teacher=teacher,
        )
        return self.objective

    def _read(
        self, examples: Sequence[Example], context: RunContext, *, watch: Watch = ignore_progress
    ) -> Inputs:
        settings, classifier = self.recipe.training, self.model.classifier
        texts = make_text_set(
            examples,
            classifier.tasks.values(),
            self.model.tokenizer,
            group_by=settings.group_by,
        )
        if not (below := settings.freeze_below):
            return Inputs(texts, context.device)
        return HiddenInputs(texts, context.device, classifier=classifier, layer=below, watch=watch)

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
        refuse_foreign(folder, {*tasks, DESCRIPTION, MANIFEST, "recipe.json", "scores.json"})
        runs = []
        for task in tasks:
            alone = self.recipe.changed(data__tasks=[task], model__separate=False)
            here = replace(context, folder=folder / task, watch=prefix_watch(context.watch, task))
            course = ClassificationCourse(alone, corpus=self.corpus, lessons=self.lessons)
            runs.append(course.run(here, resume=resume))
        rows = tuple(row for run in runs for row in run.scores)
        notes = dict.fromkeys(note for run in runs for note in run.notes)
        if context.processes.is_first:
            write_json(folder / "recipe.json", self.recipe.model_dump(mode="json"))
            write_json(folder / "scores.json", [row.as_json() for row in rows])
            save_parts(tasks, folder)
        return Run(folder, tuple(run.model for run in runs), rows, tuple(notes))


def training_notes(
    recipe: Recipe, data: TrainingData, texts: TextSet, best_score: float | None
) -> list[str]:
    """Collects what the user should know about the data and about the choice of the epoch.

    texts: those learned from.
    """
    held_out, settings = data.held_out, recipe.training
    found = {
        f"{texts.n_truncated} of {len(texts)} training texts are longer than the encoder reads and"
        f" were cut at {max(texts.lengths)} pieces.": texts.n_truncated,
        f"{texts.n_unreadable} of {len(texts)} training texts are unreadable: the encoder knows no"
        " part of them. Leave them out, or choose another encoder.": texts.n_unreadable,
        "Not calibrated: training.held_out is 0, so there are no texts to fit temperature and"
        " threshold on.": held_out is None and settings.calibration != "none",
        "training.selection = worst_group chose nothing: training.held_out is 0, so the last epoch"
        " was taken.": held_out is None and settings.selection == "worst_group",
        "The held-out texts of every task (or group) show one answer alone and cannot tell epochs"
        " apart: the last one was taken.": held_out is not None and best_score is None,
    }
    return [*data.notes, *(note for note, applies in found.items() if applies)]
