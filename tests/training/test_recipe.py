"""Recipes: read, changed, checked, and answered with what to write where they are wrong."""

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
    read_recipe,
)
from litotes.training.run import train

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.stem)
def test_every_recipe_reads_and_begins_with_its_command(file: Path) -> None:
    readers = {"study": read_study, "pretrain": PretrainRecipe.read, "distill": DistillRecipe.read}
    readers.get(file.stem.split("_")[0], read_recipe)(file)
    assert file.read_text().startswith("# litotes ")


@pytest.mark.parametrize(
    ("kind", "recipe"),
    {"tagging": WordRecipe, "span": WordRecipe, "translation": TranslationRecipe}.items(),
)
def test_the_kind_decides_what_a_recipe_is(
    file: Path, kind: str, recipe: type[WordRecipe | TranslationRecipe]
) -> None:
    changes = [f"kind={kind}", "data.source=words:a", "data.where=1"]
    with pytest.raises(UserError, match="no setting called 'where'"):
        read_recipe(file, changes=changes)
    file.write_text("seed = 3\n")
    assert type(read_recipe(file, changes=changes[:2])) is recipe
    with pytest.raises(UserError, match=f"kind = '{kind}'.*classification"):
        Recipe.read(file, changes=[f"kind={kind}"])
    with pytest.raises(UserError, match="Did you mean 'tagging'"):
        read_recipe(file, changes=["kind=taging"])


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
        "data.source=besstie:a/b?c=d",
    ]
    recipe = Recipe.read(file, changes=changes)
    assert (recipe.seed, recipe.training.epochs, recipe.training.class_weights) == (3, 9, False)
    assert (recipe.data.where.variety, recipe.data.tasks) == ("en-UK", ["sarcasm"])
    assert recipe.data.source == "besstie:a/b?c=d"


DEEP = 10_000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["training.epoch=9"], "training: .*Did you mean 'epochs'"),
        (["trainin.epochs=9"], "Did you mean 'training'"),
        (["data.where.varety=en-AU"], "data.where: .*Did you mean 'variety'"),
        (["training.epochs=many"], "training.epochs = 'many'"),
        (["training.epochs=0", "training.batch_texts=0"], "training.epochs = 0: .* equal to 1"),
        (["training.optimizer=sgd"], "adamw"),
        (["seed.x=1"], "'seed' is a value"),
        (["epochs"], "key=value"),
        (["data.where.variety=[3, 4]"], r"data.where.variety = \[3, 4\]: str: .* list\[str\]: "),
        (["model.weighting_options.alpha=nan"], "alpha = nan: .*finite"),
        (["training.dropout=inf"], "training"),
        *((["training.epochs=" + odd], r"training\.epochs = ") for odd in ("[" * DEEP, "9" * 5000)),
    ],
)
def test_mistakes_are_answered_with_what_to_write(
    file: Path, changes: list[str], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        Recipe.read(file, changes=changes)


WORDS = {"kind": "span", "data": {"source": "words:a"}}
TEXTS = {"data": {"source": "a.txt"}}
PAIRS = {"data": {"source": "tsv:a"}}


@pytest.mark.parametrize(
    ("recipe", "content", "message"),
    [
        (WordRecipe, {"kind": "span"}, "data"),
        (WordRecipe, WORDS | {"training": {"class_weights": True}}, "class_weights"),
        (PretrainRecipe, TEXTS | {"objective": {"masked": 0.8, "random": 0.3}}, "more than 1"),
        (PretrainRecipe, TEXTS | {"objective": {"next_sentence": True}}, "data.join_lines = true"),
        (PretrainRecipe, TEXTS | {"model": {"encoder": "x", "scratch": {}}}, "scratch"),
        (PretrainRecipe, TEXTS | {"model": {"scratch": {"width": 30}}}, "30 .*multiple of 4"),
        (TranslationRecipe, PAIRS | {"model": {"width": 30}}, "30 .*multiple of 4"),
        (Recipe, {"data": {"source": "table:\udce9"}}, "UTF-8"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    recipe: type[Recipe], content: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError, match=f"^mine: .*{message}"):
        recipe.of(content, "mine")


ODD_RECIPES = {
    "none.toml": (None, "no such recipe"),
    "broken.toml": ("[training\n", "not readable as a recipe"),
    "deep.toml": ("a = " + "[" * DEEP + "]" * DEEP, "not readable as a recipe"),
    "deep.json": ("[" * DEEP + "]" * DEEP, "not readable as a recipe"),
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
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=says) as caught:
        Recipe.read(tmp_path / name, changes=["seed=3"])
    assert len(str(caught.value)) < 1000
    if name.endswith(".toml"):
        with pytest.raises(UserError):
            read_study(tmp_path / name, changes=["seeds=3"])


def test_the_key_follows_what_can_change_the_result(file: Path, tmp_path: Path) -> None:
    recipe = Recipe.read(file)
    (tmp_path / "recipe.json").write_text(recipe.model_dump_json())
    same = Recipe.read(tmp_path / "recipe.json")
    same = same.changed(training__checkpoint_seconds=1.0, training__tracker="mlflow")
    assert same.key() == recipe.key()
    others = [{"seed": 1}, {"data__where__variety": "en-UK"}, {"training__held_out": 0.2}]
    assert len({recipe.key(), *(recipe.changed(**one).key() for one in others)}) == 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model__pruning": "cascad"}, "Did you mean 'cascade'"),
        (
            {"model__pruning": "cascade", "model__pruning_options": {"finall": 0.5}},
            "Did you mean 'final'",
        ),
        ({"model__weighting_options": {"alpha": 1.5}}, "'softmax' has no options"),
        ({"model__head": "meen"}, "Did you mean 'mean'"),
        ({"training__balancing": "pcgradd"}, "Did you mean 'pcgrad'"),
    ],
)
def test_wrong_names_are_told_before_anything_is_read(
    changes: dict[str, object], words: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=words):
        train(Recipe().changed(data__source="besstie:/nowhere", **changes), tmp_path / "run")
