"""The rule by which texts leave: its numbers are checked, saved and read again."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_exits import PROMISE, with_exits
from tiny_exports import export_unmeasured
from tiny_models import TEXTS, model_of

from litotes.core.errors import UserError
from litotes.encoder import pretrained
from litotes.model.calibration import Calibration
from litotes.model.checkpoint import load_model, save_model
from litotes.model.exits import Exits, Promise, Sureness, exits_from_json, label_margins
from litotes.model.folder import hash_folder, open_model
from litotes.model.runtime import compute_outputs
from litotes.prediction.answers import as_json
from litotes.prediction.predictor import Predictor

TASKS = {"sentiment": ["negative", "positive"]}
RULE = Exits((1, 3), {layer: {"sentiment": Sureness(-1.0, 2.0)} for layer in (1, 3)}, 0.9, PROMISE)


def test_a_rule_survives_json() -> None:
    content = json.loads(json.dumps(RULE.as_json()))
    assert exits_from_json(content, tasks=TASKS, n_layers=4) == RULE


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "no table": lambda c: c.clear(),
    "more": lambda c: c.update(more=1),
    "layer 0": lambda c: c.update(layers=[0, 3]),
    "the last layer": lambda c: c.update(layers=[1, 4]),
    "a layer twice": lambda c: c.update(layers=[1, 1]),
    "layers backwards": lambda c: c.update(layers=[3, 1]),
    "true for a layer": lambda c: c.update(layers=[True, 3]),
    "no layers": lambda c: c.update(layers=[], sureness={}),
    "an exit less": lambda c: c["sureness"].pop("3"),
    "another task": lambda c: c["sureness"].update({"3": {"irony": {"offset": 0, "slope": 1}}}),
    "a slope below 0": lambda c: c["sureness"]["1"]["sentiment"].update(slope=-1),
    "an endless slope": lambda c: c["sureness"]["1"]["sentiment"].update(slope=float("inf")),
    "a word": lambda c: c["sureness"]["1"]["sentiment"].update(offset="0"),
    "a threshold of 0": lambda c: c.update(threshold=0),
    "a threshold above 1": lambda c: c.update(threshold=1.5),
    "no threshold": lambda c: c.update(threshold=None),
    "no promise": lambda c: c["promise"].pop("n"),
    "all allowed": lambda c: c["promise"].update(allowed=1),
    "too many differ": lambda c: c["promise"].update(n=3, n_differ=4),
    "half a text": lambda c: c["promise"].update(n=0.5),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_no_rule_is_refused(change: str) -> None:
    content = deepcopy(RULE.as_json())
    CHANGES[change](content)
    with pytest.raises(ValueError, match=r"must|cannot|every"):
        exits_from_json(content, tasks=TASKS, n_layers=4)


def test_a_number_has_no_exits() -> None:
    with pytest.raises(ValueError, match="number has no exits"):
        exits_from_json(RULE.as_json(), tasks={"sentiment": []}, n_layers=4)


def test_margins_are_distances_from_another_label() -> None:
    logits = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    plain, decided = Calibration(2.0), Calibration(2.0, 0.7, 9)
    for calibration in (plain, decided):
        labels, _ = calibration.apply(logits)
        margins = label_margins(logits, calibration)
        for step, flips in ((0.999, False), (1.001, True)):
            moved = logits.astype(np.float64)
            moved[np.arange(50), labels] -= step * margins
            assert (calibration.apply(moved)[0] != labels).all() == flips


def test_the_threshold_is_a_chance() -> None:
    logits = {"sentiment": np.array([[0.0, 1.0], [0.0, 2.0]])}
    for threshold in (0.7, 0.75, 0.99):
        rule = replace(RULE, threshold=threshold)
        chances = 1 / (1 + np.exp(-(2 * np.array([1.0, 2.0]) - 1)))
        is_sure = rule.log_odds(1, logits, {}) >= rule.cut
        np.testing.assert_array_equal(is_sure, chances >= threshold)


@pytest.fixture
def folder(tiny: pretrained.Pretrained, tmp_path: Path) -> Path:
    model = with_exits(model_of(tiny), (1,), threshold=0.6)
    save_model(model, tmp_path / "model", card="a card")
    return tmp_path / "model"


def test_a_folder_keeps_exits(tiny: pretrained.Pretrained, folder: Path) -> None:
    model, loaded = with_exits(model_of(tiny), (1,), threshold=0.6), load_model(folder)
    assert model.exits is not None
    assert loaded.exits is not None
    assert loaded.exits.rule == model.exits.rule == open_model(folder).exits
    pieces = loaded.tokenizer.encode(TEXTS)
    found, expected = compute_outputs(loaded, pieces), compute_outputs(model, pieces)
    assert found.layers is not None
    assert set(found.layers.tolist()) == {1, 2}
    np.testing.assert_array_equal(found.layers, expected.layers)
    np.testing.assert_allclose(found.logits["sentiment"], expected.logits["sentiment"], atol=1e-6)


def test_a_folder_with_another_rule_is_refused(folder: Path) -> None:
    file = folder / "litotes.json"
    content = json.loads(file.read_text())
    content["exits"]["layers"] = [2]
    file.write_text(json.dumps(content))
    hash_folder(folder).write(folder)
    with pytest.raises(UserError, match=r"layers of exits must be whole numbers from 0 to 1"):
        open_model(folder)


def test_a_folder_without_the_weights_of_an_exit_is_refused(
    tiny: pretrained.Pretrained, tmp_path: Path, folder: Path
) -> None:
    save_model(model_of(tiny), tmp_path / "whole", card="")
    (folder / "model.safetensors").write_bytes((tmp_path / "whole/model.safetensors").read_bytes())
    hash_folder(folder).write(folder)
    with pytest.raises(UserError, match=r"litotes\.json: damaged"):
        load_model(folder)


def test_the_predictor_says_where_a_text_was_answered(folder: Path) -> None:
    export_unmeasured(folder)
    layers = {}
    for runtime in ("torch", "onnx"):
        predictor = Predictor.load(folder, runtime=runtime)
        predictions = list(predictor.stream(TEXTS))
        layers[runtime] = [one.answered_at_layer for one in predictions]
        rows = [as_json(one, predictor.tasks) for one in predictions]
        assert [row["answered_at_layer"] for row in rows] == layers[runtime]
        assert f"answered_at_layer={layers[runtime][0]}" in repr(predictions[0])
    assert layers["torch"] == layers["onnx"]
    assert set(layers["torch"]) == {1, 2}


def test_a_model_without_exits_says_nothing_new(tiny: pretrained.Pretrained) -> None:
    predictor = Predictor(model_of(tiny), device="cpu")
    (prediction,) = predictor.predict(TEXTS[:1])
    assert prediction.answered_at_layer is None
    assert "answered_at_layer" not in as_json(prediction, predictor.tasks)


def test_an_export_of_another_rule_is_refused(tiny: pretrained.Pretrained, folder: Path) -> None:
    export_unmeasured(folder)
    exported = {name: (folder / name).read_bytes() for name in ("model.onnx", "export.json")}
    save_model(with_exits(model_of(tiny), (1,), threshold=0.7), folder, card="")
    for name, content in exported.items():
        (folder / name).write_bytes(content)
    hash_folder(folder).write(folder)
    with pytest.raises(UserError, match="disagree about exits"):
        Predictor.load(folder, runtime="onnx")


def test_an_explanation_is_of_the_whole_model(tiny: pretrained.Pretrained) -> None:
    whole = model_of(tiny)
    early = with_exits(whole, (1,), threshold=1e-9)
    text, options = TEXTS[0], {"methods": ["occlusion"], "faithfulness": False}
    explained = Predictor(early, device="cpu").explain(text, **options)  # type: ignore[arg-type]
    (answer,) = Predictor(whole, device="cpu").predict([text])
    assert explained.answered_at_layer == 1
    assert explained.as_json(maps=False)["answered_at_layer"] == 1
    assert "after layer 1 of 2" in explained.exit_in_words()
    found = explained.answers["sentiment"].probability
    assert found == pytest.approx(answer.answers["sentiment"].probability, abs=1e-6)
    (left,) = Predictor(early, device="cpu").predict([text])
    assert found != pytest.approx(left.answers["sentiment"].probability, abs=1e-6)


def test_a_promise_is_a_sentence() -> None:
    words = Promise(0.01, 0.95, 1000, 4).in_words()
    assert "at most 1 %" in words
    assert "4 of the 1000 texts" in words
