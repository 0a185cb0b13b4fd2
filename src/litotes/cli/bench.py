"""`litotes bench`"""

from __future__ import annotations

import argparse
from pathlib import Path

from litotes.cli.numbers import count

ABOUT = """\
Measures how fast a model answers on this machine: by transformers with padding (if installed), by
our packed encoder, pruned, and exported in float32 and int8. All take turns in one run.
"""
EXAMPLE = "litotes bench --model runs/mine --data sampler"
USES = ("json", "seed", "out", "device")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", default="builtin", metavar="M", help="model folder (default: builtin)"
    )
    parser.add_argument(
        "--data", default="sampler", metavar="SOURCE", help="source of texts (default: sampler)"
    )
    parser.add_argument(
        "--texts", type=count, default=256, metavar="N", help="texts drawn from it (default 256)"
    )
    parser.add_argument(
        "--rounds", type=count, default=5, metavar="N", help="measured rounds (default 5)"
    )


def run(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, print_lines, print_table, progress, say
    from litotes.core.figures import save_figure
    from litotes.study.speed import draw_speed, measure_speed

    with progress() as watch:
        speed = measure_speed(
            options.model,
            options.data,
            n_texts=options.texts,
            n_rounds=options.rounds,
            seed=options.seed or 0,
            device=options.device,
            watch=watch,
        )
    say(f"{name}: left out: {reason}" for name, reason in speed.left_out.items())
    if options.out:
        save_figure(Path(options.out) / "bench", draw_speed(speed), speed.as_json())
    if options.json:
        print_json(speed.as_json())
        return
    print_lines(", ".join(f"{name} {value}" for name, value in speed.machine.items()))
    rows = [
        (
            line.name,
            f"{line.texts_per_second:,.0f} ({line.texts_per_second_low:,.0f}"
            f"–{line.texts_per_second_high:,.0f})",
            f"{line.ratio:.2f} ×",
            f"{line.ms:.3g}",
            f"{line.ms_p99:.3g}",
            f"{line.same_labels:.1%}",
        )
        for line in speed.lines
    ]
    columns = ("", "texts/s", f"as fast as {speed.baseline}", "ms a text", "p99", "same labels")
    title = f"{speed.model}: {speed.n_texts} texts of {options.data}, quartiles in brackets"
    print_table(columns, rows, title=title)
    if options.out:
        print_lines(f"Written to {options.out}: bench.json, bench.svg, bench.png")
