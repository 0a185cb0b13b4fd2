"""What the paper printed, as facts to set beside ours (`paper.json`)."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from litotes.training.recipe import Recipe

LEAKING = {"keep": "kept", "drop": "dropped", "join": "kept, with labels from there"}


@dataclass(frozen=True)
class PaperTable:
    """A heatmap of the paper: macro-F1 by row and column."""

    figure: str
    task: str
    # what tells it from the others of the same figure: its head, or the source tested on
    labels: frozenset[str]
    values: dict[tuple[str, str], float]

    def fits(
        self, *, figure: str, task: str, labels: Collection[str], rows: Collection[str]
    ) -> bool:
        same = (self.figure, self.task) == (figure, task) and self.labels <= set(labels)
        return same and bool({row for row, _ in self.values} & set(rows))


@cache
def facts() -> dict[str, Any]:
    return dict(json.loads(files("litotes.study").joinpath("paper.json").read_text("utf-8")))


@cache
def paper_tables() -> tuple[PaperTable, ...]:
    return tuple(
        PaperTable(
            table["figure"],
            table["task"],
            frozenset(table["labels"]),
            {
                (row, column): value
                for row, values in zip(table["rows"], table["macro_f1"], strict=True)
                for column, value in zip(table["columns"], values, strict=True)
            },
        )
        for table in facts()["tables"]
    )


def printed(
    figure: str | None, task: str, labels: Collection[str], rows: Collection[str]
) -> dict[tuple[str, str], float]:
    """The paper's numbers for a table of ours, {(row, column): macro-F1}; empty where it has none."""
    if figure is None:
        return {}
    found = (
        table
        for table in paper_tables()
        if table.fits(figure=figure, task=task, labels=labels, rows=rows)
    )
    return {
        place: value for table in found for place, value in table.values.items() if place[0] in rows
    }


def warnings_about(figure: str | None) -> list[str]:
    """What a reader must know about a figure of the paper before believing it."""
    if figure is None:
        return []
    warnings = [
        "The paper's figures are single runs without intervals: another seed of its own would have"
        " moved them too, which our intervals do not allow for."
    ]
    if figure in facts()["trained_on_leaks"]:
        warnings.append(
            f"The paper trained figure {figure} on splits that leak: texts tested on also sit among"
            " those trained on."
        )
    return warnings


def printed_coverage(names: Collection[str]) -> dict[tuple[str, str], float]:
    """The paper's figure 1 for parts of these names, {(of, among): share}."""
    return {
        (one["of"], one["among"]): one["share"]
        for one in facts()["coverage"]
        if {one["of"], one["among"]} <= set(names)
    }


def differences_in_setup(recipe: Recipe) -> list[str]:
    """What we did otherwise than the paper, in words: the first suspects when numbers differ."""
    theirs, training = facts()["recipe"], recipe.training
    thresholds = training.calibration == "full" and training.held_out
    pairs = [
        ("the encoder", theirs["encoder"], recipe.model.encoder),
        ("the optimizer", theirs["optimizer"], training.optimizer),
        ("the learning rate", f"{theirs['learning_rate']:g}", f"{training.learning_rate:g}"),
        (
            "epochs",
            str(theirs["epochs"]),
            f"at most {training.epochs}" if training.held_out else str(training.epochs),
        ),
        ("texts a batch", str(theirs["batch_texts"]), str(training.batch_texts)),
        ("training texts that also sit in the test split", "kept", LEAKING[recipe.data.leaks]),
        (
            "the decision",
            "the likelier label",
            "a fitted threshold" if thresholds else "the likelier label",
        ),
    ]
    return [f"{what}: {own} (the paper: {their})" for what, their, own in pairs if their != own]
