"""The ALTA 2026 shared task on BESSTIE: its score to the last digit, and a refusal of files that
it would silently mis-score.

    score = ½ · Σ over tasks of min over varieties of macro-F1
    tasks: sentiment, sarcasm;   varieties: en-AU, en-UK

All sources of a variety count together; rows of other varieties are not scored. The organisers'
script takes the rows of a variety out of
both files and pairs them by position: a shuffled file is scored without a word, a missing row or an
empty label ends in a traceback, a label 2 becomes a third class. `score_files` compares the files
row by row first. Labels are 0 and 1; 0.0 and 1.0 mean the same here, as they do to that script (a
table with an empty cell somewhere stores the others so), and nothing else does.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import numpy as np

from litotes.core.errors import UserError
from litotes.core.numbers import Counts, Floats, classes_of, macro_f1
from litotes.core.pages import render_paragraphs
from litotes.core.progress import Watch, ignore_progress
from litotes.core.storage import find_target, write_bytes
from litotes.core.values import Task
from litotes.data.corpus import SARCASM, SENTIMENT
from litotes.data.sources import has_prefix
from litotes.data.sources.corpora import with_prefix
from litotes.data.tables.rows import Row, read_records, require_columns, require_once, rows_from
from litotes.evaluation.evaluate import predict_in_chunks
from litotes.evaluation.scores import N_RESAMPLES, Interval, Json, Scores, interval, plain, score
from litotes.evaluation.significance import AnswerPatterns
from litotes.prediction.predictor import Predictor

TASKS = (SENTIMENT, SARCASM)
VARIETIES = ("en-AU", "en-UK")
PLACES = ("source", "variety", "text")
NOTES = "evaluation/notes.txt"
COLUMNS = (*PLACES, *(task.name for task in TASKS))

Answers = Mapping[str, Sequence[int] | Counts]
"""For each task 0 or 1 per text: the number of its label."""

_LABELS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1}


@dataclass(frozen=True)
class SharedTaskScore:
    """The four cells, by the names the organisers give them (`sentiment-en-AU`), and what comes of
    them.

    interval: 95 % bootstrap interval of the score. A text is drawn with both of its labels, within
    its variety. The minimum of two noisy scores is lower than either, so the interval reaches
    further down than up. majority: the score of always answering the most frequent label of a cell.
    """

    cells: Mapping[str, Scores]
    score: float
    interval: Interval
    majority: float
    n_elsewhere: int

    def lines(self) -> list[str]:
        """Lists the lines that the organisers' script writes into scores.txt."""
        lines = [f"f1-{name}: {cell.macro_f1:.4f}" for name, cell in self.cells.items()]
        return [*lines, f"score: {self.score:.4f}"]

    def notes(self) -> tuple[str, ...]:
        """Says what a reader must know next to the score."""
        return render_paragraphs(NOTES, "shared_task", one=self, varieties=VARIETIES)

    def as_json(self) -> Json:
        lines = {f"f1-{name}": cell.macro_f1 for name, cell in self.cells.items()}
        return lines | plain(self)


def shared_task_score(
    gold: Answers, predicted: Answers, varieties: Sequence[str], *, seed: int = 0
) -> SharedTaskScore:
    """The score of answers to texts of these varieties, all in one order.

    gold, predicted: {task: (text,)}
    """
    sides = [[side[task.name] for task in TASKS] for side in (gold, predicted)]
    answers = np.asarray(sides)  # (side, task, text)
    if not np.isin(answers, (0, 1)).all():
        raise UserError("An answer is neither 0 nor 1: give 0 or 1 for every text.")
    parts, generator, drawn = {}, np.random.default_rng(seed), []
    for variety in VARIETIES:
        own = np.asarray(varieties) == variety
        if not own.any():
            raise UserError(
                f"None of the {len(varieties)} texts to score is of {variety}, and the score needs"
                " both varieties. Add some."
            )
        parts[variety] = answers[..., own].astype(np.int64)
        drawn.append(_resample(parts[variety], generator))  # (resample, task)
    cells = {
        f"{task.name}-{variety}": score(part[0, place], part[1, place], task, seed=seed)
        for place, task in enumerate(TASKS)
        for variety, part in parts.items()
    }
    shape = len(TASKS), len(VARIETIES)
    return SharedTaskScore(
        cells=cells,
        score=float(_combine(np.reshape([cell.macro_f1 for cell in cells.values()], shape))),
        interval=interval(_combine(np.stack(drawn, axis=-1))),
        majority=float(_combine(np.reshape([cell.majority for cell in cells.values()], shape))),
        n_elsewhere=sum(variety not in VARIETIES for variety in varieties),
    )


def _combine(cells: Floats) -> Floats:
    """The worst variety of each task, averaged over tasks. (…, task, variety) → (…)"""
    return np.asarray(cells.min(-1).mean(-1))


def _resample(part: Counts, generator: np.random.Generator) -> Floats:
    """Macro-F1 of both tasks over the same drawn texts of one variety.

    (side, task, text) → (resample, task)
    """
    # A text is of one of 16 kinds; drawing texts is drawing how many there are of each.
    by_text = part.swapaxes(0, 1).reshape(4, -1)  # gold and answer of a task, then of the other
    kinds, n = np.unique(by_text, axis=1, return_counts=True)
    draws = generator.multinomial(n.sum(), n / n.sum(), size=N_RESAMPLES)  # (resample, kind)
    scores = []
    for gold, predicted in kinds.reshape(2, 2, -1):
        found = AnswerPatterns(n, gold, predicted[np.newaxis], 2)
        (counts,) = found.confusions(n)
        scores.append(macro_f1(found.confusions(draws), classes_of(counts)))  # (resample, model)
    return np.concatenate(scores, axis=1)


def score_files(predictions: Path, gold: Path, *, seed: int = 0) -> SharedTaskScore:
    """The score of one wide CSV file (`source,variety,text,sentiment,sarcasm`, also .gz) against
    another.
    """
    wanted = list(read_wide(gold, needs=COLUMNS))
    given = list(read_wide(predictions, needs=COLUMNS))
    require_same_rows(given, wanted)
    return shared_task_score(
        _answers(wanted), _answers(given), [row.values["variety"] for row in wanted], seed=seed
    )


def read_wide(path: Path, *, needs: Collection[str]) -> Iterator[Row]:
    """The rows of a wide CSV file; its header is taken as it stands, since the organisers' script
    does not forgive a blank in it either.
    """
    if not path.name.lower().endswith((".csv", ".csv.gz")):
        raise UserError(
            f"{path} is no CSV file: the shared task reads .csv (and .csv.gz) with the columns"
            f" {','.join(COLUMNS)}."
        )
    records = read_records(path)
    first, header, _ = next(records)
    place = f"{path}, line {first.number}"
    require_columns(place, header, needs)
    for column in COLUMNS:
        require_once(place, header, column)
    n_rows = 0
    for row in rows_from(path, header, records):
        row.require_whole()
        n_rows += 1
        yield row
    if not n_rows:
        raise UserError(f"{path} has no rows: give a file with at least one text in it.")


def require_same_rows(given: Sequence[Row], wanted: Sequence[Row]) -> None:
    """Refuse rows that are not the wanted ones in their order, naming the first that is wrong."""
    for own, other in zip(given, wanted, strict=False):
        if _key(own) != _key(other):
            raise UserError(_difference(own, other, wanted))
    if len(given) < len(wanted):
        raise UserError(
            f"{given[-1].file} ends at line {given[-1].number}: the row of"
            f" {_at(wanted[len(given)])} and all after it are missing. Add them."
        )
    if len(given) > len(wanted):
        raise UserError(
            f"{_at(given[len(wanted)])}: this row comes after the last one of {wanted[-1].file}."
            " Take it out."
        )


def _difference(own: Row, other: Row, wanted: Sequence[Row]) -> str:
    apart = [name for name in PLACES if own.values[name] != other.values[name]]
    home = next(
        (f" This is the row of {_at(row)}." for row in wanted if _key(row) == _key(own)), ""
    )
    return (
        f"{_at(own)}: other {' and '.join(apart)} than in {_at(other)}.{home} Rows are paired by"
        " position: give the same rows in the same order, only with other labels."
    )


def _key(row: Row) -> tuple[str, ...]:
    return tuple(row.values[column] for column in PLACES)


def _at(row: Row) -> str:
    return f"{row.file}, line {row.number}"


def _answers(rows: Sequence[Row]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {task.name: [] for task in TASKS}
    for column, numbers in found.items():
        for row in rows:
            word = row.word(column)
            if word is None:
                raise UserError(f"{row.at(column)} is empty: every row needs a label, 0 or 1.")
            if word not in _LABELS:
                raise UserError(
                    f"{row.at(column)}: the label {word!r} is neither 0 nor 1. Mend it."
                )
            numbers.append(_LABELS[word])
    return found


# An entry to the ALTA 2026 shared task: answers to its texts in their order, packed as the
# organisers ask, and read back to be sure.
#
# The archive holds `answer.csv` at its top: the five columns, the rows and the order of the input,
# labels 0 and 1.

ANSWER = "answer.csv"
# the first moment a zip file can name; the time of writing would change the bytes
_EPOCH = (1980, 1, 1, 0, 0, 0)
_UNIX, _READABLE = 3, 0o644 << 16


@dataclass(frozen=True)
class Submission:
    """A submission: the lines of answer.csv without their header, and notes about them."""

    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]

    def count(self, task: str, label: int) -> int:
        """Counts the texts that got this answer."""
        column = COLUMNS.index(task)
        return sum(row[column] == str(label) for row in self.rows)

    def as_csv(self) -> bytes:
        # the writer's own line end, \r\n, makes it quote texts with either character in them, so
        # that they come back as they were
        written = StringIO()
        csv.writer(written).writerows([COLUMNS, *self.rows])
        return written.getvalue().encode()

    def as_zip(self) -> bytes:
        """The archive; the same answers give the same bytes, which is why nothing is compressed:
        zlibs differ.
        """
        entry = ZipInfo(ANSWER, date_time=_EPOCH)
        entry.create_system, entry.external_attr = _UNIX, _READABLE
        target = BytesIO()
        with ZipFile(target, "w") as archive:
            archive.writestr(entry, self.as_csv())
        return target.getvalue()


def answer(
    file: Path, predictors: Sequence[Predictor], *, watch: Watch = ignore_progress
) -> Submission:
    """Answers both tasks for every text of a wide CSV file, labelled or not."""
    chosen = {task.name: _find_model(task, predictors) for task in TASKS}
    for number, predictor in enumerate(predictors, start=1):
        if not any(predictor is one for one in chosen.values()):
            raise UserError(
                f"Model {number} answers {', '.join(predictor.tasks)}, which the shared task does"
                " not ask for: leave it out."
            )
    rows = list(read_wide(file, needs=PLACES))
    columns: dict[str, list[str]] = {}
    cut, unreadable = np.zeros((2, len(rows)), dtype=np.bool_)
    for number, predictor in enumerate(predictors, start=1):
        texts, pairs = _texts(rows, predictor), [None] * len(rows)
        found = predict_in_chunks(predictor, texts, pairs, what=f"model {number}", watch=watch)
        cut |= [one.truncated for one in found]
        unreadable |= [one.unreadable for one in found]
        for task in TASKS:
            if chosen[task.name] is predictor:
                words = [str(one.answers[task.name].label) for one in found]
                columns[task.name] = [str(task.labels.index(word)) for word in words]
    by_text = zip(*(columns[task.name] for task in TASKS), strict=True)
    lines = [(*_key(row), *answers) for row, answers in zip(rows, by_text, strict=True)]
    elsewhere = [one for row in rows if (one := row.values["variety"]) not in VARIETIES]
    counts = {"n": len(rows), "n_cut": cut.sum(), "n_unreadable": unreadable.sum()}
    notes = render_paragraphs(NOTES, "submission", elsewhere=elsewhere, **counts)
    return Submission(tuple(lines), notes)


def write_submission(submission: Submission, file: Path) -> None:
    """Writes the archive and a separate answer.csv, then reads the archive back to compare it.

    What went into a pipe cannot be read back; anyone who reads it has it.
    """
    content = submission.as_zip()
    write_bytes(file.with_name(ANSWER), submission.as_csv())
    write_bytes(file, content)
    if not find_target(file).is_stream and file.read_bytes() != content:
        raise UserError(
            f"{file} does not come back as it was written: check the disk, and write it again."
        )


def _texts(rows: Sequence[Row], predictor: Predictor) -> list[str]:
    """The texts as the model was trained to read them: alone, or after their source and variety."""
    recipes = [one.facts["recipe"] for one in predictor.runtimes if "recipe" in one.facts]
    with_place = any(has_prefix(recipe["data"]["source"]) for recipe in recipes)
    found = []
    for row in rows:
        text, own = row.text("text"), row.values
        if with_place:
            text = with_prefix(text, variety=own["variety"], source=own["source"])
        found.append(text)
    return found


def _find_model(task: Task, predictors: Sequence[Predictor]) -> Predictor:
    """The only model that answers a task, with the labels of the shared task."""
    able = [predictor for predictor in predictors if task.name in predictor.tasks]
    if not able:
        raise UserError(
            f"No model answers {task.name}, which the shared task asks for: add a --model trained"
            " on it."
        )
    if len(able) > 1:
        raise UserError(
            f"{len(able)} models answer {task.name}: give one model for both tasks, or one for"
            " each."
        )
    labels = able[0].tasks[task.name].labels
    if set(labels) != set(task.labels):
        raise UserError(
            f"The model answers {task.name} with {', '.join(labels) or 'a number'}, the shared"
            f" task takes {' and '.join(task.labels)}: train one on these labels."
        )
    return able[0]
