"""Writes docs/results/tagging.md from what `reproduction.tagging` measured.

python -m reproduction.tagging_page RESULTS.json
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reproduction.paragraphs import paragraph

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "results" / "tagging.md"
NUMBERS = PAGE.with_suffix("") / "results.json"

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
        NUMBERS.parent.mkdir(exist_ok=True)
        shutil.copyfile(results, NUMBERS)


def page(results: Mapping[str, Any]) -> str:
    speech = results["parts_of_speech"]
    parts = [
        "# Words: parts of speech, where the sarcasm sits, and pruning that restores",
        "",
        *_lead(results),
        "",
        *_speech(speech, results["settings"]),
        *_locus(results["locus"]),
        *_span(results["span"]),
        *_method(results["settings"], results["machine"], speech["ways"][speech["chosen"]]),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _lead(results: Mapping[str, Any]) -> list[str]:
    """What came out, a sentence for each table."""
    speech, rows = results["parts_of_speech"], results["locus"]["rows"]
    row, stretches = speech["ways"][speech["chosen"]], results["span"]["rows"]
    f1 = {name: _percent(one["mean"]) for name, one in rows.items()}
    overlap = {name: _percent(one["overlap_f1"]["mean"]) for name, one in stretches.items()}
    said = [
        f"**Parts of speech**: {_percent(speech['dense']['mean'])} % of the words, where each"
        f" word's most frequent tag has {_percent(speech['most_frequent_tag']['mean'])} %.",
        f"**Pruned** to {row['cost']['fewer_operations']:.2f} times fewer operations:"
        f" {_difference(row['less_dense'], 2)} points. {_verdict(row)}",
        f"**Where the sarcasm sits**: F1 {f1['model']}, and {f1['model_tuned']} with a threshold"
        f" from held-out tweets. Always the adjective has {f1['adjectives']}, occlusion"
        f" {f1['occlusion']}, marking every word {f1['all_words']}, from which the model with a"
        f" threshold differs by {_difference(rows['all_words']['less_than_model'], 1)} points."
        f" AUC {rows['model']['auc']:.3f}, occlusion {rows['occlusion']['auc']:.3f}.",
        f"**As one stretch**: overlap F1 {overlap['model']}, the whole tweet"
        f" {overlap['whole_text']}.",
    ]
    return [paragraph(one, bullet=True) for one in said]


def _verdict(row: Mapping[str, Any]) -> str:
    """Whether the way that held-out texts chose is as quick and as good as wanted."""
    loss = row["less_dense"]
    wanted = f"{WANTED_SPEED} times within {WANTED_LOSS} points"
    is_quick = row["cost"]["fewer_operations"] >= WANTED_SPEED
    if not is_quick or 100 * loss["difference"] < -WANTED_LOSS:
        return f"Wanted were {wanted}: **missed**."
    sure = "also" if 100 * loss["interval"][0] >= -WANTED_LOSS else "though not"
    return f"Wanted were {wanted}: **held**, {sure} at the lower end of the interval."


def _method(
    settings: Mapping[str, Any], machine: Mapping[str, Any], chosen: Mapping[str, Any]
) -> list[str]:
    where = machine.get("gpu") or machine.get("model") or "an unnamed machine"
    seconds, faster = chosen["cost"]["seconds"], chosen["cost"]["faster"]
    return [
        "## How it was done",
        "",
        "```",
        "python -m reproduction.tagging --ud-ewt DATA/ud-ewt --sign DATA/sarcasm-sign \\",
        "    --irony DATA/tweeteval-irony --out OUT",
        "python -m reproduction.tagging_page OUT/results.json",
        "```",
        "",
        paragraph(
            f"Encoder `{settings['encoder']}`, {settings['seeds']} seeds, {settings['epochs']}"
            f" epochs, on {where}. Scores are means over seeds; intervals (95 %) are bootstraps"
            " over texts, widened by the spread over seeds. Epochs, the way to prune and the"
            " tagging model's threshold were chosen by held-out training texts, the threshold of"
            " occlusion by training tweets."
        ),
        "",
        paragraph(
            "What the test texts had shown before: *early* alone had been scored on them, and was"
            " more than half a point below dense, when the other two ways were added; and the"
            " tagging model without a threshold of its own, which was below marking every word,"
            " when that was added."
        ),
        "",
        paragraph(
            f"Answering all test sentences took {seconds[0]:.3f} s dense and {seconds[1]:.3f} s"
            f" pruned ({faster:.2f} times as fast), tokenizing left out, on a machine that had"
            " other work: nothing is claimed about time."
        ),
        "",
        paragraph(
            "[Tags and spans](../how-to/tagging.md) says how it works;"
            " [results.json](tagging/results.json) has all numbers, by seed."
        ),
    ]


def _speech(found: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    lines = [
        "## Parts of speech (English Web Treebank)",
        "",
        paragraph(
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
    said = paragraph(
        f"Held-out texts choose *{found['chosen']}* (in bold; their scores are in the last column)."
    )
    return [*lines, "", *_ways(settings["ways"]), said, ""]


def _ways(ways: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A sentence on each way to prune."""
    found = []
    for name, options in ways.items():
        shares = ", ".join(f"{share:g}" for share in options["schedule"])
        by = ", importance by value" if options.get("importance") == "value" else ""
        text = f"*{name}*: after each layer go on {shares} of the pieces{by}."
        found.append(paragraph(text, bullet=True))
    return [*found, ""]


def _locus(found: Mapping[str, Any]) -> list[str]:
    lines = [
        "## Where the sarcasm sits (Sarcasm SIGN)",
        "",
        paragraph(
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
    return [*lines, ""]


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
