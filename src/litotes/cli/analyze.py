"""`litotes analyze [--model M] --data SOURCE`: what attention does; `litotes stress`: which
features of a variety change answers.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

from litotes.cli.display import print_json, print_lines, progress, say
from litotes.cli.evaluate import select_texts
from litotes.cli.inputs import load_predictors, parse_where
from litotes.cli.tables import print_rows
from litotes.core.errors import UserError
from litotes.core.numbers import counted
from litotes.core.registry import check_options, pick
from litotes.core.storage import new_folder
from litotes.data.rewrites import REWRITES
from litotes.encoder import pretrained
from litotes.encoder.encoder import Encoder
from litotes.evaluation import stress as stressing
from litotes.evaluation.evaluate import map_labels_as_trained
from litotes.explanation.analyses import ANALYSES
from litotes.explanation.analyses import analyze as analyzing
from litotes.explanation.analyses.analysis import Analysis
from litotes.model.checkpoint import Model, load_model
from litotes.model.folder import open_model
from litotes.training.recipe import apply_changes

Entry = TypeVar("Entry")


def _chosen(table: Mapping[str, Entry], only: Sequence[str] | None, kind: str) -> dict[str, Entry]:
    """The entries of a table that --only names."""
    return {name: pick(table, name, kind) for name in (table if only is None else only)}


def _folder(out: str | None) -> AbstractContextManager[object]:
    """A folder that cannot be made is reported before the work, not after it."""
    return new_folder(Path(out)) if out else nullcontext()


def analyze(options: argparse.Namespace) -> None:
    with _folder(options.out):
        analyses = _chosen(ANALYSES, options.only, "analysis")
        settings = _parse_settings(options.changes)
        where = parse_where(options.where)
        model = load_model(options.model)
        base = _load_base(options.tuned_from, model, analyses)
        corpus = select_texts(options.data, where, [options.model])
        with progress() as watch:
            found = analyzing.analyze(
                analyzing.Subject(Path(options.model).resolve().name, model, base),
                corpus,
                analyses,
                options=settings,
                n_texts=options.texts,
                seed=options.seed or 0,
                device=options.device,
                watch=watch,
            )
        if options.out:
            analyzing.write_analysis(found, Path(options.out))
        say(found.notes())
        if options.json:
            print_json(found.as_json())
            return
        print_lines(f"{found.model} on {counted(found.n_texts, 'text')} of {found.data}")
        for name, result in found.results.items():
            print_lines("", name, *(f"  {finding}" for finding in result.findings()))
        if options.out:
            print_lines("", str(Path(options.out) / "report.html"))


def _parse_settings(changes: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """The options of each analysis, from NAME.OPTION=VALUE."""
    by_analysis: dict[str, Any] = {}
    apply_changes(by_analysis, changes)
    for name, own in by_analysis.items():
        if not isinstance(own, dict):
            raise UserError(
                f"--set {name}: write it as NAME.OPTION=VALUE, for example --set"
                " faithfulness.n_texts=200."
            )
        check_options(ANALYSES, name, "analysis", own)
    return by_analysis


def _load_base(
    tuned_from: str | None, model: Model, analyses: Mapping[str, type[Analysis]]
) -> Encoder | None:
    """The encoder the model was tuned from, if an analysis needs it and it is known.

    A model folder must not send us to other folders or to the network: the base it names is used
    only if that is a named encoder that is here.
    """
    if tuned_from is None and pretrained.is_here(model.base):
        tuned_from = model.base
    needs_base = any(analysis.needs_base for analysis in analyses.values())
    return pretrained.load(tuned_from).encoder if tuned_from and needs_base else None


FLIPS = """\
rewrite: {0[row].rewrite}
texts: {0[row].n}
flips, % (95 %): {0[flips]}
control, %: {0[control]}
p flips: {0[row].flip_difference.adjusted_p:.3f}
p probability: {0[row].change_difference.adjusted_p:.3f}
: {0[row].is_worse_than_control:worse than control|}
"""


def stress(options: argparse.Namespace) -> None:
    with _folder(options.out):
        rewrites = _chosen(REWRITES, options.only, "rewrite")
        where = parse_where(options.where)
        (predictor,) = load_predictors(options, [options.model])
        corpus = select_texts(options.data, where, [options.model])
        corpus = map_labels_as_trained(corpus, open_model(options.model))
        with progress() as watch:
            result = stressing.stress(
                predictor,
                corpus,
                rewrites,
                model=Path(options.model).resolve().name,
                n_texts=options.texts or stressing.N_TEXTS,
                seed=options.seed or 0,
                watch=watch,
            )
        if options.out:
            stressing.write_stress(result, rewrites, Path(options.out))
        if options.json:
            print_json(result.as_json())
            return
        for task in result.tasks():
            rows = [_row(row) for row in result.overall(task)]
            print_rows(FLIPS, rows, title=f"{task}: answers of {result.model} that change")
        print_lines(
            *stressing.findings(result),
            "p against the control, corrected after Holm over all tests.",
        )
        if options.out:
            print_lines("", str(Path(options.out) / "stress.html"))


def _row(row: stressing.StressRow) -> dict[str, object]:
    low, high = (100 * end for end in row.flips.interval)
    flips = f"{100 * row.flips.value:.1f} ({low:.1f}-{high:.1f})"
    control = f"{100 * row.control.flips.value:.1f}" if row.control else ""
    return {"row": row, "flips": flips, "control": control}
