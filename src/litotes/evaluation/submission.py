"""An entry to the ALTA 2026 shared task: answers to its texts in their order, packed as the
organisers ask, and read back to be sure.

The archive holds `answer.csv` at its top: the five columns, the rows and the order of the input,
labels 0 and 1.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from zipfile import BadZipFile, ZipFile, ZipInfo

from litotes.core.errors import UserError
from litotes.core.progress import Watch, ignore_progress
from litotes.core.storage import find_target, write_bytes
from litotes.core.values import Prediction, Task
from litotes.data.sources import has_prefix
from litotes.data.sources.besstie import with_prefix
from litotes.data.tables.row import Row
from litotes.evaluation.shared_task import COLUMNS, PLACES, TASKS, VARIETIES, read_wide
from litotes.prediction.predictor import Predictor

ANSWER = "answer.csv"
_CHUNK = 256
# the first moment a zip file can name; the time of writing would change the bytes
_EPOCH = (1980, 1, 1, 0, 0, 0)
_UNIX, _READABLE = 3, 0o644 << 16


@dataclass(frozen=True)
class Submission:
    """What is handed in: the lines of answer.csv without their header, and notes about them."""

    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]

    def count(self, task: str, label: int) -> int:
        """How many texts got this answer."""
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
    """Both tasks answered for every text of a wide CSV file, labelled or not."""
    chosen = _by_task(predictors)
    rows = list(read_wide(file, needs=PLACES))
    labels: dict[str, list[str]] = {}
    cut: set[int] = set()
    unreadable: set[int] = set()
    for number, predictor in enumerate(predictors, start=1):
        predictions = _predict(predictor, _texts(rows, predictor), f"model {number}", watch)
        cut |= {place for place, one in enumerate(predictions) if one.truncated}
        unreadable |= {place for place, one in enumerate(predictions) if one.unreadable}
        for task in TASKS:
            if chosen[task.name] is predictor:
                labels[task.name] = [_label_number(task, one) for one in predictions]
    by_text = zip(*(labels[task.name] for task in TASKS), strict=True)
    lines = [(*_place(row), *answers) for row, answers in zip(rows, by_text, strict=True)]
    return Submission(tuple(lines), tuple(_notes(rows, len(cut), len(unreadable))))


def _place(row: Row) -> list[str]:
    return [row.values[column] for column in PLACES]


def _label_number(task: Task, prediction: Prediction) -> str:
    return str(task.labels.index(str(prediction.answers[task.name].label)))


def write_submission(submission: Submission, file: Path) -> None:
    """Writes the archive and a separate answer.csv, then reads the archive back to compare it.

    What went into a pipe cannot be read back; whoever reads it has it.
    """
    write_bytes(file.with_name(ANSWER), submission.as_csv())
    write_bytes(file, submission.as_zip())
    if not find_target(file).is_stream:
        _check(file, submission)


def _check(file: Path, submission: Submission) -> None:
    found = list(csv.reader(StringIO(_read_answer(file), newline=""), strict=True))
    wanted = [COLUMNS, *submission.rows]
    if len(found) != len(wanted):
        raise UserError(
            f"{file} holds {len(found) - 1} rows where {len(wanted) - 1} were written: write it"
            " again."
        )
    for number, (here, there) in enumerate(zip(found, wanted, strict=True)):
        if tuple(here) != there:
            raise UserError(
                f"{file}: row {number} does not come back as it was written: write it again."
            )


def _read_answer(file: Path) -> str:
    """The text of answer.csv, which must be alone in the archive."""
    try:
        with ZipFile(file) as archive:
            content = {name: archive.read(name).decode() for name in archive.namelist()}
    except (BadZipFile, UnicodeDecodeError) as error:
        raise UserError(
            f"{file} cannot be read back ({error}): check the disk, and write it again."
        ) from error
    if list(content) != [ANSWER]:
        raise UserError(
            f"{file} holds {', '.join(content) or 'nothing'} where only {ANSWER} should be: write"
            " it again."
        )
    return content[ANSWER]


def _texts(rows: Sequence[Row], predictor: Predictor) -> list[str]:
    """The texts as the model was trained to read them: alone, or after their source and variety."""
    texts = [row.text("text") for row in rows]
    recipes = [
        runtime.facts["recipe"] for runtime in predictor.runtimes if "recipe" in runtime.facts
    ]
    if not any(has_prefix(recipe["data"]["source"]) for recipe in recipes):
        return texts
    return [
        with_prefix(text, variety=row.values["variety"], source=row.values["source"])
        for text, row in zip(texts, rows, strict=True)
    ]


def _predict(
    predictor: Predictor, texts: Sequence[str], what: str, watch: Watch
) -> list[Prediction]:
    predictions: list[Prediction] = []
    for start in range(0, len(texts), _CHUNK):
        predictions += predictor.predict(texts[start : start + _CHUNK])
        watch(what, len(predictions), len(texts), "")
    return predictions


def _by_task(predictors: Sequence[Predictor]) -> Mapping[str, Predictor]:
    """The model that answers each task; every model must answer one."""
    chosen = {task.name: _find_model(task, predictors) for task in TASKS}
    for number, predictor in enumerate(predictors, start=1):
        if not any(predictor is one for one in chosen.values()):
            raise UserError(
                f"Model {number} answers {', '.join(predictor.tasks)}, which the shared task does"
                " not ask for: leave it out."
            )
    return chosen


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


def _notes(rows: Sequence[Row], n_cut: int, n_unreadable: int) -> list[str]:
    notes = []
    if strange := sorted({row.values["variety"] for row in rows} - set(VARIETIES)):
        n = sum(row.values["variety"] in strange for row in rows)
        notes.append(
            f"Rows of {', '.join(strange)}, which the shared task does not score and which are"
            f" answered all the same: {n}."
        )
    if n_cut:
        notes.append(
            f"{n_cut} of {len(rows)} texts are longer than the model reads; their ends were not"
            " seen."
        )
    if n_unreadable:
        notes.append(
            f"{n_unreadable} of {len(rows)} texts are unreadable: the model knows no part of"
            " them, and their answers say nothing."
        )
    return notes
