"""Writes docs/results/tagging.md from what `reproduction.tagging` measured.

python -m reproduction.tagging_page RESULTS.json
"""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "results" / "tagging.md"
NUMBERS = PAGE.with_suffix(".json")

WANTED_SPEED, WANTED_LOSS = 1.5, 0.5
"""Times fewer operations, and points of accuracy."""

_LOCUS_ROWS = {
    "model": "tagging model",
    "all_words": "every word",
    "frequent_tag": "each word's most frequent tag",
    "adjectives": "always the adjective",
    "occlusion": "occlusion of a sarcasm classifier, by the best threshold",
    "occlusion_share": "the same, as many words as people change",
}
_SPAN_ROWS = {
    "model": "span model",
    "longest_of_tags": "longest stretch of the tagging model",
    "whole_text": "the whole tweet",
    "none": "never a stretch",
}


def main(results: str) -> None:
    content = json.loads(Path(results).read_text("utf-8"))
    PAGE.write_text(page(content), "utf-8")
    if Path(results).resolve() != NUMBERS.resolve():
        shutil.copyfile(results, NUMBERS)


def page(results: Mapping[str, Any]) -> str:
    settings, machine = results["settings"], results["machine"]
    n_seeds = settings["seeds"]
    where = machine.get("gpu") or machine.get("model") or "an unnamed machine"
    parts = [
        "# Words: parts of speech, where the sarcasm sits, and pruning that restores",
        "",
        _paragraph(
            f"`python -m reproduction.tagging`, encoder `{settings['encoder']}`, {n_seeds} seeds,"
            f" on {where}. Numbers are means over seeds; intervals (95 %) are bootstraps over"
            " texts, widened by the spread over seeds. Nothing was chosen on test texts: epochs by"
            " held-out training texts, the pruning's schedule before any run, the threshold of"
            " occlusion on training tweets. [Tags and spans](../how-to/tagging.md) says how it"
            " works; [tagging.json](tagging.json) has all numbers."
        ),
        "",
        *_speech(results["parts_of_speech"], settings),
        *_locus(results["locus"]),
        *_span(results["span"]),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _speech(found: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    cost, loss = found["cost"], found["pruned_less_dense"]
    rows = [
        ("each word's most frequent tag", found["most_frequent_tag"], ""),
        ("dense", found["dense"], "1"),
        ("pruned, restored", found["pruned"], f"{cost['fewer_operations']:.2f}"),
    ]
    points, low, high = (100 * value for value in (loss["difference"], *loss["interval"]))
    kept = cost["fewer_operations"] >= WANTED_SPEED and points >= -WANTED_LOSS
    sure = (
        "also at the lower end of the interval"
        if low >= -WANTED_LOSS
        else ("though the interval reaches below it")
    )
    verdict = f"Both are reached, {sure}." if kept else "**This is missed.**"
    schedule = ", ".join(f"{share:g}" for share in settings["schedule"])
    return [
        "## Parts of speech (English Web Treebank)",
        "",
        _paragraph(
            f"{found['n_train']:,} sentences of dev to learn from, {found['n_texts']:,} of test"
            f" with {found['n_words']:,} words to be scored on."
        ),
        "",
        "| | word accuracy | 95 % interval | times fewer operations |",
        "|---|---|---|---|",
        *(
            f"| {name} | {_percent(row['mean'])} | {_interval(row)} | {fewer} |"
            for name, row, fewer in rows
        ),
        "",
        _paragraph(
            f"Cascade pruning with the shares {schedule} after each layer; pieces that left are"
            f" restored. It changes accuracy by {points:+.2f} points ({low:+.2f} to {high:+.2f}) at"
            f" {cost['fewer_operations']:.2f} times fewer operations of the encoder; wanted were"
            f" {WANTED_SPEED} times within {WANTED_LOSS} points. {verdict} Answering all test"
            f" sentences took {cost['seconds'][0]:.2f} s dense and {cost['seconds'][1]:.2f} s"
            f" pruned, {cost['faster']:.2f} times as fast, tokenizing left out."
        ),
        "",
    ]


def _locus(found: Mapping[str, Any]) -> list[str]:
    lines = [
        "## Where the sarcasm sits (Sarcasm SIGN)",
        "",
        _paragraph(
            f"Words that at least two of five people changed, in {found['n_texts']:,} tweets that"
            f" no model has seen, divided by tweet: {_percent(found['changed_share'])} % of all"
            " words, since people often rewrite a tweet as a whole. F1 is that of changed words,"
            " so marking every word is a strong line. AUC is how often, of a changed and a kept"
            " word, the changed one has the higher score."
        ),
        "",
        "| | F1 | 95 % interval | AUC | model less this |",
        "|---|---|---|---|---|",
    ]
    for name, title in _LOCUS_ROWS.items():
        row = found["rows"][name]
        auc = f"{row['auc']:.3f}" if "auc" in row else ""
        lead = _lead(row["less_than_model"]) if "less_than_model" in row else ""
        lines.append(f"| {title} | {_percent(row['mean'])} | {_interval(row)} | {auc} | {lead} |")
    return [*lines, ""]


def _span(found: Mapping[str, Any]) -> list[str]:
    lines = [
        "## The same as one stretch",
        "",
        f"The longest changed stretch of {found['n_texts']:,} tweets, or none.",
        "",
        "| | exact match | 95 % interval | overlap F1 | 95 % interval |",
        "|---|---|---|---|---|",
    ]
    for name, title in _SPAN_ROWS.items():
        exact, overlap = (found["rows"][name][key] for key in ("exact_match", "overlap_f1"))
        lines.append(
            f"| {title} | {_percent(exact['mean'])} | {_interval(exact)} |"
            f" {_percent(overlap['mean'])} | {_interval(overlap)} |"
        )
    return lines


def _paragraph(text: str) -> str:
    return textwrap.fill(text, 100, break_on_hyphens=False, break_long_words=False)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _interval(row: Mapping[str, Any]) -> str:
    low, high = row["interval"]
    return f"{100 * low:.1f} to {100 * high:.1f}"


def _lead(row: Mapping[str, Any]) -> str:
    low, high = row["interval"]
    return f"{100 * row['difference']:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"


if __name__ == "__main__":
    main(*sys.argv[1:])
