"""`litotes prune --model RUN --loss 0.5 --data SOURCE`"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.cli.numbers import chance, count, folds, points, ratios, share
from litotes.core.machine import sleep_while_waiting

if TYPE_CHECKING:
    from litotes.pruning import PruneResult
    from litotes.pruning.frontier import Loss, Point

ABOUT = """\
Removes pieces of texts and attention heads that matter little, and finds the fastest model
within a loss of macro-F1 that you allow. Writes a model folder and the whole frontier.
"""
EXAMPLE = "litotes prune --model runs/mine --data sampler --loss 0.5 --out runs/small"
USES = ("json", "seed", "out", "device")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="RUN", help="a dense model")
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
        "how probable it must be that the loss is within that, for example 0.8 (default: it is"
        " enough that it is expected to be)"
    )
    parser.add_argument("--confidence", type=chance, metavar="SHARE", help=sure)
    targets = (
        "times fewer operations than dense, each a point of the frontier (default 1.5,2,2.5,3)"
    )
    parser.add_argument(
        "--factors", type=ratios, default=(1.5, 2.0, 2.5, 3.0), metavar="LIST", help=targets
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
        "--target-epochs",
        type=count,
        default=4,
        metavar="N",
        help="epochs with the budgets of each target (default 4)",
    )
    _add_text_options(parser)
    _add_training_options(parser)


def _add_text_options(parser: argparse.ArgumentParser) -> None:
    """Which texts show what is lost."""
    parser.add_argument(
        "--cross-fit",
        type=folds,
        default=0,
        metavar="K",
        help="prune K more models, each without a fold of the training texts, and let their answers"
        " to it count: K + 1 times the work (default 0)",
    )
    parser.add_argument(
        "--unlabelled",
        metavar="SOURCE",
        help="texts without labels, on which agreement with the dense model counts",
    )
    parser.add_argument(
        "--exclude",
        type=_sources,
        metavar="SOURCES",
        help="corpora whose texts are not learned from, with commas between, or none (default:"
        " those that the model was trained without)",
    )
    parser.add_argument(
        "--held-out",
        metavar="SOURCE",
        help="labelled texts that report what the models lose and do not choose",
    )


def _sources(words: str) -> tuple[str, ...]:
    return () if words == "none" else tuple(words.split(","))


def _add_training_options(parser: argparse.ArgumentParser) -> None:
    """How the pruned models are trained, and what their pruning does."""
    parser.add_argument(
        "--teacher-share",
        type=chance,
        default=0.9,
        metavar="SHARE",
        help="how much the dense model's answers count against the labels (default 0.9)",
    )
    switch = argparse.BooleanOptionalAction
    parser.add_argument(
        "--restore",
        action=switch,
        default=True,
        help="give the head all pieces, removed ones as they left (default yes)",
    )
    parser.add_argument(
        "--fuse",
        action=switch,
        default=True,
        help="leave one piece in place of those removed (default yes)",
    )
    parser.add_argument(
        "--importance",
        choices=("received", "value", "scorer"),
        default="value",
        help="what decides which pieces stay (default value)",
    )
    parser.add_argument(
        "--control",
        action=switch,
        default=True,
        help="train the dense model on as long as the pruned ones, to compare (default yes)",
    )


def run(options: argparse.Namespace) -> None:
    sleep_while_waiting()  # torch, imported below, would have them spin
    from litotes.cli.display import print_json, print_lines, print_scores, progress, say
    from litotes.core.errors import UserError
    from litotes.core.figures import render_figure
    from litotes.core.storage import write_bytes
    from litotes.pruning import PruneSettings, carry_out, plan_pruning
    from litotes.pruning.frontier import figure

    settings = PruneSettings(
        loss=options.loss,
        sure=options.confidence,
        targets=options.factors,
        heads=options.heads,
        epochs=options.epochs,
        settle_epochs=options.target_epochs,
        teacher=options.teacher_share,
        seed=options.seed or 0,
        folds=options.cross_fit,
        unlabelled=options.unlabelled,
        held_out=options.held_out,
        control=options.control,
        options={
            "importance": options.importance,
            "fuse": options.fuse,
            "restore": options.restore,
        },
    )
    out = Path(options.out or f"{options.model.rstrip('/')}-pruned")
    plan = plan_pruning(options.model, options.data, out, settings=settings, avoid=options.exclude)
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
    "",
    "times fewer operations",
    "times as fast",
    "loss kept apart",
    "expected loss",
    "95 % interval",
    "chance within",
    "same label",
    "loss on test",
    "loss held out",
    "pieces that go on",
    "",
)
NAMES = {"dense": "dense", "control": "dense, trained on", "pruned": "pruned"}


def _print(pruned: PruneResult) -> None:
    from litotes.cli.display import print_table

    title = (
        "Against our own dense model: times fewer operations, times as fast, macro-F1 points lost"
    )
    rows = [_row(point) for point in pruned.points]
    told = [place for place in range(len(COLUMNS)) if any(row[place] for row in rows)]
    columns = [COLUMNS[place] for place in told]
    print_table(columns, [[row[place] for place in told] for row in rows], title=title)


def _row(point: Point) -> tuple[str, ...]:
    from litotes.core.numbers import format_signed

    def lost(loss: Loss | None) -> str:
        return "" if loss is None else format_signed(loss.points, 2)

    low, high = point.best_guess.interval
    return (
        NAMES[point.kind],
        f"{point.flops_ratio:.2f}",
        f"{point.speed_ratio:.2f}",
        lost(point.loss),
        lost(point.best_guess),
        f"{format_signed(low, 2)} to {format_signed(high, 2)}",
        f"{point.best_guess.chance_within:.2f}",
        "" if point.agreement is None else f"{100 * point.agreement:.1f} %",
        lost(point.test_loss),
        lost(point.reported),
        " ".join(f"{share:.2f}" for share in point.shares),
        "chosen" if point.chosen else "",
    )
