"""words: a JSON object a line, {"words": […], "tags": […]} or {"words": […], "span": [start, end]}.

A span is the first word and the word after the last, counted from 0; null where the text has none.
Both may be given. "split" says train, valid or test.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.core.json_text import from_json
from litotes.data.corpus import SPLIT_WORDS
from litotes.data.tables.files import read_lines
from litotes.data.words.corpus import (
    Span,
    WordCorpus,
    WordExample,
    check_tags,
    check_words,
    labels_of,
)
from litotes.data.words.files import OPTIONS, cutting_of, find_parts, set_test_apart, task_of

__all__ = ["OPTIONS", "read"]


def read(path: Path, options: Mapping[str, str]) -> WordCorpus:
    task, cutting = task_of(options), cutting_of(options)
    examples: list[WordExample] = []
    for split, file in find_parts(path, (".jsonl",)).items():
        for number, line in read_lines(file):
            if line.strip():
                examples.append(_example(line, f"{file}, line {number}", split))
    examples = set_test_apart(examples, options)
    return WordCorpus(path.name, task, labels_of(examples), tuple(examples), cutting)


def _example(line: str, place: str, split: str) -> WordExample:
    try:
        row = from_json(line)
    except ValueError as error:
        raise UserError(f"{place}: not readable as JSON ({error}).") from error
    if not isinstance(row, dict) or not _are_strings(row.get("words")):
        raise UserError(f'{place}: an object with "words", a list of strings, is expected.')
    words = check_words(row["words"], place)
    own = row.get("split", split)
    if not isinstance(own, str) or own not in SPLIT_WORDS:
        raise UserError(f"{place}: the split {own!r:.60} is none of {', '.join(SPLIT_WORDS)}.")
    tags = None
    if row.get("tags") is not None:
        tags = _tags(row["tags"], len(words), place)
    span = _span(row["span"], len(words), place) if "span" in row else None
    return WordExample(words, tags, "span" in row, span, SPLIT_WORDS[own])


def _tags(value: Any, n_words: int, place: str) -> tuple[str, ...]:
    if not _are_strings(value) or len(value) != n_words:
        raise UserError(f'{place}: "tags" must be {n_words} strings, one for each word.')
    return check_tags(value, place)


def _span(value: Any, n_words: int, place: str) -> Span | None:
    if value is None:
        return None
    are_numbers = isinstance(value, list) and all(type(one) is int for one in value)
    if not are_numbers or len(value) != 2 or not 0 <= value[0] < value[1] <= n_words:
        raise UserError(
            f'{place}: "span" must be null or the first word and the one after the last, from 0'
            f" to {n_words}, not {value!r:.60}."
        )
    return value[0], value[1]


def _are_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) and one for one in value)
