"""`litotes prune --model RUN --data SOURCE`: less of every text; `litotes exits`: fewer layers."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import replace
from pathlib import Path

from litotes.cli.display import print_json, print_lines, progress, say
from litotes.cli.inputs import given
from litotes.cli.scores import print_scores
from litotes.cli.tables import print_rows
from litotes.core.errors import UserError
from litotes.core.figures import render_figure
from litotes.core.storage import write_bytes
from litotes.pruning import PruneSettings, carry_out, plan_pruning
from litotes.pruning.exits import ExitSettings, ExitsResult, add_exits
from litotes.pruning.frontier import figure

FRONTIER = """\
: {0.kind}
times fewer operations: {0.flops_ratio:.2f}
times as fast: {0.speed_ratio:.2f}
held-out loss: {0.loss.points:+z.2f}
expected loss: {0.expected.points:+z.2f}
95 % interval: {0.expected.interval:+z.2f}
chance within: {0.expected.chance_within:.2f}
same label: {0.agreement:.1%}
loss on test: {0.test_loss.points:+z.2f}
loss on --held-out: {0.reported.points:+z.2f}
share of pieces kept: {0.shares:.2f}
: {0.chosen:chosen|}
"""


def prune(options: argparse.Namespace) -> None:
    names = ("importance", "fuse", "restore")
    pruning = {name: getattr(options, name) for name in names}
    settings = PruneSettings(**given(options, PruneSettings), options=pruning)
    out = Path(options.out or f"{options.model.rstrip('/')}-pruned")
    plan = plan_pruning(
        options.model, options.data, out, settings=settings, exclude=options.exclude
    )
    say(plan.notes)
    with progress() as watch:
        pruned = carry_out(plan, device=options.device, watch=watch)
    frontier = render_figure(figure(pruned.points, budget=settings.loss), "svg")
    write_bytes(out / "frontier.svg", frontier)
    say([note for note in pruned.notes if note not in plan.notes])
    if options.json:
        print_json(pruned.as_json())
    else:
        title = "Against our own dense model: fewer operations, speed, macro-F1 points lost"
        print_rows(FRONTIER, pruned.points, title=title)
        if pruned.scores:
            print_scores(pruned.scores)
    if pruned.model is None:
        raise UserError(pruned.refusal())
    if not options.json:
        export = shlex.join(["litotes", "export", "--model", str(out), "--int8"])
        print_lines(f"The model is in {out}. Export it: {export}")


EXITS = """\
after layer: {0.layer}
answered there: {0.share:.1%}
of these differ: {0.differ:.2%}
all there: agree: {0.agrees:.1%}
ECE: {0.ece:.3f}
"""


def exits(options: argparse.Namespace) -> None:
    settings = ExitSettings(**given(options, ExitSettings))
    settings = replace(settings, differ=options.max_disagreement / 100)
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


def _print(result: ExitsResult) -> None:
    assert result.model.exits is not None
    title = f"On {result.n} texts by which nothing was chosen, against the whole model"
    print_rows(EXITS, result.rows, title=title)
    low, high = result.interval
    print_lines(
        f"Guaranteed: {result.model.exits.rule.promise.in_words()}.",
        f"{result.differ:.2%} differ (95 % interval {low:.2%} to {high:.2%});"
        f" {result.flops_ratio:.2f} times fewer operations, {result.speed_ratio:.2f} times as fast"
        f" by torch; {result.worst_ratio:.2f} times as slow where no text leaves.",
    )
