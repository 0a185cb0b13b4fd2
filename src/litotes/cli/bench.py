"""`litotes bench [WHAT]`"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

from litotes.cli.numbers import count

WHAT = ("classify", "pcgrad", "entmax")
"""The names in `evaluation.bench.BENCHES`, written out: importing that table takes seconds."""


def add_to(commands: Any, common: argparse.ArgumentParser) -> None:
    parser = commands.add_parser("bench", parents=[common], help="side by side, ratios in one run", allow_abbrev=False)
    parser.add_argument("what", nargs="?", choices=WHAT, default=WHAT[0], metavar="WHAT", help=", ".join(WHAT))
    parser.add_argument("--data", default="sampler", metavar="SOURCE", help="where the texts come from (default: sampler)")
    parser.add_argument("--texts", type=count, default=256, metavar="N", help="how many, drawn at random (default 256)")
    parser.add_argument("--rounds", type=count, default=5, metavar="N", help="measured rounds (default 5)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, print_table, progress, say
    from litotes.data.sources import load
    from litotes.evaluation.bench import BENCHES
    from litotes.storage import write_json

    corpus = load(options.data)
    chosen = [example.text for example in corpus.where(split=corpus.test_split())]
    texts = random.Random(options.seed or 0).sample(chosen, min(options.texts, len(chosen)))
    with progress() as watch:
        result = BENCHES[options.what](texts, n_rounds=options.rounds, watch=watch)
    say(f"{name}: left out, `{library}` is not installed." for name, library in result.left_out.items())
    if options.out:
        write_json(Path(options.out) / "bench.json", result.as_json())
    if options.json:
        print_json(result.as_json())
        return
    rows = []
    for line in result.lines:
        times = ", ".join(f"{ratio:.2f} × {other}" for other, ratio in result.ratios(line).items())
        rows.append((line.name, f"{line.ms:.0f}", f"{line.per_second:.1f}", times))
    title = f"{options.what}: texts of {options.data}, {result.machine}"
    print_table((options.what, "ms", "texts/s", "as fast as"), rows, title=title)
