"""`litotes analyze [--model M] --data SOURCE [--tuned-from BASE]`"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litotes.cli.numbers import count
from litotes.cli.options import add_data, add_model
from litotes.cli.selection import add_where, parse_where, select_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from litotes.encoder.encoder import Encoder
    from litotes.explanation.analyses.analysis import Analysis
    from litotes.explanation.analyses.analyze import CorpusAnalysis
    from litotes.model.checkpoint import Model

ABOUT = """\
Measures what a model's attention does over a corpus: its patterns, what is effective, what can
be removed, which explanations can be trusted. Writes figures and a report.
"""
EXAMPLE = "litotes analyze --model builtin --data sampler --out runs/inside"
USES = ("json", "seed", "out", "device")


def add_options(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_data(parser)
    tuned = (
        "the encoder the model was tuned from, to see what changed (default: the one its folder"
        " names, if that has a name and is here)"
    )
    parser.add_argument("--tuned-from", metavar="BASE", help=tuned)
    parser.add_argument(
        "--only",
        metavar="NAMES",
        help="analyses with commas between, see `litotes list analyses` (default: all)",
    )
    parser.add_argument(
        "--texts", type=count, metavar="N", help="so many texts, drawn at random (default: all)"
    )
    changes = (
        "an option of an analysis, e.g. faithfulness.n_texts=200 (see `litotes list analyses`)"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME.OPTION=VALUE",
        dest="changes",
        help=changes,
    )
    add_where(parser, split="the test split")


def run(options: argparse.Namespace) -> None:
    from litotes.core.storage import new_folder

    # a folder that cannot be made is reported before the work, not after it
    with new_folder(Path(options.out)) if options.out else nullcontext():
        _analyze(options)


def _analyze(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, print_lines, progress, say
    from litotes.explanation.analyses.analyze import Subject, analyze, write_analysis
    from litotes.model.checkpoint import load_model

    analyses = _pick_analyses(options.only)
    analysis_options = _parse_options(options.changes)
    where = parse_where(options.where)
    model = load_model(options.model)
    base = _load_base(options.tuned_from, model, analyses)
    corpus = select_texts(options.data, where, [options.model])
    with progress() as watch:
        analysis = analyze(
            Subject(Path(options.model).resolve().name, model, base),
            corpus,
            analyses,
            options=analysis_options,
            n_texts=options.texts,
            seed=options.seed or 0,
            device=options.device,
            watch=watch,
        )
    if options.out:
        write_analysis(analysis, Path(options.out))
    say(_notes(analysis))
    if options.json:
        print_json(analysis.as_json())
        return
    _print(analysis)
    if options.out:
        print_lines("", str(Path(options.out) / "report.html"))


def _pick_analyses(only: str | None) -> Mapping[str, type[Analysis]]:
    from litotes.core.registry import pick
    from litotes.explanation.analyses import ANALYSES

    if only is None:
        return ANALYSES
    names = filter(None, map(str.strip, only.split(",")))
    return {name: pick(ANALYSES, name, "analysis") for name in names}


def _parse_options(changes: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """The options of each analysis, from NAME.OPTION=VALUE."""
    from litotes.core.errors import UserError
    from litotes.core.registry import check_options
    from litotes.explanation.analyses import ANALYSES
    from litotes.training.recipe import apply_changes

    by_analysis: dict[str, Any] = {}
    apply_changes(by_analysis, changes)
    for name, options in by_analysis.items():
        if not isinstance(options, dict):
            raise UserError(
                f"--set {name}: write it as NAME.OPTION=VALUE, for example --set"
                " faithfulness.n_texts=200."
            )
        check_options(ANALYSES, name, "analysis", options)
    return by_analysis


def _load_base(
    tuned_from: str | None, model: Model, analyses: Mapping[str, type[Analysis]]
) -> Encoder | None:
    """The encoder the model was tuned from, if an analysis needs it and it is known.

    A model folder must not send us to other folders or to the network: the base it names is used
    only if that is a named encoder that is here.
    """
    from litotes.encoder import pretrained
    from litotes.encoder.pretrained import is_here

    if tuned_from is None and is_here(model.base):
        tuned_from = model.base
    needs_base = any(analysis.needs_base for analysis in analyses.values())
    return pretrained.load(tuned_from).encoder if tuned_from and needs_base else None


def _notes(analysis: CorpusAnalysis) -> Iterator[str]:
    for name, why in analysis.left_out.items():
        yield f"{name} was left out: it {why}."
    if analysis.n_truncated:
        yield (
            f"{analysis.n_truncated} of {analysis.n_texts} texts are longer than the model reads;"
            " their ends were not looked at."
        )
    if analysis.n_unreadable:
        yield (
            f"{analysis.n_unreadable} of {analysis.n_texts} texts are unreadable: the model knows"
            " no part of them."
        )


def _print(analysis: CorpusAnalysis) -> None:
    from litotes.cli.display import print_lines
    from litotes.core.numbers import counted

    n_texts = counted(analysis.n_texts, "text")
    print_lines(f"{analysis.model} on {n_texts} of {analysis.data}")
    for name, result in analysis.results.items():
        print_lines("", name, *(f"  {finding}" for finding in result.findings()))
