"""Writes what prune_loss.py found into docs/results/pruning.md, with its figure:

    python -m bench.prune_loss_page OUT [--machine "one NVIDIA H200"]

The section between the two comments is written anew; JSON and figure lie beside the others.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bench.prune_loss import CASES, error_of, summarize, true_loss
from litotes.core.figures import BAR, GAP, INK, save_figure
from litotes.core.json_text import load_json
from litotes.core.numbers import format_signed
from litotes.core.storage import write_text
from reproduction.paragraphs import paragraph, replace_between, table_lines

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "results" / "pruning.md"
BEGIN, END = "<!-- trusted: written by bench/prune_loss_page.py -->", "<!-- /trusted -->"
TITLES = {
    "google": "Google sentiment",
    "reddit": "Reddit sentiment",
    "sarcasm": "Reddit sarcasm",
    "sst2": "SST-2",
}
Rows = Sequence[Mapping[str, Any]]


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--machine", default="one machine")
    options = parser.parse_args(words)
    rows = [load_json(file) for file in sorted(options.out.glob("*-*.json"))]
    rows = [row for case in CASES for row in rows if row["case"] == case]
    cases = summarize(rows)
    content = {"cases": cases, "runs": [short(row) for row in rows]}
    save_figure(options.page.with_suffix("") / "trusted", figure(rows), content, with_png=False)
    text = section(rows, cases, options.machine)
    page = replace_between(options.page.read_text("utf-8"), BEGIN, END, text)
    write_text(options.page, page)


def short(row: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a run: expected and true losses of every setting, and what was decided."""
    kept = ("case", "seed", "accepted", "refusal", "texts", "seconds")
    settings = [
        {
            "flops_ratio": round(point["flops_ratio"], 3),
            "chosen": point["chosen"],
            "expected": _loss(point["expected"]),
            "true": _loss(true_loss(point)),
        }
        for point in pruned(row)
    ]
    return {**{name: row[name] for name in kept}, "settings": settings}


def _loss(loss: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "points": round(loss["points"], 3),
        "interval": [round(end, 3) for end in loss["interval"]],
        "chance_within": loss["chance_within"],
    }


def pruned(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [point for point in row["points"] if point["kind"] == "pruned"]


def section(rows: Rows, cases: Mapping[str, Mapping[str, Any]], machine: str) -> str:
    lines = [paragraph(_setup(rows, machine)), "", *_table(rows, cases), ""]
    lines += [paragraph(finding, bullet=True) for finding in findings(rows, cases)]
    return "\n".join(lines)


def _setup(rows: Rows, machine: str) -> str:
    folds = rows[0]["texts"]["chosen_by"]["folds"]
    minutes = sum(row["seconds"] for row in rows) / 60
    return (
        f"{len(rows)} runs, {len({row['seed'] for row in rows})} seeds a case, {folds} folds, on"
        f" {machine} ({minutes:.0f} minutes of all runs together, many at a time)."
        " Numbers of every setting: [trusted.json](pruning/trusted.json). Losses are macro-F1 in"
        " points, negative if the pruned model is better; the truth is the test split, of SST-2"
        " fresh texts. *Accepted* are means over accepted runs, *all settings* over every target"
        " of every run."
    )


def _table(rows: Rows, cases: Mapping[str, Mapping[str, Any]]) -> list[str]:
    head = (
        "| case | texts that choose, that report | accepted | times fewer operations |"
        " accepted: expected, true loss | true within budget, said |"
        " all settings: expected, true loss | covered |"
    )
    table = []
    for case in (*(case for case in CASES if case in cases), "all"):
        own = [row for row in rows if case in (row["case"], "all")]
        one = cases[case]
        settings = [point for row in own for point in pruned(row)]
        expected = float(np.mean([point["expected"]["points"] for point in settings]))
        true = float(np.mean([true_loss(point)["points"] for point in settings]))
        table.append(
            (
                TITLES.get(case, case),
                "" if case == "all" else _texts(own[0]),
                f"{one['accepted']} of {one['runs']}",
                _number(one["times_fewer_operations"]),
                f"{_signed(one['expected_loss'])}, {_signed(one['true_loss'])}",
                f"{_share(one['true_within_budget'])}, {_share(one['said_within_budget'])}",
                f"{_signed(expected)}, {_signed(true)}",
                f"{_share(one['coverage'])} of {one['intervals']}",
            )
        )
    return table_lines(head, table)


def _texts(row: Mapping[str, Any]) -> str:
    chose, reported = row["texts"]["chosen_by"], row["texts"]["reported_by"]
    n_reporting = reported["held_out"] or reported["test"]
    return f"{chose['kept_apart'] + chose['in_folds']:,}, {n_reporting:,}"


def findings(rows: Rows, cases: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    every, settings = cases["all"], [point for row in rows for point in pruned(row)]
    yield (
        f"**{every['accepted']} of {every['runs']} runs end with a model**, the others with the"
        " sentence that says what would be needed."
    )
    expected = np.array([point["expected"]["points"] for point in settings])
    true = np.array([true_loss(point)["points"] for point in settings])
    apart = np.array([point["loss"]["points"] for point in settings])
    yield (
        f"Over all {len(settings)} settings the truth is {_signed(float((true - expected).mean()))}"
        f" points off what was expected, {_rms(true - expected):.2f} in the root mean square;"
        f" the texts kept apart alone are {_rms(true - apart):.2f} off. Correlation with the truth:"
        f" {np.corrcoef(expected, true)[0, 1]:.2f}, of the texts kept apart alone"
        f" {np.corrcoef(apart, true)[0, 1]:.2f}."
    )
    errors = [_error_of_difference(point) for point in settings]
    in_errors = _rms((true - expected) / errors)
    yield (
        f"Intervals of 95 % cover {_share(every['coverage'])} of the truths, the truth's own error"
        f" allowed for; in units of that error the differences are {in_errors:.2f} in the root mean"
        " square, where 1 is right. The settings of a run share its texts: independent are"
        f" {len(rows)} runs."
    )
    refused = [row for row in rows if not row["accepted"]]
    budget = rows[0]["budget"]["loss"]
    mildest = [true_loss(pruned(row)[0])["points"] for row in refused]
    n_right = sum(loss > budget for loss in mildest)
    yield (
        f"Of the {len(refused)} refused runs the mildest setting loses more than {budget:g} points"
        f" on the reporting texts in {n_right}."
    )


def _error_of_difference(point: Mapping[str, Any]) -> float:
    losses = point["expected"], true_loss(point)
    return math.hypot(*(error_of(loss["interval"]) for loss in losses))


def figure(rows: Rows) -> Figure:
    """Expected against true loss of every setting, by case; full: chosen."""
    cases = [case for case in TITLES if any(row["case"] == case for row in rows)]
    picture = Figure(figsize=(3.1 * len(cases), 3.7), layout="constrained")
    axes = picture.subplots(1, len(cases), squeeze=False, sharex=True, sharey=True)[0]
    for ax, case in zip(axes, cases, strict=True):
        ax.axline((0, 0), slope=1, color=INK, linewidth=0.8, linestyle="--")
        own = [row for row in rows if row["case"] == case]
        budget = own[0]["budget"]["loss"]
        ax.axvline(budget, color=INK, linewidth=0.6, linestyle=":")
        points = [point for row in own for point in pruned(row)]
        points.sort(key=lambda point: bool(point["chosen"]))  # those on top of the others
        for point in points:
            _draw(ax, point)
        ax.set_title(TITLES[case], fontsize=10)
        ax.set_xlabel("expected loss, points", fontsize=9)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    axes[0].set_ylabel("true loss, points (95 % intervals)", fontsize=9)
    return picture


def _draw(ax: Any, point: Mapping[str, Any]) -> None:
    expected, true = point["expected"], true_loss(point)
    colour = GAP if point["chosen"] else BAR
    ax.errorbar(
        [expected["points"]],
        [true["points"]],
        xerr=_arms(expected),
        yerr=_arms(true),
        fmt="o",
        color=colour,
        markersize=5,
        markerfacecolor=colour if point["chosen"] else "white",
        linewidth=1.4 if point["chosen"] else 0.5,
    )


def _arms(loss: Mapping[str, Any]) -> list[list[float]]:
    low, high = loss["interval"]
    return [[loss["points"] - low], [high - loss["points"]]]


def _rms(values: Any) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def _signed(value: float | None) -> str:
    return "–" if value is None else format_signed(value, 2)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


if __name__ == "__main__":
    main()
