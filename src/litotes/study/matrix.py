"""Does it hold elsewhere? Train on each variety (or source, or cell), test on every one.

A matrix is a study of one experiment: a row for each part of the corpus, a column for each part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args

from litotes.core.errors import UserError
from litotes.core.progress import Watch, ignore_progress
from litotes.data.corpus import Axis, Corpus, cell_of
from litotes.data.sources import has_option, load_with_test_part, options_of, with_option
from litotes.evaluation.cross_matrix import CrossMatrix
from litotes.evaluation.scores import Json
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
from litotes.study.tables import read_results
from litotes.training.recipe import Recipe
from litotes.training.training_data import learnable_tasks


@dataclass(frozen=True)
class MatrixResult:
    """The matrices of all tasks, what a reader must know about them, and the study's report."""

    recipe: Recipe
    seeds: tuple[int, ...]
    matrices: tuple[CrossMatrix, ...]
    notes: tuple[str, ...]
    report: Report
    timing: Timing

    @property
    def words(self) -> tuple[str, ...]:
        """The tables in words, and how much in them may be chance."""
        (section,) = self.report.sections
        return section.words["tables"]

    def as_json(self) -> Json:
        return {
            "recipe": self.recipe.model_dump(mode="json"),
            "seeds": list(self.seeds),
            "matrices": [matrix.as_json() for matrix in self.matrices],
            "notes": list(self.notes),
        }


def cross(
    recipe: Recipe,
    out: Path,
    *,
    axis: str = "variety",
    seeds: Sequence[int] = (0,),
    device: str | None = None,
    watch: Watch = ignore_progress,
) -> MatrixResult:
    """Trains a model per name along the axis and seed, found again when it is there, and tests it
    on every name.

    axis: variety, source, cell, or a column of the recipe's table. Seeds follow each other. The
    models are kept as `out`/models/NAME-SEED.
    """
    study, parts, notes = plan_matrix(recipe, axis, seeds)
    runs = execute(study, out, device=device, watch=watch)
    if runs.failures:
        outcome = next(iter(runs.failures.values()))
        raise UserError(
            f"{outcome.error} ({outcome.name}; {len(runs.failures)} of {len(runs.jobs)} runs"
            " failed. Start the command again to try them again.)"
        )
    results = read_results(study, runs)
    tables = {table.matrix.task: table.matrix for table in results[0].tables}
    tasks = study.experiments[0].tasks or ()
    matrices = tuple(_known_parts(tables[task], parts) for task in tasks if task in tables)
    notes = list(dict.fromkeys([*notes, *results[0].notes]))  # each note once
    if not matrices:
        raise UserError(f"{recipe.data.source} has nothing to learn from: {' '.join(notes)}")
    return MatrixResult(
        recipe=recipe,
        seeds=tuple(seeds),
        matrices=matrices,
        notes=(*notes, *(note for one in matrices for note in one.collapses())),
        report=make_report(study, results, (), n_runs=len(runs.jobs), failures={}),
        timing=time_steps(study, results),
    )


def plan_matrix(
    recipe: Recipe, by: str, seeds: Sequence[int]
) -> tuple[Study, list[str], list[str]]:
    """The study, the names of rows and columns, and notes: which rows are left out of which table,
    and why. A row only learns the tasks that its own texts can teach.
    """
    recipe, field = resolve_axis(recipe, by)
    where = recipe.data.where
    corpus = load_with_test_part(recipe.data.source).map_labels(recipe.data.labels)
    corpus = corpus.where(variety=where.variety, source=where.source, task=recipe.data.tasks)
    tasks = tuple(name for name, task in corpus.tasks.items() if task.is_choice)
    if not tasks:
        raise UserError(
            f"{corpus.name} has no classification task; a matrix is of macro-F1. Use train and"
            " evaluate for a regression."
        )
    parts = _parts(corpus, field)
    if len(parts) < 2:
        what = "kind of cell" if field == "cell" else by
        raise UserError(
            f"{corpus.name} has {len(parts)} {what} to train on; a matrix needs at least two."
            " Choose another --by (of a table, any of its columns) or other data."
        )
    rows, notes = _rows(recipe, parts, tasks, seeds)
    test = TestedOn(where=where, by=field, by_name=by)
    settings = _settings(recipe, corpus.name, rows, test, seeds)
    experiment = Experiment(settings.experiment[0], tuple(rows), (test,), tasks)
    return Study(settings, (experiment,), bootstrap_seed=recipe.seed), list(parts), notes


def _parts(corpus: Corpus, field: Axis) -> dict[str, dict[str, str]]:
    """The names along the axis, each with the selection it stands for."""
    parts = {}
    for cell in {cell_of(example) for example in corpus.where(split="train")}:
        where = {}
        for key in ("variety", "source"):
            word = getattr(cell, key)
            if field in (key, "cell") and word is not None:
                where[key] = word
        if where:
            parts[" ".join(where.values())] = where
    return dict(sorted(parts.items()))


def _rows(
    recipe: Recipe,
    parts: Mapping[str, Mapping[str, str]],
    tasks: Sequence[str],
    seeds: Sequence[int],
) -> tuple[list[Setting], list[str]]:
    """The row of each part that teaches anything, and a note about what the others do not."""
    rows: list[Setting] = []
    notes: list[str] = []
    for name, own in parts.items():
        trained = [
            recipe.changed(**{f"data__where__{key}": word for key, word in own.items()}, seed=seed)
            for seed in seeds
        ]
        by_seed = [learnable_tasks(one) for one in trained]
        # whatever slice of them is held out
        learned = [task for task in by_seed[0] if all(task in found for found in by_seed)]
        notes += [
            f"Nothing to learn about {task} from {name}: its training texts have fewer than two"
            f" {task} labels. That row is left out."
            for task in tasks
            if task not in learned
        ]
        if learned:
            values = {f"data.where.{key}": word for key, word in own.items()}
            row = trained[0].changed(data__tasks=learned)
            rows.append(Setting(values, row, name, model_name=folder_name(name)))
    return rows, notes


def _settings(
    recipe: Recipe, corpus: str, rows: Sequence[Setting], test: TestedOn, seeds: Sequence[int]
) -> StudySettings:
    """The matrix as a study file would say it."""
    grid: dict[str, list[Any]] = {}
    for setting in rows:
        for path, value in setting.values.items():
            grid.setdefault(path, []).append(value)
    model = recipe.model
    return StudySettings(
        name=f"Does it hold elsewhere? {corpus}",
        about=(
            f"Encoder {model.encoder}, head {model.head}, weighting {model.weighting}, pruning"
            f" {model.pruning}; trained on each part, tested on every part; seeds"
            f" {', '.join(map(str, seeds))}."
        ),
        seeds=len(seeds),
        keep_models=True,
        recipe=recipe.changed(seed=seeds[0]).model_dump(mode="json"),
        experiment=[
            ExperimentSettings(name=f"By {test.by_name}", grid=grid, rows=f"data.where.{test.by}")
        ],
    )


def _known_parts(matrix: CrossMatrix, parts: Sequence[str]) -> CrossMatrix:
    """Drops rows that had nothing to learn, and columns that no row was trained on."""
    cells = tuple(cell for cell in matrix.cells if cell.tested_on in parts)
    rows, columns = {cell.trained_on for cell in cells}, {cell.tested_on for cell in cells}
    return replace(
        matrix,
        rows=tuple(name for name in parts if name in rows),
        columns=tuple(name for name in parts if name in columns),
        cells=cells,
    )


def folder_name(name: str) -> str:
    """A variety's name as a folder may be called; unusual names are told apart by a hash."""
    if re.fullmatch(r"[A-Za-z0-9][\w-]{0,60}", name, re.ASCII):
        return name
    return re.sub(r"[^A-Za-z0-9]+", "_", name)[:40] + "-" + sha256(name.encode()).hexdigest()[:8]


def resolve_axis(recipe: Recipe, by: str) -> tuple[Recipe, Axis]:
    """The recipe whose texts carry what a matrix is by, and the field they carry it in.

    by: variety, source or cell, or a column, which is then read as the variety.
    """
    source = recipe.data.source
    for field in get_args(Axis):
        if by in (field, options_of(source).get(field)):
            return recipe, field
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
    return recipe.changed(data__source=with_option(source, "variety", by)), "variety"
