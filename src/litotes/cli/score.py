"""`litotes score PREDICTIONS GOLD`: the shared task's metric."""

from __future__ import annotations

import argparse
from pathlib import Path

ABOUT = """\
Scores a file of answers against the gold labels by the ALTA 2026 shared task's exact metric,
with intervals.
"""
EXAMPLE = "litotes score answer.csv valid.csv"
USES = ("json", "seed", "out")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "predictions",
        type=Path,
        metavar="PREDICTIONS",
        help="source,variety,text,sentiment,sarcasm as .csv or .csv.gz",
    )
    parser.add_argument(
        "gold",
        type=Path,
        metavar="GOLD",
        help="the same rows in the same order, with the true labels",
    )


def run(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, print_lines, say
    from litotes.core.storage import write_json
    from litotes.evaluation.shared_task import score_files

    result = score_files(options.predictions, options.gold, seed=options.seed or 0)
    if options.out:
        write_json(Path(options.out) / "score.json", result.as_json())
    say(result.notes())
    if options.json:
        print_json(result.as_json())
    else:
        print_lines(*result.lines())
