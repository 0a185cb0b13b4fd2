"""Train on each, test on every: the matrix, its picture and its report, with the tiny encoder."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from litotes.core.errors import UserError
from litotes.data.sources import load
from litotes.evaluation.cross_matrix import CrossMatrix, MatrixCell, make_cell
from litotes.evaluation.matrix_figure import figure
from litotes.report.figure import rendered
from litotes.study.matrix import Crossing, cross, file_name
from litotes.study.matrix_report import html_report, in_words
from litotes.training.recipe import Recipe


def cell(
    trained_on: str, tested_on: str, value: float, *, n_collapsed: int = 0, low: float = 0.05
) -> MatrixCell:
    return MatrixCell(
        trained_on, tested_on, 50, value, (value - low, value + 0.05), 0.4, (value,), n_collapsed
    )


@pytest.fixture
def matrix() -> CrossMatrix:
    cells = (
        cell("a", "a", 0.9),
        cell("a", "b", 0.6),
        cell("b", "a", 0.42, n_collapsed=1),
        cell("b", "b", 0.8),
    )
    return CrossMatrix("sarcasm", "variety", ("a", "b"), ("a", "b"), cells)


def test_home_and_elsewhere(matrix: CrossMatrix) -> None:
    assert matrix.at_home == pytest.approx(0.85)
    assert matrix.elsewhere == pytest.approx(0.51)
    words = in_words(matrix)
    assert "0.850" in words
    assert "+0.340" in words
    assert "b → a" in words  # not clearly better than the majority line
    assert "a → b" not in words


def test_cross_trains_each_row_and_finds_it_again(tiny_recipe: Recipe, tmp_path: Path) -> None:
    recipe = tiny_recipe.changed(
        data__where__variety=None, training__epochs=1, data__tasks=["sentiment"]
    )
    study = cross(recipe, tmp_path, seeds=(0, 1), device="cpu")
    (matrix,) = study.matrices
    assert matrix.rows == matrix.columns == ("en-AU", "en-IN", "en-UK")
    assert len(matrix.cells) == 9
    assert all(
        len(one.by_seed) == 2 and one.interval[0] <= one.macro_f1 <= one.interval[1]
        for one in matrix.cells
    )
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("model.safetensors")}
    assert len(files) == 6
    for name in matrix.rows:  # each row learned from its own variety alone
        facts = json.loads((tmp_path / "models" / f"{name}-0" / "litotes.json").read_text())[
            "facts"
        ]
        assert facts["recipe"]["data"]["where"]["variety"] == name
        assert facts["data"]["n_train"] == len(
            load("sampler").where(variety=name, split="train").hold_out(0.2, seed=0)[0]
        )
    again = cross(recipe, tmp_path, seeds=(0, 1), device="cpu")
    assert again.as_json() == study.as_json()
    assert {path: path.stat().st_mtime_ns for path in files} == files


def test_a_cell_that_has_nothing_to_learn_is_left_out_with_a_word(
    tiny_recipe: Recipe, tmp_path: Path
) -> None:
    rows = ["text,sentiment,sarcasm,variety,source,split"]
    for number in range(16):
        for variety in ("en-AU", "en-UK"):
            for source in ("Forum", "Shop"):
                # British shoppers mean what they say
                ironic = number % 3 == 0 and not (variety == "en-UK" and source == "Shop")
                split = "test" if number % 4 == 0 else "train"
                rows.append(
                    f"{variety} {source} text"
                    f" {number},{number % 2},{int(ironic)},{variety},{source},{split}"
                )
    (tmp_path / "made.csv").write_text("\n".join(rows) + "\n")
    columns = (
        "label.sentiment=sentiment&label.sarcasm=sarcasm&variety=variety&source=source&split=split"
    )
    recipe = tiny_recipe.changed(
        data__source=f"table:{tmp_path / 'made.csv'}?{columns}",
        data__where__variety=None,
        training__epochs=1,
        training__held_out=0.0,
    )
    result = cross(recipe, tmp_path / "out", axis="cell", device="cpu")
    tables = {matrix.task: matrix for matrix in result.matrices}
    cells = ("en-AU Forum", "en-AU Shop", "en-UK Forum", "en-UK Shop")
    assert (
        tables["sentiment"].rows
        == tables["sentiment"].columns
        == tables["sarcasm"].columns
        == cells
    )
    assert tables["sarcasm"].rows == cells[:3]
    assert any("Nothing to learn about sarcasm from en-UK Shop" in note for note in result.notes)


def test_a_table_without_common_names_has_no_home() -> None:
    table = CrossMatrix(
        "sarcasm",
        "variety",
        ("linear",),
        ("a", "b"),
        (cell("linear", "a", 0.9), cell("linear", "b", 0.7)),
    )
    assert table.at_home is table.elsewhere is None
    assert table.mean == pytest.approx(0.8)
    assert "0.800" in in_words(table)


def test_a_failed_run_leaves_a_hole(matrix: CrossMatrix) -> None:
    holed = CrossMatrix("sarcasm", "variety", ("a", "b"), ("a", "b"), matrix.cells[:3])
    assert holed.find("b", "b") is None
    assert b"0.420" in rendered(figure([holed]), "svg")


def test_a_cell_says_how_many_models_collapsed() -> None:
    gold = np.array([0, 1, 0, 1])
    made = make_cell("a", "b", gold, np.array([[0, 1, 0, 1], [1, 1, 1, 1]]), 2)
    assert made.n_collapsed == 1
    assert made.by_seed == pytest.approx((1.0, 1 / 3))


def test_a_matrix_needs_two_names(tiny_recipe: Recipe, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="at least two"):
        cross(tiny_recipe, tmp_path)


@pytest.mark.parametrize("name", ["../../escaped", "en/AU", "a" * 300, "US$_{$x", "", "en AU", "."])
def test_names_of_varieties_stay_in_the_folder(name: str) -> None:
    assert Path(file_name(name)).name == file_name(name)
    assert len(file_name(name)) < 70
    assert file_name(name) not in (".", "..")
    assert file_name("en-AU") == "en-AU"


def test_odd_names_are_drawn(matrix: CrossMatrix) -> None:
    odd = CrossMatrix(
        "a$_{$b", "variety", ("US$_{$x",), ("US$_{$x",), (cell("US$_{$x", "US$_{$x", 0.5),)
    )
    assert b"US$_{$x" in rendered(figure([odd]), "svg")


def test_picture_shows_every_number_and_is_the_same_twice(matrix: CrossMatrix) -> None:
    svg = rendered(figure([matrix, matrix]), "svg")
    written = {
        element.text
        for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    }
    assert {
        "0.900",
        "0.600",
        "0.420",
        "0.800",
        "0.85–0.95",
        "trained on",
        "sarcasm, macro-F1",
    } <= written
    assert svg == rendered(figure([matrix, matrix]), "svg")
    assert rendered(figure([matrix]), "png").startswith(b"\x89PNG")


def test_report_is_one_file_that_needs_nothing_else(matrix: CrossMatrix) -> None:
    study = Crossing(Recipe(), (0,), (matrix,), ("<b>a note</b>",))
    page = html_report(study, load("sampler"), picture=rendered(figure([matrix]), "svg").decode())
    assert "0.900" in page
    assert 'class="collapsed"' in page
    assert "&lt;b&gt;a note" in page
    assert "<b>a note" not in page
    for outside in ("<script", "<link", "@import", 'src="http', "url(http"):
        assert outside not in page
    assert json.loads(json.dumps(study.as_json()))["matrices"][0]["at_home"] == pytest.approx(0.85)
