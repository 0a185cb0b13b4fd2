"""`litotes calibrate --model M --data SOURCE [--coverage 0.9] [--by variety]`"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.cli.numbers import part
from litotes.cli.options import add_data, add_runtime, add_verbose
from litotes.cli.selection import add_where, parse_where, select_texts

if TYPE_CHECKING:
    from litotes.data.corpus import Corpus
    from litotes.evaluation.unsure import SetCoverage, UnsureResult
    from litotes.model.folder import ModelFolder

ABOUT = """\
Lets a model answer "unsure": the set of labels it then gives holds the truth as often as asked
for, on texts like those of SOURCE. The bounds are written into the model folder.
"""
EXAMPLE = "litotes calibrate --model runs/mine --data sampler --coverage 0.9 --by variety"
USES = ("json", "seed", "out", "device")

_COVERAGE = 0.9


def add_options(parser: argparse.ArgumentParser) -> None:
    model = "a model folder; it, or the copy that --out makes of it, gains the bounds"
    parser.add_argument("--model", required=True, metavar="M", help=model)
    add_data(parser)
    parser.add_argument(
        "--coverage",
        type=part,
        default=_COVERAGE,
        metavar="C",
        help=f"how often the truth is among the labels given (default {_COVERAGE})",
    )
    parser.add_argument(
        "--by", choices=("variety",), help="promise it in each variety, where texts suffice"
    )
    parser.add_argument(
        "--check",
        type=part,
        metavar="SHARE",
        help="set this part of the texts aside, and count on it whether the promise is kept",
    )
    add_where(parser, split="the test split")
    add_runtime(parser)
    add_verbose(parser)


def run(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, say
    from litotes.evaluation.evaluate import map_labels_as_trained
    from litotes.evaluation.unsure import folder_to_calibrate
    from litotes.model.folder import open_model

    out = None if options.out is None else Path(options.out)
    with folder_to_calibrate(options.model, out) as target:
        corpus = select_texts(options.data, parse_where(options.where), [options.model])
        corpus = map_labels_as_trained(corpus, open_model(options.model))
        result, rows = _calibrate(target, corpus, options)
    say(result.notes)
    if options.json:
        content = {"folder": str(target), **result.as_json()}
        if options.check is not None:
            content["check"] = [row.as_json() for row in rows]
        print_json(content)
        return
    _print(result, rows, target)


def _calibrate(
    target: ModelFolder, corpus: Corpus, options: argparse.Namespace
) -> tuple[UnsureResult, tuple[SetCoverage, ...]]:
    from litotes.cli.display import progress
    from litotes.cli.predictors import load_predictor
    from litotes.evaluation.evaluate import predict_corpus
    from litotes.evaluation.unsure import calibrate_folder, set_coverages

    checked = None
    if options.check is not None:
        corpus, checked = corpus.hold_out(options.check, seed=options.seed or 0)
    predictor = load_predictor(options, str(target.path))
    with progress() as watch:
        result = calibrate_folder(
            target,
            predictor,
            corpus,
            coverage=options.coverage,
            by_variety=options.by == "variety",
            watch=watch,
        )
        if checked is None:
            return result, ()
        # with the bounds that are now in the folder
        predictions = predict_corpus(load_predictor(options, str(target.path)), checked)
        return result, set_coverages(predictions, checked)


def _print(result: UnsureResult, rows: tuple[SetCoverage, ...], target: ModelFolder) -> None:
    from litotes.cli.display import print_lines, print_table
    from litotes.cli.set_table import print_set_coverages

    lines = []
    for task, sets in result.label_sets.items():
        for name, bound in {"all texts": sets.overall, **sets.varieties}.items():
            lines.append((task, name, str(bound.n), f"{bound.least:.3f}"))
    head = ("task", "of", "n", "least share of a label")
    coverage = next(iter(result.label_sets.values())).coverage
    print_table(head, lines, title=f"Labels are given that hold the truth in {coverage:.1%}")
    if rows:
        print_set_coverages(rows)
    print_lines(
        f"{target} now answers with a label, with several, or with none. The promise is about texts"
        " like these: other sources and other times are not covered by it."
    )
