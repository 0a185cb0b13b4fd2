"""Does it hold elsewhere? Train on each variety (or source), test on every one.

A row is what a model was trained on, a column what it was tested on. With several seeds a cell is the mean over the seeds, and its
interval covers both the choice of texts (bootstrap) and the choice of seeds (Student's t, which is wide for few of them; `intervals.py`).
With one seed it covers the choice of texts alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np

from litotes.counting import confusion, macro_f1
from litotes.data.corpus import Corpus
from litotes.data.sources import load
from litotes.errors import UserError
from litotes.evaluation.evaluate import Judged, judge
from litotes.evaluation.intervals import mean_interval
from litotes.evaluation.scores import constant
from litotes.predictor import Predictor
from litotes.progress import Watch, prefixed, unwatched
from litotes.recipe import Recipe
from litotes.run import train

Axis = Literal["variety", "source"]


@dataclass(frozen=True)
class MatrixCell:
    """Trained here, tested there: macro-F1, mean over seeds, with its 95 % interval and the majority line of the tested texts."""

    trained_on: str
    tested_on: str
    n: int
    macro_f1: float
    interval: tuple[float, float]
    majority: float
    by_seed: tuple[float, ...]
    n_collapsed: int


@dataclass(frozen=True)
class CrossMatrix:
    """One task's matrix, cells row by row."""

    task: str
    axis: str
    names: tuple[str, ...]
    cells: tuple[MatrixCell, ...]

    def cell(self, trained_on: str, tested_on: str) -> MatrixCell:
        return next(cell for cell in self.cells if (cell.trained_on, cell.tested_on) == (trained_on, tested_on))

    @property
    def at_home(self) -> float:
        """Mean of the cells tested where they were trained."""
        return float(np.mean([cell.macro_f1 for cell in self.cells if cell.trained_on == cell.tested_on]))

    @property
    def elsewhere(self) -> float:
        """Mean of the others."""
        return float(np.mean([cell.macro_f1 for cell in self.cells if cell.trained_on != cell.tested_on]))

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"at_home": self.at_home, "elsewhere": self.elsewhere}


@dataclass(frozen=True)
class Study:
    """The matrices of all tasks, and what a reader must know beside them."""

    recipe: Recipe
    seeds: tuple[int, ...]
    matrices: tuple[CrossMatrix, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "recipe": self.recipe.model_dump(mode="json"),
            "seeds": list(self.seeds),
            "matrices": [matrix.as_json() for matrix in self.matrices],
            "notes": list(self.notes),
        }


def cross(
    recipe: Recipe, out: Path, *, axis: Axis = "variety", seeds: Sequence[int] = (0,), device: str | None = None, watch: Watch = unwatched
) -> Study:
    """Trains a model per name and seed (each a run folder under `out`, found again when it is there) and tests it on every name."""
    chosen = _chosen(recipe)
    names = _names(chosen, axis)
    tasks = [name for name, task in chosen.tasks.items() if not task.is_regression]
    if not tasks:
        raise UserError(f"{chosen.name} has no classification task; a matrix is of macro-F1. Use train and evaluate for a regression.")
    tests = {name: chosen.where(split=chosen.test_split(), task=list(chosen.tasks), **{axis: name}) for name in names}
    judged: dict[tuple[str, str, str], list[Judged]] = {}
    notes: dict[str, None] = {}  # a set that keeps its order
    n_runs = len(names) * len(seeds)
    for place, (name, seed) in enumerate((name, seed) for name in names for seed in seeds):
        here = recipe.changed(**{f"data__where__{axis}": name, "seed": seed})
        label = f"{place + 1}/{n_runs} {name}" + (f" seed {seed}" if len(seeds) > 1 else "")
        run = train(here, out / "models" / f"{file_name(name)}-{seed}", device=device, resume=True, watch=prefixed(watch, label))
        notes |= dict.fromkeys(run.notes)
        predictor = Predictor(*run.models, device=device)
        for tested_on, test in tests.items():
            for task, result in judge(predictor, test, watch=prefixed(watch, label)).items():
                judged.setdefault((task, name, tested_on), []).append(result)
    matrices = tuple(_matrix(task, axis, names, judged, seed=recipe.seed) for task in tasks)
    return Study(recipe, tuple(seeds), matrices, (*notes, *_collapses(matrices)))


def _chosen(recipe: Recipe) -> Corpus:
    where = recipe.data.where
    return load(recipe.data.source).where(variety=where.variety, source=where.source, task=recipe.data.tasks)


def _names(corpus: Corpus, axis: Axis) -> tuple[str, ...]:
    found = {getattr(example, axis) for example in corpus.where(split="train")} - {None}
    if len(found) < 2:
        raise UserError(
            f"{corpus.name} has {len(found)} {axis} to train on; a matrix needs at least two. Choose another --by or other data."
        )
    return tuple(sorted(found))


def file_name(name: str) -> str:
    """A variety's name as a folder may be called; other names are told apart by a hash."""
    if re.fullmatch(r"[A-Za-z0-9][\w-]{0,60}", name, re.ASCII):
        return name
    return re.sub(r"[^A-Za-z0-9]+", "_", name)[:40] + "-" + sha256(name.encode()).hexdigest()[:8]


def _matrix(task: str, axis: str, names: tuple[str, ...], judged: dict[tuple[str, str, str], list[Judged]], *, seed: int) -> CrossMatrix:
    pairs = [(trained_on, tested_on) for trained_on in names for tested_on in names if (task, trained_on, tested_on) in judged]
    cells = tuple(_cell(judged[task, trained_on, tested_on], trained_on, tested_on, seed=seed) for trained_on, tested_on in pairs)
    return CrossMatrix(task, axis, names, cells)


def _cell(results: Sequence[Judged], trained_on: str, tested_on: str, *, seed: int) -> MatrixCell:
    n_classes = len(results[0].task.labels)
    gold, predicted = results[0].gold(), np.stack([result.predicted() for result in results])  # (text,), (seed, text)
    counts = np.stack([confusion(gold, row, n_classes) for row in predicted])
    by_seed = macro_f1(counts)
    several_classes = (counts[0].sum(1) > 0).sum() > 1
    return MatrixCell(
        trained_on=trained_on,
        tested_on=tested_on,
        n=len(gold),
        macro_f1=float(by_seed.mean()),
        interval=mean_interval(gold, predicted, n_classes, seed=seed),
        majority=float(macro_f1(constant(counts[0].sum(1)))),
        by_seed=tuple(float(value) for value in by_seed),
        n_collapsed=int(sum(several_classes and len(set(row)) == 1 for row in predicted.tolist())),
    )


def _collapses(matrices: Sequence[CrossMatrix]) -> list[str]:
    return [
        f"COLLAPSED: trained on {cell.trained_on}, tested on {cell.tested_on}, {matrix.task}: "
        f"{cell.n_collapsed} of {len(cell.by_seed)} models give one answer to every text. Their score is that of a constant."
        for matrix in matrices
        for cell in matrix.cells
        if cell.n_collapsed
    ]
