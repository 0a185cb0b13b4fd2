"""Does it hold elsewhere? Train on each variety (or source, or cell), test on every one.

A matrix is a study of one experiment: a row for each part of the corpus, a column for each part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args

from litotes.core.errors import UserError
from litotes.core.numbers import format_signed
from litotes.core.progress import Watch, ignore_progress
from litotes.data.corpus import Axis, Corpus, cell_of
from litotes.data.sources import has_option, load_with_test_part, options_of, with_option
from litotes.evaluation.cross_matrix import CrossMatrix
from litotes.study.plan import (
    Experiment,
    ExperimentSettings,
    Setting,
    Study,
    StudySettings,
    TestedOn,
)
from litotes.study.report import Report, Timing, make_report, time_steps
from litotes.study.runs import execute
from litotes.study.tables import ExperimentResults, read_results
from litotes.training.recipe import Recipe
from litotes.training.training_data import learnable_tasks


@dataclass(frozen=True)
class MatrixStudy:
    """The study behind a matrix.

    parts: the names of rows and columns. notes: which rows are left out of which table, and why.
    """

    corpus: str
    seeds: tuple[int, ...]
    tasks: tuple[str, ...]
    parts: tuple[str, ...]
    notes: tuple[str, ...]
    study: Study


@dataclass(frozen=True)
class MatrixResult:
    """The matrices of all tasks, what a reader must know about them, and the study's report."""

    recipe: Recipe
    seeds: tuple[int, ...]
    matrices: tuple[CrossMatrix, ...]
    notes: tuple[str, ...]
    report: Report
    timing: Timing

    def as_json(self) -> dict[str, Any]:
        return {
            "recipe": self.recipe.model_dump(mode="json"),
            "seeds": list(self.seeds),
            "matrices": [matrix.as_json() for matrix in self.matrices],
            "notes": list(self.notes),
        }


def plan_matrix(
    recipe: Recipe, *, axis: str = "variety", seeds: Sequence[int] = (0,)
) -> MatrixStudy:
    """A study with a row per name along the axis and a model per seed; seeds follow each other.

    axis: variety, source, cell, or a column of the recipe's table. A row only learns the tasks that
    its own texts can teach.
    """
    along = resolve_axis(recipe, axis)
    recipe, chosen = along.recipe, _chosen(along.recipe)
    tasks = [name for name, task in chosen.tasks.items() if task.is_choice]
    if not tasks:
        raise UserError(
            f"{chosen.name} has no classification task; a matrix is of macro-F1. Use train and"
            " evaluate for a regression."
        )
    parts = _parts(chosen, along)
    rows, notes = [], []
    for name, where in parts.items():
        learned = _learned_with_every_seed(recipe, where, seeds)
        notes += [_left_out(name, task) for task in tasks if task not in learned]
        if learned:
            rows.append(_setting(recipe, name, where, learned, seeds[0]))
    study = _study(along, chosen.name, rows, seeds=seeds, tasks=tuple(tasks))
    return MatrixStudy(chosen.name, tuple(seeds), tuple(tasks), tuple(parts), tuple(notes), study)


def cross(
    recipe: Recipe,
    out: Path,
    *,
    axis: str = "variety",
    seeds: Sequence[int] = (0,),
    device: str | None = None,
    watch: Watch = ignore_progress,
) -> MatrixResult:
    """Trains a model per name and seed, found again when it is there, and tests it on every name.

    The models are kept as `out`/models/NAME-SEED.
    """
    planned = plan_matrix(recipe, axis=axis, seeds=seeds)
    runs = execute(planned.study, out, device=device, watch=watch)
    if runs.failures:
        outcome = next(iter(runs.failures.values()))
        raise UserError(
            f"{outcome.error} ({outcome.name}; {len(runs.failures)} of {len(runs.jobs)} runs"
            " failed. Start the command again to try them again.)"
        )
    results = read_results(planned.study, runs)
    matrices = _matrices(planned, results[0])
    notes = dict.fromkeys([*planned.notes, *results[0].notes])  # each note once
    if not matrices:
        raise UserError(f"{planned.corpus} has nothing to learn from: {' '.join(notes)}")
    return MatrixResult(
        recipe=recipe,
        seeds=planned.seeds,
        matrices=matrices,
        notes=(*notes, *(note for one in matrices for note in one.collapses())),
        report=make_report(planned.study, results, (), n_runs=len(runs.jobs), failures={}),
        timing=time_steps(planned.study, results),
    )


def describe_matrix(matrix: CrossMatrix) -> str:
    """What the matrix says, and how much of it may be chance."""
    if not matrix.cells:
        return f"{matrix.task.capitalize()}: no run has finished."
    widest = max(cell.interval[1] - cell.interval[0] for cell in matrix.cells)
    home, elsewhere = matrix.at_home, matrix.elsewhere
    words = f"{matrix.task.capitalize()}: {matrix.mean:.3f} macro-F1 on average over the table."
    if home is not None and elsewhere is not None:
        words = (
            f"{matrix.task.capitalize()}: tested on the {matrix.axis} they were trained on, the"
            f" models reach {home:.3f} macro-F1 on average; tested elsewhere {elsewhere:.3f}, a gap"
            f" of {format_signed(home - elsewhere, 3)}."
        )
    words += (
        f" A single cell's 95 % interval is up to {widest:.2f} wide, so differences between cells"
        " smaller than that may not be significant."
    )
    useless = [cell for cell in matrix.cells if cell.interval[0] <= cell.majority]
    if useless:
        pairs = ", ".join(f"{cell.trained_on} → {cell.tested_on}" for cell in useless)
        words += f" Not clearly better than always answering the most frequent label: {pairs}."
    return words


def _left_out(name: str, task: str) -> str:
    return (
        f"Nothing to learn about {task} from {name}: its training texts have fewer than two {task}"
        " labels. That row is left out."
    )


def folder_name(name: str) -> str:
    """A variety's name as a folder may be called; unusual names are told apart by a hash."""
    if re.fullmatch(r"[A-Za-z0-9][\w-]{0,60}", name, re.ASCII):
        return name
    return re.sub(r"[^A-Za-z0-9]+", "_", name)[:40] + "-" + sha256(name.encode()).hexdigest()[:8]


def _chosen(recipe: Recipe) -> Corpus:
    where = recipe.data.where
    corpus = load_with_test_part(recipe.data.source).map_labels(recipe.data.labels)
    return corpus.where(variety=where.variety, source=where.source, task=recipe.data.tasks)


def _parts(corpus: Corpus, axis: MatrixAxis) -> dict[str, dict[str, str]]:
    """The names along the axis, each with the selection it stands for."""
    parts = {}
    for cell in {cell_of(example) for example in corpus.where(split="train")}:
        where = {}
        for key in ("variety", "source"):
            word = getattr(cell, key)
            if axis.field in (key, "cell") and word is not None:
                where[key] = word
        if where:
            parts[" ".join(where.values())] = where
    if len(parts) < 2:
        what = "kind of cell" if axis.field == "cell" else axis.name
        raise UserError(
            f"{corpus.name} has {len(parts)} {what} to train on; a matrix needs at least two."
            " Choose another --by (of a table, any of its columns) or other data."
        )
    return dict(sorted(parts.items()))


def _trained_on(recipe: Recipe, where: Mapping[str, str], seed: int) -> Recipe:
    return recipe.changed(**{f"data__where__{key}": word for key, word in where.items()}, seed=seed)


def _learned_with_every_seed(
    recipe: Recipe, where: Mapping[str, str], seeds: Sequence[int]
) -> list[str]:
    """The tasks that the texts can teach whatever slice of them is held out."""
    by_seed = [learnable_tasks(_trained_on(recipe, where, seed)) for seed in seeds]
    return [task for task in by_seed[0] if all(task in learned for learned in by_seed)]


def _setting(
    recipe: Recipe, name: str, where: Mapping[str, str], tasks: Sequence[str], seed: int
) -> Setting:
    """The row of one part."""
    return Setting(
        values={f"data.where.{key}": word for key, word in where.items()},
        recipe=_trained_on(recipe, where, seed).changed(data__tasks=list(tasks)),
        row=name,
        model_name=folder_name(name),
    )


def _study(
    axis: MatrixAxis,
    corpus: str,
    rows: Sequence[Setting],
    *,
    seeds: Sequence[int],
    tasks: tuple[str, ...],
) -> Study:
    grid: dict[str, list[Any]] = {}
    for setting in rows:
        for path, value in setting.values.items():
            grid.setdefault(path, []).append(value)
    experiment = ExperimentSettings(
        name=f"By {axis.name}", grid=grid, rows=f"data.where.{axis.field}"
    )
    recipe, model = axis.recipe, axis.recipe.model
    settings = StudySettings(
        name=f"Does it hold elsewhere? {corpus}",
        about=(
            f"Encoder {model.encoder}, head {model.head}, weighting {model.weighting}, pruning"
            f" {model.pruning}; trained on each part, tested on every part; seeds"
            f" {', '.join(map(str, seeds))}."
        ),
        seeds=len(seeds),
        keep_models=True,
        recipe=recipe.changed(seed=seeds[0]).model_dump(mode="json"),
        experiment=[experiment],
    )
    test = TestedOn(where=recipe.data.where, by=axis.field, by_name=axis.name)
    experiments = (Experiment(experiment, tuple(rows), (test,), tasks),)
    return Study(settings, experiments, bootstrap_seed=recipe.seed)


def _matrices(planned: MatrixStudy, results: ExperimentResults) -> tuple[CrossMatrix, ...]:
    """A matrix per task, in the order of the tasks."""
    tables = {table.matrix.task: table.matrix for table in results.tables}
    found = [tables[task] for task in planned.tasks if task in tables]
    return tuple(_known_parts(matrix, planned) for matrix in found)


def _known_parts(matrix: CrossMatrix, planned: MatrixStudy) -> CrossMatrix:
    """Without rows that had nothing to learn, and without columns that no row was trained on."""
    cells = [cell for cell in matrix.cells if cell.tested_on in planned.parts]
    rows = {cell.trained_on for cell in cells}
    columns = {cell.tested_on for cell in cells}
    return CrossMatrix(
        matrix.task,
        matrix.axis,
        tuple(name for name in planned.parts if name in rows),
        tuple(name for name in planned.parts if name in columns),
        tuple(cells),
    )


# What a matrix is by: variety, source, cell, or any column of a table.


@dataclass(frozen=True)
class MatrixAxis:
    """The recipe whose texts carry what a matrix is by, the field they carry it in, and what the
    user calls it.
    """

    recipe: Recipe
    field: Axis
    name: str


def resolve_axis(recipe: Recipe, by: str) -> MatrixAxis:
    """by: variety, source or cell, or a column, which is then read as the variety."""
    for field in get_args(Axis):
        if by in (field, options_of(recipe.data.source).get(field)):
            return MatrixAxis(recipe, field, by)
    source = recipe.data.source
    if not has_option(source, "variety"):
        raise UserError(
            f"--by {by}: only a single table has columns to choose from, {source} does not. Choose"
            f" {', '.join(get_args(Axis))}."
        )
    if recipe.data.where.variety is not None:
        raise UserError(
            f"--by {by}: the recipe selects by another column, data.where.variety ="
            f" {recipe.data.where.variety!r}. Leave that out."
        )
    return MatrixAxis(
        recipe.changed(data__source=with_option(source, "variety", by)), "variety", by
    )
