"""What `litotes.json` may say: known keys, and values that a model can have.

A hash notices damage; this notices a description that was written wrongly or edited by hand, and
the damage of folders that have no manifest. What needs the weights is checked when these are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from litotes.core.values import WORD_KINDS
from litotes.encoder.config import spec_from_json
from litotes.model.calibration import Calibration
from litotes.model.exits import exits_from_json
from litotes.model.label_sets import check_label_sets

FORMAT = 2
OLD_FORMAT = 1
"""Without a manifest: the description itself states the hashes of weights and tokenizer."""
_ALWAYS = {"format", "litotes"}
_OF_PARTS = _ALWAYS | {"parts"}
_OF_A_MODEL = _ALWAYS | {
    "tasks",
    "head",
    "dropout",
    "calibration",
    "max_pieces",
    "encoder",
    "base",
    "facts",
    "exits",
    "unsure",
    "multi_label",
}
_NOT_OF_WORDS = {"head", "calibration", "exits", "unsure", "multi_label"}
_OF_WORDS = (_OF_A_MODEL | {"kind", "words"}) - _NOT_OF_WORDS
_OF_AN_OLD_MODEL = _OF_A_MODEL | {"files"}


def check_description(description: Mapping[str, Any]) -> None:
    """Refuses, as a ValueError, what no model can have.

    A key that is missing is reported by what needs it.
    """
    known = _OF_AN_OLD_MODEL if description["format"] == OLD_FORMAT else _OF_A_MODEL
    if "parts" in description:
        known = _OF_PARTS
    elif "kind" in description:
        known = _check_kind(description)
    for key in description:
        if key not in known:
            raise ValueError(f"the key {key!r:.60} is unknown")
    _check_tasks(description.get("tasks", {}))
    dropout = description.get("dropout", 0.0)
    if isinstance(dropout, bool) or not isinstance(dropout, int | float) or not 0 <= dropout < 1:
        raise ValueError(f"the dropout must be a number from 0 to 1, not {dropout!r:.60}")
    for key in ("encoder", "calibration"):
        if not isinstance(description.get(key, {}), dict):
            raise ValueError(f"{key} is not a table")
    check_label_sets(description.get("unsure", {}), description.get("tasks", {}))
    _check_several(description)
    if "encoder" in description:
        spec = spec_from_json(description["encoder"])
        if "exits" in description:
            tasks, n_layers = description["tasks"], len(spec.walk)
            exits_from_json(description["exits"], tasks=tasks, n_layers=n_layers)


def _check_kind(description: Mapping[str, Any]) -> set[str]:
    """What a model may say that does not label whole texts."""
    # the sources of words come with it, which a classifier does not wait for
    from litotes.data.words.cutting import CUTTINGS

    kind = description["kind"]
    if kind not in WORD_KINDS:
        raise ValueError(f"the kind {kind!r:.60} is unknown; a newer litotes may know it")
    if len(description["tasks"]) != 1:
        raise ValueError("a model of words has one task")
    if description["words"] not in CUTTINGS:
        raise ValueError(f"the way to cut words {description['words']!r:.60} is unknown")
    return _OF_WORDS


def _check_several(description: Mapping[str, Any]) -> None:
    """Tasks with several labels for one text are named; each has thresholds for all or none."""
    several, tasks = description.get("multi_label", []), description.get("tasks", {})
    if not isinstance(several, list) or not all(tasks.get(name) for name in several):
        raise ValueError("multi_label does not name tasks with labels")
    for name in several:
        if name in description.get("unsure", {}) or "exits" in description:
            raise ValueError(f"{name!r:.60} has several labels, and no sets of them or exits")
    for name, content in description.get("calibration", {}).items():
        thresholds = Calibration.from_json(content).thresholds
        if thresholds is not None and name not in several:
            raise ValueError(f"{name!r:.60} has one label, and thresholds for several")
        if thresholds is not None and len(thresholds) != len(tasks[name]):
            raise ValueError(f"{name!r:.60} has not a threshold for each label")


def _check_tasks(tasks: Mapping[str, list[str]]) -> None:
    """Labels are printed, and a terminal obeys some characters."""
    for task, labels in tasks.items():
        if not all(label.isprintable() for label in labels):
            raise ValueError("a label holds characters that cannot be printed")
        if len(set(labels)) < len(labels):
            raise ValueError(f"the task {task!r:.60} has the same label twice")
