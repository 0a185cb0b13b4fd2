"""Slices as a table and sentences for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from litotes.evaluation.slices import Slices


def print_slices(found: Slices) -> None:
    from litotes.cli.display import print_lines, print_table
    from litotes.evaluation.slices import HEAD, findings

    lines = [one.cells() for one in found.slices]
    if lines:
        title = "Slices with more mistakes, found on one half and tested on the other"
        print_table(HEAD, lines, title=title)
    print_lines(*findings(found), *found.notes)
