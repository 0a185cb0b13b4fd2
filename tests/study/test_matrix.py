"""Train on each, test on every: the matrix, its picture and its report, with the tiny encoder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree, rmtree
from xml.etree import ElementTree

import numpy as np
import pytest

from litotes.core.errors import UserError
from litotes.core.figures import render_figure
from litotes.data.sources import load
from litotes.evaluation.cross_matrix import CrossMatrix, MatrixCell, make_cell
from litotes.study.figures import draw_bands
from litotes.study.matrix import MatrixResult, cross, describe_matrix, folder_name
from litotes.study.report import write_report
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
    words = describe_matrix(matrix)
    assert "0.850" in words
    assert "+0.340" in words
    assert "b → a" in words  # not clearly better than the majority line
    assert "a → b" not in words


@dataclass(frozen=True)
class Crossed:
    """A matrix whose models were trained with seeds 5 and 6; nobody may write into its folder."""

    recipe: Recipe
    folder: Path
    study: MatrixResult


@pytest.fixture(scope="module")
def crossed(tiny_recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Crossed:
    recipe = tiny_recipe.changed(
        data__where={"source": "review"}, training__epochs=1, data__tasks=["sentiment"]
    )
    folder = tmp_path_factory.mktemp("crossed")
    return Crossed(recipe, folder, cross(recipe, folder, seeds=range(5, 7), device="cpu"))


@pytest.mark.slow
def test_cross_trains_each_row_and_finds_it_again(crossed: Crossed) -> None:
    recipe, folder, study = crossed.recipe, crossed.folder, crossed.study
    (matrix,) = study.matrices
    assert matrix.rows == matrix.columns == ("en-AU", "en-IN", "en-UK")
    assert len(matrix.cells) == 9
    assert all(
        len(one.by_seed) == 2 and one.interval[0] <= one.macro_f1 <= one.interval[1]
        for one in matrix.cells
    )
    files = {path: path.stat().st_mtime_ns for path in folder.rglob("model.safetensors")}
    assert len(files) == 6
    for name in matrix.rows:  # each row learned from its own variety alone
        facts = json.loads((folder / "models" / f"{name}-5" / "litotes.json").read_text())["facts"]
        assert facts["recipe"]["data"]["where"]["variety"] == name
        texts = load("sampler").where(variety=name, source="review", split="train")
        assert facts["data"]["n_train"] == len(texts.hold_out(0.2, seed=5)[0])
    again = cross(recipe, folder, seeds=range(5, 7), device="cpu")
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
        data__where={},
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
    assert "0.800" in describe_matrix(table)


def test_a_failed_run_leaves_a_hole(matrix: CrossMatrix) -> None:
    holed = CrossMatrix("sarcasm", "variety", ("a", "b"), ("a", "b"), matrix.cells[:3])
    assert holed.find("b", "b") is None
    assert b"0.420" in render_figure(draw_bands([[holed.heatmap()]]), "svg")


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
    assert Path(folder_name(name)).name == folder_name(name)
    assert len(folder_name(name)) < 70
    assert folder_name(name) not in (".", "..")
    assert folder_name("en-AU") == "en-AU"


def test_odd_names_are_drawn(matrix: CrossMatrix) -> None:
    odd = CrossMatrix(
        "a$_{$b", "variety", ("US$_{$x",), ("US$_{$x",), (cell("US$_{$x", "US$_{$x", 0.5),)
    )
    assert b"US$_{$x" in render_figure(draw_bands([[odd.heatmap()]]), "svg")


@pytest.mark.slow
def test_picture_shows_every_number_and_is_the_same_twice(matrix: CrossMatrix) -> None:
    svg = render_figure(draw_bands([[matrix.heatmap()] * 2]), "svg")
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
        "sarcasm by variety, macro-F1",
    } <= written
    assert svg == render_figure(draw_bands([[matrix.heatmap()] * 2]), "svg")
    assert render_figure(draw_bands([[matrix.heatmap()]]), "png").startswith(b"\x89PNG")


def test_a_matrix_in_a_notebook_is_an_escaped_table(matrix: CrossMatrix) -> None:
    odd = CrossMatrix("<b>", "variety", ("a", "<i>"), ("a", "b"), matrix.cells[:2])
    shown = odd._repr_html_()
    assert "0.900 (0.85–0.95)" in shown
    assert "&lt;i&gt;" in shown
    assert "&lt;b&gt;" in shown
    assert "<i>" not in shown
    assert shown.count("–</td>") == 2  # the cells that are not there


@pytest.mark.slow
def test_the_report_is_the_studys(crossed: Crossed, tmp_path: Path) -> None:
    result = crossed.study
    svg = render_figure(draw_bands([[one.heatmap() for one in result.matrices]]), "svg")
    pictures = {("tables", "By variety"): svg, ("narrow", "By variety"): svg}
    write_report(result.report, result.timing, pictures, tmp_path)
    page = (tmp_path / "report.html").read_text()
    (matrix,) = result.matrices
    for one in matrix.cells:
        assert f"{one.macro_f1:.3f}<small>{one.interval[0]:.3f} to" in page
    assert "Does it hold elsewhere?" in page
    assert "<svg" in page
    assert "The texts of sampler, counted" in page
    for outside in ("<script", "<link", "@import", 'src="http', "url(http"):
        assert outside not in page
    content = json.loads((tmp_path / "report.json").read_text())
    assert content["experiments"][0]["tables"][0]["at_home"] == pytest.approx(matrix.at_home)


@pytest.mark.slow
def test_seeds_are_counted_from_the_first(crossed: Crossed) -> None:
    """The recipe keeps its own seed, from which the intervals are drawn."""
    assert crossed.study.as_json()["seeds"] == [5, 6]
    assert crossed.study.as_json()["recipe"]["seed"] == crossed.recipe.seed == 0
    names = {path.name for path in (crossed.folder / "models").iterdir()}
    assert names == {f"{name}-{seed}" for name in ("en-AU", "en-IN", "en-UK") for seed in (5, 6)}


@pytest.mark.slow
def test_a_model_that_was_deleted_is_made_again(crossed: Crossed, tmp_path: Path) -> None:
    folder = copytree(crossed.folder, tmp_path / "copy")
    file = folder / "models" / "en-AU-5" / "model.safetensors"
    weights = file.read_bytes()
    rmtree(file.parent)
    cross(crossed.recipe, folder, seeds=range(5, 7), device="cpu")
    assert file.read_bytes() == weights


@pytest.mark.parametrize("query", ["label=mood", "label=mood&variety=region"])
def test_a_matrix_is_by_any_column(tiny_recipe: Recipe, tmp_path: Path, query: str) -> None:
    rows = [
        f"the tea {n},{('good', 'bad')[n % 2]},{('north', 'south')[n // 2 % 2]}" for n in range(80)
    ]
    (tmp_path / "made.csv").write_text("\n".join(["text,mood,region", *rows, ""]))
    recipe = tiny_recipe.changed(
        data__source=f"table:{tmp_path / 'made.csv'}?{query}",
        data__where={},
        training__epochs=1,
    )
    result = cross(recipe, tmp_path / "out", axis="region", device="cpu")
    (matrix,) = result.matrices
    assert matrix.rows == matrix.columns == ("north", "south")
    assert matrix.as_json()["axis"] == "region"
    assert "tested on the region they were trained on" in describe_matrix(matrix)
    assert result.report.sections[0].name == "By region"
    assert result.report.sections[0].results.tables[0].matrix.axis == "region"
    assert b"mood by region, macro-F1" in render_figure(
        draw_bands([[one.heatmap() for one in result.matrices]]), "svg"
    )
    assert any("set aside" in note for note in result.notes)
    with pytest.raises(UserError, match=r"no column 'regoin'. Did you mean 'region'"):
        cross(recipe, tmp_path / "out", axis="regoin")


def test_only_a_table_has_columns_for_a_matrix(tiny_recipe: Recipe, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--by region: only a single table has columns"):
        cross(tiny_recipe, tmp_path, axis="region")
