"""A file of figures that grows: a group measured later, in a process of its own, joins those that
are there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.core.storage import write_json

SAME = ("data", "n_texts", "subject")
"""What figures side by side must have in common, besides the machine."""

CHANGING = ("load_average",)
"""What a machine says of the moment, not of itself."""


def add_groups(file: Path, measured: Mapping[str, Any]) -> None:
    """Writes the groups beside those that the file has; one measured again replaces the older.

    Figures of another machine or other texts are never mixed in.
    """
    before = json.loads(file.read_text("utf-8")) if file.is_file() else None
    if before is None:
        write_json(file, measured)
        return
    if _subject(before) != _subject(measured):
        raise UserError(
            f"{file} was measured on another machine or on other texts. Give another --out, or"
            " delete it to begin again."
        )
    kept = [line for line in before["lines"] if line["group"] not in measured["groups"]]
    together = {
        **before,  # what people have added stays
        **measured,
        "groups": {**before["groups"], **measured["groups"]},
        "lines": [*kept, *measured["lines"]],
    }
    if "earlier" in before:  # groups of an earlier run, as bench/gpu_doc.py says it
        together["earlier"] = [one for one in before["earlier"] if one not in measured["groups"]]
    write_json(file, together)


def _subject(content: Mapping[str, Any]) -> dict[str, Any]:
    machine = {name: fact for name, fact in content["machine"].items() if name not in CHANGING}
    return {"machine": machine} | {name: content[name] for name in SAME}
