"""From rows to examples by a map of columns that the user gives; `table` and `hub` share it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from litotes.core.errors import UserError
from litotes.core.registry import can_name_task, propose_task_name
from litotes.core.values import Example, Label, Task
from litotes.data.corpus import SPLIT_WORDS, Corpus
from litotes.data.several import count_each, split_labels
from litotes.data.sources.labels import count_words, read_label_words, read_several_words
from litotes.data.sources.left_out import LeftOut
from litotes.data.sources.options import choice, number, whole_number
from litotes.data.tables.rows import Row

COLUMN_OPTIONS = {
    "text": "column of the texts (text)",
    "pair": "column of the second texts, for tasks about two texts",
    "label": "column of the labels of a single task",
    "task": "what that task is called (as its column)",
    "label.TASK": (
        "column of the labels of TASK, for one task or several: label.sarcasm=is_sarcastic"
    ),
    "numbers": "yes when the labels are numbers to be predicted (no: classes)",
    "several": "the sign between labels, where a text may have several or `none`: several=|",
    "variety": "column of the varieties, or of anything else to compare by",
    "source": "column of the sources",
    "split": "column of the splits (without it: the data set's own, or all train)",
    "test": "share of the texts to set aside as the test split: test=0.2",
    "seed": "which texts those are (0)",
    "group": "column that names what must not be divided between splits",
    "bad": "stop at a row that cannot be used (skip: leave it out and count it)",
}

_OTHER_COLUMNS = ("pair", "variety", "source", "split", "group")


@dataclass(frozen=True)
class Columns:
    """Which column holds what.

    others: the columns of _OTHER_COLUMNS that there are; labels: one for each task.
    test_share, test_seed: the part to set aside as the test split; 0: none. between: the sign that
    stands between several labels of one text; None: a text has one.
    """

    text: str
    others: Mapping[str, str]
    labels: Mapping[str, str]
    are_numbers: bool
    stops_at_bad_rows: bool = False
    test_share: float = 0.0
    test_seed: int = 0
    between: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that is read, once."""
        return tuple(dict.fromkeys((self.text, *self.others.values(), *self.labels.values())))


def column_map(options: Mapping[str, str]) -> Columns:
    """The map of columns that the options spell out."""
    _check_test_options(options)
    if "several" in options and options.get("numbers") == "yes":
        raise UserError(
            "several= is about words that a text may have more than one of, and numbers=yes about"
            " numbers: give one of them."
        )
    return Columns(
        options.get("text", "text"),
        {key: options[key] for key in _OTHER_COLUMNS if key in options},
        _label_columns(options),
        are_numbers=choice(options, "numbers", ("no", "yes")) == "yes",
        stops_at_bad_rows=choice(options, "bad", ("skip", "stop")) == "stop",
        test_share=number(options, "test", 0.0),
        test_seed=whole_number(options, "seed", 0),
        between=options.get("several"),
    )


def _label_columns(options: Mapping[str, str]) -> dict[str, str]:
    labels = {}
    for key, column in options.items():
        if key.startswith("label."):
            labels[key.removeprefix("label.")] = column
    if "label" not in options:
        if "task" in options:
            raise UserError(
                f"task={options['task']} needs the column of its labels: add label=COLUMN."
            )
        return labels
    task = options.get("task") or _task_name(options["label"])
    if task in labels:
        raise UserError(
            f"The task {task!r} has two columns, label={options['label']} and"
            f" label.{task}={labels[task]}: give one."
        )
    return labels | {task: options["label"]}


def _task_name(column: str) -> str:
    """The name of a column, where a task may have it."""
    if not can_name_task(column):
        raise UserError(
            f"A task cannot be called as its column {column}, which is not made of letters, digits,"
            f" - and _ or is a column of the answers: add task={propose_task_name(column)} to the"
            " source."
        )
    return column


def _check_test_options(options: Mapping[str, str]) -> None:
    share = number(options, "test", 0.2)
    if share >= 1:
        raise UserError(
            f"test={options['test']} is not a share of the texts: give a number from 0 to below 1,"
            " such as test=0.2."
        )
    if "test" in options and "split" in options:
        raise UserError(
            f"test={options['test']} and split={options['split']} both say which texts are for"
            " testing: give one."
        )
    if "seed" in options and not ("test" in options and share):
        raise UserError(f"seed={options['seed']} needs a share of texts to draw: add test=0.2.")


def corpus_of(name: str, rows: Iterable[tuple[Row, str]], columns: Columns) -> Corpus:
    """The corpus in rows that each come with the split they are in unless a column says it."""
    examples, notes = _read_examples(name, rows, columns)
    corpus = Corpus(name, tuple(examples), {}, notes)
    for task in columns.labels:
        corpus = _add_task(corpus, task, columns)
    if not columns.test_share:
        return corpus
    if corpus.splits() != ("train",):
        raise UserError(
            f"{name} has a split of its own ({', '.join(corpus.splits())}): leave"
            f" test={columns.test_share:g} out."
        )
    return corpus.with_test_part(columns.test_share, seed=columns.test_seed)


def _read_examples(
    name: str, rows: Iterable[tuple[Row, str]], columns: Columns
) -> tuple[list[Example], tuple[str, ...]]:
    """The examples of all rows that can be used, with labels as they are spelt, and notes."""
    examples, left_out, n_rows = [], LeftOut(), 0
    for row, own_split in rows:
        n_rows += 1
        if row.problem is not None:
            left_out.add(row, None, UserError(row.problem))
            continue
        split = _split(row, own_split, columns)
        try:
            examples.append(_example(row, split, columns))
        except UserError as error:
            if columns.stops_at_bad_rows:
                raise
            left_out.add(row, _empty_column(row, columns), error)
    if not n_rows:
        raise UserError(f"{name} has no rows: give a data set with at least one text in it.")
    if not examples:
        raise UserError(f"None of the rows of {name} can be used. The first: {left_out.first}")
    return examples, left_out.notes(name, n_rows)


def _split(row: Row, split: str, columns: Columns) -> str:
    """A word that is no split is a mistake in the column, not in the row."""
    column = columns.others.get("split")
    if column is None or row.word(column) is None:
        return split
    return row.translate(column, SPLIT_WORDS, "split")


def _empty_column(row: Row, columns: Columns) -> str | None:
    """The first column that should hold something and does not."""
    for key, column in {"text": columns.text, **columns.others}.items():
        is_text = key in ("text", "pair")
        if not row.values[column].strip() if is_text else row.word(column) is None:
            return column
    for column in columns.labels.values():
        if row.word(column) is None:
            return column
    return None


def _example(row: Row, split: str, columns: Columns) -> Example:
    others = columns.others
    labels = _labels(row, columns)
    # a test split may come without labels; the others would be useless
    if columns.labels and not labels and split != "test":
        row.require_word(next(iter(columns.labels.values())))
    if "split" in others:
        row.require_word(others["split"])
    text = row.text(columns.text)
    pair = row.text(others["pair"]) if "pair" in others else None
    variety, source, group = (_word(row, others.get(key)) for key in ("variety", "source", "group"))
    return Example(text, labels, pair, variety, source, split, group)


def _word(row: Row, column: str | None) -> str | None:
    return None if column is None else row.require_word(column)


def _labels(row: Row, columns: Columns) -> dict[str, Label]:
    labels: dict[str, Label] = {}
    for task, column in columns.labels.items():
        word = row.word(column)
        if word is None:
            continue
        if columns.between is not None:
            labels[task] = split_labels(word, columns.between, row.at(column))
        else:
            labels[task] = row.as_number(column) if columns.are_numbers else word
    return labels


def _add_task(corpus: Corpus, name: str, columns: Columns) -> Corpus:
    """The corpus with a task more, its labels as they are meant."""
    if columns.are_numbers:
        return replace(corpus, tasks={**corpus.tasks, name: Task(name, ())})
    place = f"{corpus.name}, column {columns.labels[name]!r}"
    if columns.between is not None:
        return _add_several(corpus, name, place)
    words = count_words((example.labels for example in corpus), name)
    read = read_label_words(name, words, place)
    examples = []
    for example in corpus:
        if name in example.labels:
            label = read.meanings[str(example.labels[name])]
            example = replace(example, labels={**example.labels, name: label})
        examples.append(example)
    tasks = {**corpus.tasks, name: read.task}
    return replace(corpus, examples=tuple(examples), tasks=tasks).with_notes(*read.notes)


def _add_several(corpus: Corpus, name: str, place: str) -> Corpus:
    """The corpus with a task more, of whose labels a text may have several."""
    found = [example.labels[name] for example in corpus if name in example.labels]
    read = read_several_words(name, count_each(found), place)
    examples = []
    for example in corpus:
        words = example.labels.get(name)
        if isinstance(words, tuple):
            labels = tuple(sorted({read.meanings[word] for word in words}))
            example = replace(example, labels={**example.labels, name: labels})
        examples.append(example)
    tasks = {**corpus.tasks, name: read.task}
    return replace(corpus, examples=tuple(examples), tasks=tasks).with_notes(*read.notes)
