"""The README's table and docs/results/performance.md say what docs/results/bench.json says, and
their figures show what they should.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from litotes.bench import MODEL_BENCHES
from litotes.bench.benchmark import OWN
from litotes.bench.figure import PART_COLOURS, growth_figure, length_figure, parts_figure
from litotes.bench.lines import Line
from litotes.core.errors import UserError
from litotes.core.figures import render_figure


@pytest.fixture
def readme(root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(root / "bench")
    return import_module("readme_table")


@pytest.fixture
def page(readme: ModuleType) -> ModuleType:
    return import_module("performance_doc")


def line(name: str, *, group: str, ms: float = 10.0, **more: Any) -> Line:
    return Line(group, name, ms, 1000 / ms, (ms,), **more)


PARTS = {
    "tokenizing": 0.25,
    "embeddings": 0.5,
    "attention": 2.0,
    "feed_forward": 3.0,
    "head": 0.25,
    "around": 0.0,
}
PROFILED = [
    line(f"{name}-n{n}", group="profile", ms=n / 8, parts=PARTS)
    for name in OWN
    for n in (8, 32, 128, 512)
]
GROWN = [
    line(f"{who}-{n}", group="growth", ms=ms / int(n[1:]))
    for who, ms, ns in (("hf", 9, "b1 b2 b4"), ("litotes-dense", 1, "c1 c2"))
    for n in ns.split()
]


def test_the_readme_and_the_json_agree(readme: ModuleType, root: Path) -> None:
    shown = (root / "README.md").read_text("utf-8")
    assert readme.replaced(shown, "readme", readme.readme_table(readme.read())) == shown, (
        "run bench/readme_table.py"
    )


def test_the_page_and_the_json_agree(page: ModuleType, readme: ModuleType) -> None:
    shown = page.PAGE.read_text("utf-8")
    made = page.page_of(shown, readme.read(), page.Measured.read(), page.read_rivals())
    assert made == shown, "run bench/performance_doc.py"


@pytest.mark.slow
def test_the_figures_and_the_json_agree(page: ModuleType, readme: ModuleType) -> None:
    for name in page.figures(readme.read(), page.Measured.read()):
        assert (page.FIGURES / name).is_file(), "run bench/performance_doc.py"


def test_the_json_holds_every_group_the_pages_show_and_no_paths(readme: ModuleType) -> None:
    content = readme.read()
    assert MODEL_BENCHES.keys() <= content["groups"].keys()
    assert "/" not in json.dumps([content["data"], content["subject"]])


def test_a_row_names_padding_and_the_nearest_baseline(readme: ModuleType) -> None:
    lines = {
        "hf-padded-32": {"per_second": 10.0, "ratios": {}},
        "ort-int8-1": {"per_second": 40.0, "ratios": {"hf-padded-32": {"middle": 4.0}}},
        "litotes-dense-int8": {
            "per_second": 61.26,
            "ratios": {
                "ort-int8-1-workers": {"middle": 1.449},
                "ort-int8-1": {"middle": 1.6},
                "hf-padded-32": {"middle": 6.13},
            },
        },
    }
    assert readme._row(lines, "hf-padded-32")[1:] == ["10.0", "1.0", ""]
    assert readme._row(lines, "ort-int8-1")[1:] == ["40.0", "4.0", ""]
    assert readme._row(lines, "litotes-dense-int8")[1:] == ["**61.3**", "**6.1**", "**1.45**"]


def test_an_aim_that_is_missed_is_told(page: ModuleType) -> None:
    ratio = {"middle": 1.2, "low": 1.1, "high": 1.3}
    made = {
        "group": "classify",
        "name": "litotes-dense-int8",
        "ratios": {"ort-int8-1-workers": ratio, "ort-int8-1": ratio | {"middle": 1.9}},
    }
    shown = page.aims({"lines": [made]}).splitlines()
    assert shown[2].endswith("| 1.20 (1.10–1.30) | **missed** |")
    assert shown[3].endswith("| 1.90 (1.10–1.30) | met |")


def test_no_table_is_empty(page: ModuleType) -> None:
    shown = page.PAGE.read_text("utf-8").splitlines()
    rules = [place for place, text in enumerate(shown) if text.startswith("| --- |")]
    assert rules
    assert [shown[place - 1] for place in rules if not shown[place + 1].startswith("|")] == []
    assert page.others({"lines": []}) == page.rivals(None) == ""


def test_no_line_of_the_page_is_beyond_the_limit(page: ModuleType, readme: ModuleType) -> None:
    content = readme.read()
    for group in ("classify", "profile"):
        found = page.shares(content, group)
        assert found
        assert max(found.values()) <= 1


def test_what_is_faster_than_every_product_is_the_limit(page: ModuleType) -> None:
    limit = line("limit-int8", group="classify", ms=2.0, flops=100, shown_by="torch, 1 × 2 × 3")
    slow = line("slow", group="classify", ms=4.0, flops=100, limit="limit-int8")
    swift = line("swift", group="classify", ms=1.0, flops=100, limit="limit-int8")
    machine = {"n_cores": 2}
    for lines, shown_by in (((limit, slow), "torch, 1 × 2 × 3"), ((limit, slow, swift), "`swift`")):
        content = {"machine": machine, "lines": [one.as_json() for one in lines]}
        assert page.limit(content).splitlines()[2].endswith(f"| {shown_by} |")


def test_the_rivals_have_a_section_where_they_were_measured(page: ModuleType) -> None:
    ratio = {"middle": 1.2, "low": 1.1, "high": 1.3}
    ratios = {"ov-int8": ratio, "ct2-int8": ratio | {"middle": 1.1}, "hf-padded-32": ratio}
    more = {"ratios": ratios, "ms_low": 9.0, "ms_high": 11.0}
    made = line("litotes-dense-int8", group="classify", flops=10).as_json() | more
    notes = ["ov-int8 is fastest with batches of 4, 2 at once."]
    content = {
        "data": "sampler",
        "n_texts": 2,
        "machine": {"model": "a processor", "n_cores": 2, "openvino": "1.0"},
        "groups": {"classify": {"notes": notes, "refused": {"ct2-fp32": "it cannot run"}}},
        "lines": [made],
    }
    shown = page.rivals(content)
    assert "| `litotes-dense-int8` against `ov-int8` | 1.15 | 1.20 (1.10–1.30) | met |" in shown
    assert "against `ct2-int8` | 1.15 | 1.10 (1.10–1.30) | **missed** |" in shown
    assert "against `hf" not in shown
    for words in ("openvino 1.0", notes[0], "`ct2-fp32` was refused: it cannot run."):
        assert words in shown


def test_a_page_without_marks_is_told(readme: ModuleType) -> None:
    assert (
        readme.replaced("a\n<!-- bench: x -->\nold\n<!-- end of x -->\nb", "x", "new\n")
        == "a\n<!-- bench: x -->\nnew\n<!-- end of x -->\nb"
    )
    emptied = readme.replaced("<!-- bench: x -->\nold\n<!-- end of x -->", "x", "")
    assert emptied == "<!-- bench: x -->\n<!-- end of x -->"
    with pytest.raises(SystemExit, match="needs one"):
        readme.replaced("no marks", "x", "new")


def test_bars_are_as_long_as_their_parts() -> None:
    picture = parts_figure(PROFILED)
    assert [ax.get_title() for ax in picture.axes] == ["32 pieces", "128 pieces", "512 pieces"]
    for ax in picture.axes:
        ends = [bar.get_x() + bar.get_width() for bar in ax.patches]
        assert max(ends) == pytest.approx(sum(PARTS.values()))
        assert len(ax.patches) == len(OWN) * len(PARTS)
        assert ax.get_xlim()[1] > 1.1 * max(ends), "the number stands beside the bar"
    assert "feed-forward" in render_figure(picture, "svg").decode()


def test_every_part_has_a_colour_of_its_own() -> None:
    from litotes.bench.profile import PARTS as KNOWN

    assert tuple(PART_COLOURS) == KNOWN
    assert len(set(PART_COLOURS.values())) == len(KNOWN)


def test_curves_go_through_what_was_measured() -> None:
    whole, by_piece = length_figure(PROFILED).axes
    curve = {drawn.get_label(): drawn for drawn in whole.get_lines()}["litotes-pruned-int8"]
    assert list(zip(*curve.get_data(), strict=True)) == [(8, 1), (32, 4), (128, 16), (512, 64)]
    assert {round(value, 6) for drawn in by_piece.get_lines() for value in drawn.get_ydata()} == {
        125.0
    }
    batches, cores = growth_figure(GROWN).axes
    assert [drawn.get_label() for drawn in batches.get_lines()] == ["hf"]
    assert [drawn.get_label() for drawn in cores.get_lines()] == ["litotes-dense"]
    for ax in (batches, cores):
        assert ax.get_ylim()[0] == 0
        assert ax.get_ylim()[1] > max(
            value for drawn in ax.get_lines() for value in drawn.get_ydata()
        )


@pytest.mark.parametrize("draw", [parts_figure, length_figure, growth_figure])
def test_nothing_to_draw_is_told(draw: Any) -> None:
    with pytest.raises(UserError, match="measure them with"):
        draw([])


@pytest.mark.slow
def test_pictures_are_drawn_the_same_twice() -> None:
    assert render_figure(parts_figure(PROFILED), "svg") == render_figure(
        parts_figure(PROFILED), "svg"
    )
