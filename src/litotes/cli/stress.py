"""`litotes stress [--model M] --data SOURCE [--only NAMES]`"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.cli.numbers import count
from litotes.cli.options import add_data, add_model, add_runtime, add_verbose
from litotes.cli.predictors import load_predictor
from litotes.cli.selection import add_where, parse_where, select_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litotes.data.rewrites.rewrite import Rewrite
    from litotes.evaluation.stress import Contrast, StressResult

ABOUT = """\
Rewrites texts by single features of varieties of English and counts which of them change the
model's answers, beside a control with as many words changed. Writes a figure and a report.
"""
EXAMPLE = "litotes stress --model builtin --data sampler --texts 50 --out runs/stress"
USES = ("json", "seed", "out", "device")


def add_options(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_data(parser)
    parser.add_argument(
        "--only",
        metavar="NAMES",
        help="rewrites with commas between, see `litotes list rewrites` (default: all)",
    )
    parser.add_argument(
        "--texts",
        type=count,
        metavar="N",
        help="texts under each rewrite, at most, drawn at random (default: 200)",
    )
    add_where(parser, split="the test split")
    add_runtime(parser)
    add_verbose(parser)


def run(options: argparse.Namespace) -> None:
    from litotes.core.storage import new_folder

    # a folder that cannot be made is reported before the work, not after it
    with new_folder(Path(options.out)) if options.out else nullcontext():
        _stress(options)


def _stress(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, print_lines, progress
    from litotes.evaluation.evaluate import map_labels_as_trained
    from litotes.evaluation.stress import N_TEXTS, stress, write_stress
    from litotes.model.folder import open_model

    rewrites = _pick_rewrites(options.only)
    where = parse_where(options.where)
    predictor = load_predictor(options, options.model)
    corpus = select_texts(options.data, where, [options.model])
    corpus = map_labels_as_trained(corpus, open_model(options.model))
    with progress() as watch:
        result = stress(
            predictor,
            corpus,
            rewrites,
            model=Path(options.model).resolve().name,
            n_texts=options.texts or N_TEXTS,
            seed=options.seed or 0,
            watch=watch,
        )
    if options.out:
        write_stress(result, rewrites, Path(options.out))
    if options.json:
        print_json(result.as_json())
        return
    _print(result)
    if options.out:
        print_lines("", str(Path(options.out) / "stress.html"))


def _pick_rewrites(only: str | None) -> Mapping[str, Rewrite]:
    from litotes.core.registry import pick
    from litotes.data.rewrites import REWRITES

    if only is None:
        return REWRITES
    names = filter(None, map(str.strip, only.split(",")))
    return {name: pick(REWRITES, name, "rewrite") for name in names}


def _print(result: StressResult) -> None:
    from litotes.cli.display import print_lines, print_table
    from litotes.evaluation.stress import findings

    for task in result.tasks():
        lines = []
        for row in result.overall(task):
            low, high = row.flips.interval
            shares = f"{100 * row.flips.value:.1f} ({100 * low:.1f}-{100 * high:.1f})"
            control = f"{100 * row.control.flips.value:.1f}" if row.control else ""
            change = row.control.change_difference if row.control else None
            flips = row.control.flip_difference if row.control else None
            verdict = "worse than control" if row.is_worse_than_control else ""
            tests = (_p(flips), _p(change))
            lines.append((row.rewrite, str(row.n), shares, control, *tests, verdict))
        head = ("rewrite", "texts", "flips, % (95 %)", "control, %", "p flips", "p probability", "")
        print_table(head, lines, title=f"{task}: answers of {result.model} that change")
    print_lines(*findings(result), "p against the control, corrected after Holm over all tests.")


def _p(contrast: Contrast | None) -> str:
    return "" if contrast is None else f"{contrast.adjusted_p:.3f}"
