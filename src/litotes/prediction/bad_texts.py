"""Texts that cannot be asked about: what is wrong with them, and what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from litotes.core.errors import UserError
from litotes.core.text import is_utf8
from litotes.core.values import BadText

BAD_TEXTS = {
    "stop": "the first one ends the work with a sentence that names it",
    "empty": "their predictions have a problem and no answers",
}
"""What becomes of texts that cannot be asked about, such as empty ones."""

BAD_ROWS = {
    "empty": "they are kept without answers, with their problem",
    "skip": "they are left out",
    "stop": "the first one ends the work",
}
"""What becomes of rows without a text, or that cannot be read."""


def match_pairs(texts: Sequence[object], pairs: Sequence[str | None] | None) -> list[str | None]:
    """A pair, or None, for each of the texts, which must be a list of texts."""
    if isinstance(texts, Mapping | Set) or not hasattr(texts, "__len__"):
        raise UserError(
            f"Give a text, or a list of them; this is a {type(texts).__name__}. For what comes one"
            " by one there is `stream`, for columns by name `map_batches`."
        )
    if pairs is None:
        return [None] * len(texts)
    if len(pairs) != len(texts):
        raise UserError(
            f"There are {len(texts)} texts and {len(pairs)} pairs: give as many of each, None where"
            " a text has none."
        )
    return list(pairs)


def find_problems(
    texts: Sequence[str | BadText], pairs: Sequence[str | None], *, first: int
) -> dict[int, str]:
    """What is wrong with texts, by their places. first: the number of the first, for sentences."""
    problems = {}
    for place, (text, pair) in enumerate(zip(texts, pairs, strict=True)):
        found = _find_problem(text, pair, f"Text {first + place}")
        if found is not None:
            problems[place] = found
    return problems


def _find_problem(text: str | BadText, pair: str | None, name: str) -> str | None:
    if isinstance(text, BadText):
        return text.problem
    if not isinstance(text, str) or not isinstance(pair, str | None):
        found = pair if isinstance(text, str) else text
        return (
            f"{name} is {found!r:.60} ({type(found).__name__}), not a string. Turn it into one, or"
            " take it out."
        )
    if not text.strip():
        return f"{name} is empty; there is nothing to label."
    if pair is not None and not pair.strip():
        return f"{name} has an empty pair: give that its text, or leave it out."
    if not is_utf8(text + (pair or "")):
        return f"{name} holds bytes that are not UTF-8. Save or type it as UTF-8."
    return None


def written_text(text: object) -> str:
    """What is shown of a text, which may be no text at all."""
    if isinstance(text, BadText):
        return text.text
    return text if isinstance(text, str) else ""
