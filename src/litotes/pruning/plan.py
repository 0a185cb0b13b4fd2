"""What a pruning is asked for and starts from: settings, model and texts, checked before hours of
work.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from litotes.core.errors import UserError
from litotes.core.progress import Watch, ignore_progress
from litotes.core.storage import LOCK, MANIFEST, find_foreign_file
from litotes.core.values import Example
from litotes.data.corpus import Corpus, example_key
from litotes.data.sources import load
from litotes.encoder.packing import TextSet, make_text_set
from litotes.model.checkpoint import Model, load_model
from litotes.model.folder import TRAINED_TEXTS, is_model_folder, read_trained_texts, text_hash
from litotes.training.inputs import Inputs, all_logits
from litotes.training.losses import Teacher
from litotes.training.recipe import Recipe, recipe_of
from litotes.training.training_data import TrainingData, prepare, unlabelled_texts

OUR_FILES = {
    *("phases", "frontier.json", "frontier.svg", "scores.json", "README.md"),
    *("model.safetensors", "tokenizer.json", TRAINED_TEXTS, MANIFEST, LOCK),
}
"""What a pruning that was stopped, or that chose nothing, may have left."""
_N_STATES = 6
"""The weights that a training in progress keeps: two states, each with Adam's two averages."""
_N_ENOUGH = 100
"""With fewer texts to choose by, one answer is more than a point of macro-F1."""


@dataclass(frozen=True)
class PruneSettings:
    """The loss allowed, and how hard to try.

    loss: macro-F1 points that may be expected to be lost. sure: how likely the loss must be within
    that instead; None: as likely as it comes.
    targets: times fewer operations than dense, each a point of the frontier. heads: share of the
    attention heads kept for good.
    epochs: with budgets drawn at every step; settle_epochs: with those of a target. teacher: how
    much the dense model's answers count.
    folds: models trained without a fold of the training texts each, whose answers to that fold are
    evidence as well; 0: none. unlabelled: a source of texts on which only agreement counts.
    held_out: a source of labelled texts that report and do not choose. control: whether dense is
    trained on as long as the pruned ones, to compare.
    n_searched: training texts on which shares are tried. options: of the pruning `learned`.
    seed: of all that is drawn here; which texts are held out is the dense run's affair.
    """

    loss: float = 0.5
    sure: float | None = None
    targets: tuple[float, ...] = (1.5, 2.0, 2.5, 3.0)
    heads: float = 0.67
    epochs: int = 6
    settle_epochs: int = 4
    teacher: float = 0.9
    n_searched: int = 192
    folds: int = 0
    unlabelled: str | None = None
    held_out: str | None = None
    control: bool = True
    seed: int = 0
    options: dict[str, Any] = field(
        default_factory=lambda: {"importance": "value", "fuse": True, "restore": True}
    )


_IN_KEY = ("heads", "epochs", "teacher", "n_searched", "seed", "options")
"""Settings that every phase depends on."""


@dataclass(frozen=True)
class PrunePlan:
    """All that a pruning starts from, and that its phases share.

    dense_texts: hashes of the texts the dense model was trained on; None: it does not say.
    learned_all: whether it held none of these very texts out. notes: what the user should know
    before it begins. unlabelled: only agreement on them counts. reporting: labelled, and no part
    of the choice.
    """

    settings: PruneSettings
    recipe: Recipe
    data: TrainingData
    dense: Model
    dense_texts: frozenset[str] | None
    learned_all: bool
    out: Path
    notes: tuple[str, ...] = ()
    unlabelled: tuple[Example, ...] = ()
    reporting: Corpus | None = None
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    watch: Watch = ignore_progress

    @property
    def phases(self) -> Path:
        """The folder that keeps what the phases found until a model is chosen."""
        return self.out / "phases"

    def key(self, *more: object) -> str:
        """A name for what a phase depends on: a phase found under it need not be done again."""
        settings = {name: getattr(self.settings, name) for name in _IN_KEY}
        dense_key = self.dense.facts["key"]
        parts = (self.recipe.key(), self.data.fingerprint(), dense_key, settings, more)
        return sha256(repr(parts).encode()).hexdigest()[:12]

    @property
    def judged(self) -> Corpus:
        """The texts that the choice is made by."""
        judged = self.data.held_out if self.data.reserved is None else self.data.reserved
        assert judged is not None  # a pruning's recipe always holds texts out
        return judged

    @property
    def fold_texts(self) -> tuple[Example, ...]:
        """The texts that are divided into folds: all labelled ones but those that judge the dense
        model's own prunings.
        """
        train, held_out = self.data.train.examples, self.data.held_out
        is_judge = self.data.reserved is None and not self.learned_all
        return train if held_out is None or is_judge else (*train, *held_out.examples)

    @cached_property
    def texts(self) -> dict[str, TextSet]:
        """The tokenized texts by what they are for: to learn from (train), to choose epochs by
        (held_out) and the pruning (judged); where there are any, those on which agreement counts
        (unlabelled) and those that report (reported, test).
        """
        data, training = self.data, self.recipe.training
        tasks = list(self.dense.classifier.tasks.values())
        make = partial(make_text_set, tasks=tasks, tokenizer=self.dense.tokenizer)
        parts = {
            "train": [*data.train.examples, *unlabelled_texts(data)],
            "held_out": data.held_out,
            "judged": self.judged,
            "reported": self.reporting,
        }
        found = {}
        for name, part in parts.items():
            if part is not None:
                # files are sorted by cell, but the first texts have to stand for all
                order = random.Random(self.recipe.seed).sample(list(part), len(part))
                found[name] = make(order, group_by=training.group_by)
        if self.unlabelled:
            found["unlabelled"] = make(self.unlabelled)
        return found if data.test is None else {**found, "test": make(data.test.examples)}

    def inputs(self, part: str) -> Inputs:
        return Inputs(self.texts[part], self.device)

    @cached_property
    def teacher(self) -> Teacher:
        """The dense model's answers to the texts to learn from."""
        classifier = self.dense.classifier
        answers = all_logits(self.inputs("train"), classifier, watch=self.watch, what="teacher")
        return Teacher(answers, self.settings.teacher)


def plan_pruning(
    model: str | Path,
    data: str,
    out: str | Path,
    *,
    settings: PruneSettings | None = None,
    exclude: Sequence[str] | None = None,
) -> PrunePlan:
    """Checks everything that would otherwise fail at the end. Its arguments are `prune`'s."""
    settings, out = settings or PruneSettings(), Path(out)
    if is_model_folder(out):
        raise UserError(f"{out} already holds a model. Choose another --out.")
    foreign = find_foreign_file(out, OUR_FILES)
    if foreign is not None:
        raise UserError(
            f"{out} holds files that are not of a pruning ({foreign}). Choose an empty or a new"
            " folder for --out."
        )
    dense = _load_dense_model(model)
    trained = recipe_of(dict(dense.facts["recipe"]), "the model's recipe")
    # the recipe of the dense run: for the same source it holds the same texts out
    held_out = trained.training.held_out
    recipe = trained.changed(data__source=data, training__held_out=held_out or 0.1)
    if exclude is not None:
        recipe = recipe.changed(data__avoid=list(exclude))
    texts = prepare(recipe)
    is_same_data = dense.facts["data"]["sha256"] == texts.whole.fingerprint()
    learned_all = is_same_data and not held_out
    known = read_trained_texts(model)
    plan = PrunePlan(settings, recipe, texts, dense, known, learned_all, out)
    _check_labels(dense, texts.train, "--data", data)
    n_judged = _count_judged(plan)
    _check_disk(plan)
    return _with_more_texts(plan, _notes(plan, n_judged))


def _load_dense_model(folder: str | Path) -> Model:
    model = load_model(folder)
    pruning, tasks = model.classifier.encoder.spec.pruning, model.classifier.tasks.values()
    several = [task.name for task in tasks if task.multi_label]
    reasons = {
        f"{folder} is pruned already ({pruning}). Prune the dense model it came from.": (
            pruning != "none"
        ),
        f"{folder} has exits. Prune the model it was made from, and add exits to the pruned one.": (
            model.exits is not None
        ),
        f"This model may give {', '.join(several)} several labels, and a pruning is chosen by the"
        " macro-F1 of one. Choose a model without that task.": bool(several),
        "All tasks of this model are answered with a number; a pruning is chosen by macro-F1."
        " Choose a classifier.": all(task.is_regression for task in tasks),
        "The model does not say how it was trained. Prune one that `litotes train` has made.": (
            "recipe" not in model.facts
        ),
    }
    for reason, holds in reasons.items():
        if holds:
            raise UserError(reason)
    return model


def _check_labels(dense: Model, corpus: Corpus, option: str, source: str) -> None:
    """The labels of a source must be those that the model answers with."""
    for name, task in dense.classifier.tasks.items():
        found = corpus.tasks.get(name)
        if found is None or found.labels != task.labels:
            words = "no labels"
            if found is not None:
                words = f"the labels {', '.join(found.labels) or '(a number)'}"
            raise UserError(
                f"{option} {source} has {words} for {name}, which this model answers with"
                f" {', '.join(task.labels) or 'a number'}. Choose texts with the same labels."
            )


def _count_judged(plan: PrunePlan) -> int:
    """Counts the texts to choose by, in the task that has the fewest."""
    judged, counts = plan.judged, {}
    for name, task in plan.dense.classifier.tasks.items():
        if not task.is_regression:
            counts[name] = sum(example.labels.get(name) in task.labels for example in judged)
    fewest = min(counts, key=counts.__getitem__)
    if not counts[fewest]:
        raise UserError(
            f"None of the {len(judged)} texts of {judged.name} that are held out to choose by"
            f" has a label for {fewest}. Hold out more: train with --set training.held_out=0.2,"
            " or choose another --data."
        )
    return counts[fewest] + (len(plan.fold_texts) if plan.settings.folds else 0)


def _check_disk(plan: PrunePlan) -> None:
    """The weights of every phase are kept until a model is chosen."""
    settings, out = plan.settings, plan.out
    n_bytes = sum(tensor.nbytes for tensor in plan.dense.classifier.state_dict().values())
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
            f" {free / 1e9:.1f} GB are free. Make room, choose another --out, or fewer --factors."
        )


def _notes(plan: PrunePlan, n_judged: int) -> list[str]:
    notes = []
    if plan.data.reserved is None and plan.learned_all:
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


def _with_more_texts(plan: PrunePlan, notes: list[str]) -> PrunePlan:
    """The plan with the texts of `held_out` and `unlabelled`, and what the user should know of
    them.

    What the dense model learned from, or another set of texts has, is left out: each text plays
    one part.
    """
    settings, data, known = plan.settings, plan.data, plan.dense_texts
    used = {*map(text_hash, data.seen()), *map(text_hash, unlabelled_texts(data)), *(known or ())}
    if known is None and (settings.held_out or settings.unlabelled):
        notes.append(
            "The model does not say which texts it was trained on: some of --held-out or"
            " --unlabelled may be among them."
        )
    if settings.held_out is not None:
        reporting = _reporting_texts(plan.dense, settings.held_out, used, notes)
        used |= set(map(text_hash, reporting))
        plan = replace(plan, reporting=reporting)
    if settings.unlabelled is not None:
        used |= set(map(text_hash, data.test or ()))
        corpus = load(settings.unlabelled)
        fresh, note = _unused(corpus, used, "count by agreement alone")
        if not fresh:
            raise UserError(
                f"--unlabelled {settings.unlabelled}: all of its {len(corpus)} texts are trained"
                " on, chosen by or tested on already. Choose other texts of the same kind."
            )
        notes.append(f"{note} They must be of the same kind as those to be answered.")
        plan = replace(plan, unlabelled=tuple(replace(one, labels={}) for one in fresh))
    return replace(plan, notes=tuple(notes))


def _reporting_texts(dense: Model, source: str, used: Collection[str], notes: list[str]) -> Corpus:
    tasks, corpus = list(dense.classifier.tasks), load(source)
    _check_labels(dense, corpus, "--held-out", source)
    chosen = corpus.where(task=tasks)
    fresh, note = _unused(chosen, used, "report and do not choose")
    for name in tasks:
        if not any(name in example.labels for example in fresh):
            raise UserError(
                f"--held-out {source}: none of its {len(corpus)} texts is both labelled for {name}"
                " and new to the model. Choose texts that nothing was trained on."
            )
    notes.append(note)
    return replace(chosen, examples=fresh)


def _unused(corpus: Corpus, used: Collection[str], role: str) -> tuple[tuple[Example, ...], str]:
    """Takes each text once, those in use left out; and a note on what they do."""
    once = {example_key(example): example for example in corpus}
    fresh = tuple(example for example in once.values() if text_hash(example) not in used)
    n_others = len(corpus) - len(fresh)
    others = f" ({n_others} others were used already, or come twice)" if n_others else ""
    return fresh, f"{len(fresh)} texts of {corpus.name} {role}{others}."
