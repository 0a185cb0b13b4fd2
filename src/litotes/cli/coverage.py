"""`litotes coverage --data SOURCE…`"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.cli.numbers import count
from litotes.cli.selection import add_where, parse_where

if TYPE_CHECKING:
    from litotes.data.coverage import Coverage, Unit


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data",
        required=True,
        nargs="+",
        action="extend",
        metavar="SOURCE",
        help="corpora, e.g. sampler or besstie:PATH",
    )
    parser.add_argument(
        "--top",
        type=count,
        default=1000,
        metavar="N",
        help="how many of the most frequent (default 1000)",
    )
    parser.add_argument(
        "--by",
        choices=("pieces", "words"),
        default="pieces",
        help="what is counted (default: pieces)",
    )
    parser.add_argument(
        "--encoder", default="minilm", metavar="E", help="whose pieces (default: minilm)"
    )
    add_where(parser, split="train")


def run(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, say
    from litotes.data.coverage import coverage, parts_of
    from litotes.data.sources import load

    where = {"split": ["train"]} | parse_where(options.where)
    parts = [part for spec in options.data for part in parts_of(load(spec).where(**where))]
    result = coverage(parts, top=options.top, by=_counted(options))
    if options.out:
        _write(result, Path(options.out))
    say(result.notes())
    if options.json:
        print_json(result.as_json())
        return
    _print(result)
    if options.out:
        print(f"Written to {options.out}: coverage.json, coverage.svg, coverage.png")


def _counted(options: argparse.Namespace) -> Unit:
    from litotes.data.coverage import WORDS, pieces
    from litotes.encoders.pretrained import load_tokenizer

    return WORDS if options.by == "words" else pieces(load_tokenizer(options.encoder).piece_strings)


def _write(result: Coverage, out: Path) -> None:
    from litotes.core.storage import write_bytes, write_json
    from litotes.data.coverage_figure import figure
    from litotes.report.figure import rendered

    write_json(out / "coverage.json", result.as_json())
    picture = figure(result)
    for kind in ("svg", "png"):
        write_bytes(out / f"coverage.{kind}", rendered(picture, kind))


def _print(result: Coverage) -> None:
    """Columns are called by number: a dozen names side by side fit no terminal."""
    from litotes.cli.display import print_table

    numbers = [str(place) for place, _ in enumerate(result.names, start=1)]
    rows = [
        (number, name, f"{n_texts:,}", f"{n_different:,}", *(f"{share:.3f}" for share in shares))
        for number, name, n_texts, n_different, shares in zip(
            numbers, result.names, result.n_texts, result.n_different, result.matrix, strict=True
        )
    ]
    title = f"Share of a row's {result.top:,} most frequent {result.by} among those of a column"
    print_table(("", "part", "texts", f"different {result.by}", *numbers), rows, title=title)
