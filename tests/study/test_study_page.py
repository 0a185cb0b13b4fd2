"""The report as JSON and as a page: whole, safe, the same twice; pictures that do not get in each
other's way.
"""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path

import pytest
from made_study import answers, results_of, score_table, square, study_of

from litotes.core.figures import render_figure
from litotes.core.html import inline
from litotes.study.figure import figure, narrow_figure
from litotes.study.page import Pictures, html
from litotes.study.report import Report, make_report
from litotes.study.tables import ScoreTable
from litotes.study.timing import time_steps

pytestmark = pytest.mark.slow

EXPERIMENTS = """
[[experiment]]
name = "Heads & <tails>"
figure = "3"
about = "About <b>bold</b> things."
grid = { "model.head" = ["linear", "mean"], "data.where.variety" = ["en-AU", "en-UK"] }
compare = "model.head"
"""
PAPER = {("en-AU", "en-AU"): 0.95, ("en-AU", "en-UK"): 0.6}


@pytest.fixture(scope="module")
def tables() -> list[ScoreTable]:
    cells = {
        ("en-AU", column): answers(score, f"{column} sentiment")
        for column, score in (("en-AU", 0.9), ("en-UK", 0.62))
    }
    holed = score_table(
        cells,
        values={"model.head": "mean"},
        published=PAPER,
        failed={"en-UK": "There is <no> tea."},
    )
    return [square(0.6, 0.6, values={"model.head": "linear"}, published=PAPER), holed]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("study")


@pytest.fixture(scope="module")
def report(tables: list[ScoreTable], folder: Path) -> Report:
    study = study_of(folder, EXPERIMENTS)
    found = results_of(
        study, {"Heads & <tails>": tables}, failed={"mean, en-UK": "There is <no> tea."}
    )
    return make_report(
        study, found, (), n_runs=12, failures={"mean, en-UK, seed 0": "There is <no> tea."}
    )


@pytest.fixture(scope="module")
def page(report: Report) -> str:
    tables = report.sections[0].results.tables
    svg = render_figure(figure(tables, row_label="trained on"), "svg")
    narrow = render_figure(narrow_figure(tables, row_label="trained on"), "svg")
    pictures = Pictures(
        {report.sections[0].name: inline(svg, "one")},
        confidences={("Heads & <tails>", "sentiment"): inline(svg, "two")},
        narrow_tables={report.sections[0].name: inline(narrow, "three")},
    )
    results = [section.results for section in report.sections]
    return html(report, time_steps(report.study, results), pictures)


def test_json_has_everything_and_no_paths_or_times(report: Report, folder: Path) -> None:
    text = json.dumps(report.as_json())
    content = json.loads(text)
    (experiment,) = content["experiments"]
    first, second = experiment["tables"]
    assert first["cells"][0]["by_seed"] == pytest.approx([0.6] * 3)
    assert second["failed"] == {"en-UK": "There is <no> tea."}
    assert second["paper"][0] == {
        "trained_on": "en-AU",
        "tested_on": "en-AU",
        "macro_f1": 0.95,
        "inside": False,
    }
    assert {one["significant"] for one in experiment["comparisons"]} == {True, False}
    assert len(experiment["recipes"]) == 4
    assert experiment["calibration"][0]["after"]["reliability"]["bins"]
    assert content["failures"] == {"mean, en-UK, seed 0": "There is <no> tea."}
    assert str(folder) not in text
    assert "seconds" not in text.replace("checkpoint_seconds", "")


def test_page_needs_nothing_else_and_runs_nothing(page: str) -> None:
    for outside in (
        "<script",
        "<link",
        "@import",
        'src="http',
        "url(http",
        "<iframe",
        "javascript:",
    ):
        assert outside not in page
    addresses = set(re.findall(r'(?:href|src)="([^"]*)"', page))
    assert all(address.startswith(("#", "data:image/png;base64,")) for address in addresses)


def test_page_escapes_what_others_wrote(page: str) -> None:
    assert "<tails>" not in page
    assert "<b>bold" not in page
    assert "<no>" not in page
    assert "<note>" not in page
    assert "Heads &amp; &lt;tails&gt;" in page


def test_page_says_what_failed_and_what_is_not_significant(page: str) -> None:
    assert "failed: There is &lt;no&gt; tea." in page
    assert "1 of 12 runs have no result" in page
    grey = re.findall(r"<tr class=unsure>.*?</tr>", page)
    assert grey
    assert all("not significant" in row or "may be chance" in row for row in grey)
    black = [row for row in re.findall(r"<tr>.*?</tr>", page) if "significant" in row]
    assert black
    assert not any("not significant" in row for row in black)
    assert "<strong" not in page
    assert 'class="outside"' in page


def test_links_and_ids_of_a_page_fit(page: str) -> None:
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids)) > 20
    targets = {*re.findall(r'href="#([^"]+)"', page), *re.findall(r"url\(#([^)]+)\)", page)}
    assert targets <= set(ids)
    assert re.search(r"url\(#one-", page)  # clip paths were renamed with their references


def test_every_number_of_the_tables_is_on_the_page_with_its_interval(
    report: Report, page: str
) -> None:
    for one in report.sections[0].results.tables:
        for cell in one.matrix.cells:
            assert (
                f"{cell.macro_f1:.3f}<small>{cell.interval[0]:.3f} to"
                f" {cell.interval[1]:.3f}</small>" in page
            )
    for sentence in report.abstract:
        assert escape(sentence) in page


def wide(number: int, *, n_columns: int) -> ScoreTable:
    """A table with long names, which the paper has with numbers of its own."""
    columns = [f"en-{place}" for place in range(n_columns)]
    cells = {
        (row, column): answers(0.7, column)
        for row in ("a convolution of convolutions", "b")
        for column in columns
    }
    return score_table(
        cells,
        values={"model.head": f"a rather long name of head {number}"},
        published=dict.fromkeys(cells, number / 10),
    )


@pytest.mark.parametrize(
    ("n_panels", "n_columns"), [(1, 1), (1, 3), (2, 3), (3, 3), (4, 1), (6, 3)]
)
def test_nothing_overlaps_in_a_figure(n_panels: int, n_columns: int) -> None:
    made = [wide(number, n_columns=n_columns) for number in range(n_panels)]
    picture = figure(made, row_label="head")
    picture.draw_without_rendering()
    texts = [
        text
        for ax in picture.axes
        for text in (ax.title, *ax.get_yticklabels(), *ax.get_xticklabels(), *ax.texts)
        if text.get_text()
    ]
    boxes = [text.get_window_extent() for text in texts]
    for place, box in enumerate(boxes):
        for other, text in zip(boxes[place + 1 :], texts[place + 1 :], strict=True):
            assert not (box.shrunk(0.98, 0.98)).overlaps(other), (
                f"{texts[place].get_text()!r} and {text.get_text()!r}"
            )


def test_a_figure_shows_both_sides_and_holes(tables: list[ScoreTable]) -> None:
    svg = render_figure(figure(tables, row_label="trained on"), "svg").decode()
    for shown in (
        "ours: linear",
        "0.600",
        "0.950",
        "not printed",
        "failed",
        "trained on",
        "macro-F1",
    ):
        assert shown in svg
    assert svg == render_figure(figure(tables, row_label="trained on"), "svg").decode()


def test_a_phone_gets_every_table_one_below_another(tables: list[ScoreTable], page: str) -> None:
    picture = narrow_figure(tables, row_label="trained on")
    *heatmaps, _ = picture.axes  # the colour bar is the last
    assert len(heatmaps) == 3  # ours, ours, the paper's
    assert len({round(ax.get_position().x0, 2) for ax in heatmaps}) == 1
    assert page.count('<div class="wide narrow">') == 1


def test_one_table_of_the_paper_for_all_of_ours_stands_beside_them() -> None:
    made = [
        square(0.6, 0.6, values={"data.leaks": value}, published=PAPER)
        for value in ("drop", "keep")
    ]
    svg = render_figure(figure(made, row_label="trained on"), "svg").decode()
    assert svg.count("the paper") == 1
    assert "ours: leaks kept" in svg
    assert len(figure(made, row_label="").axes) == 4  # ours, ours, the paper's, the colour bar
    made.append(square(0.6, 0.6, values={"data.leaks": "join"}, published=PAPER))
    assert render_figure(figure(made, row_label=""), "svg").decode().count("the paper") == 1


def test_a_report_in_a_notebook_is_escaped(report: Report) -> None:
    shown = report._repr_html_()
    assert escape(report.abstract[0]) in shown
    assert "Heads &amp; &lt;tails&gt;" in shown
    assert "<tails>" not in shown
    for one in report.sections[0].results.tables:
        for cell in one.matrix.cells:
            assert cell.text() in shown
