"""The option `--where variety=en-AU,en-UK`, and the texts that it selects."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from litotes.core.errors import UserError
from litotes.core.registry import unknown_name

if TYPE_CHECKING:
    from litotes.data.corpus import Corpus
    from litotes.model.folder import ModelFolder

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


def select_texts(
    source: str, where: Mapping[str, Sequence[str]], models: Sequence[str | ModelFolder]
) -> Corpus:
    """The texts of a source that `where` selects, of the test split unless it names another one;
    of a source without a split, those that none of the models was trained on.

    Prints on stderr what the user should know about them.
    """
    from litotes.cli.display import say
    from litotes.data.sources import load
    from litotes.evaluation.evaluate import select_fair_texts, warn_of_trained_texts
    from litotes.model.folder import read_trained_texts

    stated = [read_trained_texts(model) for model in models]
    trained_on = None if None in stated else frozenset().union(*filter(None, stated))
    corpus = load(source).where(**where)
    choose = warn_of_trained_texts if "split" in where else select_fair_texts
    chosen = choose(corpus, trained_on)
    say(chosen.notes)
    return chosen
