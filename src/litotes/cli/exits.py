"""`litotes exits --model M --data SOURCE --max-disagreement 1 --out FOLDER`"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.cli.numbers import inner_chance, inner_percent, layers
from litotes.core.machine import sleep_while_waiting

if TYPE_CHECKING:
    from litotes.pruning.exits import ExitRow, ExitsResult

ABOUT = """\
Adds early exits to a trained model: a text leaves with its answer as soon as a layer is sure, so
that no more texts are answered otherwise than you allow. Writes a model folder and exits.json.
"""
EXAMPLE = (
    "litotes exits --model runs/mine --data sampler --unlabelled comments.txt --max-disagreement 2"
    " --out runs/early"
)
USES = ("json", "seed", "out")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="M", help="a model folder, or builtin")
    parser.add_argument(
        "--data",
        required=True,
        metavar="SOURCE",
        help="texts like those to come; their labels are not used",
    )
    parser.add_argument(
        "--unlabelled",
        nargs="+",
        default=[],
        metavar="FILE",
        help="more such texts: one a line, or in the column `text`",
    )
    parser.add_argument(
        "--layers",
        type=layers,
        default=(),
        metavar="LIST",
        help="after which layers texts may leave, e.g. 2,3,4 (default: those in the middle)",
    )
    parser.add_argument(
        "--piece-table",
        action="store_true",
        help="let texts also leave before the first layer, by a table of their pieces",
    )
    parser.add_argument(
        "--max-disagreement",
        type=inner_percent,
        default=1.0,
        metavar="PERCENT",
        help="texts that may be answered otherwise than by the whole model (default 1)",
    )
    parser.add_argument(
        "--confidence",
        type=inner_chance,
        default=0.95,
        metavar="SHARE",
        help="how often such a promise has to hold (default 0.95)",
    )


def run(options: argparse.Namespace) -> None:
    sleep_while_waiting()  # torch, imported below, would have them spin
    from litotes.cli.display import print_json, print_lines, progress, say
    from litotes.pruning.exits import ExitSettings, add_exits

    settings = ExitSettings(
        layers=options.layers,
        differ=options.max_disagreement / 100,
        confidence=options.confidence,
        seed=options.seed or 0,
        static=options.piece_table,
    )
    out = Path(options.out or f"{options.model.rstrip('/')}-exits")
    with progress() as watch:
        result = add_exits(
            options.model,
            options.data,
            out,
            unlabelled=options.unlabelled,
            settings=settings,
            watch=watch,
        )
    say(result.notes)
    if options.json:
        print_json(result.as_json())
        return
    _print(result)
    predict = shlex.join(["litotes", "predict", "--model", str(out), "…"])
    print_lines(f"The model is in {out}. Ask it: {predict}")


COLUMNS = ("after layer", "answered there", "of these differ", "all there: agree", "ECE")


def _print(result: ExitsResult) -> None:
    from litotes.cli.display import print_lines, print_table

    assert result.model.exits is not None
    print_table(
        COLUMNS,
        [_row(row) for row in result.rows],
        title=f"On {result.n} texts by which nothing was chosen, against the whole model",
    )
    low, high = result.interval
    print_lines(
        f"Promised: {result.model.exits.rule.promise.in_words()}.",
        f"{result.differ:.2%} differ (95 % interval {low:.2%} to {high:.2%});"
        f" {result.flops_ratio:.2f} times fewer operations, {result.speed_ratio:.2f} times as fast"
        f" by torch; {result.worst_ratio:.2f} times as slow where no text leaves.",
    )


def _row(row: ExitRow) -> tuple[str, ...]:
    ece = ", ".join(f"{task} {value:.3f}" for task, value in row.ece.items())
    differ = "" if row.differ is None else f"{row.differ:.2%}"
    layer = str(row.layer) if row.layer else "0 (table)"
    return (layer, f"{row.share:.1%}", differ, f"{row.agrees:.1%}", ece)
