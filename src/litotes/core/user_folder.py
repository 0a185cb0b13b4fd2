"""Where litotes keeps what it has fetched for a user."""

from __future__ import annotations

import os
from pathlib import Path

from litotes.core.errors import UserError

SWITCH = "LITOTES_HOME"


def data_folder() -> Path:
    """`$LITOTES_HOME`, or `litotes` where the system keeps a user's data; it need not be there."""
    if chosen := os.environ.get(SWITCH):
        return Path(chosen).expanduser()
    if os.name == "nt" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local) / "litotes"
    data = Path(os.environ.get("XDG_DATA_HOME", ""))
    # the XDG rules tell programs to ignore a relative path
    return (data if data.is_absolute() else _home() / ".local" / "share") / "litotes"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        raise UserError(
            f"This user has no home folder. Set {SWITCH} to a folder that may be written into."
        ) from error
