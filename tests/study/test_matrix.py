"""Train on each, test on every: the plan of a matrix, its numbers, its picture and its report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from shutil import rmtree

import numpy as np
import pytest
from sklearn.metrics import f1_score

from litotes.core.errors import UserError
from litotes.core.figures import render_figure
from litotes.data.sources import load
from litotes.evaluation.cross_matrix import CrossMatrix, MatrixCell, make_cell
from litotes.study.figures import draw_bands
from litotes.study.matrix import cross, folder_name, plan_matrix
from litotes.study.report import write_report
from litotes.training.recipe import Recipe


def cell(trained_on: str, tested_on: str, value: float, n_collapsed: int = 0) -> MatrixCell:
    interval = value - 0.05, value + 0.05
    return MatrixCell(trained_on, tested_on, 50, value, interval, 0.4, (value,), n_collapsed)


@pytest.fixture
def matrix() -> CrossMatrix:
    scores = {"aa": 0.9, "ab": 0.6, "ba": 0.42, "bb": 0.8}
    cells = tuple(cell(*place, value, int(value == 0.42)) for place, value in scores.items())
    return CrossMatrix("sarcasm", "variety", ("a", "b"), ("a", "b"), cells)


def test_a_matrix_says_what_its_cells_hold(matrix: CrossMatrix) -> None:
    content = matrix.as_json()
    means = content["mean"], content["at_home"], content["elsewhere"]
    assert means == pytest.approx((0.68, 0.85, 0.51))
    (warning,) = matrix.collapses()
    assert "trained on b, tested on a, sarcasm: 1 of 1 models" in warning
    assert [one.is_above_majority for one in matrix.cells] == [True, True, False, True]
    assert [matrix.cells[1].holds(score) for score in (0.54, 0.55, 0.65, 0.66)] == [0, 1, 1, 0]
    heads = CrossMatrix("x", "variety", ("linear",), ("a",), (cell("linear", "a", 0.9),))
    assert heads.at_home is heads.elsewhere is None  # rows are no columns
    assert "trained on" not in " ".join(replace(heads, cells=matrix.cells[2:3]).collapses())


def test_a_cell_is_that_of_scikit_learn() -> None:
    gold = np.array([0, 1, 0, 1, 0])
    predicted = np.array([[0, 1, 0, 1, 1], [1, 1, 1, 1, 1]])
    made = make_cell("a", "b", gold, predicted, 2)
    expected = [f1_score(gold, row, average="macro") for row in predicted]
    assert made.by_seed == pytest.approx(expected)
    assert made.macro_f1 == pytest.approx(np.mean(expected))
    assert made.majority == pytest.approx(f1_score(gold, np.zeros(5), average="macro"))
    assert (made.n, made.n_collapsed, made.has_one_class) == (5, 1, False)
    constant = make_cell("a", "b", np.zeros(3, dtype=np.int64), np.zeros((1, 3), dtype=np.int64), 2)
    assert (constant.n_collapsed, constant.has_one_class) == (0, True)


def test_holes_and_odd_names_are_drawn_and_escaped(matrix: CrossMatrix) -> None:
    odd = CrossMatrix("<b>$_{$", "variety", ("a", "<i>"), ("a", "b"), matrix.cells[:2])
    assert odd.find("<i>", "b") is None
    shown = odd._repr_html_()
    assert "0.900 (0.85–0.95)" in shown
    assert "&lt;i&gt;" in shown
    assert "<i>" not in shown
    assert shown.count("–</td>") == 2  # the cells that are not there
    svg = render_figure(draw_bands([[odd.heatmap()]]), "svg").decode()
    for written in ("0.900", "0.600", "0.85–0.95", "trained on", "$_{$ by variety, macro-F1"):
        assert written in svg


@pytest.fixture
def table_recipe(tiny_recipe: Recipe, tmp_path: Path) -> Recipe:
    """Two varieties of two sources; British shoppers mean what they say."""
    rows = ["text,sentiment,sarcasm,region,source,split"]
    for number in range(16):
        for variety in ("en-AU", "en-UK"):
            for source in ("Forum", "Shop"):
                ironic = number % 3 == 0 and (variety, source) != ("en-UK", "Shop")
                split = "test" if number % 4 == 0 else "train"
                text = f"{variety} {source} text {number}"
                rows.append(f"{text},{number % 2},{int(ironic)},{variety},{source},{split}")
    (tmp_path / "made.csv").write_text("\n".join([*rows, ""]))
    columns = "label.sentiment=sentiment&label.sarcasm=sarcasm&source=source&split=split"
    address = f"table:{tmp_path / 'made.csv'}?{columns}"
    return tiny_recipe.changed(data__source=address, data__where={}, training__held_out=0.0)


def test_a_row_learns_what_its_own_texts_teach(table_recipe: Recipe) -> None:
    recipe = table_recipe.changed(data__source=f"{table_recipe.data.source}&variety=region")
    study, names, notes = plan_matrix(recipe, "cell", (3, 4))
    (experiment,) = study.experiments
    assert names == ["en-AU Forum", "en-AU Shop", "en-UK Forum", "en-UK Shop"]
    assert [setting.row for setting in experiment.grid] == names
    assert [len(one.recipe.data.tasks or ()) for one in experiment.grid] == [2, 2, 2, 1]
    assert experiment.grid[3].recipe.data.where.model_dump() == {
        "variety": "en-UK",
        "source": "Shop",
    }
    assert [one.seed for one in study.recipes(experiment.grid[0])] == [3, 4]
    (note,) = notes
    assert "Nothing to learn about sarcasm from en-UK Shop" in note


@pytest.mark.parametrize("query", ["", "&variety=region"])
def test_a_matrix_is_by_any_column(table_recipe: Recipe, query: str) -> None:
    recipe = table_recipe.changed(data__source=table_recipe.data.source + query)
    study, names, _ = plan_matrix(recipe, "region", (0,))
    assert names == ["en-AU", "en-UK"]
    (experiment,) = study.experiments
    assert (experiment.settings.name, experiment.settings.rows) == (
        "By region",
        "data.where.variety",
    )
    assert (experiment.tests[0].by, experiment.tests[0].by_name) == ("variety", "region")
    with pytest.raises(UserError, match=r"no column 'regoin'. Did you mean 'region'"):
        plan_matrix(table_recipe, "regoin", (0,))
    with pytest.raises(UserError, match=r"selects by another column"):
        plan_matrix(table_recipe.changed(data__where={"variety": "en-AU"}), "region", (0,))


def test_what_makes_no_matrix_is_told(tiny_recipe: Recipe, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="at least two"):
        cross(tiny_recipe, tmp_path)
    with pytest.raises(UserError, match=r"--by region: only a single table has columns"):
        cross(tiny_recipe, tmp_path, axis="region")


@pytest.mark.parametrize("name", ["../../escaped", "en/AU", "a" * 300, "US$_{$x", "", "en AU", "."])
def test_names_of_varieties_stay_in_the_folder(name: str) -> None:
    assert Path(folder_name(name)).name == folder_name(name)
    assert len(folder_name(name)) < 70
    assert folder_name(name) not in (".", "..")
    assert folder_name("en-AU") == "en-AU"


@pytest.mark.slow
def test_cross_trains_each_row_tells_it_and_finds_it_again(
    tiny_recipe: Recipe, tmp_path: Path
) -> None:
    where = {"source": "review"}
    recipe = tiny_recipe.changed(
        data__where=where, training__epochs=1, data__tasks=["sentiment"], training__held_out=0.2
    )
    folder = tmp_path / "crossed"
    result = cross(recipe, folder, seeds=range(5, 7), device="cpu")
    (matrix,) = result.matrices
    names = ("en-AU", "en-IN", "en-UK")
    assert matrix.rows == matrix.columns == names
    assert [len(one.by_seed) for one in matrix.cells] == [2] * 9
    models = folder / "models"
    assert {path.name for path in models.iterdir()} == {
        f"{one}-{n}" for one in names for n in (5, 6)
    }
    for name in names:  # each row learned from its own variety alone
        facts = json.loads((models / f"{name}-5" / "litotes.json").read_text())["facts"]
        assert facts["recipe"]["data"]["where"]["variety"] == name
        texts = load("sampler").where(variety=name, source="review", split="train")
        assert facts["data"]["n_train"] == len(texts.hold_out(0.2, seed=5)[0])
    content = result.as_json()
    assert (content["seeds"], content["recipe"]["seed"]) == ([5, 6], recipe.seed)
    assert "at home" in result.words[0]
    svg = render_figure(draw_bands([[one.heatmap() for one in result.matrices]]), "svg")
    pictures = {("tables", "By variety"): svg, ("narrow", "By variety"): svg}
    write_report(result.report, result.timing, pictures, tmp_path)
    page = (tmp_path / "report.html").read_text()
    for one in matrix.cells:
        assert f"{one.macro_f1:.3f}<small>{one.interval[0]:.3f} to" in page
    for said in ("Does it hold elsewhere?", "<svg", "The texts of sampler, counted"):
        assert said in page
    # a model that was deleted is made again, the others are found
    file = models / "en-AU-5" / "model.safetensors"
    weights = file.read_bytes()
    rmtree(file.parent)
    kept = {path: path.stat().st_mtime_ns for path in folder.rglob("model.safetensors")}
    assert cross(recipe, folder, seeds=range(5, 7), device="cpu").as_json() == content
    assert file.read_bytes() == weights
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
