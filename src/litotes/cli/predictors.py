"""Loads the models of a command, with the `--device`, `--runtime` and `--verbose` it was given."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
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
    say(dict.fromkeys(notes))
    if options.verbose:
        for predictor in predictors:
            say(predictor.describe())
    return predictors
