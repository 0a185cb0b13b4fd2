"""From teachers to a student: folds, teachers, answers, students, the frontier.

texts → folds that no near-equal texts leave → for each fold teachers trained on the others → their
answers to the fold, and to texts without labels, minus the lean of class weights → a student of
labels and answers together → the same without teachers, and with fewer layers → macro-F1 with its
interval against texts a second → model folder, frontier.json, frontier.svg

Hinton et al. 2015, arXiv 1503.02531. What is done is found again: teachers and students are known
by a hash of all they depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from litotes.core.errors import UserError
from litotes.core.figures import (
    GAP,
    INK,
    BarStyle,
    draw_bars,
    hide_frame,
    new_figure,
    render_figure,
)
from litotes.core.jobs import run_jobs
from litotes.core.json_text import read_as
from litotes.core.machine import choose_device, machine
from litotes.core.numbers import Counts, Floats, classes_of, macro_f1
from litotes.core.progress import (
    Milestone,
    Watch,
    describe_duration,
    ignore_progress,
    prefix_watch,
)
from litotes.core.registry import grouped
from litotes.core.storage import (
    clear_staged,
    is_complete,
    locked,
    remove_folder,
    write_bytes,
    write_json,
)
from litotes.core.text import one_line
from litotes.core.values import MISSING, Example
from litotes.data.corpus import Corpus, example_key, fraction
from litotes.encoder import pretrained
from litotes.encoder.packing import make_text_set, targets
from litotes.evaluation.evaluate import CellScores
from litotes.evaluation.scores import N_RESAMPLES, interval
from litotes.evaluation.significance import (
    AnswerPatterns,
    estimate_mean,
    find_patterns,
    mean_interval,
    scores_of,
    split_draws,
)
from litotes.model.checkpoint import load_model
from litotes.model.classifier import Classifier, seconds_in_turns
from litotes.training.distillation.plan import (
    DistillPlan,
    DistillRecipe,
    Job,
    Matching,
    plan_distillation,
)
from litotes.training.distillation.students import (
    BASELINE,
    STUDENT,
    a_teacher,
    check_shapes,
    make_start,
    match_encoder,
    plan_shapes,
)
from litotes.training.distillation.teachers import (
    ask,
    gather_lessons,
    lesson_notes,
    read_answers,
    with_even_answers,
    with_known_prevalence,
)
from litotes.training.lessons import Lessons
from litotes.training.processes import choose_workers
from litotes.training.recipe import Recipe, TrainingSettings
from litotes.training.run import train

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FINISHED = "finished.json"
"""Written last: the key of what lies there."""
TEACHER = "teacher"
N_TIMED = 128
"""Texts that speed is measured on."""


class ResumableJob(Protocol):
    """A job that knows whether it was done before."""

    def is_done(self) -> bool: ...


AnyJob = TypeVar("AnyJob", bound=ResumableJob)


@dataclass(frozen=True)
class Score:
    """Macro-F1 on the test split, mean over `n_models` models, with its 95 % interval over texts
    and models.
    """

    macro_f1: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Point:
    """A kind of model: how good, how fast, how large.

    texts_per_second: on this machine, from pieces to answers. score: the mean over tasks; None
    where there is nothing to test on.
    """

    name: str
    n_models: int
    n_layers: int
    width: int
    n_parameters: int
    texts_per_second: float
    score: Score | None
    tasks: Mapping[str, Score]


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
        points = [asdict(point) for point in self.points]
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
        encoders = [plan.recipe.model.encoder, plan.recipe.teacher(0).model.encoder]
        n_workers = choose_workers(encoders, plan.device)
    with locked(plan.work):
        clear_staged(plan.work, below=True)
        if not _is_finished(plan):  # teachers need not be there any more
            run_all(plan.teachers, run_job, n_workers=n_workers, watch=watch, what="teachers")
        lessons = gather_lessons(plan)
        students = plan_students(plan, lessons)
        run_all(students, run_job, n_workers=n_workers, watch=watch, what="students")
        result = _measure(plan, students, lessons, watch)
        write_json(plan.work / FINISHED, {"key": plan.key()})
        if not plan.recipe.distill.keep_teachers:
            _remove_models(plan.teachers.values())
    return result


def _remove_models(teachers: Iterable[Job]) -> None:
    """Only their students needed the models that were trained here."""
    for job in teachers:
        if job.recipe is not None and job.model_folder.is_dir():
            remove_folder(job.model_folder)


def _is_finished(plan: DistillPlan) -> bool:
    """Tells whether this very plan was carried out before."""
    file, advice = plan.work / FINISHED, "Choose another --out."
    if not file.is_file():
        return False
    if read_as(file, dict[str, str], advice=advice).get("key") != plan.key():
        raise UserError(
            f"{plan.out} holds a student of another recipe or of other texts. Choose another --out,"
            " or start it as it was started."
        )
    return True


def plan_students(plan: DistillPlan, lessons: Lessons) -> dict[str, Job]:
    """The jobs of all students, by name; the first one becomes the model folder."""
    jobs, matching, key = {}, _matching(plan), plan.key()
    for name, shape in plan_shapes(plan).items():
        is_taught = name != BASELINE
        folder = plan.work / "students" / f"{name.replace(' ', '-')}-{key}"
        jobs[name] = Job(
            name=name,
            folder=folder,
            model_folder=plan.out if name == STUDENT else folder / "model",
            test=plan.data.test,
            device=plan.device,
            recipe=plan.recipe.student,
            corpus=plan.corpus,
            shape=shape,
            matching=matching if is_taught else None,
            lessons=lessons if is_taught else None,
        )
    return jobs


def _matching(plan: DistillPlan) -> Matching | None:
    settings, student = plan.recipe.distill, plan.recipe.training
    if settings.match == "none":
        return None
    training = TrainingSettings(
        epochs=settings.match_epochs,
        batch_texts=student.batch_texts,
        learning_rate=settings.match_rate,
        max_gradient_norm=0.0,
        precision=student.precision,
        checkpoint_seconds=student.checkpoint_seconds,
    )
    return Matching(settings.match, training, plan.recipe.seed, texts_to_show(plan))


def texts_to_show(plan: DistillPlan) -> tuple[tuple[Path, tuple[Example, ...]], ...]:
    """Every text, with the model folder of a teacher that was not trained on it."""
    able: dict[str, list[Path]] = {}
    examples: dict[str, Example] = {}
    for job in (one for one in plan.teachers.values() if one.shows):
        for place in read_answers(job.answers).places.tolist():
            key = example_key(job.asked[place])
            examples[key] = job.asked[place]
            able.setdefault(key, []).append(job.model_folder)
    # several may show a text without labels: they take turns
    shown = grouped(able, lambda key: able[key][int(fraction(key) * len(able[key]))])
    return tuple((folder, tuple(examples[key] for key in keys)) for folder, keys in shown.items())


def run_job(job: Job, watch: Watch) -> None:
    """Trains, asks and tests a model, or does what is left of it."""
    if job.is_done():
        return
    watch = prefix_watch(watch, job.name)
    if job.recipe is not None:
        train(
            _with_start(job, job.recipe, watch),
            job.model_folder,
            corpus=job.corpus,
            lessons=job.lessons,
            device=job.device,
            resume=True,
            watch=watch,
        )
    if not is_complete(job.answers):
        ask(job, watch)
    if job.recipe is not None and not job.keep_model:
        remove_folder(job.model_folder)


def _with_start(job: Job, recipe: Recipe, watch: Watch) -> Recipe:
    """The recipe, begun with the first weights of a student, which are made where there are none
    yet.
    """
    if job.shape is None or (job.shape.is_whole and job.matching is None):
        return recipe
    start = job.folder / "start"
    if not (start / "model.safetensors").is_file():  # its weights are written last
        source = make_start(job.shape, seed=recipe.seed)
        if job.matching is not None:
            states = job.folder / "matching"
            match_encoder(source, job.matching, states, device=job.device, watch=watch)
        pretrained.save(source, start)
    return recipe.changed(model__encoder=str(start))


def run_all(
    jobs: Mapping[str, AnyJob],
    work: Callable[[AnyJob, Watch], None],
    *,
    n_workers: int,
    what: str,
    watch: Watch = ignore_progress,
) -> None:
    """Does all jobs that are not done; the first that fails is told when the others are done."""
    todo, failed = {name: job for name, job in jobs.items() if not job.is_done()}, []
    outcomes = run_jobs(todo, work, n_workers=n_workers, watch=watch, what=what) if todo else ()
    for n_done, outcome in enumerate(outcomes, start=1):
        ended = f"{outcome.name}: {outcome.error}"
        if outcome.trace is not None:
            raise RuntimeError(f"{ended}\n{outcome.trace}")
        if outcome.error is not None:
            failed.append(ended)
            continue
        took = describe_duration(outcome.seconds)
        watch(what, n_done, len(todo), Milestone(f"{outcome.name}: done in {took}"))
    if failed:
        raise UserError(f"{len(failed)} of {len(todo)} {what} failed. {failed[0]}")


# Quality against speed: the teachers, their students, and a student of labels alone


def _measure(
    plan: DistillPlan, students: Mapping[str, Job], lessons: Lessons, watch: Watch
) -> DistillResult:
    """Measures the frontier and writes it."""
    points = measure_points(plan, students, watch=watch)
    advice = "Choose another --out."
    rows = read_as(plan.out / "scores.json", list[dict[str, Any]], advice=advice)
    notes = (*plan.data.notes, *plan.notes, *lesson_notes(plan, lessons), *lessons.notes())
    result = DistillResult(plan.out, points, tuple(map(CellScores.from_json, rows)), notes)
    write_json(plan.out / "frontier.json", result.as_json())
    if points[0].score is not None:
        write_bytes(plan.out / "frontier.svg", render_figure(figure(points), "svg"))
    return result


def measure_points(
    plan: DistillPlan, students: Mapping[str, Job], *, watch: Watch
) -> tuple[Point, ...]:
    """A point for the teachers, the students and the baseline."""
    kinds = {TEACHER: list(plan.teachers.values())} | {
        name: [job] for name, job in students.items()
    }
    models = {TEACHER: a_teacher(plan)}
    for name, student in students.items():
        model = load_model(student.model_folder)
        models[name] = (model.classifier, model.tokenizer)
    texts = (plan.data.test or plan.data.train).examples[:N_TIMED]
    timed = {
        name: (classifier.to(choose_device(plan.device)), make_text_set(texts, (), tokenizer))
        for name, (classifier, tokenizer) in models.items()
    }
    seconds = seconds_in_turns(timed, what="distill: rounds", n_rounds=3, watch=watch)
    return tuple(
        _make_point(plan, name, jobs, models[name][0], speed=len(texts) / seconds[name])
        for name, jobs in kinds.items()
    )


def _make_point(
    plan: DistillPlan, name: str, jobs: Sequence[Job], classifier: Classifier, *, speed: float
) -> Point:
    """jobs: all of the kind; classifier: one of their models."""
    answers = [read_answers(job.answers).test for job in jobs]
    score, by_task = measure_scores(plan.data.test, answers, seed=plan.recipe.seed)
    return Point(
        name=name,
        n_models=len(jobs),
        n_layers=classifier.encoder.spec.n_layers,
        width=classifier.encoder.spec.width,
        n_parameters=sum(parameter.numel() for parameter in classifier.parameters()),
        texts_per_second=speed,
        score=score,
        tasks=by_task,
    )


def measure_scores(
    test: Corpus | None, models: Sequence[Mapping[str, Any]], *, seed: int
) -> tuple[Score | None, dict[str, Score]]:
    """The mean over the classification tasks that all models answer, and the score of each.

    models: of each its labels (by number), {task: (labelled text,)}
    """
    if test is None:
        return None, {}
    tasks = {} if test is None else _answered_tasks(test, models)
    by_task, by_model = {}, []
    for name, (n_classes, rows) in tasks.items():
        gold, *answers = rows[:, rows[0] != MISSING]
        labels = np.array(answers)  # (model, text)
        by_model.append(scores_of(find_patterns(gold, labels, n_classes)))  # (model,)
        ends = mean_interval(gold, labels, n_classes, seed=seed)
        by_task[name] = Score(float(by_model[-1].mean()), ends)
    if not tasks:
        return None, {}
    resampled = interval(_resample(list(tasks.values()), seed))
    found = estimate_mean(np.mean(by_model, axis=0), resampled)
    return Score(found.value, found.interval), by_task


Rows = tuple[int, Counts]
"""A task's number of classes; gold, then the labels of each model, for all test texts,
MISSING where there is no label, (1 + model, text).
"""


def _answered_tasks(test: Corpus, models: Sequence[Mapping[str, Any]]) -> dict[str, Rows]:
    """The classification tasks that all models answer."""
    found = {}
    for name, task in test.tasks.items():
        if task.is_choice and all(name in answers for answers in models):
            labelled = [one for one in test if name in one.labels]
            gold = targets(labelled, [task])[name]
            rows = np.full((1 + len(models), len(test)), MISSING)
            has = np.array([name in example.labels for example in test])
            rows[:, has] = np.vstack([gold, *(answers[name] for answers in models)])
            found[name] = (len(task.labels), rows)
    return found


def _resample(tasks: Sequence[Rows], seed: int) -> Floats:
    """The mean over tasks and models, on texts that are drawn with all of their labels.

    (resample,)
    """
    # (task · (1 + model), pattern): few texts differ in every label and answer
    columns, n = np.unique(np.vstack([rows for _, rows in tasks]), axis=1, return_counts=True)
    found = []
    for (n_classes, _), part in zip(tasks, np.split(columns, len(tasks)), strict=True):
        has = part[0] != MISSING
        patterns = AnswerPatterns(n[has], part[0, has], part[1:, has], n_classes)
        among = np.array([classes_of(counts) for counts in patterns.confusions(patterns.n)])
        found.append((has, patterns, among))
    generator, drawn = np.random.default_rng(seed), []
    for size in split_draws(N_RESAMPLES, len(n)):
        times = generator.multinomial(n.sum(), n / n.sum(), size=size)  # (resample, pattern)
        scores = [
            macro_f1(own.confusions(times[:, has]), among).mean(1) for has, own, among in found
        ]
        drawn.append(np.mean(scores, axis=0))
    return np.concatenate(drawn)


# from the palette of Okabe and Ito; filled and hollow as well, for print without colour
TEACHERS = BarStyle("teachers", INK, fill=INK)
STUDENTS = BarStyle("students", "#0072B2", fill="#0072B2", shift=4.0)
# as fast as a student of its shape: drawn on its other side
BASELINES = BarStyle("labels alone", GAP, fill="white", shift=-4.0)


def figure(points: Sequence[Point]) -> Figure:
    """Draws every point with its name, mean over tasks."""
    shown = [(point, point.score) for point in points if point.score is not None]
    if not shown:
        raise UserError("A frontier needs a test split with labels: without one nothing is drawn.")
    picture = new_figure(6.4, 4.2)
    ax = picture.subplots()
    for point, score in shown:
        style = {TEACHER: TEACHERS, BASELINE: BASELINES}.get(point.name, STUDENTS)
        place, value = point.texts_per_second, score.macro_f1
        draw_bars(ax, [place], [value], [score.interval], style)
        side, align = (-11, "right") if style is BASELINES else (11, "left")
        ax.annotate(
            f"{point.name}, {point.n_parameters / 1e6:.3g} M",
            (place, value),
            xytext=(side, 4),
            ha=align,
            textcoords="offset points",
            fontsize=8,
            color=INK,
        )
    ax.margins(x=0.3)
    ax.set_xlim(left=0)
    ax.set_xlabel("texts a second on this machine")
    ax.set_ylabel("macro-F1, mean over tasks")
    hide_frame(ax)
    return picture
