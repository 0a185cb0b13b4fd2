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


@dataclass(frozen=True)
class Columns:
    """Which column holds what; `labels` gives a column for each task."""

    text: str
    places: Mapping[str, str]
    labels: Mapping[str, str]
    are_numbers: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that is read, once."""
        return tuple(dict.fromkeys((self.text, *self.places.values(), *self.labels.values())))


def column_map(options: Mapping[str, str]) -> Columns:
    """The map of columns that the options spell out."""
    labels = {
        key.removeprefix("label."): column
        for key, column in options.items()
        if key.startswith("label.")
    }
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
    places = {
        key: options[key]
        for key in ("pair", "variety", "source", "split", "group")
        if key in options
    }
    return Columns(
        options.get("text", "text"),
        places,
        labels,
        choice(options, "numbers", ("no", "yes")) == "yes",
    )


def corpus_of(name: str, rows: Iterable[tuple[Row, str]], columns: Columns) -> Corpus:
    """The corpus in rows that each come with the split they are in unless a column says it."""
    examples = tuple(_example(row, split, columns) for row, split in rows)
    if not examples:
        raise UserError(f"{name} has no rows: give a data set with at least one text in it.")
    return Corpus(
        name,
        examples,
        {task: _task(task, examples, columns.are_numbers) for task in columns.labels},
    )


def _example(row: Row, split: str, columns: Columns) -> Example:
    places = columns.places
    if "split" in places:
        split = row.translate(places["split"], SPLIT_WORDS, "split")
    labels = {
        task: _label(row, task, columns)
        for task, column in columns.labels.items()
        if row.word(column) is not None
    }
    # test sets come without labels, the others are of no use without
    if columns.labels and not labels and split != "test":
        row.require_word(next(iter(columns.labels.values())))
    return Example(
        row.text(columns.text),
        labels,
        pair=row.text(places["pair"]) if "pair" in places else None,
        variety=row.require_word(places["variety"]) if "variety" in places else None,
        source=row.require_word(places["source"]) if "source" in places else None,
        split=split,
        group=row.require_word(places["group"]) if "group" in places else None,
    )


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
