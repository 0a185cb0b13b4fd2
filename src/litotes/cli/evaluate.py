"""`litotes evaluate --model RUN --data SOURCE`"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_to(commands: Any, common: argparse.ArgumentParser) -> None:
    parser = commands.add_parser("evaluate", parents=[common], help="scores with intervals, by cell", allow_abbrev=False)
    parser.add_argument("--model", required=True, metavar="RUN", help="a model folder")
    parser.add_argument("--data", required=True, metavar="SOURCE", help="a corpus, e.g. sampler or besstie:PATH")
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="KEY=WORD",
        help="variety=, source=, task= or split=; split is the test split unless given",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, print_scores, progress, say
    from litotes.cli.selection import parse_where
    from litotes.data.sources import load
    from litotes.evaluation.evaluate import evaluate, warnings_of
    from litotes.predictor import Predictor
    from litotes.storage import write_json

    where = parse_where(options.where)
    predictor = Predictor.load(options.model, device=options.device)
    corpus = load(options.data)
    corpus = corpus.where(**(where if "split" in where else where | {"split": corpus.test_split()}))
    with progress() as watch:
        rows = evaluate(predictor, corpus, seed=options.seed or 0, watch=watch)
    content = [row.as_json() for row in rows]
    if options.out:
        write_json(Path(options.out) / "scores.json", content)
    say(warnings_of(rows))
    if options.json:
        print_json(content)
    else:
        print_scores(rows)
