"""Loads the models of a command, with the `--device`, `--runtime` and `--verbose` it was given."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from litotes.prediction.predictor import Predictor


def load_predictor(options: argparse.Namespace, folder: str) -> Predictor:
    (predictor,) = load_predictors(options, [folder])
    return predictor


def load_predictors(options: argparse.Namespace, folders: Sequence[str]) -> list[Predictor]:
    """A predictor for each folder, all on the same runtime, so that they can be compared.

    Prints on stderr what the user should know about the choice.
    """
    from litotes.cli.display import say

    with _paused_collection():
        predictors, notes = _load(options, folders)
    say(dict.fromkeys(notes))
    if options.verbose:
        for predictor in predictors:
            say(predictor.describe())
    return predictors


def _load(options: argparse.Namespace, folders: Sequence[str]) -> tuple[list[Predictor], list[str]]:
    """With what the user should know."""
    from litotes.model.folder import open_model
    from litotes.prediction.predictor import Predictor
    from litotes.prediction.runtime_choice import choose_runtime

    opened = [open_model(folder) for folder in folders]
    parts = [part for folder in opened for part in folder.models]
    runtime, notes = choose_runtime(parts, options.device, options.runtime, options.precision)
    predictors = [
        Predictor.load(folder, device=options.device, runtime=runtime, precision=options.precision)
        for folder in opened
    ]
    for predictor in predictors:
        notes += predictor.notes
    return predictors, notes


@contextmanager
def _paused_collection() -> Iterator[None]:
    """What imports make stays: looking for garbage among it only delays the first answer."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
