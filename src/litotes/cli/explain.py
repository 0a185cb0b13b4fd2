"""`litotes explain TEXT [--model M] [--out why.html]`"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.cli.options import add_model

if TYPE_CHECKING:
    from litotes.explain.explanation import Explanation


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "text",
        metavar="TEXT",
        help=(
            "--out why.html, .svg, .png or .json writes a file; without it, a view for the terminal"
        ),
    )
    add_model(parser)
    parser.add_argument("--pair", metavar="TEXT", help="the second text, for models of pairs")
    parser.add_argument(
        "--task",
        metavar="T",
        help="which answer to explain (default: that to the model's first task)",
    )
    parser.add_argument(
        "--method",
        metavar="NAME",
        help="the one to show first, see `litotes list methods` (default: occlusion)",
    )


def run(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, progress, say
    from litotes.cli.shaded import print_explanation
    from litotes.explain.explain import METHOD, chosen_methods
    from litotes.predict.predictor import Predictor

    # a wrong name is told before anything is computed
    write = None if options.out is None else writer_of(Path(options.out))
    chosen_methods(options.method or METHOD)
    predictor = Predictor.load(options.model, device=options.device, runtime="torch")
    with progress() as watch:
        explanation = predictor.explain(
            options.text, pair=options.pair, task=options.task, method=options.method, watch=watch
        )
    if options.task is None and len(predictor.tasks) > 1:
        say(
            [
                f"The model answers {' and '.join(predictor.tasks)}; this is about"
                f" {explanation.task}. --task chooses another."
            ]
        )
    if write is not None:
        write(explanation)
        say([f"Written to {options.out}."])
    if options.json:
        print_json(explanation.as_json(maps=False))
    elif write is None:
        print_explanation(explanation)


def writer_of(out: Path) -> Callable[[Explanation], None]:
    """What writes an explanation to `out`, by the way its name ends."""
    from litotes.core.errors import UserError

    writers = {
        ".html": _write_page,
        ".json": _write_json,
        ".svg": _write_picture,
        ".png": _write_picture,
    }
    if out.suffix.lower() not in writers:
        raise UserError(
            f"--out {out}: an explanation is written as {', '.join(writers)}. End the name in one"
            " of them, e.g. why.html."
        )
    return lambda explanation: writers[out.suffix.lower()](explanation, out)


def _write_page(explanation: Explanation, out: Path) -> None:
    from litotes.core.storage import write_text
    from litotes.explain.page.page import why_html

    write_text(out, why_html(explanation))


def _write_picture(explanation: Explanation, out: Path) -> None:
    from litotes.core.storage import write_bytes
    from litotes.explain.figures.explanation import figure
    from litotes.report.figure import rendered

    write_bytes(out, rendered(figure(explanation), out.suffix.lower()[1:]))


def _write_json(explanation: Explanation, out: Path) -> None:
    from litotes.core.storage import write_json

    write_json(out, explanation.as_json())
