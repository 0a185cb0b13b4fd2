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
    "model_tuned": "the same, by the best threshold of held-out tweets",
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
            " texts, widened by the spread over seeds. Nothing was chosen on test texts: epochs,"
            " the way to prune and the tagging model's threshold by held-out training texts, the"
            " threshold of occlusion by training tweets. [Tags and spans](../how-to/tagging.md)"
            " says how it works; [tagging.json](tagging.json) has all numbers."
        ),
        "",
        *_speech(results["parts_of_speech"], settings),
        *_locus(results["locus"]),
        *_span(results["span"]),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _speech(found: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    lines = [
        "## Parts of speech (English Web Treebank)",
        "",
        _paragraph(
            f"{found['n_train']:,} sentences of dev to learn from, {found['n_texts']:,} of test"
            f" with {found['n_words']:,} words to be scored on. Pieces that left are restored, so"
            " that every word gets its answer."
        ),
        "",
        "| | word accuracy | 95 % interval | times fewer operations | less dense, points |"
        " held out |",
        "|---|---|---|---|---|---|",
        f"| each word's most frequent tag | {_score(found['most_frequent_tag'])} | | | |",
        f"| dense | {_score(found['dense'])} | 1 | | |",
    ]
    for name, row in found["ways"].items():
        fewer = f"{row['cost']['fewer_operations']:.2f}"
        held_out = f"{100 * row['held_out']:.2f}"
        title = f"**pruned {name}**" if name == found["chosen"] else f"pruned {name}"
        loss = _difference(row["less_dense"], 2)
        lines.append(f"| {title} | {_score(row)} | {fewer} | {loss} | {held_out} |")
    said = [*_ways(settings["ways"]), _verdict(found["ways"][found["chosen"]], found["chosen"])]
    return [*lines, "", *said, ""]


def _ways(ways: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A sentence on each way to prune."""
    found = []
    for name, options in ways.items():
        shares = ", ".join(f"{share:g}" for share in options["schedule"])
        by = ", importance by value" if options.get("importance") == "value" else ""
        found.append(f"- *{name}*: after each layer go on {shares} of the pieces{by}.")
    return [*found, ""]


def _verdict(row: Mapping[str, Any], chosen: str) -> str:
    """Whether the way that held-out texts chose is as quick and as good as wanted."""
    cost, loss = row["cost"], row["less_dense"]
    low = 100 * loss["interval"][0]
    is_kept = cost["fewer_operations"] >= WANTED_SPEED and 100 * loss["difference"] >= -WANTED_LOSS
    sure = "also" if low >= -WANTED_LOSS else "though not"
    verdict = f"Both are reached, {sure} at the lower end of the interval."
    return _paragraph(
        f"Held-out texts choose *{chosen}*: {_difference(loss, 2)} points at"
        f" {cost['fewer_operations']:.2f} times fewer operations of the encoder; wanted were"
        f" {WANTED_SPEED} times within {WANTED_LOSS} points."
        f" {verdict if is_kept else '**This is missed.**'} Answering all test sentences took"
        f" {cost['seconds'][0]:.2f} s dense and {cost['seconds'][1]:.2f} s pruned,"
        f" {cost['faster']:.2f} times as fast, tokenizing left out."
    )


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
        "| | F1 | 95 % interval | AUC | model by threshold less this |",
        "|---|---|---|---|---|",
    ]
    for name, title in _LOCUS_ROWS.items():
        row = found["rows"][name]
        auc = f"{row['auc']:.3f}" if "auc" in row else ""
        lead = _difference(row["less_than_model"], 1) if "less_than_model" in row else ""
        lines.append(f"| {title} | {_score(row)} | {auc} | {lead} |")
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
        lines.append(f"| {title} | {_score(exact)} | {_score(overlap)} |")
    return lines


def _paragraph(text: str) -> str:
    return textwrap.fill(text, 100, break_on_hyphens=False, break_long_words=False)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _score(row: Mapping[str, Any]) -> str:
    """Two cells: the mean and its interval."""
    low, high = row["interval"]
    return f"{_percent(row['mean'])} | {100 * low:.1f} to {100 * high:.1f}"


def _difference(found: Mapping[str, Any], n_digits: int) -> str:
    """In points, with its interval."""
    points = (100 * value for value in (found["difference"], *found["interval"]))
    said, low, high = (f"{value:+.{n_digits}f}" for value in points)
    return f"{said} ({low} to {high})"


if __name__ == "__main__":
    main(*sys.argv[1:])
