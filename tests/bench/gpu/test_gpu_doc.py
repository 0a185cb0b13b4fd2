"""The GPU half of docs/results/performance.md: everything that was measured is shown, nothing is
invented, and a missed aim is told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from litotes.bench.gpu.figure import COLOURS, speed_figure
from litotes.bench.gpu.groups import GROUPS, GpuReport
from litotes.bench.gpu.turns import GpuGroup
from litotes.bench.lines import BenchResult, Line
from litotes.core.errors import UserError

Facts = Mapping[str, Mapping[str, float]]


@pytest.fixture
def page(root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(root / "bench")
    return import_module("gpu_doc")


def group_of(name: str, ms: Mapping[str, float], facts: Facts, **more: Any) -> GpuGroup:
    """Made-up lines, each against all before it."""
    lines: list[Line] = []
    for line, number in ms.items():
        against = tuple(other.name for other in lines)
        lines.append(Line(name, line, number, 1e6 / number, (number,), against=against))
    return GpuGroup(BenchResult(next(iter(ms), ""), tuple(lines), {}), facts=facts, **more)


def made_up() -> dict[str, Any]:
    """What a run might have measured; no such machine exists."""
    speeds = {
        "hf-sdpa-padded-b256": 200.0,
        "hf-sdpa-padded-compiled-b64": 120.0,
        "hf-sdpa-padded-compiled-b256": 100.0,
        "naive-packed-b256": 50.0,
        "litotes-dense": 20.0,
        "litotes-pruned": 10.0,
        "litotes-cascade": 25.0,
    }
    weightings = {
        f"{name}-n{n}{end}": ms * n / 512
        for name, ms in (("adasplash", 4.0), ("litotes-entmax-1.5", 0.3), ("litotes-top_k", 0.4))
        for n in (128, 512)
        for end in ("", "-backward")
    }
    error = {"litotes-top_k-n512": {"error_float32": 2e-7, "error_bfloat16": 3e-3}}
    launched = {"launches": 1.0, "waits": 1.0, "selection_share": 0.04}
    labels = {"trained-bfloat16": {"differing_per_1000": 0.0, "spread": 1.5}}
    by_bucket = {"litotes-dense-p1024": 20.0, "litotes-pruned-p1024": 22.0}
    shares = {"large-strings": {"tokenizing_share": 0.8}}
    groups = {
        "classify": group_of("classify", speeds, {}, failed={"broken": "RuntimeError: too old"}),
        "training": group_of("training", {"hf-padded": 40.0, "litotes-dense": 19.0}, {}),
        "weightings": group_of("weightings", weightings, error),
        "importance": group_of(
            "importance",
            {"attention-none": 1.0, "attention-received": 1.1},
            {"attention-received": {"extra_share": 0.1}},
        ),
        "launches": group_of("launches", {}, {"bucket-pruned": launched}),
        "minilm": group_of("minilm", speeds, {}),
        "training-minilm": group_of("training-minilm", {"hf-padded": 30.0}, {}),
        "training-heads": group_of(
            "training-heads", {"dense-linear": 5.0, "cascade-linear": 4.0, "dense-bilstm": 9.0}, {}
        ),
        "precision": group_of("precision", {"trained-bfloat16": 5.0}, labels),
        "strings": group_of("strings", {"tokenizing": 8.0, "large-strings": 10.0}, shares),
        "csv": group_of("csv", {"trained-csv": 5000.0}, {"trained-csv": {"peak_gpu_mb": 900.0}}),
        "buckets": group_of("buckets", by_bucket, {}),
    }
    machine = {"gpu": "Made-up GPU", "n_cores": 3, "python": "3.12", "torch": "2.11"}
    subject = {
        "sizes": {"n_layers": 12, "width": 768, "n_attention_heads": 12},
        "pruned_shares": [0.9, 0.81],
        "times_fewer_operations": 2.5,
        "mean_pieces": 62.0,
        "most_pieces": 512,
    }
    report = GpuReport(machine, 1024, subject, groups)
    return json.loads(json.dumps({"data": "besstie", **report.as_json()}))


def test_nothing_measured_is_nothing_shown(page: ModuleType, tmp_path: Path) -> None:
    assert page.Measured.read(tmp_path / "gpu.json") is None
    assert page.gpu_half(None) == ""
    assert page.gpu_figures(None) == {}


def test_every_group_has_its_table(page: ModuleType, tmp_path: Path) -> None:
    assert made_up()["groups"].keys() == GROUPS.keys()
    (tmp_path / "gpu.json").write_text(json.dumps(made_up()), "utf-8")
    half = page.gpu_half(page.Measured.read(tmp_path / "gpu.json"))
    for title, _, _ in page.SECTIONS:
        assert f"### {title}\n" in half
    assert "Made-up GPU" in half
    assert "| `litotes-dense` | 50,000 |" in half
    assert "10.00 `hf-sdpa-padded-b256`" in half
    assert "- classify: `broken`: RuntimeError: too old" in half
    assert "| `linear` | 5 |" in half
    assert "| `bilstm` | 9 |" in half
    assert "\n\n\n" not in half


def test_aims_are_met_or_missed(page: ModuleType) -> None:
    rows = {}
    for row in page.aims(page.Measured(made_up())).splitlines()[2:]:
        words, wanted, found, verdict = (cell.strip() for cell in row.strip("| ").split(" | "))
        rows[words] = (wanted, found, verdict)
    assert rows["dense, texts a second"] == ("at least 45,000", "50,000", "met")
    against = rows["dense against Hugging Face compiled, padded"]
    assert against == ("at least 5", "5", "met"), "the faster of the two"
    assert rows["dense MiniLM, texts a second"][2] == "**missed**"
    assert rows["cascade against dense"] == ("at least 1", "0.8", "**missed**")
    assert rows["pruned against dense, at its worst bucket"] == (
        "at least 1",
        "0.909",
        "**missed**",
    )
    assert rows["entmax 1.5, 512 pieces, ms"] == ("at most 0.35", "0.3", "met")
    assert rows["training step, dense against Hugging Face"][1] == "2.11"
    assert "training step, pruned against dense" not in rows, "it was not measured"


def test_a_run_that_was_cut_off_is_shown_as_far_as_it_got(page: ModuleType) -> None:
    content = made_up()
    content["groups"] = {"classify": content["groups"]["classify"]}
    content["lines"] = [line for line in content["lines"] if line["group"] == "classify"]
    half = page.gpu_half(page.Measured(content))
    assert "### Texts to labels on a GPU" in half
    assert "### Weightings" not in half
    assert set(page.gpu_figures(page.Measured(content))) == {"gpu.svg"}


def test_bars_are_as_long_as_they_are_fast() -> None:
    names = ("hf-sdpa-padded-b64", "naive-packed-b256", "litotes-dense", "litotes-pruned")
    lines = [Line("g", name, 1.0, 100.0 * place, (1.0,)) for place, name in enumerate(names, 1)]
    (ax,) = speed_figure({"large": lines, "small": []}).axes
    assert [bar.get_width() for bar in ax.patches] == [100, 200, 300, 400]
    assert len({bar.get_facecolor() for bar in ax.patches}) == 4
    assert ax.get_xlim()[1] > 440, "the number stands beside the bar"
    assert len(set(COLOURS.values())) == len(COLOURS)
    with pytest.raises(UserError, match="litotes bench gpu"):
        speed_figure({"large": []})
