from __future__ import annotations

from pathlib import Path

import pytest

from litotes.core.errors import UserError
from litotes.study.plan import read_study
from litotes.training.distillation import DistillRecipe
from litotes.training.recipe import (
    PretrainRecipe,
    Recipe,
    TranslationRecipe,
    WordRecipe,
    read_kind,
    read_recipe,
)

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.stem)
def test_every_recipe_reads_and_begins_with_its_command(file: Path) -> None:
    readers = {
        "study": read_study,
        "pretrain": PretrainRecipe.read,
        "distill": DistillRecipe.read,
    }
    of_kind = {
        "classification": read_recipe,
        "tagging": WordRecipe.read,
        "span": WordRecipe.read,
        "translation": TranslationRecipe.read,
    }
    command = file.stem.split("_")[0]
    read = readers[command] if command in readers else of_kind[str(read_kind(file))]
    read(file)
    assert file.read_text().startswith("# litotes ")


@pytest.mark.parametrize("head", ["linear", "convolution", "bilstm"])
def test_the_papers_recipe(head: str) -> None:
    recipe = read_recipe(RECIPES[0].parent / f"paper_{head}.toml")
    training = recipe.training
    assert (training.optimizer, training.learning_rate, training.epochs, training.batch_texts) == (
        "adam",
        2e-5,
        30,
        8,
    )
    assert training.class_weights
    assert training.held_out == 0.0
    assert recipe.model.head == head


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "mine.toml"
    file.write_text('seed = 3\n[training]\nepochs = 4\n[data.where]\nvariety = "en-AU"\n')
    return file


def test_changes_are_typed(file: Path) -> None:
    changes = [
        "training.epochs=9",
        "data.where.variety=en-UK",
        'data.tasks=["sarcasm"]',
        "training.class_weights=false",
        "data.source=besstie:a/b",
    ]
    recipe = read_recipe(file, changes=changes)
    assert recipe.seed == 3
    assert recipe.training.epochs == 9
    assert recipe.training.class_weights is False
    assert recipe.data.where.variety == "en-UK"
    assert recipe.data.tasks == ["sarcasm"]
    assert recipe.data.source == "besstie:a/b"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["training.epoch=9"], "Did you mean 'epochs'"),
        (["trainin.epochs=9"], "Did you mean 'training'"),
        (["training.epochs=many"], "training.epochs = 'many'"),
        (["training.epochs=0"], "greater than or equal to 1"),
        (["training.optimizer=sgd"], "adamw"),
        (["seed.x=1"], "'seed' is a value"),
        (["epochs"], "key=value"),
        (["data.where.varety=en-AU"], "Did you mean 'variety'"),
        (
            ["data.where.variety=[3, 4]"],
            r"variety = \[3, 4\]: Input should be one of str, list\[str\]\.",
        ),
        (["model.weighting_options.alpha=nan"], "alpha = nan: .* bool, int, .*must be finite"),
        (["training.epochs=0", "training.batch_texts=0"], "training.epochs = 0: .* equal to 1"),
    ],
)
def test_mistakes_are_answered_with_what_to_write(
    file: Path, changes: list[str], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        read_recipe(file, changes=changes)


def test_a_missing_or_broken_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such recipe"):
        read_recipe(tmp_path / "none.toml")
    (tmp_path / "broken.toml").write_text("[training\n")
    with pytest.raises(UserError, match="not readable"):
        read_recipe(tmp_path / "broken.toml")


DEEP = 10_000
ODD_RECIPES = {
    "deep.toml": ("a = " + "[" * DEEP + "]" * DEEP, "nested too deeply"),
    "deep.json": ("[" * DEEP + "]" * DEEP, "nested too deeply"),
    "dotted.toml": ("data.source" + ".a" * 2000 + " = 1", "data.source = "),
    "list.json": ("[1]", "not a table"),
    "nan.json": ('{"training": {"learning_rate": NaN}}', "NaN is not JSON"),
    "infinite.toml": ("training.learning_rate = inf", "finite number"),
    "option.toml": ("model.weighting_options = {alpha = nan}", "weighting_options.alpha"),
    "long.toml": (f"seed = {'9' * 5000}", "not readable as a recipe"),
}


@pytest.mark.parametrize("name", ODD_RECIPES)
def test_odd_recipes_are_answered_with_a_sentence(name: str, tmp_path: Path) -> None:
    text, says = ODD_RECIPES[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=says) as caught:
        read_recipe(tmp_path / name, changes=["seed=3"])
    assert len(str(caught.value)) < 100_000
    if name.endswith(".toml"):
        with pytest.raises(UserError):
            read_study(tmp_path / name, changes=["seeds=3"])


@pytest.mark.parametrize("value", ["[" * DEEP, "9" * 5000, "inf"])
def test_odd_changes_are_answered_with_a_sentence(value: str, file: Path) -> None:
    with pytest.raises(UserError, match=r"training\.epochs|learning_rate"):
        read_recipe(file, changes=[f"training.epochs={value}"])


def test_the_resolved_recipe_reads_back_as_the_same_run(file: Path, tmp_path: Path) -> None:
    recipe = read_recipe(file)
    (tmp_path / "recipe.json").write_text(recipe.model_dump_json())
    assert read_recipe(tmp_path / "recipe.json").key() == recipe.key()


def test_the_key_follows_what_can_change_the_result() -> None:
    recipe = Recipe()
    assert (
        recipe.changed(training__checkpoint_seconds=1.0, training__tracker="mlflow").key()
        == recipe.key()
    )
    assert recipe.changed(seed=1).key() != recipe.key()
    assert recipe.changed(data__where__variety="en-AU").key() != recipe.key()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model__pruning": "cascad"}, "Did you mean 'cascade'"),
        (
            {"model__pruning": "cascade", "model__pruning_options": {"finall": 0.5}},
            "Did you mean 'final'",
        ),
        ({"model__weighting_options": {"alpha": 1.5}}, "'softmax' has no options"),
    ],
)
def test_wrong_seams_are_told_before_anything_is_read(
    changes: dict[str, object], words: str, tmp_path: Path
) -> None:
    from litotes.training.run import train

    with pytest.raises(UserError, match=words):
        train(Recipe().changed(data__source="besstie:/nowhere", **changes), tmp_path / "run")
