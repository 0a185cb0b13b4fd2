"""The option `--where variety=en-AU,en-UK`, and the texts that it selects."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from litotes.core.errors import UserError
from litotes.core.registry import unknown_name

if TYPE_CHECKING:
    from litotes.data.corpus import Corpus

_KEYS = ("variety", "source", "task", "split")


def add_where(parser: argparse.ArgumentParser, *, split: str) -> None:
    """split: what the help says about the split that is used unless the user names one."""
    help_text = f"variety=, source=, task= or split=; split is {split} unless given"
    parser.add_argument("--where", action="append", default=[], metavar="KEY=WORD", help=help_text)


def parse_where(parts: Sequence[str]) -> dict[str, list[str]]:
    """The keyword arguments of `Corpus.where`."""
    where: dict[str, list[str]] = {}
    for part in parts:
        key, equals, words = part.partition("=")
        if not equals or not words:
            raise UserError(
                f"--where {part}: write it as key=word, for example --where variety=en-AU."
            )
        if key not in _KEYS:
            raise UserError(f"--where {part}: {unknown_name(key, _KEYS, 'key')}")
        where.setdefault(key, []).extend(words.split(","))
    return where


def select_texts(corpus: Corpus, where: Mapping[str, Sequence[str]]) -> Corpus:
    """The texts that `where` selects, of the test split unless it names another one."""
    if "split" in where:
        return corpus.where(**where)
    return corpus.where(**where, split=corpus.test_split())
