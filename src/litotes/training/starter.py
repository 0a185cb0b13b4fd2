"""A recipe for somebody's table, of a size that takes minutes on two slow cores, and what to do
with it next.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.registry import propose_task_name
from litotes.data.inspection import MAX_ROWS, TableFacts
from litotes.data.sources import TEST_SHARE, make_source
from litotes.model.classifier import is_task_name

MINUTES = 5.0
"""The minutes a training may take where a table is not too large for it."""

# measured with the bundled encoder on two slow cores, and half as much again: milliseconds a piece
_FROZEN_MS = 0.17  # the lower four layers, once
_EPOCH_MS = 0.44  # the upper two, forwards and backwards
_PIECES_A_WORD = 1.35
_MAX_PIECES = 512
_N_STEP_TEXTS = 4000  # texts seen in all epochs together, from which a small table has learned


_LESS = "fewer epochs, or a part of the table, take less."
# a column's name may hold anything, and a comment ends with its line
_HARMLESS = dict.fromkeys((*range(32), 127, 133, 8232, 8233), " ")
_RECIPE = """\
# {command}
#
# For {path}: {rows} rows, texts in {text}, labels in
# {label}.
# About {minutes} on two slow cores; {grows}
# Paths are looked up from the folder in which a command is started.

seed = 0

[data]
source = {source}
{comment}

[model]
encoder = "minilm"
head = "mean"

[training]
epochs = {epochs}  # at most; training stops when held-out texts gain nothing more
batch_texts = 16
learning_rate = 1e-4
head_learning_rate = 1e-3
freeze_below = 4  # of 6 layers; 0 trains them all, which takes four times as long
held_out = {held_out}  # share of the training texts that chooses the epoch
"""


@dataclass(frozen=True)
class Starter:
    """A recipe as TOML, its source, the minutes it takes, and the next commands."""

    recipe: str
    source: str
    minutes: float
    commands: tuple[str, ...]


def make_starter(facts: TableFacts, out: Path) -> Starter:
    """out: where the recipe is going to be."""
    source = make_source(f"table:{facts.path}", _options(facts))
    if "?" in str(facts.path):
        raise UserError(f"{facts.path} has a ? in its name, after which options begin: rename it.")
    n_train, epochs, minutes = _size(facts)
    commands = _commands(facts, out, source)
    values = {
        "command": commands[1],
        "path": facts.path,
        "rows": f"{facts.n_rows:,}" + (" or more" if facts.n_rows == MAX_ROWS else ""),
        "text": repr(facts.text.name),
        "label": facts.label.describe(),
        "minutes": describe_minutes(minutes),
        "grows": _LESS if minutes > MINUTES else "it grows with the texts and the epochs.",
        "source": _quote(source),
        "epochs": epochs,
        "held_out": 0.2 if n_train < 300 else 0.1,
    }
    harmless = {name: str(value).translate(_HARMLESS) for name, value in values.items()}
    comment = "\n".join(line.translate(_HARMLESS) for line in _label_comment(facts))
    return Starter(_RECIPE.format(**harmless, comment=comment), source, minutes, commands)


def _size(facts: TableFacts) -> tuple[int, int, float]:
    """Estimates the texts to learn from, in how many epochs, and the minutes they take."""
    n_train = ceil(facts.text.n_filled * (0.9 if facts.split else 0.9 * (1 - TEST_SHARE)))
    pieces = n_train * min(facts.text.words_a_cell * _PIECES_A_WORD + 2, _MAX_PIECES)
    minutes = [pieces * (_FROZEN_MS + n * _EPOCH_MS) / 60_000 for n in range(21)]  # by epochs
    epochs = min(20, max(4, ceil(_N_STEP_TEXTS / max(n_train, 1))))
    while epochs > 3 and minutes[epochs] > MINUTES:
        epochs -= 1
    return n_train, epochs, minutes[epochs]


def _options(facts: TableFacts) -> dict[str, str]:
    """The options that tell which column is which."""
    options = {"text": facts.text.name, "label": facts.label.name}
    if not is_task_name(facts.label.name):
        name = propose_task_name(facts.label.name)
        options["task"] = name if is_task_name(name) else f"{name}_label"
    if facts.is_number:
        options["numbers"] = "yes"
    if facts.compare:
        options["variety"] = facts.compare.name
    if facts.split:
        options["split"] = facts.split.name
    else:
        options["test"] = f"{TEST_SHARE:g}"
    return options


def _commands(facts: TableFacts, out: Path, source: str) -> tuple[str, ...]:
    """Audit, train, score, answer, serve: as one would type them."""
    recipe, model, table = str(out), f"runs/{out.stem}", str(facts.path)
    kind = facts.path.name.removesuffix(".gz").rpartition(".")[2]
    answers = f"{out.stem}-answers.{'csv' if kind == 'txt' else kind}"
    predict = ("predict", "--model", model, "--file", table, "--column", facts.text.name)
    score = ["evaluate", "--model", model, "--data", source]
    if facts.compare and not facts.is_number:
        score = ["matrix", recipe, "--by", facts.compare.name, "--out", f"{model}-matrix"]
    commands = (
        ("audit", "--data", source),
        ("train", recipe, "--out", model),
        score,
        (*predict, "--out", answers),
        ("serve", "--model", model),
    )
    return tuple(shlex.join(("litotes", *command)) for command in commands)


def describe_minutes(minutes: float) -> str:
    if minutes < 1:
        return "a minute"
    return f"{ceil(minutes)} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"


def _label_comment(facts: TableFacts) -> list[str]:
    task = _options(facts).get("task", facts.label.name)
    if facts.is_number:
        return ["# numbers=yes predicts the label as a number; without it every number is a class"]
    lines = []
    if facts.label.are_numbers:
        lines = ["# every number is a class; with &numbers=yes the label is predicted as a number"]
    first, *_ = sorted(facts.label.values)
    return [
        *lines,
        "# to rename or join labels (an empty word leaves its texts out):",
        f"# labels = {{ {task} = {{ {_quote(first)} = {_quote('other word')} }} }}",
    ]


def _quote(text: str) -> str:
    """A string of TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
