"""First weights of students, and what is refused before anything is trained."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from litotes.core.errors import UserError
from litotes.training.distillation import DistillRecipe, plan_distillation, read_distill_recipe
from litotes.training.distillation.shapes import Shape, check_shapes, make_start, plan_shapes


def test_layers_come_from_the_encoder_or_are_fresh(tiny_folder: Path) -> None:
    whole, cut = Shape(str(tiny_folder)), Shape(str(tiny_folder), layers=1)
    assert whole.is_whole
    assert not cut.is_whole
    first, small = make_start(whole, seed=0).encoder, make_start(cut, seed=0).encoder
    assert torch.equal(small.block(0).inner.weight, first.block(1).inner.weight)
    fresh = Shape(str(tiny_folder), layers=1, fresh=True)
    one, same, other = (make_start(fresh, seed=seed).encoder for seed in (0, 0, 1))
    assert torch.equal(one.block(0).inner.weight, same.block(0).inner.weight)
    assert not torch.equal(one.block(0).inner.weight, other.block(0).inner.weight)
    assert one.block(0).inner.weight.std().item() == pytest.approx(0.02, rel=0.2)


def test_the_frontier_has_a_shape_for_every_student(recipe: DistillRecipe, tmp_path: Path) -> None:
    many = recipe.changed(layers=2, compare_layers=[1, 2, 1], baseline=True)
    shapes = plan_shapes(plan_distillation(many, tmp_path / "out"))
    assert list(shapes) == ["student", "student of 1 layer", "baseline"]
    assert [shape.layers for shape in shapes.values()] == [2, 1, 2]


def test_impossible_students_are_refused_before_teachers_are_trained(
    recipe: DistillRecipe, tmp_path: Path
) -> None:
    for wrong, why in (
        ({"compare_layers": [5]}, "5 layers"),
        ({"width": 5}, "8, 16, 24"),
        ({"match": "values", "teacher": {"model": {"encoder": "minilm"}}}, "same pieces"),
    ):
        with pytest.raises(UserError, match=why):
            check_shapes(plan_distillation(recipe.changed(**wrong), tmp_path / "out"))
    pruned = recipe.student.changed(
        model__pruning="cascade", model__pruning_options={"schedule": [0.6, 0.3]}
    )
    with pytest.raises(UserError, match="does not go with pruning"):
        plan_distillation(
            DistillRecipe(pruned, recipe.changed(match="hidden").distill), tmp_path / "out"
        )


def test_the_sample_recipe_is_right(root: Path) -> None:
    recipe = read_distill_recipe(root / "recipes" / "distill.toml", changes=["distill.folds=4"])
    assert recipe.distill.folds == 4
    assert recipe.teacher(1).training.epochs != recipe.student.training.epochs
    assert recipe.teacher(1).seed == 1


def test_a_folder_with_something_else_is_left_alone(recipe: DistillRecipe, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(UserError, match=r"letter\.txt"):
        plan_distillation(recipe, tmp_path)
