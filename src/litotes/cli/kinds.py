"""Which module does the work of a command for a kind of model that is not a classifier."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import Any

from litotes.core.registry import unknown_name
from litotes.core.values import CLASSIFICATION

COMMANDS_OF = {
    "tagging": "litotes.cli.word_models",
    "span": "litotes.cli.word_models",
    "translation": "litotes.cli.translation_models",
}
"""Each has functions called train, predict, evaluate and so on, which take the parsed options. A
command that it lacks is left to the command itself, which refuses such a model.
"""


def command_of(kind: object, command: str) -> Callable[[argparse.Namespace], None] | None:
    """What does the work of a command for this kind of model; None: the command itself."""
    if kind == CLASSIFICATION:
        return None
    if not isinstance(kind, str) or kind not in COMMANDS_OF:
        from litotes.core.errors import UserError

        names = [CLASSIFICATION, *COMMANDS_OF]
        raise UserError(unknown_name(str(kind), names, "kind of model called"))
    module: Any = import_module(COMMANDS_OF[kind])
    found: Callable[[argparse.Namespace], None] | None = getattr(module, command, None)
    return found
