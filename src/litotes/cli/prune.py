"""`litotes prune --model RUN --loss 0.5 --data SOURCE`"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.cli.numbers import chance, count, points, ratios, share
from litotes.core.threads import sleep_while_waiting

if TYPE_CHECKING:
    from litotes.pruning import PruneResult
    from litotes.pruning.frontier import Point

ABOUT = """\
Removes pieces of texts and attention heads that matter little, and finds the fastest model
within a loss of macro-F1 that you allow. Writes a model folder and the whole frontier.
"""
EXAMPLE = "litotes prune --model runs/mine --data sampler --loss 0.5 --out runs/small"
USES = ("json", "seed", "out", "device")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="RUN", help="the folder of a dense model")
    parser.add_argument(
        "--data",
        required=True,
        metavar="SOURCE",
        help="texts to learn from, to choose by and to test on",
    )
    parser.add_argument(
        "--loss",
        type=points,
        default=0.5,
        metavar="POINTS",
        help="macro-F1 points that may be lost (default 0.5)",
    )
    sure = (
        "how often the loss must be within that in a bootstrap over the texts chosen by (default"
        " 0.8)"
    )
    parser.add_argument("--sure", type=chance, default=0.8, metavar="SHARE", help=sure)
    targets = (
        "times fewer operations than dense, each a point of the frontier (default 1.5,2,2.5,3)"
    )
    parser.add_argument(
        "--targets", type=ratios, default=(1.5, 2.0, 2.5, 3.0), metavar="LIST", help=targets
    )
    parser.add_argument(
        "--heads",
        type=share,
        default=0.67,
        metavar="SHARE",
        help="attention heads kept for good (default 0.67)",
    )
    parser.add_argument(
        "--epochs",
        type=count,
        default=6,
        metavar="N",
        help="epochs with budgets drawn at every step (default 6)",
    )
    parser.add_argument(
        "--settle",
        type=count,
        default=4,
        metavar="N",
        help="epochs with the budgets of each target (default 4)",
    )


def run(options: argparse.Namespace) -> None:
    sleep_while_waiting()  # torch, imported below, would have them spin
    from litotes.cli.display import print_json, print_lines, print_scores, progress, say
    from litotes.core.errors import UserError
    from litotes.core.storage import write_bytes
    from litotes.pruning import PruneSettings, carry_out, plan_pruning
    from litotes.pruning.figure import figure
    from litotes.report.figure import render_figure

    settings = PruneSettings(
        loss=options.loss,
        sure=options.sure,
        targets=options.targets,
        heads=options.heads,
        epochs=options.epochs,
        settle_epochs=options.settle,
        seed=options.seed or 0,
    )
    out = Path(options.out or f"{options.model.rstrip('/')}-pruned")
    plan = plan_pruning(Path(options.model), options.data, out, settings=settings)
    say(plan.notes)
    with progress() as watch:
        pruned = carry_out(plan, device=options.device, watch=watch)
    write_bytes(
        out / "frontier.svg", render_figure(figure(pruned.points, budget=settings.loss), "svg")
    )
    say([note for note in pruned.notes if note not in plan.notes])
    if options.json:
        print_json(pruned.as_json())
    else:
        _print(pruned)
        if pruned.scores:
            print_scores(pruned.scores)
    if pruned.model is None:
        raise UserError(pruned.refusal())
    if not options.json:
        export = shlex.join(["litotes", "export", "--model", str(out), "--int8"])
        print_lines(f"The model is in {out}. Export it: {export}")


COLUMNS = (
    "times fewer operations",
    "times as fast",
    "loss",
    "95 % interval",
    "chance within",
    "loss on test",
    "pieces that go on",
    "",
)


def _print(pruned: PruneResult) -> None:
    from litotes.cli.display import print_table

    title = (
        "Against our own dense model: times fewer operations, times as fast, macro-F1 points lost"
    )
    print_table(COLUMNS, [_row(point) for point in pruned.points], title=title)


def _row(point: Point) -> tuple[str, ...]:
    from litotes.core.numbers import format_signed

    low, high = point.loss.interval
    return (
        f"{point.flops_ratio:.2f}",
        f"{point.speed_ratio:.2f}",
        format_signed(point.loss.points, 2),
        f"{format_signed(low, 2)} to {format_signed(high, 2)}",
        f"{point.loss.chance_within:.2f}",
        "" if point.test_loss is None else format_signed(point.test_loss.points, 2),
        " ".join(f"{share:.2f}" for share in point.shares),
        "chosen" if point.chosen else "",
    )
