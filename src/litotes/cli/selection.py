"""`--where variety=en-AU,en-UK` as keyword arguments of `Corpus.where`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from litotes.core.errors import UserError
from litotes.core.registry import unknown

if TYPE_CHECKING:
    from litotes.data.corpus import Corpus

_KEYS = ("variety", "source", "task", "split")


def add_where(parser: argparse.ArgumentParser, *, split: str) -> None:
    """The option `--where`; `split` says which one is taken unless the user names it."""
    help_text = f"variety=, source=, task= or split=; split is {split} unless given"
    parser.add_argument("--where", action="append", default=[], metavar="KEY=WORD", help=help_text)


def parse_where(parts: Sequence[str]) -> dict[str, list[str]]:
    chosen: dict[str, list[str]] = {}
    for part in parts:
        key, equals, words = part.partition("=")
        if not equals or not words:
            raise UserError(
                f"--where {part}: write it as key=word, for example --where variety=en-AU."
            )
        if key not in _KEYS:
            raise UserError(f"--where {part}: {unknown(key, _KEYS, 'key')}")
        chosen.setdefault(key, []).extend(words.split(","))
    return chosen


def chosen_texts(corpus: Corpus, where: Mapping[str, Sequence[str]]) -> Corpus:
    """Those asked for, of the test split unless they name another one."""
    return corpus.where(**(where if "split" in where else {**where, "split": corpus.test_split()}))
