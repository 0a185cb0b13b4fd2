"""The one rule for names that become part of a path, a column or a weight's name."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def is_plain_name(name: object) -> bool:
    """Whether it is made of letters, digits, - and _, with a letter first.

    A folder of that name lies where it is expected, whoever chose the name.
    """
    return isinstance(name, str) and _PLAIN.fullmatch(name) is not None


OUTPUT_COLUMNS = ("text", "pair", "truncated", "unreadable", "problem")
"""The columns of a table of answers that belong to no task."""


def can_name_task(name: str) -> bool:
    """Whether a task may have this name, which becomes a folder and a column of answers next to
    NAME_probability and NAME_probability_LABEL.
    """
    is_column = name in OUTPUT_COLUMNS or "_probability" in name
    return is_plain_name(name) and not is_column


def propose_task_name(column: str) -> str:
    """A name for the task of a column whose own name cannot be one."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", column).strip("_-")
    if not name:
        return "label"
    if not name[0].isalpha():
        return f"label_{name}"
    return name if can_name_task(name) else f"{name}_label"
