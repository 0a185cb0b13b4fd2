"""`litotes interpret TEXT… --model M`"""

from __future__ import annotations

import argparse

from litotes.cli.lean_torch import lean_torch
from litotes.cli.numbers import beams
from litotes.core.machine import sleep_while_waiting
from litotes.model.builtin import BUILTIN

ABOUT = """\
Says plainly what a sarcastic text means, by a translation model that learned it from people's
interpretations (recipes/interpret.toml), or "same as said" where no sarcasm is seen.
"""
EXAMPLE = 'litotes interpret "Love waiting in the rain." --model runs/interpret'
USES = ("json", "device")
NOBODY = "none"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("texts", nargs="+", metavar="TEXT", help="one or more texts")
    parser.add_argument("--model", required=True, metavar="M", help="a translation model's folder")
    parser.add_argument(
        "--judge",
        default=BUILTIN,
        metavar="M",
        help=(
            f"a model that says which texts are sarcastic (default: {BUILTIN}); {NOBODY}: all are"
        ),
    )
    parser.add_argument(
        "--beams",
        type=beams,
        metavar="N",
        help="hypotheses kept at a time (default: the recipe's)",
    )


def run(options: argparse.Namespace) -> None:
    sleep_while_waiting()  # torch, imported below, would have them spin
    from litotes.cli.display import print_json, print_lines, say

    with lean_torch():
        from litotes.prediction.predictor import Predictor
        from litotes.training.translation import Translator
        from litotes.training.translation.translator import SAME, interpret

        translator = Translator.load(options.model, device=options.device)
        judge = None
        if options.judge != NOBODY:
            judge = Predictor.load(options.judge, device=options.device)
    found = interpret(options.texts, translator, judge, beams=options.beams)
    cut = [one.text for one in found if one.truncated]
    say([f"The end of a text was not seen, it is too long: {text:.60}" for text in cut])
    if options.json:
        print_json([one.as_json() for one in found])
        return
    for one in found:
        print_lines(one.text)
        print_lines(f"  {one.meaning}" if one.meaning else f"  {SAME} ({one.why_same})")
