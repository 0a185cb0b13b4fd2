"""`litotes evaluate --model RUN --data SOURCE`"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litotes.cli.options import add_data, add_runtime, add_verbose
from litotes.cli.predictors import load_predictors
from litotes.cli.selection import add_where, parse_where, select_texts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from litotes.evaluation.evaluate import CellScores, TaskPredictions
    from litotes.evaluation.model_comparison import ModelDifference

ABOUT = """\
Scores a model on labelled texts, with 95 % intervals and the majority line, for each variety
and source. Two models are compared on the same texts with --against.
"""
EXAMPLE = "litotes evaluate --model runs/mine --data sampler --where variety=en-IN"
USES = ("json", "seed", "out", "device")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="RUN", help="a model folder")
    add_data(parser)
    parser.add_argument(
        "--against",
        metavar="RUN",
        help="another model folder: is the difference on the same texts real?",
    )
    add_where(parser, split="the test split")
    add_runtime(parser)
    add_verbose(parser)


def run(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, print_scores, progress, say
    from litotes.evaluation.evaluate import predict_corpus, score_cells, score_warnings
    from litotes.evaluation.fair_texts import map_labels_as_trained
    from litotes.evaluation.model_comparison import compare_models
    from litotes.model.folder import open_model

    where = parse_where(options.where)
    folders = [options.model]
    if options.against:
        folders.append(options.against)
    models = load_predictors(options, folders)
    corpus = select_texts(options.data, where, folders)
    corpus = map_labels_as_trained(corpus, open_model(options.model))
    seed = options.seed or 0
    with progress() as watch:
        predictions, *others = [predict_corpus(model, corpus, watch=watch) for model in models]
    rows = score_cells(predictions, corpus, seed=seed)
    against = compare_models(predictions, others[0], corpus, seed=seed) if others else None
    content = _as_json(rows, against)
    if options.out:
        _write(content, predictions, Path(options.out))
    say(score_warnings(rows))
    if options.json:
        print_json(content)
        return
    print_scores(rows)
    if against:
        _print_comparison(against, options.model, options.against)


def _as_json(rows: Sequence[CellScores], against: Sequence[ModelDifference] | None) -> Any:
    scores = [row.as_json() for row in rows]
    if against is None:
        return scores
    return {"scores": scores, "against": [row.as_json() for row in against]}


def _write(content: Any, predictions: Mapping[str, TaskPredictions], out: Path) -> None:
    """The scores, and how reliable the probabilities of each classification are."""
    from litotes.core.storage import write_json
    from litotes.evaluation.reliability_figure import figure
    from litotes.report.writing import write_figure

    write_json(out / "scores.json", content)
    curves = {}
    for task, result in predictions.items():
        if not result.task.is_regression:
            curves[task] = result.reliability()
    if curves:
        numbers = {task: curve.as_json() for task, curve in curves.items()}
        write_figure(out / "reliability", figure(curves), numbers, with_png=False)


def _print_comparison(rows: Sequence[ModelDifference], model: str, other: str) -> None:
    from litotes.cli.display import print_lines, print_table
    from litotes.core.numbers import format_signed

    lines = []
    for row in rows:
        low, high = row.difference.interval
        verdict = "significant" if row.is_significant else "not significant"
        numbers = (
            format_signed(row.difference.difference, 3),
            f"{format_signed(low, 3)} to {format_signed(high, 3)}",
            f"{row.difference.p:.4f}",
            f"{row.adjusted_p:.4f}",
        )
        lines.append((row.task, row.cell, str(row.difference.n), *numbers, verdict))
    head = ("task", "cell", "n", "difference", "95 % interval", "p", "p corrected", "")
    print_table(head, lines, title=f"Macro-F1 of {model} less that of {other}, on the same texts")
    print_lines(
        "One model each: p and interval are about other texts, not about other seeds. Holm's"
        " correction over all rows."
    )
