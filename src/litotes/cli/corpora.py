"""`litotes audit`: what spoils scores; `litotes coverage`: how much vocabulary is shared."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from litotes.cli.display import print_json, print_lines, progress, say
from litotes.cli.inputs import parse_where
from litotes.cli.tables import draws_figures, print_rows, print_table, write_figure
from litotes.core.errors import require_extra
from litotes.core.numbers import counted
from litotes.core.storage import write_json
from litotes.data import audit as auditing
from litotes.data import coverage as covering
from litotes.data.sources import load
from litotes.model.builtin import BUILTIN
from litotes.model.folder import open_model

LENGTHS = """\
cell: {0.cell}
words: median: {0.median}
90 %: {0.percentile_90}
longest: {0.longest}
"""
BALANCE = """\
cell: {0.cell}
split: {0.split}
task: {0.task}
label: {0.label}
n: {0.n}
"""


def audit(options: argparse.Namespace) -> None:
    corpus = load(options.data)
    say(corpus.notes)
    with progress() as watch:
        result = auditing.audit(corpus, progress=watch)
    if options.out:
        write_json(Path(options.out) / "audit.json", result.as_json())
    if options.json:
        print_json(result.as_json())
        return
    found = [counted(result.n_examples, "text"), counted(len(result.findings), "finding")]
    print_lines(f"{result.corpus}: {', '.join(found)}", "")
    for finding in result.findings:
        print_lines(f"[{finding.severity}] {finding.kind}: {finding.sentence}")
        print_lines(*(f"    · {example}" for example in finding.examples))
        print_lines(f"    → {finding.advice}", "")
    print_rows(LENGTHS, result.lengths)
    balance = [replace(one, label=one.label or "a number") for one in result.balance]
    print_rows(BALANCE, balance)


def coverage(options: argparse.Namespace) -> None:
    is_drawn = bool(options.out) and draws_figures()
    result = _measure(options)
    if options.out:
        file = Path(options.out) / "coverage"
        write_figure(file, result.as_json(), lambda: covering.figure(result), with_png=True)
    say(result.notes())
    if options.json:
        print_json(result.as_json())
        return
    _print(result)
    if options.out:
        figures = ", coverage.svg, coverage.png" if is_drawn else ""
        print_lines(f"Written to {options.out}: coverage.json{figures}")


def _measure(options: argparse.Namespace) -> covering.Coverage:
    where = {"split": ["train"]} | parse_where(options.where)
    parts: list[covering.Part] = []
    for source in options.data:
        corpus = load(source)
        say(corpus.notes)
        parts += covering.parts_of(corpus.where(**where))
    return covering.coverage(parts, top=options.top, by=_counted_unit(options))


def _counted_unit(options: argparse.Namespace) -> covering.Unit:
    if options.by == "words":
        return covering.WORDS
    if options.encoder is None:
        return covering.pieces(open_model(BUILTIN).read_tokenizer().piece_strings)
    require_extra("train", f"The encoder {options.encoder}")
    from litotes.encoder.pretrained import load_tokenizer  # with torch

    return covering.pieces(load_tokenizer(options.encoder).piece_strings)


def _print(result: covering.Coverage) -> None:
    """A table whose columns have numbers: a dozen names next to each other fit no terminal."""
    numbers = [str(number) for number in range(1, len(result.names) + 1)]
    rows = []
    for place, number in enumerate(numbers):
        n_texts, n_different = result.n_texts[place], result.n_different[place]
        shares = [f"{share:.3f}" for share in result.matrix[place]]
        rows.append((number, result.names[place], f"{n_texts:,}", f"{n_different:,}", *shares))
    title = f"Share of a row's {result.top:,} most frequent {result.by} among those of a column"
    print_table(("", "part", "texts", f"different {result.by}", *numbers), rows, title=title)
