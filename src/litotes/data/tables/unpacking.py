"""How much a compressed table may unpack to: a small file must not take all memory."""

from __future__ import annotations

from pathlib import Path

from litotes.core.errors import UserError

MAX_RATIO = 50
"""Bytes that a compressed file may become for each of its own; tables of texts become 5 to 20."""
FREE_BYTES = 1 << 26
"""What any file may become, however small it is."""
ROW_BYTES = 100
"""Counted for every row beside its text; in memory it takes more."""


class UnpackingLimit:
    """Counts what a file unpacks to while it is read, and refuses what goes on beyond reason.

    remedy: how the user can have it read all the same.
    """

    def __init__(self, path: Path, remedy: str) -> None:
        self._path, self._remedy = path, remedy
        self._n_left = max(FREE_BYTES, MAX_RATIO * path.stat().st_size)

    def add(self, n_bytes: int, *, n_rows: int) -> None:
        self._n_left -= n_bytes + ROW_BYTES * n_rows
        if self._n_left < 0:
            raise UserError(
                f"{self._path} unpacks to more than {MAX_RATIO} times its size, as no table of"
                f" texts does: it is damaged, or made to fill the memory. If it is neither,"
                f" {self._remedy}."
            )
