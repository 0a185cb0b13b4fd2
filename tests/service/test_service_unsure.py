"""A model that may be unsure answers the same over HTTP, in the shell and in Python."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from tiny_models import TEXTS

from litotes.cli.main import main
from litotes.prediction.answers import as_json
from litotes.prediction.predictor import Predictor
from litotes.service import ServiceSettings, create_app


@pytest.fixture(scope="module")
def unsure(unsure_folder: Path) -> Predictor:
    return Predictor.load(unsure_folder, device="cpu")


@pytest.fixture
def served(unsure: Predictor) -> Iterator[FastAPI]:
    made = create_app({"tiny": unsure}, settings=ServiceSettings())
    yield made
    made.state.service.close()


def without_shares(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Batches of other sizes may round otherwise."""
    for document in documents:
        for answer in document.values():
            if isinstance(answer, dict):
                del answer["probability"], answer["probabilities"]
    return documents


@pytest.mark.parametrize("variety", [None, "en-AU"])
def test_all_doors_give_the_same_answers(
    served: FastAPI,
    unsure: Predictor,
    unsure_folder: Path,
    ask: Any,
    capsys: pytest.CaptureFixture[str],
    variety: str | None,
) -> None:
    own = unsure.for_variety(variety)
    expected = without_shares([as_json(one, own.tasks) for one in own.predict(TEXTS)])
    kinds = {document[task]["unsure"] for document in expected for task in own.tasks}
    if variety is None:
        assert kinds == {
            None,
            "no label is likely enough",
            "several labels are possible: literal, sarcastic",
        }
    else:
        assert all(kind.startswith("several labels") for kind in kinds)
    body = {"texts": TEXTS, **({} if variety is None else {"variety": variety})}
    assert without_shares(ask(served, "/v1/predict", body).json()["predictions"]) == expected
    options = ["predict", *TEXTS, "--model", str(unsure_folder), "--device", "cpu"]
    options += [] if variety is None else ["--variety", variety]
    assert main([*options, "--json"]) == 0
    assert without_shares(json.loads(capsys.readouterr().out)) == expected
    assert main([*options, "--format", "csv"]) == 0
    for row, document in zip(
        csv.DictReader(StringIO(capsys.readouterr().out)), expected, strict=True
    ):
        for task in own.tasks:
            assert row[f"{task}_labels"] == "|".join(document[task]["labels"])
            assert row[f"{task}_unsure"] == (document[task]["unsure"] or "")
    assert main(options) == 0
    n_unsure = sum(
        document[task]["unsure"] is not None for document in expected for task in own.tasks
    )
    assert capsys.readouterr().out.count("unsure: ") == n_unsure


def test_a_variety_that_is_not_known_is_a_problem(served: FastAPI, app: FastAPI, ask: Any) -> None:
    for asked, advice in ((served, "Known: en-AU"), (app, "calibrated for none")):
        answer = ask(asked, "/v1/predict", {"text": "tea", "variety": "en-XX"})
        assert answer.status_code == 404
        assert answer.json()["type"] == "urn:litotes:problem:unknown-variety"
        assert advice in answer.json()["detail"]


def test_only_a_calibrated_model_is_described_as_such(
    served: FastAPI, app: FastAPI, ask: Any
) -> None:
    (model,) = ask(served, "/v1/models").json()["models"]
    coverage = {"sentiment": 0.9, "sarcasm": 0.9}
    assert model["unsure"] == {"coverage": coverage, "varieties": ["en-AU"]}
    (model,) = ask(app, "/v1/models").json()["models"]
    assert "unsure" not in model
    (answer,) = ask(app, "/v1/predict", {"text": "tea"}).json()["predictions"]
    assert set(answer["sarcasm"]) == {"label", "probability", "probabilities"}
