"""Writes an explanation to a file, in the format that its name ends in."""

from __future__ import annotations

from pathlib import Path

from litotes.core.errors import UserError, require_extra
from litotes.core.storage import write_bytes, write_json, write_text
from litotes.core.values import WordPrediction
from litotes.explanation.explanation import Explanation

FORMATS = (".html", ".json", ".svg", ".png")


def check_format(file: Path) -> None:
    if file.suffix.lower() not in FORMATS:
        raise UserError(
            f"{file}: an explanation is written as {', '.join(FORMATS)}. End the name in one"
            " of them, e.g. why.html."
        )
    if file.suffix.lower() != ".json":  # these show what torch saw in every layer
        require_extra("train", f"{file}: a page or a picture", instead=", or write .json")


def write_explanation(
    explanation: Explanation, file: Path, *, locus: WordPrediction | None = None
) -> None:
    """A page (.html), the numbers (.json) or a picture (.svg, .png).

    locus: what a model of words marks in the same text, for a page and for the numbers.
    """
    check_format(file)
    suffix = file.suffix.lower()
    if suffix == ".html":
        from litotes.explanation.page.html import why_html

        write_text(file, why_html(explanation, locus))
    elif suffix == ".json":
        marks = {} if locus is None else {"locus": locus.as_json()}
        write_json(file, explanation.as_json() | marks)
    else:
        # drawing needs matplotlib, which is slow to import
        from litotes.core.figures import render_figure
        from litotes.explanation.figures.explanation import figure

        write_bytes(file, render_figure(figure(explanation), suffix[1:]))
