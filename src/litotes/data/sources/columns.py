"""Tables whose columns the user names: `table`, any file, and `hub`, the Hugging Face Hub.

Rows become examples by a map of columns; rows that cannot be used are counted and left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.core.registry import can_name_task, propose_task_name, unknown_name
from litotes.core.values import Example, Label, Task
from litotes.data.corpus import SPLIT_WORDS, Corpus
from litotes.data.labels import count_words, read_label_words, split_labels
from litotes.data.sources.source import choice, number, whole_number
from litotes.data.tables import read_rows
from litotes.data.tables.rows import Row, as_text, require_columns

_OTHER_COLUMNS = ("pair", "variety", "source", "split", "group")
_N_NAMED = 5
"""The most left-out rows named by number."""


def read_table(path: Path, options: Mapping[str, str]) -> Corpus:
    """Reads the rows of one CSV, TSV, JSON-lines or Parquet file as examples."""
    columns = _column_map(options)
    quotes = choice(options, "quotes", ("yes", "no")) == "yes"
    rows = read_rows(path, needs=columns.names, quotes=quotes)
    return _corpus_of(path.name, ((row, "train") for row in rows), columns)


def read_hub(path: Path, options: Mapping[str, str]) -> Corpus:
    """Reads a data set of the Hub, or a local folder in its form; OWNER/NAME@REVISION pins it.

    This is the only source that may use the network.
    """
    name = path.as_posix()
    columns = _column_map(options)
    splits = _hub_splits(name, options.get("subset"))
    wanted = options["only"].split(",") if "only" in options else list(splits)
    rows = chain.from_iterable(_hub_rows(name, splits, split, columns.names) for split in wanted)
    return _corpus_of(f"hub:{name}", rows, columns)


@dataclass(frozen=True)
class _Columns:
    """The columns by content.

    others: the columns of _OTHER_COLUMNS that there are; labels: one for each task.
    test_share, test_seed: the part to set aside as the test split; 0: none. between: the sign that
    stands between several labels of one text; None: a text has one.
    """

    text: str
    others: Mapping[str, str]
    labels: Mapping[str, str]
    are_numbers: bool
    stops_at_bad_rows: bool
    test_share: float
    test_seed: int
    between: str | None

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that is read, once."""
        return tuple(dict.fromkeys((self.text, *self.others.values(), *self.labels.values())))


def _column_map(options: Mapping[str, str]) -> _Columns:
    """Checks the options before any file is opened."""
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
    if "several" in options and options.get("numbers") == "yes":
        raise UserError(
            "several= is about words that a text may have more than one of, and numbers=yes about"
            " numbers: give one of them."
        )
    return _Columns(
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
    labels = {
        key.removeprefix("label."): column
        for key, column in options.items()
        if key.startswith("label.")
    }
    if "label" not in options:
        if "task" in options:
            raise UserError(
                f"task={options['task']} needs the column of its labels: add label=COLUMN."
            )
        return labels
    column = options["label"]
    task = options.get("task", column)
    if "task" not in options and not can_name_task(column):
        raise UserError(
            f"A task cannot be called as its column {column}, which is not made of letters, digits,"
            f" - and _ or is a column of the answers: add task={propose_task_name(column)} to the"
            " source."
        )
    if task in labels:
        raise UserError(
            f"The task {task!r} has two columns, label={column} and label.{task}={labels[task]}:"
            " give one."
        )
    return labels | {task: column}


def _corpus_of(name: str, rows: Iterable[tuple[Row, str]], columns: _Columns) -> Corpus:
    """Makes a corpus of rows, each with the split it is in unless a column says it."""
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
    name: str, rows: Iterable[tuple[Row, str]], columns: _Columns
) -> tuple[list[Example], tuple[str, ...]]:
    """The examples of all rows that can be used, with labels as they are spelt, and notes."""
    examples: list[Example] = []
    left_out: dict[str, list[tuple[Row, str]]] = defaultdict(list)  # by the empty column, or ""
    n_rows = 0
    for row, own_split in rows:
        n_rows += 1
        if row.problem is not None and not columns.stops_at_bad_rows:
            left_out[""].append((row, row.problem))
            continue
        split = own_split
        column = columns.others.get("split")
        if column is not None and row.word(column) is not None:
            # a word that is no split is a mistake in the column, not in the row
            split = row.translate(column, SPLIT_WORDS, "split")
        try:
            examples.append(_example(row, split, columns))
        except UserError as error:
            if columns.stops_at_bad_rows:
                raise
            left_out[_empty_column(row, columns)].append((row, str(error)))
    if not n_rows:
        raise UserError(f"{name} has no rows: give a data set with at least one text in it.")
    if not examples:
        _, first = min((bad[0] for bad in left_out.values()), key=lambda bad: bad[0].number)
        raise UserError(f"None of the rows of {name} can be used. The first: {first}")
    return examples, _left_out_note(name, n_rows, left_out)


def _left_out_note(
    name: str, n_rows: int, left_out: Mapping[str, list[tuple[Row, str]]]
) -> tuple[str, ...]:
    """The note about rows that cannot be used; none where every row was used."""
    if not left_out:
        return ()
    reasons = []
    for column, bad in left_out.items():
        what = f"{column!r} is empty" if column else "a cell cannot be read"
        numbers = ", ".join(str(row.number) for row, _ in bad[:_N_NAMED])
        more = f" and {len(bad) - _N_NAMED} more" if len(bad) > _N_NAMED else ""
        unit = bad[0][0].unit + "s" * (len(bad) > 1)
        reasons.append(f"{what} in {len(bad)} ({unit} {numbers}{more})")
    n_bad = sum(map(len, left_out.values()))
    were = "was" if n_bad == 1 else "were"
    fault = f" The first that cannot be read: {left_out[''][0][1]}" if "" in left_out else ""
    return (
        f"{name}: {n_bad} of {n_rows} rows {were} left out: {', '.join(reasons)}.{fault} To"
        " stop at such a row instead, add bad=stop to the source.",
    )


def _empty_column(row: Row, columns: _Columns) -> str:
    """The first column that should hold something and does not; "": the row has another fault."""
    for key, column in {"text": columns.text, **columns.others}.items():
        is_text = key in ("text", "pair")
        if not row.values[column].strip() if is_text else row.word(column) is None:
            return column
    return next((column for column in columns.labels.values() if row.word(column) is None), "")


def _example(row: Row, split: str, columns: _Columns) -> Example:
    others = columns.others
    labels: dict[str, Label] = {}
    for task, column in columns.labels.items():
        word = row.word(column)
        if word is None:
            continue
        labels[task] = word
        if columns.between is not None:
            labels[task] = split_labels(word, columns.between, row.at(column))
        elif columns.are_numbers:
            labels[task] = row.as_number(column)
    # a test split may come without labels; the others would be useless
    needed = [] if labels or split == "test" else list(columns.labels.values())[:1]
    for column in (*needed, *(others[key] for key in ("split",) if key in others)):
        row.require_word(column)
    own = {
        key: row.text(column) if key == "pair" else row.require_word(column)
        for key, column in others.items()
        if key != "split"
    }
    return Example(row.text(columns.text), labels, split=split, **own)


def _add_task(corpus: Corpus, name: str, columns: _Columns) -> Corpus:
    """The corpus with a task more, its labels as they are meant."""
    if columns.are_numbers:
        return replace(corpus, tasks={**corpus.tasks, name: Task(name, ())})
    words = count_words(example.labels[name] for example in corpus if name in example.labels)
    place = f"{corpus.name}, column {columns.labels[name]!r}"
    read = read_label_words(name, words, place, several=columns.between is not None)
    examples = []
    for example in corpus:
        word = example.labels.get(name)
        label: Label | None = None
        if isinstance(word, tuple):
            label = tuple(sorted({read.meanings[own] for own in word}))
        elif word is not None:
            label = read.meanings[str(word)]
        own = {} if label is None else {name: label}
        examples.append(replace(example, labels={**example.labels, **own}))
    tasks = {**corpus.tasks, name: read.task}
    return replace(corpus, examples=tuple(examples), tasks=tasks).with_notes(*read.notes)


def _hub_splits(name: str, subset: str | None) -> Mapping[str, Any]:
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise UserError(
            "Data sets of the Hub need the package datasets: pip install 'litotes[hub]'."
        ) from error
    repository, _, revision = (name, "", "") if Path(name).is_dir() else name.partition("@")
    try:
        # Streaming reads the rows without leaving a copy in a cache on the disk.
        splits: Mapping[str, Any] = load_dataset(
            repository, subset, revision=revision or None, streaming=True
        )
    except (OSError, ValueError) as error:
        raise UserError(_unreadable(name, error)) from error
    return splits


def _hub_rows(
    name: str, splits: Mapping[str, Any], split: str, needs: tuple[str, ...]
) -> Iterator[tuple[Row, str]]:
    if split not in splits:
        raise UserError(f"hub:{name}: {unknown_name(split, splits, 'split')}")
    if split.casefold() not in SPLIT_WORDS:
        raise UserError(
            f"hub:{name}: the split {split!r} is none of train, valid and test. Leave it out with"
            " only=train,test or such."
        )
    file = f"hub:{name} {split}"
    features = splits[split].features or {}  # not known of every kind of file before it is read
    if features:
        require_columns(file, features, needs)
    # the Hub stores a label as a number and keeps its word in the description of the column
    words = {key: one.names for key, one in features.items() if hasattr(one, "names")}
    try:
        records = list(splits[split])  # to the end: a reader that is abandoned leaves its file open
    except (OSError, ValueError) as error:
        raise UserError(_unreadable(name, error)) from error
    for place, record in enumerate(records, start=1):
        require_columns(file, record, needs)
        row = f"{file}, row {place}"
        values = {
            key: _hub_text(record[key], words.get(key), f"{row}, column {key!r}") for key in needs
        }
        yield Row(file, place, values, unit="row"), SPLIT_WORDS[split.casefold()]


def _hub_text(value: Any, words: Sequence[str] | None, place: str) -> str:
    """A cell as text; words: of a column of labels, which are stored as their numbers."""
    if words is not None and isinstance(value, int):
        value = words[value] if value >= 0 else ""  # -1: a label kept secret
    return as_text(value, place)


def _unreadable(name: str, error: Exception) -> str:
    reason = (str(error) or type(error).__name__).splitlines()[0]
    return (
        f"hub:{name} cannot be read ({reason}). Check the name and the network; where access is"
        " granted on request, log in with `hf auth login`."
    )
