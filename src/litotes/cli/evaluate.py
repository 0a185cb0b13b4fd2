"""`litotes evaluate --model RUN --data SOURCE`"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litotes.cli.gap_tables import print_gaps
from litotes.cli.kinds import command_of
from litotes.cli.options import add_data, add_runtime, add_verbose
from litotes.cli.predictors import load_predictors
from litotes.cli.selection import add_where, parse_where, select_texts
from litotes.cli.set_table import print_set_coverages
from litotes.cli.slice_table import print_slices
from litotes.core.errors import has_extra

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from litotes.evaluation.evaluate import CellScores, ModelDifference, TaskPredictions
    from litotes.evaluation.gaps import Gaps
    from litotes.evaluation.slices import Slices
    from litotes.evaluation.unsure import SetCoverage

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
    parser.add_argument(
        "--by",
        metavar="COLUMNS",
        help="variety,source,cell,…: test how groups of texts differ, with intervals and power",
    )
    parser.add_argument(
        "--slices",
        action="store_true",
        help="search words, lengths, sources and features that the model is worse on",
    )
    add_where(parser, split="the test split")
    add_runtime(parser)
    add_verbose(parser)


def run(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, print_scores, progress, say
    from litotes.evaluation.evaluate import (
        compare_models,
        map_labels_as_trained,
        predict_corpus,
        score_cells,
        score_warnings,
    )
    from litotes.evaluation.gaps import check_columns, find_gaps
    from litotes.evaluation.slices import find_slices
    from litotes.evaluation.unsure import set_coverages
    from litotes.model.folder import kind_of, open_model

    evaluate_other_kind = command_of(kind_of(options.model), "evaluate")
    if evaluate_other_kind is not None:
        evaluate_other_kind(options)
        return
    where = parse_where(options.where)
    columns = None if options.by is None else check_columns(options.by)
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
    sets = set_coverages(predictions, corpus)
    gaps = None
    if columns is not None:
        gaps = find_gaps(predictions, columns, corpus=corpus.name, seed=seed)
    slices = find_slices(predictions, seed=seed) if options.slices else None
    content = _as_json(rows, against, sets, gaps, slices)
    if options.out:
        if not has_extra("figures"):
            say(["No figure is drawn, for lack of matplotlib: `pip install 'litotes[figures]'`."])
        _write(content, predictions, slices, Path(options.out))
    say([*score_warnings(rows), *(gaps.notes if gaps is not None else ())])
    if options.json:
        print_json(content)
        return
    print_scores(rows)
    if sets:
        print_set_coverages(sets)
    if gaps is not None:
        print_gaps(gaps)
    if slices is not None:
        print_slices(slices)
    if against:
        _print_comparison(against, options.model, options.against)


def _as_json(
    rows: Sequence[CellScores],
    against: Sequence[ModelDifference] | None,
    sets: Sequence[SetCoverage],
    gaps: Gaps | None,
    slices: Slices | None,
) -> Any:
    """The scores alone, or with what else was asked for under names of their own."""
    scores = [row.as_json() for row in rows]
    more: dict[str, Any] = {}
    if against is not None:
        more["against"] = [row.as_json() for row in against]
    if gaps is not None:
        more["gaps"] = gaps.as_json()
    if slices is not None:
        more["slices"] = slices.as_json()
    if sets:
        more["unsure"] = [row.as_json() for row in sets]
    return {"scores": scores, **more} if more else scores


def _write(
    content: Any, predictions: Mapping[str, TaskPredictions], slices: Slices | None, out: Path
) -> None:
    """The scores, how reliable the probabilities of each classification are, and how many mistakes
    remain when the least sure answers are left out; slices where they were searched. Without
    matplotlib only their numbers.
    """
    from litotes.core.figures import save_figure
    from litotes.core.storage import write_json
    from litotes.evaluation.reliability import draw_reliability, draw_risk_coverage
    from litotes.evaluation.slices import write_slices

    write_json(out / "scores.json", content)
    has_figures = has_extra("figures")
    if slices is not None and has_figures:
        write_slices(slices, out)
    elif slices is not None:
        write_json(out / "slices.json", slices.as_json())
    labels = {task: one for task, one in predictions.items() if one.task.is_choice}
    if not labels:
        return
    curves = {task: one.reliability() for task, one in labels.items()}
    risks = {task: one.risk_coverage() for task, one in labels.items()}
    numbers = {
        "reliability": {task: one.as_json() for task, one in curves.items()},
        "risk_coverage": {task: one.as_json() for task, one in risks.items()},
    }
    if not has_figures:
        for name, own in numbers.items():
            write_json(out / f"{name}.json", own)
        return
    pictures = {
        "reliability": draw_reliability(curves),
        "risk_coverage": draw_risk_coverage(risks),
    }
    for name, picture in pictures.items():
        save_figure(out / name, picture, numbers[name], with_png=False)


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
