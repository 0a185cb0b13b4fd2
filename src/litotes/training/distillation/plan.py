"""What a distillation needs, checked before hours of work: folder, texts, folds, teachers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.storage import find_foreign_file
from litotes.core.values import Example
from litotes.data.corpus import Corpus, example_key
from litotes.data.near_duplicates import Folds, assign_folds
from litotes.data.sources import load
from litotes.encoder import pretrained
from litotes.model.checkpoint import load_model
from litotes.model.folder import DESCRIPTION, ModelFolder, is_model_folder, open_model
from litotes.training.classification import check_names
from litotes.training.course import FIRST_FILES, LAST_FILES
from litotes.training.distillation.settings import DistillRecipe
from litotes.training.distillation.teachers import TeacherJob, class_weights_of, unseen_places
from litotes.training.training_data import TrainingData, prepare, unlabelled_texts

WORK = "distillation"
"""The folder inside a student's where all the rest is kept."""
FRONTIER = ("frontier.json", "frontier.svg")


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
    teachers: dict[str, TeacherJob]
    device: str | None
    notes: tuple[str, ...]

    @property
    def work(self) -> Path:
        return self.out / WORK

    def key(self) -> str:
        """A hash of all that the result depends on."""
        recipe = (self.recipe.student.key(), self.recipe.distill.model_dump_json())
        jobs = [job.folder.name for job in self.teachers.values()]
        return _short_hash(*recipe, self.data.fingerprint(), *jobs)


def plan_distillation(
    recipe: DistillRecipe, out: Path, *, corpus: Corpus | None = None, device: str | None = None
) -> DistillPlan:
    """Checks everything that would otherwise fail at the end."""
    _check_folder(out)
    _check_recipe(recipe)
    data = prepare(recipe.student, corpus)
    others = _other_texts(recipe, data)
    settings = recipe.distill
    folds = assign_folds(
        data.train.examples,
        others,
        apart=_texts_apart(data),
        n_folds=1 if settings.teachers else settings.folds,
        seed=settings.seed,
    )
    kept = tuple(others[place] for place in folds.others)
    notes = _notes(folds, n_others=len(others))
    # others that are left out are no longer counted
    folds = replace(folds, others=dict(enumerate(folds.others.values())))
    plan = DistillPlan(recipe, out, corpus, data, kept, {}, device, tuple(notes))
    jobs = _ready_teachers(plan) if settings.teachers else _fold_teachers(plan, folds)
    labelled = enumerate(jobs, start=1)
    numbered = {
        job.name: replace(job, label=f"teacher {number} of {len(jobs)}") for number, job in labelled
    }
    return replace(plan, teachers=numbered)


def _check_folder(out: Path) -> None:
    if is_model_folder(out) and not (out / WORK).is_dir():
        raise UserError(f"{out} already holds a model. Choose another --out.")
    ours = {*FIRST_FILES, *LAST_FILES, *FRONTIER, DESCRIPTION}
    foreign = find_foreign_file(out, ours)
    if foreign is not None:
        raise UserError(
            f"{out} holds files that are not of a distillation ({foreign}). Choose an empty or a"
            " new folder for --out."
        )


def _check_recipe(recipe: DistillRecipe) -> None:
    check_names(recipe.student)
    settings, student = recipe.distill, recipe.student
    if student.model.separate:
        raise UserError(
            "A distillation makes one student. Set model.separate = false, or distill one task at a"
            " time with --set data.tasks=NAME."
        )
    if settings.teachers and (settings.teacher.model or settings.teacher.training):
        raise UserError(
            "[distill.teacher] is for teachers trained here, distill.teachers names ready ones."
            " Leave one of them out."
        )
    if settings.match != "none" and student.model.pruning != "none":
        raise UserError(
            f"distill.match does not go with pruning = {student.model.pruning}: pieces that are"
            " gone have no states. Distill first, then use `litotes prune`."
        )
    check_names(recipe.teacher(0))
    if not settings.teachers:
        pretrained.find_encoder(
            recipe.teacher(0).model.encoder
        )  # one that is not there is told now


def _other_texts(recipe: DistillRecipe, data: TrainingData) -> list[Example]:
    """The texts to learn from by answers alone, each once."""
    settings, where = recipe.distill, recipe.student.data.where
    found: list[Example] = []
    if settings.unlabelled == "source":
        found += unlabelled_texts(data)
    elif settings.unlabelled == "selection":
        chosen = data.whole.where(variety=where.variety, source=where.source)
        found += unlabelled_texts(data, chosen)
    for source in settings.more:
        found += unlabelled_texts(data, load(source))
    return list({example_key(example): example for example in found}.values())


def _texts_apart(data: TrainingData) -> list[Example]:
    """The texts that nothing may be learned about: held out, reserved, of other splits."""
    parts = [part for part in (data.held_out, data.reserved) if part is not None]
    apart = [example for part in parts for example in part]
    return [*apart, *(example for example in data.whole if example.split != "train")]


def _notes(folds: Folds, *, n_others: int) -> list[str]:
    notes = []
    if n_left_out := n_others - len(folds.others):
        notes.append(
            f"{n_left_out} texts without labels are nearly or exactly among the texts to choose or"
            " test by, and were left out."
        )
    if not folds.is_complete:
        notes.append(
            "So many texts resemble one another that not all were compared: equal texts share a"
            " fold, near-equal ones may not."
        )
    return notes


def _fold_teachers(plan: DistillPlan, folds: Folds) -> list[TeacherJob]:
    """The jobs of every fold: trained on the other folds, asked about this one and about texts that
    are like none.
    """
    settings, train = plan.recipe.distill, plan.data.train
    jobs: list[TeacherJob] = []
    for fold in range(settings.folds):
        places = [place for place, own in enumerate(folds.train) if own == fold]
        asked = [train.examples[place] for place in places]
        asked += [plan.others[place] for place, own in folds.others.items() if own in (fold, None)]
        others = [one for one, own in zip(train, folds.train, strict=True) if own != fold]
        tested = [] if plan.data.test is None else plan.data.test.examples
        corpus = replace(train, examples=(*others, *tested), notes=())
        numbers = range(settings.teachers_a_fold)
        jobs += [_fold_teacher(plan, fold, number, corpus, tuple(asked)) for number in numbers]
    return jobs


def _fold_teacher(
    plan: DistillPlan, fold: int, number: int, corpus: Corpus, asked: tuple[Example, ...]
) -> TeacherJob:
    settings = plan.recipe.distill
    recipe = plan.recipe.teacher(settings.seed + number)
    key = _short_hash(recipe.key(), corpus.fingerprint(), *map(example_key, asked))
    folder = _teachers_folder(plan) / f"fold-{fold + 1}-seed-{recipe.seed}-{key}"
    # the first of each fold shows the student its states, or gives it its layers
    shows = settings.match != "none" or settings.start == "teacher"
    return TeacherJob(
        name=f"fold {fold + 1}, seed {recipe.seed}",
        recipe=recipe,
        corpus=corpus,
        model_folder=folder / "model",
        asked=asked,
        test=plan.data.test,
        tasks=tuple(plan.data.train.tasks),
        folder=folder,
        shows=shows and number == 0,
        keep_model=settings.keep_teachers or (shows and number == 0),
        device=plan.device,
    )


def _ready_teachers(plan: DistillPlan) -> list[TeacherJob]:
    """A job for each model folder that was named; what it cannot teach is refused now."""
    everything = (*plan.data.train.examples, *plan.others)
    jobs, n_answers = [], 0
    for number, name in enumerate(plan.recipe.distill.teachers, start=1):
        opened = open_model(name)
        tasks = _check_ready_teacher(opened, plan)
        asked = _new_in_any_words(opened.path, everything, plan.data)
        n_answers += len(unseen_places(opened.path, asked))
        hashes = [digest for part in opened.models for digest in part.stated_hashes.values()]
        key = _short_hash(*hashes, *map(example_key, asked))
        jobs.append(
            TeacherJob(
                name=f"{number}, {opened.path.name}",
                recipe=None,
                corpus=None,
                model_folder=opened.path,
                asked=asked,
                test=plan.data.test,
                tasks=tasks,
                folder=_teachers_folder(plan) / f"{opened.path.name}-{key}",
                shows=True,
                keep_model=True,
                device=plan.device,
            )
        )
    if not n_answers:
        raise UserError(
            f"The teachers were trained on all {len(everything)} texts, and must not teach those."
            " Leave distill.teachers out, so that teachers are trained here fold by fold, or give"
            " other texts with distill.more."
        )
    return jobs


def _new_in_any_words(
    folder: Path, examples: Sequence[Example], data: TrainingData
) -> tuple[Example, ...]:
    """Without rewritten texts whose first wording the model of the folder was trained on."""
    before = data.before_rewrites(examples)
    unseen = set(unseen_places(folder, before))
    kept = []
    for place, (now, then) in enumerate(zip(examples, before, strict=True)):
        if now is then or place in unseen:
            kept.append(now)
    return tuple(kept)


def _check_ready_teacher(teacher: ModelFolder, plan: DistillPlan) -> tuple[str, ...]:
    """The student's tasks that it answers, with the same labels."""
    tasks, answered = plan.data.train.tasks, []
    for part in teacher.models:
        model = load_model(part)
        for name, task in model.classifier.tasks.items():
            if name not in tasks:
                continue
            if tasks[name].labels != task.labels:
                raise UserError(
                    f"{teacher} answers {name} with {', '.join(task.labels) or 'a number'}, the"
                    f" student with {', '.join(tasks[name].labels) or 'a number'}. Choose a teacher"
                    " with the same labels."
                )
            class_weights_of(model, name)
            answered.append(name)
    if not answered:
        raise UserError(
            f"{teacher} answers none of {', '.join(tasks)}. Choose a teacher of these tasks."
        )
    return tuple(answered)


def _teachers_folder(plan: DistillPlan) -> Path:
    named = plan.recipe.distill.teachers_folder
    # resolved: other processes may work elsewhere
    return (plan.work / "teachers" if named is None else Path(named)).resolve()


def _short_hash(*parts: str) -> str:
    return sha256("\n".join(parts).encode()).hexdigest()[:12]
