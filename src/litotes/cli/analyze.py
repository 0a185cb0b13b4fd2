"""`litotes analyze [--model M] --data SOURCE [--tuned-from BASE]`"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litotes.cli.numbers import count
from litotes.cli.options import add_data, add_model
from litotes.cli.selection import add_where, chosen_texts, parse_where
from litotes.encoders.bundled import BUNDLED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from litotes.inside.analysis import Analysis
    from litotes.inside.analyze import CorpusAnalysis


def add_options(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_data(parser)
    tuned = (
        "the encoder the model was tuned from, to see what changed (default: the one its folder"
        " names, if that is a bundled one)"
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
    from litotes.cli.display import print_json, progress, say
    from litotes.data.sources import load
    from litotes.encoders import pretrained
    from litotes.inside.analyze import Subject, analyze
    from litotes.model.checkpoint import load_model

    if options.out:
        # a folder that cannot be is told before the work, not after
        Path(options.out).mkdir(parents=True, exist_ok=True)
    analyses = _chosen(options.only)
    chosen_options = _options(options.changes)
    where = parse_where(options.where)
    model = load_model(options.model)
    # a model folder must not send us to other folders or to the network: only a bundled encoder is
    # taken at its word
    tuned_from = options.tuned_from or (model.base if model.base in BUNDLED else None)
    needs_base = any(analysis.measure.needs_base for analysis in analyses.values())
    base = pretrained.load(tuned_from).encoder if tuned_from and needs_base else None
    corpus = chosen_texts(load(options.data), where)
    with progress() as watch:
        analysed = analyze(
            Subject(Path(options.model).resolve().name, model, base),
            corpus,
            analyses,
            options=chosen_options,
            n_texts=options.texts,
            seed=options.seed or 0,
            device=options.device,
            watch=watch,
        )
    if options.out:
        _write(analysed, Path(options.out))
    say(f"{name} was left out: it {why}." for name, why in analysed.left_out.items())
    if analysed.n_truncated:
        say(
            [
                f"{analysed.n_truncated} of {analysed.n_texts} texts are longer than the model"
                " reads; their ends were not looked at."
            ]
        )
    if options.json:
        print_json(analysed.as_json())
        return
    _print(analysed)
    if options.out:
        print(f"\n{Path(options.out) / 'report.html'}")


def _chosen(only: str | None) -> Mapping[str, Analysis]:
    from litotes.core.registry import pick
    from litotes.inside import ANALYSES

    if only is None:
        return ANALYSES
    return {
        name: pick(ANALYSES, name, "analysis") for part in only.split(",") if (name := part.strip())
    }


def _options(changes: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    from litotes.core.errors import UserError
    from litotes.core.registry import check_options
    from litotes.inside import ANALYSES
    from litotes.training.recipe import apply_changes

    measures = {name: analysis.measure for name, analysis in ANALYSES.items()}
    found: dict[str, Any] = {}
    apply_changes(found, changes)
    for name, options in found.items():
        if not isinstance(options, dict):
            raise UserError(
                f"--set {name}: write it as NAME.OPTION=VALUE, for example --set"
                " faithfulness.n_texts=200."
            )
        check_options(measures, name, "analysis", options)
    return found


def _write(analysed: CorpusAnalysis, out: Path) -> None:
    """analysis.json, each figure as SVG with its JSON beside it, and the report that shows them."""
    from litotes.core.storage import write_bytes, write_json, write_text
    from litotes.inside import ANALYSES
    from litotes.inside.report import report_html
    from litotes.report.figure import rendered

    pictures = {}
    for name, result in analysed.results.items():
        picture = rendered(ANALYSES[name].draw_figure(result), "svg")
        write_bytes(out / f"{name}.svg", picture)
        write_json(out / f"{name}.json", result.as_json())
        pictures[name] = picture.decode("utf-8")
    write_text(out / "report.html", report_html(analysed, pictures))
    write_json(out / "analysis.json", analysed.as_json())


def _print(analysed: CorpusAnalysis) -> None:
    print(f"{analysed.model} on {analysed.n_texts} texts of {analysed.data}")
    for name, result in analysed.results.items():
        print(f"\n{name}")
        for finding in result.findings():
            print(f"  {finding}")
