"""Two texts asked about together: the same over HTTP, in the shell and in Python."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from pairs_model import PAIRS

from litotes.cli.main import main
from litotes.prediction.answers import as_json
from litotes.prediction.predictor import Predictor
from litotes.service import ServiceSettings, create_app


@pytest.fixture(scope="module")
def reader(pairs_folder: Path) -> Predictor:
    return Predictor.load(pairs_folder, device="cpu")


@pytest.fixture
def served(reader: Predictor, predictor: Predictor) -> Iterator[FastAPI]:
    made = create_app({"pairs": reader, "tiny": predictor}, settings=ServiceSettings())
    yield made
    made.state.service.close()


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, dict):
            assert found[name]["label"] == value["label"]
            assert found[name]["probability"] == pytest.approx(value["probability"], abs=1e-5)
        else:
            assert found[name] == value


def test_all_doors_answer_a_pair_alike(
    served: FastAPI,
    reader: Predictor,
    pairs_folder: Path,
    ask: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    texts, seconds = zip(*PAIRS, strict=True)
    expected = [as_json(one, reader.tasks) for one in reader.predict(texts, pairs=seconds)]
    alone = [as_json(one, reader.tasks) for one in reader.predict(texts)]
    assert expected[0]["agreement"] != alone[0]["agreement"]
    many = ask(served, "/v1/predict", {"texts": [*map(list, PAIRS), texts[0]]}).json()
    for found, one in zip(many["predictions"], [*expected, alone[0]], strict=True):
        assert_same(found, one)
    for (text, pair), one in zip(PAIRS, expected, strict=True):
        (found,) = ask(served, "/v1/predict", {"text": text, "pair": pair}).json()["predictions"]
        assert_same(found, one)
        line = ["predict", text, "--pair", pair, "--model", str(pairs_folder), "--device", "cpu"]
        assert main([*line, "--json"]) == 0
        (printed,) = json.loads(capsys.readouterr().out)
        assert_same(printed, one)
        assert main(line) == 0
        assert capsys.readouterr().out.splitlines()[:2] == [text, pair]


def test_an_explanation_of_a_pair(served: FastAPI, reader: Predictor, ask: Any) -> None:
    text, pair = PAIRS[0]
    answer = ask(served, "/v1/explain", {"text": text, "pair": pair, "methods": []})
    assert answer.status_code == 200
    content = answer.json()
    expected = reader.explain(text, pair=pair, methods=[], faithfulness=False)
    assert content["pair"] == pair
    assert content["words"] == expected.as_json(maps=False)["words"]
    assert {word["is_pair"] for word in content["words"]} == {False, True}
    weights = content["shadings"]["occlusion"]["weights"]
    assert weights == pytest.approx(expected.shadings["occlusion"].weights, abs=1e-4)


def test_what_a_model_has_learned_from_is_described(served: FastAPI, ask: Any) -> None:
    described = ask(served, "/v1/models").json()["models"]
    assert {one["name"]: one["pairs"] for one in described} == {"pairs": True, "tiny": False}


def test_each_pair_may_fail_alone(served: FastAPI, ask: Any) -> None:
    items = [["tea", "bad tea"], ["tea", " "], [None, "tea"], ["x" * 10_001, "tea"]]
    answer = ask(served, "/v1/predict", {"texts": items})
    assert answer.status_code == 200
    good, *failed = answer.json()["predictions"]
    assert good["problem"] is None
    kinds = [one["problem"]["type"].rsplit(":")[-1] for one in failed]
    assert kinds == ["unreadable-text", "unreadable-text", "too-large"]
    shown = [(one["text"], one["pair"]) for one in failed]
    assert shown == [("tea", " "), (None, "tea"), (None, None)]
    assert all(one["agreement"] is None for one in failed)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"text": "tea", "pair": " "}, 422),
        ({"text": "tea", "pair": "x" * 10_001}, 413),
        ({"texts": ["tea"], "pair": "tea"}, 422),
        ({"texts": [["tea"]]}, 422),
        ({"texts": [[]]}, 422),
        ({"texts": [["tea", "tea", "tea"]]}, 422),
        ({"texts": [["tea", ["tea"]]]}, 422),
        (b'{"texts": [["tea", "tea",]]}', 400),
        (b'{"texts": [["tea" "tea"]]}', 400),
        (b'{"texts": [["tea", "tea"}', 400),
    ],
)
def test_what_is_no_pair_is_refused(served: FastAPI, ask: Any, body: Any, status: int) -> None:
    assert ask(served, "/v1/predict", body).status_code == status


def test_the_shell_takes_a_pair_for_one_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "tea", "bad tea", "--pair", "tea"]) == 2
    assert "give one TEXT" in capsys.readouterr().err
