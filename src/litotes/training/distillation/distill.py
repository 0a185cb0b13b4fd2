"""From teachers to a student: folds, teachers, answers, students, the frontier.

texts → folds that no near-equal texts leave → for each fold teachers trained on the others → their
answers to the fold, and to texts without labels, less the lean of class weights → a student of
labels and answers together → the same without teachers, and with fewer layers → macro-F1 with its
interval against texts a second → model folder, frontier.json, frontier.svg

Hinton et al. 2015, arXiv 1503.02531. What is done is found again: teachers and students are known
by a hash of all they depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, TypeVar

from litotes.core.errors import UserError
from litotes.core.figures import render_figure
from litotes.core.jobs import run_jobs
from litotes.core.json_text import read_as
from litotes.core.machine import machine
from litotes.core.progress import Milestone, Watch, describe_duration, ignore_progress
from litotes.core.storage import clear_staged, locked, remove_folder, write_bytes, write_json
from litotes.core.text import one_line
from litotes.core.values import Example
from litotes.data.corpus import Corpus, example_key, fraction
from litotes.evaluation.evaluate import CellScores
from litotes.training.distillation.answers import gather_lessons, lesson_notes, with_even_answers
from litotes.training.distillation.figure import figure
from litotes.training.distillation.frontier import Point, measure_points
from litotes.training.distillation.matching import Matching
from litotes.training.distillation.plan import DistillPlan, plan_distillation
from litotes.training.distillation.prevalence import with_known_prevalence
from litotes.training.distillation.settings import DistillRecipe
from litotes.training.distillation.shapes import BASELINE, STUDENT, check_shapes, plan_shapes
from litotes.training.distillation.students import StudentJob, run_student
from litotes.training.distillation.teachers import read_answers, run_teacher
from litotes.training.lessons import Lessons
from litotes.training.processes import choose_workers
from litotes.training.recipe import TrainingSettings

FINISHED = "finished.json"
"""Written last: the key of what lies there."""


class ResumableJob(Protocol):
    """What knows whether it was done before."""

    def is_done(self) -> bool: ...


Job = TypeVar("Job", bound=ResumableJob)


@dataclass(frozen=True)
class DistillResult:
    """The student's folder, its scores on the test split, and the frontier."""

    folder: Path
    points: tuple[Point, ...]
    scores: tuple[CellScores, ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return one_line(self, folder=str(self.folder), n_points=len(self.points))

    def as_json(self) -> dict[str, Any]:
        points = [point.as_json() for point in self.points]
        return {"machine": machine(), "points": points, "notes": list(self.notes)}


def distill(
    recipe: DistillRecipe,
    out: Path,
    *,
    corpus: Corpus | None = None,
    n_workers: int | None = None,
    device: str | None = None,
    watch: Watch = ignore_progress,
) -> DistillResult:
    """Trains a student into the model folder `out`; a stopped one goes on where it was.

    corpus: texts that are already in memory, in place of those of the recipe's `data.source`.
    n_workers: trainings at the same time; None: one on a CPU, as many as fit on a GPU.
    """
    plan = plan_distillation(recipe, out, corpus=corpus, device=device)
    return carry_out(plan, n_workers=n_workers, watch=watch)


def carry_out(
    plan: DistillPlan, *, n_workers: int | None = None, watch: Watch = ignore_progress
) -> DistillResult:
    check_shapes(plan)
    with_known_prevalence(with_even_answers({}, plan), plan)  # a wrong name is told now
    if n_workers is None:
        encoders = [plan.recipe.student.model.encoder, plan.recipe.teacher(0).model.encoder]
        n_workers = choose_workers(encoders, plan.device)
    with locked(plan.work):
        clear_staged(plan.work, below=True)
        plan = _without_needless_models(plan)
        run_all(plan.teachers, run_teacher, n_workers=n_workers, watch=watch, what="teachers")
        lessons = gather_lessons(plan)
        students = plan_students(plan, lessons)
        run_all(students, run_student, n_workers=n_workers, watch=watch, what="students")
        result = _measure(plan, students, lessons, watch)
        write_json(plan.work / FINISHED, {"key": plan.key()})
        _remove_models(plan)
    return result


def _without_needless_models(plan: DistillPlan) -> DistillPlan:
    """The same plan; where it was carried out before, teachers need not be there any more."""
    file = plan.work / FINISHED
    if not file.is_file():
        return plan
    advice = "Choose another --out."
    if read_as(file, dict[str, str], advice=advice).get("key") != plan.key():
        raise UserError(
            f"{plan.out} holds a student of another recipe or of other texts. Choose another --out,"
            " or start it as it was started."
        )
    jobs = plan.teachers.items()
    return replace(plan, teachers={name: replace(job, keep_model=False) for name, job in jobs})


def plan_students(plan: DistillPlan, lessons: Lessons) -> dict[str, StudentJob]:
    """The jobs of all students, by name; the first one becomes the model folder."""
    matching = _matching(plan)
    jobs = {}
    for name, shape in plan_shapes(plan).items():
        is_taught = name != BASELINE
        parts = [plan.recipe.student.key(), repr(shape)]
        if is_taught:
            parts += [lessons.key(), "" if matching is None else matching.key]
        key = sha256("\n".join(parts).encode()).hexdigest()[:12]
        folder = plan.work / "students" / f"{name.replace(' ', '-')}-{key}"
        jobs[name] = StudentJob(
            name=name,
            recipe=plan.recipe.student,
            corpus=plan.corpus,
            shape=shape,
            lessons=lessons if is_taught else None,
            matching=matching if is_taught else None,
            model_folder=plan.out if name == STUDENT else folder / "model",
            folder=folder,
            test=plan.data.test,
            device=plan.device,
        )
    return jobs


def _matching(plan: DistillPlan) -> Matching | None:
    settings, student = plan.recipe.distill, plan.recipe.student
    if settings.match == "none":
        return None
    shown = texts_to_show(plan)
    training = TrainingSettings(
        epochs=settings.match_epochs,
        batch_texts=student.training.batch_texts,
        learning_rate=settings.match_rate,
        precision=student.training.precision,
        checkpoint_seconds=student.training.checkpoint_seconds,
    )
    names = [(str(folder), [example_key(one) for one in texts]) for folder, texts in shown]
    key = sha256(repr((settings.match, training, student.seed, names)).encode()).hexdigest()[:16]
    return Matching(settings.match, training, student.seed, key, shown)


def texts_to_show(plan: DistillPlan) -> tuple[tuple[Path, tuple[Example, ...]], ...]:
    """Every text, with the model folder of a teacher that was not trained on it."""
    able: dict[str, list[Path]] = {}
    examples: dict[str, Example] = {}
    for job in plan.teachers.values():
        for place in read_answers(job).places.tolist() if job.shows else ():
            key = example_key(job.asked[place])
            examples[key] = job.asked[place]
            able.setdefault(key, []).append(job.model_folder)
    shown: dict[Path, list[Example]] = {}
    for key, folders in able.items():
        # several may show a text without labels: they take turns
        shown.setdefault(folders[int(fraction(key) * len(folders))], []).append(examples[key])
    return tuple((folder, tuple(texts)) for folder, texts in shown.items())


def run_all(
    jobs: Mapping[str, Job],
    work: Callable[[Job, Watch], None],
    *,
    n_workers: int,
    what: str,
    watch: Watch = ignore_progress,
) -> None:
    """Does all jobs that are not done; the first that fails is told when the others are done."""
    todo = {name: job for name, job in jobs.items() if not job.is_done()}
    if not todo:
        return
    failed = []
    outcomes = run_jobs(todo, work, n_workers=n_workers, watch=watch, what=what)
    for n_done, outcome in enumerate(outcomes, start=1):
        if outcome.trace is not None:
            raise RuntimeError(f"{outcome.name}: {outcome.error}\n{outcome.trace}")
        if outcome.error is None:
            took = describe_duration(outcome.seconds)
            watch(what, n_done, len(todo), Milestone(f"{outcome.name}: done in {took}"))
        else:
            failed.append(f"{outcome.name}: {outcome.error}")
    if failed:
        raise UserError(f"{len(failed)} of {len(todo)} {what} failed. {failed[0]}")


def _measure(
    plan: DistillPlan, students: Mapping[str, StudentJob], lessons: Lessons, watch: Watch
) -> DistillResult:
    """Measures the frontier and writes it."""
    points = measure_points(plan, list(students.values()), watch=watch)
    content = read_as(
        plan.out / "scores.json", list[dict[str, Any]], advice="Choose another --out."
    )
    scores = tuple(map(CellScores.from_json, content))
    notes = (*plan.data.notes, *plan.notes, *lesson_notes(plan, lessons), *lessons.notes())
    result = DistillResult(plan.out, points, scores, notes)
    write_json(plan.out / "frontier.json", result.as_json())
    if points[0].score is not None:
        write_bytes(plan.out / "frontier.svg", render_figure(figure(points), "svg"))
    return result


def _remove_models(plan: DistillPlan) -> None:
    """Removes the models of teachers that only their students needed."""
    for job in plan.teachers.values():
        is_ours = job.recipe is not None and not plan.recipe.distill.keep_teachers
        if is_ours and job.model_folder.is_dir():
            remove_folder(job.model_folder)
