"""`litotes audit --data SOURCE`"""

from __future__ import annotations

import argparse
from pathlib import Path

from litotes.cli.options import add_data


def add_options(parser: argparse.ArgumentParser) -> None:
    add_data(parser)


def run(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, print_table, progress
    from litotes.core.storage import write_json
    from litotes.data.audit.audit import audit
    from litotes.data.sources import load

    corpus = load(options.data)
    with progress() as watch:
        result = audit(corpus, progress=watch)
    if options.out:
        write_json(Path(options.out) / "audit.json", result.as_json())
    if options.json:
        print_json(result.as_json())
        return
    print(f"{result.corpus}: {result.n_examples} texts, {len(result.findings)} findings\n")
    for finding in result.findings:
        print(f"[{finding.severity}] {finding.kind}: {finding.sentence}")
        for example in finding.examples:
            print(f"    · {example}")
        print(f"    → {finding.advice}\n")
    lengths = [
        (str(length.cell), str(length.median), str(length.percentile_90), str(length.longest))
        for length in result.lengths
    ]
    print_table(("cell", "words: median", "90 %", "longest"), lengths)
    counts = [
        (str(count.cell), count.split, count.task, count.label or "a number", str(count.n))
        for count in result.balance
    ]
    print_table(("cell", "split", "task", "label", "n"), counts)
