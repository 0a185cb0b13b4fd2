"""Published numbers that a study is compared with: `published = "FILE.json"` in the study file.

    {
      "about": "Figures printed in …",
      "notes": [{"text": "Single runs without intervals."}, {"figures": ["5"], "text": "…"}],
      "recipe": {"encoder": "bert-base-uncased", "epochs": 30},
      "tables": [{"figure": "2", "task": "sentiment", "labels": ["linear"],
                  "rows": ["en-AU"], "columns": ["en-AU", "en-UK"], "macro_f1": [[0.95, 0.956]]}],
      "coverage": [{"of": "en-AU Google sentiment", "among": "…", "share": 0.664}],
      "seconds_per_batch": {"hardware": "T4, batch 8",
                            "columns": ["Google sentiment"], "rows": {"linear": [0.2799]},
                            "multitask": {"columns": ["BESSTIE"], "rows": {"crosstalk": [0.3]}}}
    }

Every part may be left out. An experiment is compared with the tables of the figure that it names.
`labels` tell the tables of one figure apart: a head, a value of the grid, or what was tested on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, model_validator

from litotes.core.errors import UserError
from litotes.core.json_text import load_json
from litotes.training.recipe import Recipe, Table

Scores = dict[tuple[str, str], float]
"""Macro-F1 by (row, column)."""

_LEAKS = {"keep": "kept", "drop": "dropped", "join": "kept, with labels from there"}


class PublishedNote(Table):
    """A caveat about the published numbers; figures: which ones, none for all."""

    text: str
    figures: list[str] | None = None


class PublishedRecipe(Table):
    """The training of the published models, as far as it is known."""

    encoder: str | None = None
    optimizer: str | None = None
    learning_rate: float | None = None
    epochs: int | None = None
    batch_texts: int | None = None
    leaks: str | None = None
    calibration: str | None = None


class PublishedTable(Table):
    """A table of macro-F1 by row and column."""

    figure: str
    task: str
    labels: list[str] = Field([])
    rows: list[str]
    columns: list[str]
    macro_f1: list[list[float]]

    @model_validator(mode="after")
    def _check_shape(self) -> PublishedTable:
        sizes = [len(row) for row in self.macro_f1]
        if sizes != [len(self.columns)] * len(self.rows):
            raise ValueError(f"figure {self.figure}: macro_f1 needs a number for every cell")
        return self

    def scores(self) -> Scores:
        places = product(self.rows, self.columns)
        return dict(zip(places, chain.from_iterable(self.macro_f1), strict=True))


class PublishedShare(BaseModel, extra="forbid", frozen=True):
    """Which share of the frequent vocabulary `of` a corpus is also frequent `among` another."""

    of: str
    among: str
    share: float


class PublishedColumns(Table):
    """Seconds per batch: a row per head, a column per corpus."""

    columns: list[str] = Field([])
    rows: dict[str, list[float]] = Field({})

    @model_validator(mode="after")
    def _check_shape(self) -> PublishedColumns:
        for head, row in self.rows.items():
            if len(row) != len(self.columns):
                raise ValueError(f"{head} has {len(row)} times for {len(self.columns)} columns")
        return self

    def find(self, head: str, column: str) -> float | None:
        """The time in one cell; the case of the column's name does not matter."""
        names = [name.casefold() for name in self.columns]
        if head not in self.rows or column.casefold() not in names:
            return None
        return self.rows[head][names.index(column.casefold())]


class PublishedTimes(PublishedColumns):
    """Times of models of one task, by "SOURCE TASK"; multitask: of several tasks, by corpus."""

    hardware: str
    multitask: PublishedColumns = PublishedColumns()


class Published(Table):
    """The whole file."""

    about: str = ""
    notes: list[PublishedNote] = Field([])
    recipe: PublishedRecipe = PublishedRecipe()
    tables: list[PublishedTable] = Field([])
    coverage: list[PublishedShare] = Field([])
    seconds_per_batch: PublishedTimes | None = Field(None, description="of a training step")

    def scores_for(
        self, figure: str, task: str, *, labels: Collection[str], rows: Collection[str]
    ) -> Scores:
        """The published scores for one of our tables; empty where there are none."""
        found: Scores = {}
        for table in self.tables:
            if (table.figure, table.task) == (figure, task) and set(table.labels) <= set(labels):
                for place, value in table.scores().items():
                    if place[0] in rows:
                        found[place] = value
        return found

    def shares_for(self, names: Collection[str]) -> dict[tuple[str, str], float]:
        """The published shares of vocabulary for parts of these names, {(of, among): share}."""
        known = [one for one in self.coverage if {one.of, one.among} <= set(names)]
        return {(one.of, one.among): one.share for one in known}

    def seconds_for(self, recipe: Recipe) -> float | None:
        """Published seconds per batch for the same head on the same texts."""
        if self.seconds_per_batch is None:
            return None
        corpus, tasks = recipe.data.source.partition(":")[0], recipe.data.tasks or []
        if len(tasks) != 1:
            return self.seconds_per_batch.multitask.find(recipe.model.head, corpus)
        source = recipe.data.where.source
        place = source if isinstance(source, str) else corpus
        return self.seconds_per_batch.find(recipe.model.head, f"{place} {tasks[0]}")

    def notes_about(self, figure: str) -> list[str]:
        """Lists what a reader must know about a figure before relying on it."""
        return [note.text for note in self.notes if note.figures is None or figure in note.figures]

    def differences_in_setup(self, recipe: Recipe) -> list[str]:
        """Lists what we did differently, in words: the first suspects when numbers differ."""
        return [
            f"{what}: {ours} (the paper: {theirs})"
            for what, theirs, ours in _setups(self.recipe, recipe)
            if theirs not in (None, ours)
        ]


def read_published(file: Path) -> Published:
    """Reads and checks a file of published numbers."""
    try:
        content = load_json(file)
    except (OSError, ValueError) as error:
        raise UserError(
            f"{file}: not readable as published numbers ({error}). The path in the study file is"
            " relative to that file."
        ) from error
    return Published.of(content, str(file))


def _setups(theirs: PublishedRecipe, recipe: Recipe) -> Sequence[tuple[str, str | None, str]]:
    """Lists what may differ, theirs and ours; None: not published."""
    training = recipe.training
    epochs = f"at most {training.epochs}" if training.held_out else str(training.epochs)
    has_threshold = training.calibration == "full" and bool(training.held_out)
    leaks = _LEAKS[recipe.data.leaks]
    their_decision = None if theirs.calibration is None else _decision(theirs.calibration == "full")
    return (
        ("the encoder", theirs.encoder, recipe.model.encoder),
        ("the optimizer", theirs.optimizer, training.optimizer),
        ("the learning rate", _text(theirs.learning_rate), _text(training.learning_rate)),
        ("epochs", _text(theirs.epochs), epochs),
        ("texts a batch", _text(theirs.batch_texts), str(training.batch_texts)),
        ("training texts that also sit in the test split", _LEAKS.get(theirs.leaks or ""), leaks),
        ("the decision", their_decision, _decision(has_threshold)),
    )


def _text(number: Any) -> Any:
    return None if number is None else f"{number:g}"


def _decision(has_threshold: bool) -> str:
    return "a fitted threshold" if has_threshold else "the likelier label"
