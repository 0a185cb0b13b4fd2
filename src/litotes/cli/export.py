"""`litotes export --model M [--int8 | --int16 | --to transformers --out FOLDER]`"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.cli.numbers import count, percent

if TYPE_CHECKING:
    from litotes.exporting.export import ExportResult

ABOUT = """\
Writes an ONNX file that answers faster on a CPU, with the pruning inside, and measures which
answers change. From then on the model's folder is run by it.
"""
EXAMPLE = "litotes export --model runs/mine --int8"
USES = ("json", "out")


_N_TEXTS = 500


def add_options(parser: argparse.ArgumentParser) -> None:
    gains = (
        "a model folder; it, or the copy that --out makes of it, gains model.onnx and export.json"
    )
    parser.add_argument("--model", required=True, metavar="M", help=gains)
    precision = parser.add_mutually_exclusive_group()
    precision.add_argument(
        "--int8",
        action="store_true",
        help="a quarter of the size, and faster; how many labels change is measured",
    )
    precision.add_argument(
        "--int16",
        action="store_true",
        help="half the size and as fast: weights kept in 16 bits, computed in 32",
    )
    parser.add_argument(
        "--to",
        choices=("onnx", "transformers"),
        default="onnx",
        help="transformers: a folder for AutoModelForSequenceClassification, at --out",
    )
    data = "texts to measure the export on (default: those the model was trained with, held out)"
    parser.add_argument("--data", metavar="SOURCE", help=data)
    parser.add_argument(
        "--allow",
        type=percent,
        metavar="PERCENT",
        help="labels that may change, toss-ups not counted (default 0, --int16 0.5, --int8 1)",
    )
    parser.add_argument(
        "--texts",
        type=count,
        default=_N_TEXTS,
        metavar="N",
        help=f"texts to measure on, at most (default {_N_TEXTS})",
    )


def run(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, progress
    from litotes.core.errors import UserError
    from litotes.exporting.export import ExportRefused, export_models, working_copy
    from litotes.model.builtin import is_builtin
    from litotes.model.folder import open_model

    if options.to == "transformers":
        _export_to_transformers(options)
        return
    folder = open_model(options.model)
    source = options.data
    if source is None and is_builtin(folder.path):
        source = "sampler"
    try:
        with progress() as watch, working_copy(folder, options.out) as target:
            results = export_models(
                target,
                precision=_precision(options),
                source=source,
                allowed=None if options.allow is None else options.allow / 100,
                n_texts=options.texts,
                watch=watch,
            )
    except ExportRefused as error:
        raise UserError(f"{error}: {_command(options, error.allowed)}") from error
    if options.json:
        print_json([result.as_json() for result in results])
        return
    for result in results:
        _print(result)


def _export_to_transformers(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, print_lines
    from litotes.core.errors import UserError
    from litotes.exporting.transformers_folder import export_to_transformers
    from litotes.model.folder import open_model

    if options.int8 or options.int16 or options.data is not None or options.allow is not None:
        raise UserError(
            "--to transformers writes the weights as they are, so there is nothing to measure:"
            " leave out --int8, --int16, --data and --allow."
        )
    if options.out is None:
        raise UserError("--to transformers writes a folder of its own: name it by --out FOLDER.")
    export_to_transformers(open_model(options.model), Path(options.out))
    if options.json:
        print_json({"folder": options.out})
        return
    load = f"AutoModelForSequenceClassification.from_pretrained({options.out!r})"
    print_lines(f"The model is in {options.out}. Load it: {load}")


def _precision(options: argparse.Namespace) -> str:
    if options.int8:
        return "int8"
    return "int16" if options.int16 else "float32"


def _command(options: argparse.Namespace, allowed: float) -> str:
    """The same command, with which the export is accepted."""
    words = ["litotes", "export", "--model", options.model]
    if options.int8 or options.int16:
        words.append("--int8" if options.int8 else "--int16")
    given = {"--data": options.data, "--texts": options.texts, "--out": options.out}
    for option, value in given.items():
        if value not in (None, _N_TEXTS):
            words += [option, str(value)]
    return shlex.join([*words, "--allow", f"{allowed:g}"])


def _print(result: ExportResult) -> None:
    from litotes.cli.display import print_table

    rows = []
    for loss in result.losses:
        f1 = "" if loss.macro_f1 is None else f"{loss.macro_f1:.3f} → {loss.macro_f1_exported:.3f}"
        changed = f"{loss.n_changed} ({loss.changed:.1%})"
        if loss.n_toss_ups:
            changed += f", {loss.n_toss_ups} of them a toss-up"
        rows.append((loss.task, str(loss.n), changed, f"{loss.largest_difference:.2g}", f1))
    title = (
        f"{result.file}, {result.precision}, {result.n_bytes / 1e6:.1f} MB; against torch on"
        f" {result.measured_on}"
    )
    columns = ("task", "texts", "labels changed", "largest difference of a probability", "macro-F1")
    print_table(columns, rows, title=title)
