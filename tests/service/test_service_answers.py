"""What is asked over HTTP is answered as Python and the command line answer it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from litotes.cli.main import main
from litotes.explanation.attribution import METHODS
from litotes.prediction.answers import as_json
from litotes.prediction.predictor import Predictor
from litotes.service import ServiceSettings, create_app

TEXTS = [
    "The tea is great.",
    "Hate it, hate it: the queue!",
    "ok",
    "x " * 300,
    "\u202egreat\u202c \x01 \U0001f9cb é",
    "\u200b \U0001f9cb",
]


def test_one_text(app: FastAPI, predictor: Predictor, ask: Any) -> None:
    answer = ask(app, "/v1/predict", {"text": TEXTS[0]})
    assert answer.status_code == 200
    (expected,) = predictor.predict(TEXTS[:1])
    document = as_json(expected, predictor.tasks)
    assert answer.json() == {"model": "tiny", "predictions": [document]}
    assert answer.headers["content-type"] == "application/json"


def test_an_edition_is_asked_by_its_name(predictor: Predictor, ask: Any) -> None:
    app = create_app({"builtin": predictor, "builtin@5": predictor}, settings=ServiceSettings())
    answer = ask(app, "/v1/predict", {"text": TEXTS[0], "model": "builtin@5"})
    app.state.service.close()
    assert (answer.status_code, answer.json()["model"]) == (200, "builtin@5")


def test_many_texts_in_their_order_and_as_the_command_line_says_it(
    app: FastAPI, trained_folder: Path, ask: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    predictions = ask(app, "/v1/predict", {"texts": TEXTS, "model": "tiny"}).json()["predictions"]
    capsys.readouterr()
    assert (
        main(
            [
                "predict",
                *TEXTS,
                "--model",
                str(trained_folder),
                "--device",
                "cpu",
                "--format",
                "jsonl",
            ]
        )
        == 0
    )
    printed_lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["text"] for one in predictions] == TEXTS
    for served, printed in zip(predictions, printed_lines, strict=True):
        assert served.keys() == printed.keys()
        for task in ("sentiment", "sarcasm"):
            assert served[task]["label"] == printed[task]["label"]
            assert served[task]["probability"] == pytest.approx(
                printed[task]["probability"], abs=1e-5
            )
    assert [one["truncated"] for one in predictions] == [False, False, False, True, False, False]
    assert [one["unreadable"] for one in predictions] == [False, False, False, False, False, True]


def test_an_explanation(app: FastAPI, predictor: Predictor, ask: Any) -> None:
    answer = ask(app, "/v1/explain", {"text": TEXTS[1], "task": "sarcasm"})
    assert answer.status_code == 200
    content = answer.json()
    expected = predictor.explain(
        TEXTS[1], task="sarcasm", methods=["effective", "standard"], faithfulness=False
    )
    layers = content.pop("layers")
    assert content == json.loads(json.dumps(expected.as_json(maps=False)))
    assert set(content["shadings"]) == {"occlusion", "effective", "standard"}
    n_words = len(content["words"])
    assert len(layers) == 2
    assert all(
        len(layer["received"][kind]) == n_words
        for layer in layers
        for kind in ("standard", "effective")
    )


def test_an_explanation_by_other_methods(app: FastAPI, ask: Any) -> None:
    content = ask(
        app,
        "/v1/explain",
        {"text": TEXTS[0], "method": "rollout", "methods": ["random"], "faithfulness": True},
    ).json()
    assert content["task"] == "sentiment"
    assert content["method"] == "rollout"
    assert set(content["shadings"]) == {"rollout", "random"}
    assert "comprehensiveness" in content["shadings"]["rollout"]["faithfulness"]


def test_the_list_of_models(predictor: Predictor, ask: Any) -> None:
    app = create_app(
        {"first": predictor, "second": predictor},
        settings=ServiceSettings(max_texts=100, queue_texts=50),
    )
    content = ask(app, "/v1/models").json()
    assert [(model["name"], model["is_default"]) for model in content["models"]] == [
        ("first", True),
        ("second", False),
    ]
    assert content["models"][0]["tasks"] == {
        "sentiment": ["negative", "positive"],
        "sarcasm": ["literal", "sarcastic"],
    }
    assert content["models"][0]["runtime"] == "torch"
    assert content["models"][0]["n_layers"] == 2
    assert content["models"][0]["most_pieces"] == 32
    assert content["methods"] == list(METHODS)
    assert content["limits"] == {
        "texts": 50,
        "characters": 10000,
        "explained_characters": 2000,
        "body_bytes": 1000000,
        "seconds": 30.0,
    }
    assert ask(app, "/v1/predict", {"text": "ok", "model": "second"}).json()["model"] == "second"
    assert ask(app, "/v1/predict", {"text": "ok"}).json()["model"] == "first"


def test_probes_and_the_page(app: FastAPI, ask: Any) -> None:
    assert ask(app, "/live").json() == {"status": "live"}
    assert ask(app, "/ready").json() == {"status": "ready"}
    page = ask(app, "/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert ask(app, "/page/index.html").content == page.content


def test_every_answer_has_its_headers(app: FastAPI, ask: Any) -> None:
    for answer in (
        ask(app, "/live"),
        ask(app, "/v1/models"),
        ask(app, "/nowhere"),
        ask(app, "/"),
        ask(app, "/v1/predict", b"{"),
    ):
        assert answer.headers["content-security-policy"].startswith(
            "default-src 'none'; script-src 'self'; style-src 'self';"
        )
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["x-request-id"]
        assert (answer.headers.get("cache-control") == "no-store") == answer.url.path.startswith(
            "/v1/"
        )


def test_nothing_is_loaded_from_elsewhere(app: FastAPI, ask: Any) -> None:
    assert ask(app, "/docs").status_code == 404
    assert ask(app, "/redoc").status_code == 404
