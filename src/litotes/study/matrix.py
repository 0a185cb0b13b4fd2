"""Does it hold elsewhere? Train on each variety (or source, or cell), test on every one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from litotes.core.errors import UserError
from litotes.core.progress import Watch, prefixed, unwatched
from litotes.data.corpus import Axis, Corpus, cell_of
from litotes.data.sources import load
from litotes.evaluation.cross_matrix import CrossMatrix, collapses, make_cell
from litotes.evaluation.evaluate import Judged, judge
from litotes.predict.predictor import Predictor
from litotes.training.preparing import learnable
from litotes.training.recipe import Recipe
from litotes.training.run import train


@dataclass(frozen=True)
class Crossing:
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
    recipe: Recipe,
    out: Path,
    *,
    axis: Axis = "variety",
    seeds: Sequence[int] = (0,),
    device: str | None = None,
    watch: Watch = unwatched,
) -> Crossing:
    """Trains a model per name and seed (each a run folder under `out`, found again when it is
    there) and tests it on every name.
    """
    chosen = _chosen(recipe)
    tasks = [name for name, task in chosen.tasks.items() if not task.is_regression]
    if not tasks:
        raise UserError(
            f"{chosen.name} has no classification task; a matrix is of macro-F1. Use train and"
            " evaluate for a regression."
        )
    parts = _parts(chosen, axis)
    tests = {
        name: chosen.where(split=chosen.test_split(), task=list(chosen.tasks), **where)
        for name, where in parts.items()
    }
    known = {name: _learned_with_every_seed(recipe, where, seeds) for name, where in parts.items()}
    notes = dict.fromkeys(_left_out(known, tasks))  # a set that keeps its order
    judged: dict[tuple[str, str, str], list[Judged]] = {}
    rows = [name for name in parts if known[name]]
    n_runs = len(rows) * len(seeds)
    for place, (name, seed) in enumerate((name, seed) for name in rows for seed in seeds):
        here = _trained_on(recipe, parts[name], seed).changed(data__tasks=known[name])
        label = f"{place + 1}/{n_runs} {name}" + (f" seed {seed}" if len(seeds) > 1 else "")
        run = train(
            here,
            out / "models" / f"{file_name(name)}-{seed}",
            device=device,
            resume=True,
            watch=prefixed(watch, label),
        )
        notes |= dict.fromkeys(run.notes)
        predictor = Predictor(*run.models, device=device)
        for tested_on, test in tests.items():
            if not set(test.tasks) & set(known[name]):
                continue
            for task, result in judge(predictor, test, watch=prefixed(watch, label)).items():
                judged.setdefault((task, name, tested_on), []).append(result)
    matrices = tuple(
        _matrix(task, axis, tuple(parts), judged, seed=recipe.seed)
        for task in tasks
        if any(task == key[0] for key in judged)
    )
    if not matrices:
        raise UserError(f"{chosen.name} has nothing to learn from: {' '.join(notes)}")
    return Crossing(recipe, tuple(seeds), matrices, (*notes, *collapses(matrices)))


def _chosen(recipe: Recipe) -> Corpus:
    where = recipe.data.where
    return (
        load(recipe.data.source)
        .mapped(recipe.data.labels)
        .where(variety=where.variety, source=where.source, task=recipe.data.tasks)
    )


def _parts(corpus: Corpus, axis: Axis) -> dict[str, dict[str, str]]:
    """The names along the axis, each with the selection it stands for."""
    cells = {cell_of(example) for example in corpus.where(split="train")}
    parts = {}
    for cell in cells:
        where = {
            key: word
            for key in ("variety", "source")
            if axis in (key, "cell") and (word := getattr(cell, key)) is not None
        }
        if where:
            parts[" ".join(where.values())] = where
    if len(parts) < 2:
        what = "kind of cell" if axis == "cell" else axis
        raise UserError(
            f"{corpus.name} has {len(parts)} {what} to train on; a matrix needs at least two."
            " Choose another --by or other data."
        )
    return dict(sorted(parts.items()))


def _trained_on(recipe: Recipe, where: Mapping[str, str], seed: int) -> Recipe:
    return recipe.changed(**{f"data__where__{key}": word for key, word in where.items()}, seed=seed)


def _learned_with_every_seed(
    recipe: Recipe, where: Mapping[str, str], seeds: Sequence[int]
) -> list[str]:
    """The tasks that the texts can teach whatever slice of them is held out."""
    by_seed = [learnable(_trained_on(recipe, where, seed)) for seed in seeds]
    return [task for task in by_seed[0] if all(task in known for known in by_seed)]


def _left_out(known: Mapping[str, Sequence[str]], tasks: Sequence[str]) -> list[str]:
    return [
        f"Nothing to learn about {task} from {name}: its training texts have fewer than two {task}"
        " labels. That row is left out."
        for name, learned in known.items()
        for task in tasks
        if task not in learned
    ]


def file_name(name: str) -> str:
    """A variety's name as a folder may be called; other names are told apart by a hash."""
    if re.fullmatch(r"[A-Za-z0-9][\w-]{0,60}", name, re.ASCII):
        return name
    return re.sub(r"[^A-Za-z0-9]+", "_", name)[:40] + "-" + sha256(name.encode()).hexdigest()[:8]


def _matrix(
    task: str,
    axis: str,
    names: tuple[str, ...],
    judged: dict[tuple[str, str, str], list[Judged]],
    *,
    seed: int,
) -> CrossMatrix:
    rows = tuple(name for name in names if any((task, name, other) in judged for other in names))
    columns = tuple(name for name in names if any((task, other, name) in judged for other in names))
    cells = []
    for row in rows:
        for column in columns:
            results = judged[task, row, column]
            predicted = np.stack([result.predicted() for result in results])  # (seed, text)
            cells.append(
                make_cell(
                    row,
                    column,
                    results[0].gold(),
                    predicted,
                    len(results[0].task.labels),
                    seed=seed,
                )
            )
    return CrossMatrix(task, axis, rows, columns, tuple(cells))
