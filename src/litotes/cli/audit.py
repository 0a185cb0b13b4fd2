"""`litotes audit --data SOURCE`"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.cli.options import add_data

if TYPE_CHECKING:
    from litotes.data.audit import Audit

ABOUT = """\
Looks for what spoils scores: texts in two splits, duplicates, contradictory labels, labels that
are missing or rare. Nothing is changed.
"""
EXAMPLE = "litotes audit --data 'table:reviews.csv?text=review&label=mood'"
USES = ("json", "out")


def add_options(parser: argparse.ArgumentParser) -> None:
    add_data(parser)


def run(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, progress, say
    from litotes.core.storage import write_json
    from litotes.data.audit import audit
    from litotes.data.sources import load

    corpus = load(options.data)
    say(corpus.notes)
    with progress() as watch:
        result = audit(corpus, progress=watch)
    if options.out:
        write_json(Path(options.out) / "audit.json", result.as_json())
    if options.json:
        print_json(result.as_json())
        return
    _print_findings(result)
    _print_counts(result)


def _print_findings(result: Audit) -> None:
    from litotes.cli.display import print_lines
    from litotes.core.numbers import counted

    found = [counted(result.n_examples, "text"), counted(len(result.findings), "finding")]
    print_lines(f"{result.corpus}: {', '.join(found)}", "")
    for finding in result.findings:
        print_lines(f"[{finding.severity}] {finding.kind}: {finding.sentence}")
        print_lines(*(f"    · {example}" for example in finding.examples))
        print_lines(f"    → {finding.advice}", "")


def _print_counts(result: Audit) -> None:
    from litotes.cli.display import print_table

    lengths = []
    for length in result.lengths:
        numbers = (length.median, length.percentile_90, length.longest)
        lengths.append((str(length.cell), *map(str, numbers)))
    print_table(("cell", "words: median", "90 %", "longest"), lengths)
    counts = []
    for count in result.balance:
        label = count.label or "a number"
        counts.append((str(count.cell), count.split, count.task, label, str(count.n)))
    print_table(("cell", "split", "task", "label", "n"), counts)
