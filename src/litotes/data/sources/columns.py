"""From rows to examples by a map of columns that the user gives; `table` and `hub` share it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from litotes.core.errors import UserError
from litotes.core.values import Example, Label, Task
from litotes.data.corpus import Corpus
from litotes.data.sources.options import choice
from litotes.data.splitting import SPLIT_WORDS
from litotes.data.tables.row import Row
from litotes.data.tasks import SARCASM, SENTIMENT, SENTIMENT_3, SPELLINGS

COLUMN_OPTIONS = {
    "text": "column of the texts (text)",
    "pair": "column of the second texts, for tasks about two texts",
    "label": "column of the labels of a single task",
    "task": "what that task is called (label)",
    "label.TASK": (
        "column of the labels of TASK, for one task or several: label.sarcasm=is_sarcastic"
    ),
    "numbers": "yes when the labels are numbers to be predicted (no)",
    "variety": "column of the varieties",
    "source": "column of the sources",
    "split": "column of the splits (without it: the data set's own, or all train)",
    "group": "column that names what must not be divided between splits",
}

_OTHER_COLUMNS = ("pair", "variety", "source", "split", "group")


@dataclass(frozen=True)
class Columns:
    """Which column holds what.

    others: the columns of _OTHER_COLUMNS that there are; labels: one for each task.
    """

    text: str
    others: Mapping[str, str]
    labels: Mapping[str, str]
    are_numbers: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that is read, once."""
        return tuple(dict.fromkeys((self.text, *self.others.values(), *self.labels.values())))


def column_map(options: Mapping[str, str]) -> Columns:
    """The map of columns that the options spell out."""
    labels = {}
    for key, column in options.items():
        if key.startswith("label."):
            labels[key.removeprefix("label.")] = column
    if "label" in options:
        task = options.get("task", "label")
        if task in labels:
            raise UserError(
                f"The task {task!r} has two columns, label={options['label']} and"
                f" label.{task}={labels[task]}: give one."
            )
        labels[task] = options["label"]
    elif "task" in options:
        raise UserError(f"task={options['task']} needs the column of its labels: add label=COLUMN.")
    others = {key: options[key] for key in _OTHER_COLUMNS if key in options}
    are_numbers = choice(options, "numbers", ("no", "yes")) == "yes"
    return Columns(options.get("text", "text"), others, labels, are_numbers)


def corpus_of(name: str, rows: Iterable[tuple[Row, str]], columns: Columns) -> Corpus:
    """The corpus in rows that each come with the split they are in unless a column says it."""
    examples = tuple(_example(row, split, columns) for row, split in rows)
    if not examples:
        raise UserError(f"{name} has no rows: give a data set with at least one text in it.")
    tasks = {task: _task(task, examples, columns.are_numbers) for task in columns.labels}
    return Corpus(name, examples, tasks)


def _example(row: Row, split: str, columns: Columns) -> Example:
    others = columns.others
    if "split" in others:
        split = row.translate(others["split"], SPLIT_WORDS, "split")
    labels = _labels(row, columns)
    # a test split may come without labels; the others would be useless
    if columns.labels and not labels and split != "test":
        row.require_word(next(iter(columns.labels.values())))
    text = row.text(columns.text)
    pair = row.text(others["pair"]) if "pair" in others else None
    variety, source, group = (_word(row, others.get(key)) for key in ("variety", "source", "group"))
    return Example(text, labels, pair, variety, source, split, group)


def _word(row: Row, column: str | None) -> str | None:
    return None if column is None else row.require_word(column)


def _labels(row: Row, columns: Columns) -> dict[str, Label]:
    labels = {}
    for task, column in columns.labels.items():
        if row.word(column) is not None:
            labels[task] = _label(row, task, columns)
    return labels


def _label(row: Row, task: str, columns: Columns) -> Label:
    column = columns.labels[task]
    if columns.are_numbers:
        return row.as_number(column)
    return row.translate(column, SPELLINGS[task]) if task in SPELLINGS else row.require_word(column)


def _task(name: str, examples: Iterable[Example], is_number: bool) -> Task:
    if is_number:
        return Task(name, ())
    words = {str(example.labels[name]) for example in examples if name in example.labels}
    if name == SENTIMENT.name:
        return SENTIMENT_3 if "neutral" in words else SENTIMENT
    return SARCASM if name == SARCASM.name else Task(name, tuple(sorted(words)))
