"""`litotes coverage --data SOURCE…`"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.cli.numbers import count
from litotes.cli.selection import add_where, parse_where
from litotes.core.errors import has_extra, require_extra

if TYPE_CHECKING:
    from litotes.data.coverage import Coverage, Part, Unit

ABOUT = """\
Counts how much of the frequent vocabulary varieties or sources share, before a model is asked
to carry over from one to the other. Writes a table and a figure.
"""
EXAMPLE = "litotes coverage --data sampler --out runs/coverage"
USES = ("json", "out")


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
        "--encoder",
        metavar="E",
        help="whose pieces (default: those of the built-in model, which are minilm's)",
    )
    add_where(parser, split="train")


def run(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, print_lines, say

    if options.out and not has_extra("figures"):
        say(["No figure is drawn, for lack of matplotlib: `pip install 'litotes[figures]'`."])
    result = _measure(options)
    written = _write(result, Path(options.out)) if options.out else ""
    say(result.notes())
    if options.json:
        print_json(result.as_json())
        return
    _print(result)
    if options.out:
        print_lines(f"Written to {options.out}: {written}")


def _write(result: Coverage, out: Path) -> str:
    """The names of the files."""
    from litotes.core.storage import write_json

    if not has_extra("figures"):
        write_json(out / "coverage.json", result.as_json())
        return "coverage.json"
    from litotes.core.figures import save_figure
    from litotes.data.coverage import figure

    save_figure(out / "coverage", figure(result), result.as_json())
    return "coverage.json, coverage.svg, coverage.png"


def _measure(options: argparse.Namespace) -> Coverage:
    from litotes.cli.display import say
    from litotes.data.coverage import coverage, parts_of
    from litotes.data.sources import load

    where = {"split": ["train"]} | parse_where(options.where)
    parts: list[Part] = []
    for source in options.data:
        corpus = load(source)
        say(corpus.notes)
        parts += parts_of(corpus.where(**where))
    return coverage(parts, top=options.top, by=_counted_unit(options))


def _counted_unit(options: argparse.Namespace) -> Unit:
    from litotes.data.coverage import WORDS, pieces

    if options.by == "words":
        return WORDS
    if options.encoder is None:
        from litotes.model.builtin import BUILTIN
        from litotes.model.folder import open_model

        return pieces(open_model(BUILTIN).read_tokenizer().piece_strings)
    require_extra("train", f"The encoder {options.encoder}")
    from litotes.encoder.pretrained import load_tokenizer

    return pieces(load_tokenizer(options.encoder).piece_strings)


def _print(result: Coverage) -> None:
    """A table whose columns have numbers: a dozen names next to each other fit no terminal."""
    from litotes.cli.display import print_table

    numbers = [str(number) for number in range(1, len(result.names) + 1)]
    rows = []
    for place, number in enumerate(numbers):
        n_texts, n_different = result.n_texts[place], result.n_different[place]
        shares = [f"{share:.3f}" for share in result.matrix[place]]
        rows.append((number, result.names[place], f"{n_texts:,}", f"{n_different:,}", *shares))
    title = f"Share of a row's {result.top:,} most frequent {result.by} among those of a column"
    print_table(("", "part", "texts", f"different {result.by}", *numbers), rows, title=title)
