"""`litotes explain TEXT [--model M] [--out why.html]`"""

from __future__ import annotations

import argparse
from pathlib import Path

from litotes.cli.options import add_model

ABOUT = """\
Shows which words an answer rests on, by seven methods that are each tested by removing words,
and which words left a pruned model at which layer. Writes a page, a picture or JSON.
"""
EXAMPLE = 'litotes explain "Lovely. Another delay." --out why.html'
USES = ("json", "out", "device")


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
    parser.add_argument(
        "--highlight-model",
        metavar="M",
        help="a tagging or span model, whose words are marked too: where the sarcasm sits",
    )


def run(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, print_lines, progress, say
    from litotes.cli.explanation_view import print_explanation
    from litotes.cli.kinds import command_of
    from litotes.cli.word_models import mark_words, marked_lines
    from litotes.core.errors import has_extra
    from litotes.core.storage import find_target
    from litotes.explanation.attribution import available_methods
    from litotes.explanation.explain import METHOD, check_format, chosen_methods, write_explanation
    from litotes.model.folder import kind_of
    from litotes.prediction.predictor import Predictor

    explain_other_kind = command_of(kind_of(options.model), "explain")
    if explain_other_kind is not None:
        explain_other_kind(options)
        return
    # wrong names are reported before anything is computed
    out = None if options.out is None else Path(options.out)
    if out is not None:
        check_format(out)
        find_target(out)
    chosen_methods(options.method or METHOD)
    locus = (
        None if options.highlight_model is None else mark_words(options, options.highlight_model)
    )
    runtime = "torch" if has_extra("train") else "onnx"
    predictor = Predictor.load(options.model, device=options.device, runtime=runtime)
    if runtime == "onnx":
        others = "the other methods and the layers need `pip install 'litotes[train]'`."
        say([f"Explained by {' and '.join(available_methods())}; {others}"])
    with progress() as watch:
        explanation = predictor.explain(
            options.text, pair=options.pair, task=options.task, method=options.method, watch=watch
        )
    if options.task is None and len(predictor.tasks) > 1:
        tasks = " and ".join(predictor.tasks)
        about = f"this is about {explanation.task}. --task chooses another."
        say([f"The model answers {tasks}; {about}"])
    if out is not None:
        write_explanation(explanation, out, locus=locus)
        say([f"Written to {options.out}."])
    if options.json:
        marks = {} if locus is None else {"locus": locus.as_json()}
        print_json(explanation.as_json(maps=False) | marks)
    elif out is None:
        print_explanation(explanation)
        if locus is not None:
            print_lines(*marked_lines(locus))
