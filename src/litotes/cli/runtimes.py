"""`--runtime` and `--verbose`, for every command that asks a model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from litotes.predictor import Predictor


def add_runtime(parser: argparse.ArgumentParser) -> None:
    chosen = "what computes (default: onnx on a CPU where the model has been exported, else torch)"
    parser.add_argument("--runtime", choices=("torch", "onnx"), help=chosen)
    parser.add_argument("--verbose", action="store_true", help="say what computes, with what the processor can do")


def load_predictor(options: argparse.Namespace, *folders: str) -> Predictor:
    """The predictor of these folders; what the user should know about it is said."""
    from litotes.cli.display import say
    from litotes.predictor import Predictor

    predictor = Predictor.load(*folders, device=options.device, runtime=options.runtime)
    say(predictor.notes)
    if options.verbose:
        say(predictor.in_words())
    return predictor
