"""`--runtime` and `--verbose`, for every command that asks a model."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from litotes.model.builtin import BUILTIN

if TYPE_CHECKING:
    from litotes.predict.predictor import Predictor


def add_runtime(parser: argparse.ArgumentParser) -> None:
    chosen = "what computes (default: onnx on a CPU where the model has been exported, else torch)"
    parser.add_argument("--runtime", choices=("torch", "onnx"), help=chosen)
    parser.add_argument(
        "--verbose", action="store_true", help="say what computes, with what the processor can do"
    )


def add_model(parser: argparse.ArgumentParser) -> None:
    folder = "a model folder, as `litotes train` makes it (default: the built-in model)"
    parser.add_argument("--model", default=BUILTIN, metavar="M", help=folder)


def load_predictor(options: argparse.Namespace, folder: str) -> Predictor:
    (predictor,) = load_predictors(options, [folder])
    return predictor


def load_predictors(options: argparse.Namespace, folders: Sequence[str]) -> list[Predictor]:
    """A predictor for each folder, all run alike, so that they can be compared; what the user
    should know is said.
    """
    from litotes.cli.display import say
    from litotes.model.builtin import located
    from litotes.model.folder import folders_of
    from litotes.predict.predictor import Predictor, chosen_runtime

    parts = [part for folder in folders for part in folders_of(located(folder))]
    runtime, notes = chosen_runtime(parts, options.device, options.runtime)
    predictors = [
        Predictor.load(folder, device=options.device, runtime=runtime) for folder in folders
    ]
    say(notes)
    if options.verbose:
        say(sentence for predictor in predictors for sentence in predictor.in_words())
    return predictors
