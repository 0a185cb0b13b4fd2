"""A course of training, whatever its objective: from a recipe to a folder that holds the result.

texts → is the folder free, or does it hold this very run? → model, objective → trainer → test →
folder
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch

from litotes.core.errors import UserError
from litotes.core.registry import check_options, pick
from litotes.core.storage import LOCK, find_foreign_file, write_json
from litotes.core.text import one_line
from litotes.core.values import CLASSIFICATION
from litotes.encoder.attention import PRUNINGS, WEIGHTINGS
from litotes.model.folder import DESCRIPTION
from litotes.model.heads import HEADS
from litotes.training.balancing import BALANCINGS
from litotes.training.checkpoints import Checkpoints, RunState
from litotes.training.objective import Objective, RunContext
from litotes.training.processes import hold_folder
from litotes.training.trainer import Trainer

FIRST_FILES = {
    "recipe.json",
    "history.jsonl",
    "checkpoints",
    "tensorboard",
    "texts",
    "distillation",
    LOCK,
}
"""Files that may stand next to a run that was killed before it wrote its recipe."""


@dataclass(frozen=True)
class Run:
    """The results of a finished run. models: one, or one per task; none but a folder, where it
    is an encoder. scores: those of the test split, as the objective gives them.
    """

    folder: Path
    models: tuple[Any, ...]
    scores: Any
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return one_line(
            self, folder=str(self.folder), models=self.models, n_scores=len(self.scores)
        )

    @property
    def model(self) -> Any:
        """The only model."""
        (model,) = self.models
        return model


class Course(ABC):
    """A run under way. When one is made, its recipe is checked and its texts are read.

    corpus: texts that are already in memory, in place of those of the recipe's `data.source`.
    lessons: answers of teachers to learn from besides the labels; for classification alone.
    """

    last_file: ClassVar[str] = DESCRIPTION  # written last: with it the folder is whole
    key: str  # a hash of the recipe and of the texts: the same file may hold others today

    def __init__(self, recipe: Any, *, corpus: Any = None, lessons: Any = None) -> None:
        check_names(recipe)
        self.recipe, self.corpus, self.lessons = recipe, corpus, lessons
        self.started = time.monotonic()

    @abstractmethod
    def begin(self, context: RunContext) -> Objective:
        """The model before its first step, with what it learns from and is judged by."""

    @abstractmethod
    def test(self, state: RunState, context: RunContext) -> Run:
        """Scores the trained model; writes nothing yet."""

    @abstractmethod
    def save(self, run: Run) -> None:
        """Writes the folder; the first process does it for all."""

    @abstractmethod
    def load(self, folder: Path) -> tuple[str, Run]:
        """The finished run of a folder, and its key."""

    def owns(self, key: str) -> bool:
        """Tells whether this key is that of the very same run."""
        return key == self.key

    def clear(self, folder: Path) -> None:
        """Removes what only an unfinished run needs."""
        Checkpoints(folder / "checkpoints", key=self.key).clear()

    def run(self, context: RunContext, *, resume: bool) -> Run:
        """Trains, tests and saves; with `resume` goes on where a stopped run was."""
        folder, processes = context.folder, context.processes
        with hold_folder(folder, processes):
            run = self._find_finished(folder, resume=resume)
            if run is None:
                self.started = time.monotonic()
                objective = self.begin(context)
                if processes.is_first:
                    write_json(folder / "recipe.json", self.recipe.model_dump(mode="json"))
                context = replace(context, key=self.key)
                run = self.test(Trainer(objective, context).run(resume=resume), context)
                if processes.is_first:
                    self.save(run)
                processes.wait()
            if processes.is_first:
                self.clear(folder)  # it may have been killed just after its last file
        return run

    def facts(
        self, state: RunState, data: Mapping[str, Any], notes: Sequence[str]
    ) -> dict[str, Any]:
        """Collects what a model folder says about its training."""
        return {
            "key": self.key,
            "recipe": self.recipe.model_dump(mode="json"),
            "data": data,
            "best_epoch": state.best_epoch,
            "history": state.history,
            "notes": list(notes),
            "versions": {"torch": torch.__version__},
            "seconds": round(time.monotonic() - self.started, 1),
            "seconds_per_step": state.seconds / max(state.step, 1),
        }

    def _find_finished(self, folder: Path, *, resume: bool) -> Run | None:
        """The run, if the folder already holds it; refuses a folder that holds something else."""
        found = Checkpoints(folder / "checkpoints", key="").stored_key()
        run = None
        if (folder / self.last_file).is_file():
            if not resume:
                raise UserError(
                    f"{folder} already holds a trained model. Choose another --out, or take it as"
                    " it is with --resume."
                )
            found, run = self.load(folder)
        elif found is not None and not resume:
            raise UserError(
                f"{folder} holds a run that was stopped. Go on with --resume, or choose another"
                " --out."
            )
        elif found is None and not (folder / "recipe.json").exists():
            refuse_foreign(folder, FIRST_FILES)
        if found is not None and not self.owns(found):
            raise UserError(
                f"{folder} holds a run of another recipe or on other data. Choose another --out, or"
                " start it as it was started."
            )
        return run


def refuse_foreign(folder: Path, ours: set[str]) -> None:
    """Refuses a folder with files of others. ours: what may lie there."""
    foreign = folder.name if folder.is_file() else find_foreign_file(folder, ours)
    if foreign is not None:
        raise UserError(
            f"{folder} holds files that are not of a run ({foreign}). Choose an empty or a new"
            " folder for --out."
        )


def check_names(recipe: Any) -> None:
    """Reports a wrong name in a recipe of any kind before anything is read or written."""
    for what, table in (("weighting", WEIGHTINGS), ("pruning", PRUNINGS)):
        if name := getattr(recipe.model, what, None):
            check_options(table, name, what, getattr(recipe.model, f"{what}_options"))
    if recipe.kind == CLASSIFICATION:
        pick(HEADS, recipe.model.head, "head")
        pick(BALANCINGS, recipe.training.balancing, "balancing")
