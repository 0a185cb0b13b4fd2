"""`litotes bench [WHAT]`"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litotes.cli.numbers import count

if TYPE_CHECKING:
    from litotes.evaluation.bench.lines import Bench

WHAT = ("classify", "pcgrad", "entmax", "effective", "attention", "train")
"""The names in `evaluation.bench.BENCHES`, written out: importing that table takes seconds."""


def add_to(commands: Any, common: argparse.ArgumentParser) -> None:
    parser = commands.add_parser("bench", parents=[common], help="side by side, ratios in one run", allow_abbrev=False)
    parser.add_argument("what", nargs="?", choices=WHAT, default=WHAT[0], metavar="WHAT", help=", ".join(WHAT))
    parser.add_argument("--data", default="sampler", metavar="SOURCE", help="where the texts come from (default: sampler)")
    parser.add_argument("--texts", type=count, default=256, metavar="N", help="how many, drawn at random (default 256)")
    parser.add_argument("--rounds", type=count, default=5, metavar="N", help="measured rounds (default 5)")
    parser.add_argument("--heads", metavar="NAMES", help="train: heads with commas between, or all (default: linear)")
    parser.add_argument("--batch", type=count, metavar="N", help="train: texts a batch (default 8)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, print_table, progress, say
    from litotes.data.sources import load
    from litotes.evaluation.bench import BENCHES
    from litotes.storage import write_json

    more = _of_train(options)
    corpus = load(options.data)
    chosen = [example.text for example in corpus.where(split=corpus.test_split())]
    texts = random.Random(options.seed or 0).sample(chosen, min(options.texts, len(chosen)))
    with progress() as watch:
        result = BENCHES[options.what](texts, n_rounds=options.rounds, watch=watch, **more)
    say(f"{name}: left out, `{library}` is not installed." for name, library in result.left_out.items())
    if options.out:
        write_json(Path(options.out) / "bench.json", result.as_json())
    if options.json:
        print_json(result.as_json())
        return
    print_table(*_table(result), title=f"{options.what}: texts of {options.data}, {result.machine}")
    if options.what == "train":
        from litotes.evaluation.bench.train import table_of_heads

        rows = [(head, f"{dense:.4f}", f"{cascade:.4f}", f"{cascade / dense:.3f}") for head, dense, cascade in table_of_heads(result)]
        print_table(("head", "dense", "cascade", "cascade / dense"), rows, title=f"seconds for {result.ms_of}")


def _of_train(options: argparse.Namespace) -> dict[str, Any]:
    """The options that the bench of training alone has."""
    from litotes.errors import UserError
    from litotes.heads import HEADS

    heads = None if options.heads is None else list(HEADS) if options.heads == "all" else options.heads.split(",")
    given = {name: value for name, value in (("heads", heads), ("batch_texts", options.batch)) if value is not None}
    if given and options.what != "train":
        raise UserError(f"--heads and --batch belong to `litotes bench train`; bench {options.what} has no such choice.")
    return given


def _table(result: Bench) -> tuple[list[str], list[list[str]]]:
    """Each comparison has a column of its own, by its place among those of a line: what packing gains is never mixed with pruning."""
    n_columns = max(len(result.against(line)) for line in result.lines)
    knows_flops = any(line.flops is not None for line in result.lines)
    head = [result.lines[0].group, f"ms ({result.ms_of})", "texts/s", *(["GFLOP"] if knows_flops else []), *["as fast as"] * n_columns]
    rows = []
    for line in result.lines:
        ratios = result.ratios(line)
        cells = [f"{ratios[name]:.2f} × {name}" if name in ratios else "" for name in result.against(line)]
        work = ["" if line.flops is None else f"{line.flops / 1e9:.1f}"] if knows_flops else []
        rows.append([line.name, f"{line.ms:.0f}", f"{line.per_second:.1f}", *work, *cells, *[""] * (n_columns - len(cells))])
    return head, rows
