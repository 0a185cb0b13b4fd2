"""The page about "Figurative Language Understanding" says what its study's report says."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

RESULTS = Path(__file__).parents[2] / "docs" / "results"
PAGE = (RESULTS / "figurative_language.md").read_text(encoding="utf-8")
FOLDER = RESULTS / "figurative_language"
REPORT: dict[str, Any] = json.loads((FOLDER / "report.json").read_text(encoding="utf-8"))
TWELVE: dict[str, Any] = json.loads((FOLDER / "twelve_layers.json").read_text(encoding="utf-8"))
EXPERIMENTS = {experiment["name"]: experiment for experiment in REPORT["experiments"]}


def signed(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def with_interval(difference: dict[str, Any], scale: int = 1, digits: int = 3) -> str:
    value, low, high = (
        signed(scale * number, digits) for number in (difference["value"], *difference["interval"])
    )
    return f"{value} ({low} to {high})"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_means_and_their_intervals(name: str) -> None:
    for sentence in EXPERIMENTS[name]["words"]["tables"]:
        shown = re.search(r"\d\.\d{3} \(\d\.\d{3} to \d\.\d{3}\)", sentence)
        assert shown is not None
        assert shown.group() in PAGE, sentence


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_differences_over_all_cells(name: str) -> None:
    for row in EXPERIMENTS[name]["overall"]:
        assert with_interval(row["difference"]) in PAGE, row


@pytest.mark.parametrize("experiment", TWELVE["experiments"], ids=lambda one: str(one["name"]))
def test_losses_with_twelve_layers(experiment: dict[str, Any]) -> None:
    for row in experiment["overall"]:
        shown = with_interval(row["difference"], scale=100, digits=1)
        assert shown in PAGE.replace("**", ""), row


@pytest.mark.parametrize(
    "row", TWELVE["by_seed"]["rows"], ids=lambda row: f"{row['experiment']}, {row['tested_on']}"
)
def test_fused_with_twelve_layers(row: dict[str, Any]) -> None:
    means = {kind: f"{sum(row[kind]) / 3:.3f}" for kind in ("dense", "cascade", "fused")}
    losses = []
    for name in ("cascade_less_dense", "fused_less_dense", "fused_less_cascade"):
        value, half_width = (100 * row[name][key] for key in ("value", "half_width"))
        losses.append(f"{signed(value, 2)} ± {half_width:.2f}")
    plain, fused, gain = losses
    shown = (
        f"{means['dense']} → {means['cascade']} | {plain} | {means['fused']} | {fused} | {gain} |"
    )
    assert shown in PAGE.replace("**", ""), row


def test_steps_of_every_head() -> None:
    steps = json.loads((FOLDER / "step_times.json").read_text(encoding="utf-8"))
    times = {line["name"]: line["ms"] for line in steps["lines"]}
    heads = {"multitask": "a head per task", "crosstalk": "CrossTalk, PCGrad"}
    for name, dense in times.items():
        kind, _, head = name.partition("-")
        if kind == "dense":
            digits = 1 if head == "bilstm" else 2
            row = next(
                line
                for line in PAGE.splitlines()
                if line.startswith(f"| {heads.get(head, head)} | {dense:.{digits}f} |")
            )
            assert f"| {times[f'cascade-{head}']:.{digits}f} |" in row
            assert f"| {dense / times['dense-linear']:.2f} |" in row
