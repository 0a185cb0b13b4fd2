"""The inputs of commands: the models they load, the texts they select, the functions for other
kinds of models.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import fields
from importlib import import_module
from typing import Any

from litotes.cli.display import say
from litotes.cli.start import paused_collection
from litotes.core.errors import UserError, require_extra
from litotes.core.registry import pick, unknown_name
from litotes.core.values import KINDS, WORD_KINDS
from litotes.model.folder import kind_of, open_model
from litotes.prediction.predictor import Predictor
from litotes.prediction.runtime_choice import choose_runtime


def for_kind(options: argparse.Namespace) -> Callable[[argparse.Namespace], None] | None:
    """Finds what does the command's work for a model that answers words; None: the command itself,
    which refuses a model that it cannot work with.
    """
    kind = str(kind_of(options.model))
    pick(KINDS, kind, "kind of model called")
    if kind not in WORD_KINDS:
        return None
    require_extra("train", "A model that answers words")
    words = import_module("litotes.cli.words")  # with torch
    found: Callable[[argparse.Namespace], None] = getattr(words, options.command)
    return found


def load_predictors(options: argparse.Namespace, folders: Sequence[str]) -> list[Predictor]:
    """A predictor for each folder, all on the same runtime, so that they can be compared.

    Prints on stderr what the user should know about the choice.
    """
    with paused_collection():
        opened = [open_model(folder) for folder in folders]
        parts = [part for folder in opened for part in folder.models]
        runtime, notes = choose_runtime(parts, options.device, options.runtime, options.precision)
        settings = {"device": options.device, "runtime": runtime, "precision": options.precision}
        predictors = [Predictor.load(folder, **settings) for folder in opened]
    say(dict.fromkeys([*notes, *(note for one in predictors for note in one.notes)]))
    if options.verbose:
        for predictor in predictors:
            say(predictor.describe())
    return predictors


def parse_where(parts: Sequence[str]) -> dict[str, list[str]]:
    """The keyword arguments of `Corpus.where`, from `--where variety=en-AU,en-UK`."""
    where: dict[str, list[str]] = {}
    for part in parts:
        key, _, words = part.partition("=")
        if not words:
            raise UserError(
                f"--where {part}: write it as key=word, for example --where variety=en-AU."
            )
        keys = ("variety", "source", "task", "split")
        if key not in keys:
            raise UserError(f"--where {part}: {unknown_name(key, keys, 'key')}")
        where.setdefault(key, []).extend(words.split(","))
    return where


def given(options: argparse.Namespace, settings: type[Any]) -> dict[str, Any]:
    """Collects what the user chose of the fields of a dataclass of settings."""
    found = {field.name: getattr(options, field.name, None) for field in fields(settings)}
    return {name: value for name, value in found.items() if value is not None}
