"""Options that several commands take."""

from __future__ import annotations

import argparse

from litotes.model.builtin import BUILTIN


def add_model(parser: argparse.ArgumentParser) -> None:
    folder = "a model folder, as `litotes train` makes it (default: the built-in model)"
    parser.add_argument("--model", default=BUILTIN, metavar="M", help=folder)


def add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", required=True, metavar="SOURCE", help="a corpus, e.g. sampler or besstie:PATH"
    )


def add_runtime(
    parser: argparse.ArgumentParser,
    *,
    default: str = "onnx on a CPU where the model has been exported, else torch",
) -> None:
    runtime = f"what computes (default: {default})"
    parser.add_argument("--runtime", choices=("torch", "onnx"), help=runtime)
    parser.add_argument(
        "--precision",
        choices=("auto", "float32", "bfloat16", "float16"),
        help="what a GPU computes in (default: auto, half precision where it costs no answer)",
    )


def add_verbose(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--verbose", action="store_true", help="say what computes, with what the processor can do"
    )
