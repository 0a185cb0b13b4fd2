"""The needs of a distillation, checked before hours of work: recipe, texts, folds, teachers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import torch
from pydantic import Field
from torch import Tensor

from litotes.core.errors import UserError
from litotes.core.storage import is_complete
from litotes.core.values import Example, Task
from litotes.data.corpus import Corpus, example_key
from litotes.data.near_duplicates import Folds, assign_folds
from litotes.data.sources import load
from litotes.encoder import pretrained
from litotes.model.folder import (
    ModelFolder,
    is_model_folder,
    open_model,
    read_trained_texts,
    text_hash,
)
from litotes.training.course import FIRST_FILES, check_names, refuse_foreign
from litotes.training.lessons import Lessons
from litotes.training.recipe import Count, Positive, Recipe, Share, Table, TrainingSettings
from litotes.training.training_data import TrainingData, prepare, unlabelled_texts

WORK = "distillation"
"""The folder inside a student's where all the rest is kept."""


class TeacherSettings(Table):
    """The `[distill.teacher]` table: what differs from the student's `[model]` and `[training]`."""

    model: dict[str, Any] = Field({})
    """for example {encoder = "mpnet"}"""
    training: dict[str, Any] = Field({})
    """for example {learning_rate = 3e-5}"""


class DistillSettings(Table):
    """The `[distill]` table."""

    teacher: TeacherSettings = TeacherSettings()
    teachers: list[str] = Field([])
    """model folders that teach instead of teachers trained here"""
    folds: Annotated[int, Field(ge=2, le=100)] = 3
    """teachers never see the fold they answer"""
    teachers_a_fold: Annotated[int, Field(ge=1, le=100)] = 1
    """of different seeds; they are averaged"""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    """of the folds and of the teachers"""
    share: Share = 0.5
    """how much answers count against labels"""
    temperature: Positive = 1.0
    """softens both answers before they are compared"""
    unlabelled: Literal["none", "selection", "source"] = "selection"
    """other texts to learn from by answers alone: none, those of data.where that lack a label of
    these tasks, or all of the source"""
    more: list[str] = Field([])
    """sources of still more texts, whose labels are not read"""
    even: list[str] = Field([])
    """sources whose neutral texts are taught as even between the labels, so that a student without
    a third label is not sure of them"""
    prevalence: dict[str, dict[str, dict[str, float]]] = Field({})
    """how frequent labels are in a source, where that is known, {source = {task = {label =
    share}}}: answers to its texts without a label are moved there"""
    start: Literal["encoder", "teacher", "fresh"] = "encoder"
    """the student's first weights: of model.encoder, a teacher, or random"""
    layers: Count | None = None
    """of the student, evenly spaced; None: all"""
    width: Count | None = None
    """of the student: its most used columns; None: as it is"""
    match: Literal["none", "hidden", "values", "relations"] = "none"
    """what the student imitates before it learns answers: nothing, hidden states, or relations
    between pieces (by values, or by queries and keys as well)"""
    match_epochs: Count = 3
    """passes over all texts for that"""
    match_rate: Positive = 2e-4
    """the learning rate for that"""
    baseline: bool = True
    """also train a student of labels alone, to compare"""
    compare_layers: list[int] = Field([])
    """also train students with so many layers, for the frontier"""
    keep_teachers: bool = False
    """keep the models of teachers, not just answers"""
    teachers_folder: str | None = None
    """where answers of teachers are kept, to share them between students"""


class DistillRecipe(Recipe):
    """The student's recipe, and how it is taught."""

    distill: DistillSettings = DistillSettings()

    @classmethod
    def of(cls, content: Mapping[str, Any], where: str) -> Self:
        recipe = super().of(content, where)
        recipe.teacher(0)  # a wrong setting of theirs is told now
        return recipe

    @property
    def student(self) -> Recipe:
        """The recipe by which the student alone would be trained."""
        return Recipe.of(self.model_dump(exclude={"distill"}), "recipe")

    def teacher(self, seed: int) -> Recipe:
        """The recipe of the teachers of one seed, for texts that are cleaned and chosen already."""
        content, teacher = self.model_dump(exclude={"distill"}), self.distill.teacher
        content["model"] |= teacher.model
        content["training"] |= {**teacher.training, "reserved": 0.0}
        data = {"source": self.data.source, "tasks": self.data.tasks, "leaks": "keep"}
        return Recipe.of({**content, "seed": seed, "data": data}, "[distill.teacher]")


@dataclass(frozen=True)
class Shape:
    """The first weights of a student: an encoder by name, cut to size.

    teacher: the model folder whose encoder it is instead. fresh: its shape alone counts.
    """

    encoder: str
    teacher: Path | None = None
    fresh: bool = False
    layers: int | None = None
    width: int | None = None
    max_pieces: int | None = None

    @property
    def is_whole(self) -> bool:
        """True if it is the named encoder as it is."""
        return self == Shape(self.encoder, max_pieces=self.max_pieces)


@dataclass(frozen=True)
class Matching:
    """A phase of imitation: of what, how long, and which teacher's folder shows which texts."""

    kind: str
    settings: TrainingSettings
    seed: int
    shown: tuple[tuple[Path, tuple[Example, ...]], ...]


@dataclass(frozen=True)
class Job:
    """A model, teacher or student, to be trained, asked and tested.

    recipe, corpus: what it is trained by and on; no recipe: it is ready in `model_folder`. asked:
    texts it is to answer, but for those that it turns out to have been trained on. tasks: those it
    is asked about. test: texts to score it on. folder: where its answers are kept. shows: whether
    students look at its layers. Of a student: shape, what it begins with and what it imitates
    first; lessons, the answers it learns.
    """

    name: str
    folder: Path
    model_folder: Path
    test: Corpus | None
    device: str | None
    recipe: Recipe | None = None
    corpus: Corpus | None = None
    asked: tuple[Example, ...] = ()
    tasks: tuple[str, ...] = ()
    shows: bool = True
    keep_model: bool = True
    shape: Shape | None = None
    matching: Matching | None = None
    lessons: Lessons | None = None

    @property
    def answers(self) -> Path:
        return self.folder / "answers"

    def is_done(self) -> bool:
        has_model = is_model_folder(self.model_folder) or not self.keep_model
        return has_model and is_complete(self.answers)


@dataclass(frozen=True)
class DistillPlan:
    """All that a distillation starts from.

    others: texts to learn from by answers alone. teachers: their jobs, by name. notes: what the
    user should know before it begins.
    """

    recipe: DistillRecipe
    out: Path
    corpus: Corpus | None
    data: TrainingData
    others: tuple[Example, ...]
    teachers: dict[str, Job]
    device: str | None
    notes: tuple[str, ...]

    @property
    def work(self) -> Path:
        return self.out / WORK

    @property
    def teachers_folder(self) -> Path:
        named = self.recipe.distill.teachers_folder
        # resolved: other processes may work elsewhere
        return (self.work / "teachers" if named is None else Path(named)).resolve()

    def key(self) -> str:
        """A hash of all that the result depends on."""
        jobs = [job.folder.name for job in self.teachers.values()]
        settings = self.recipe.distill.model_dump_json()
        return short_hash(self.recipe.student.key(), settings, self.data.fingerprint(), *jobs)


def short_hash(*parts: str) -> str:
    return sha256("\n".join(parts).encode()).hexdigest()[:12]


def plan_distillation(
    recipe: DistillRecipe, out: Path, *, corpus: Corpus | None = None, device: str | None = None
) -> DistillPlan:
    """Checks everything that would otherwise fail at the end."""
    _check_folder(out)
    _check_recipe(recipe)
    data, settings = prepare(recipe.student, corpus), recipe.distill
    for several in (name for name, task in data.train.tasks.items() if task.multi_label):
        raise UserError(
            f"{several} may have several labels for one text, which teachers cannot teach yet:"
            " leave it out with data.tasks."
        )
    others = _other_texts(recipe, data)
    folds = assign_folds(
        data.train.examples,
        others,
        apart=[*data.kept_apart(), *data.other_splits()],
        n_folds=1 if settings.teachers else settings.folds,
        seed=settings.seed,
    )
    kept, notes = tuple(others[place] for place in folds.others), _notes(folds, len(others))
    plan = DistillPlan(recipe, out, corpus, data, kept, {}, device, notes)
    jobs = _ready_teachers(plan) if settings.teachers else _fold_teachers(plan, folds)
    return replace(plan, teachers={job.name: job for job in jobs})


def _check_folder(out: Path) -> None:
    if (out / WORK).is_dir():
        return
    if is_model_folder(out):
        raise UserError(f"{out} already holds a model. Choose another --out.")
    refuse_foreign(out, FIRST_FILES)


def _notes(folds: Folds, n_others: int) -> tuple[str, ...]:
    n_left_out = n_others - len(folds.others)
    found = {
        f"{n_left_out} texts without labels are nearly or exactly among the texts to choose or"
        " test by, and were left out.": n_left_out,
        "So many texts resemble one another that not all were compared: equal texts share a"
        " fold, near-equal ones may not.": not folds.is_complete,
    }
    return tuple(note for note, applies in found.items() if applies)


def _check_recipe(recipe: DistillRecipe) -> None:
    settings, model, teacher = recipe.distill, recipe.model, recipe.teacher(0)
    check_names(recipe)
    refused = {
        "A distillation makes one student. Set model.separate = false, or distill one task at a"
        " time with --set data.tasks=NAME.": model.separate,
        "[distill.teacher] is for teachers trained here, distill.teachers names ready ones."
        " Leave one of them out.": settings.teachers and settings.teacher != TeacherSettings(),
        f"distill.match does not go with pruning = {model.pruning}: pieces that are gone have no"
        " states. Distill first, then use `litotes prune`.": (
            settings.match != "none" and model.pruning != "none"
        ),
    }
    for words in (words for words, applies in refused.items() if applies):
        raise UserError(words)
    check_names(teacher)
    if not settings.teachers:
        pretrained.find_encoder(teacher.model.encoder)  # one that is not there is told now


def _other_texts(recipe: DistillRecipe, data: TrainingData) -> list[Example]:
    """The texts to learn from by answers alone, each once."""
    settings, where = recipe.distill, recipe.data.where
    sources = [load(source) for source in settings.more]
    if settings.unlabelled == "source":
        sources.insert(0, data.whole)
    elif settings.unlabelled == "selection":
        sources.insert(0, data.whole.where(variety=where.variety, source=where.source))
    found = [example for source in sources for example in unlabelled_texts(data, source)]
    return list({example_key(example): example for example in found}.values())


def _fold_teachers(plan: DistillPlan, folds: Folds) -> list[Job]:
    """The jobs of every fold: trained on the other folds, asked about this one and about texts that
    are like none.
    """
    settings, train = plan.recipe.distill, plan.data.train
    places = [*zip(train, folds.train, strict=True)]
    near = [*zip(plan.others, folds.others.values(), strict=True)]
    n_seeds, jobs = settings.teachers_a_fold, list[Job]()
    for fold in range(settings.folds):
        asked = tuple(one for one, own in (*places, *near) if own in (fold, None))
        others = [one for one, own in places if own != fold]
        corpus = replace(train, examples=(*others, *(plan.data.test or ())), notes=())
        for number in range(n_seeds):
            name = f"teacher {len(jobs) + 1} of {settings.folds * n_seeds}, fold {fold + 1}"
            # the first of each fold shows the student its states, or gives it its layers
            shows = number == 0 and (settings.match != "none" or settings.start == "teacher")
            jobs.append(_fold_teacher(plan, name, number, corpus, asked, shows))
    return jobs


def _fold_teacher(
    plan: DistillPlan,
    name: str,
    number: int,
    corpus: Corpus,
    asked: tuple[Example, ...],
    shows: bool,
) -> Job:
    recipe = plan.recipe.teacher(plan.recipe.distill.seed + number)
    key = short_hash(recipe.key(), corpus.fingerprint(), *map(example_key, asked))
    folder = plan.teachers_folder / f"seed-{recipe.seed}-{key}"
    return Job(
        name=name,
        folder=folder,
        model_folder=folder / "model",
        test=plan.data.test,
        device=plan.device,
        recipe=recipe,
        corpus=corpus,
        asked=asked,
        tasks=tuple(corpus.tasks),
        shows=shows,
        keep_model=plan.recipe.distill.keep_teachers or shows,
    )


def _ready_teachers(plan: DistillPlan) -> list[Job]:
    """A job for each model folder that was named; what it cannot teach is refused now."""
    everything = (*plan.data.train.examples, *plan.others)
    teachers = [open_model(name) for name in plan.recipe.distill.teachers]
    jobs = [
        _ready_teacher(plan, f"teacher {number} of {len(teachers)}", teacher, everything)
        for number, teacher in enumerate(teachers, start=1)
    ]
    if not any(job.asked for job in jobs):
        raise UserError(
            f"The teachers were trained on all {len(everything)} texts, and must not teach those."
            " Leave distill.teachers out, so that teachers are trained here fold by fold, or give"
            " other texts with distill.more."
        )
    return jobs


def _ready_teacher(
    plan: DistillPlan, number: str, teacher: ModelFolder, everything: Sequence[Example]
) -> Job:
    tasks = _taught_tasks(teacher, plan.data.train.tasks)
    # rewritten texts are asked only where their first wording is new to the model, too
    unseen = unseen_places(teacher.path, plan.data.before_rewrites(everything))
    asked, name = tuple(everything[place] for place in unseen), teacher.path.name
    hashes = [digest for part in teacher.models for digest in part.stated_hashes.values()]
    key = short_hash(*hashes, *map(example_key, asked))
    return Job(
        name=f"{number}, {name}",
        folder=plan.teachers_folder / f"{name}-{key}",
        model_folder=teacher.path,
        test=plan.data.test,
        device=plan.device,
        asked=asked,
        tasks=tasks,
    )


def _taught_tasks(teacher: ModelFolder, tasks: Mapping[str, Task]) -> tuple[str, ...]:
    """The student's tasks that a teacher's models answer, with the same labels."""
    parts = {name: part for part in teacher.models for name in part.tasks if name in tasks}
    for name, part in parts.items():
        if part.tasks[name] != tasks[name]:
            both = (part.tasks[name], tasks[name])
            theirs, own = (", ".join(one.labels) or "a number" for one in both)
            raise UserError(
                f"{teacher} answers {name} with {theirs}, the student with {own}. Choose a"
                " teacher with the same labels."
            )
        class_weights_of(part.description["facts"], tasks[name])
    if not parts:
        raise UserError(
            f"{teacher} answers none of {', '.join(tasks)}. Choose a teacher of these tasks."
        )
    return tuple(parts)


def class_weights_of(facts: Mapping[str, Any], task: Task) -> Tensor | None:
    """The weights that the classes of a task had in a model's training; None for a regression.

    facts: those of the model.
    """
    if task.is_regression:
        return None
    stated = facts.get("class_weights", {}).get(task.name)
    if stated is None:
        raise UserError(
            "A teacher does not say how its classes were weighted, by which its answers lean."
            " Train it again with this litotes."
        )
    return torch.tensor(stated, dtype=torch.float64)


def unseen_places(folder: Path, asked: Sequence[Example]) -> list[int]:
    """The places of the texts that the model of a folder was not trained on."""
    trained_on = read_trained_texts(folder)
    if trained_on is None:
        raise UserError(
            f"{folder} does not say which texts it was trained on, and must not teach those. Choose"
            " a model that this litotes has trained."
        )
    return [place for place, one in enumerate(asked) if text_hash(one) not in trained_on]
