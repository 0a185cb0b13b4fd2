"""The public names: there, loaded when first used, documented, typed, with examples that run."""

from __future__ import annotations

import doctest
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import litotes
from litotes import load_corpus, load_encoder
from litotes.training.recipe import Recipe

NAMES = [name for name in litotes.__all__ if name != "__version__"]


def test_the_promised_names_are_there() -> None:
    promised = "Predictor Recipe train evaluate explain prune export load_corpus load_encoder"
    assert set(promised.split()) <= set(litotes.__all__) <= set(dir(litotes))
    for name in NAMES:
        value = getattr(litotes, name)
        assert callable(value)
        assert value.__doc__
    with pytest.raises(AttributeError, match="nonsense"):
        _ = litotes.nonsense
    assert (Path(litotes.__file__).parent / "py.typed").is_file()


def test_a_name_is_not_hidden_by_a_package_of_that_name() -> None:
    """`from litotes import explain` is the function, whatever has been imported before."""
    packages = {path.parent.name for path in Path(litotes.__file__).parent.glob("*/__init__.py")}
    assert not packages & set(NAMES)


def test_importing_costs_nothing_until_a_name_is_used() -> None:
    heavy = "torch numpy pydantic rich matplotlib tokenizers"
    program = f"import sys, litotes; assert not set({heavy.split()}) & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "module", ["litotes", "litotes.encoder.pretrained", "litotes.evaluation.evaluate"]
)
def test_examples_run(module: str) -> None:
    result = doctest.testmod(import_module(module))
    assert result.attempted
    assert not result.failed


@pytest.mark.slow
def test_a_model_is_trained_scored_and_exported(tiny_recipe: Recipe, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    corpus = load_corpus("sampler").where(variety="en-UK", task="sarcasm")
    recipe = tiny_recipe.changed(training__epochs=1, data__where={}, data__tasks=["sarcasm"])
    run = litotes.train(recipe, tmp_path / "model", corpus=corpus)
    assert run.folder == tmp_path / "model"
    rows = litotes.evaluate(tmp_path / "model", corpus.where(split="test"))
    assert (rows[0].cell, rows[0].scores.task) == ("all", "sarcasm")
    assert rows[0].scores.n == len(corpus.where(split="test"))
    found = litotes.explain("Lovely. Another delay.", tmp_path / "model", faithfulness=False)
    assert found.task == "sarcasm"
    (exported,) = litotes.export(tmp_path / "model", data="sampler", out=tmp_path / "copy")
    assert exported.file == tmp_path / "copy" / "model.onnx"
    assert not (tmp_path / "model" / "model.onnx").exists()


def test_an_encoder_is_loaded(tiny_folder: Path) -> None:
    assert load_encoder(str(tiny_folder), max_pieces=20).tokenizer.max_pieces == 20
    with pytest.raises(TypeError, match="recipe file"):
        litotes.train(Recipe(), tiny_folder, changes=["training.epochs=1"])
