"""`POST /predict` takes what clients of text-embeddings-inference send, and answers all of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI

from litotes.prediction.predictor import Predictor
from litotes.service import ServiceSettings, create_app

TEXTS = ["the tea is great", "bad queue", "it is not tea"]


@pytest.fixture
def served(predictor: Predictor, moods: Predictor) -> Iterator[FastAPI]:
    settings = ServiceSettings(max_texts=4, max_characters=2000)
    made = create_app({"tiny": predictor, "moods": moods}, settings=settings)
    yield made
    made.state.service.close()


def pair_reader(moods: Predictor) -> Predictor:
    """The same model, as if it had learned from pairs."""
    (runtime,) = moods.runtimes
    model = replace(runtime.model(), facts={"data": {"n_pairs": 1}})
    return Predictor(model, device="cpu")


def assert_scores(found: list[dict[str, Any]], expected: dict[str, float]) -> None:
    assert [one.keys() for one in found] == [{"score", "label"}] * len(expected)
    assert {one["label"]: one["score"] for one in found} == pytest.approx(expected, abs=1e-5)
    scores = [one["score"] for one in found]
    assert scores == sorted(scores, reverse=True)


def shares(predictor: Predictor, task: str, text: str, pair: str | None = None) -> Any:
    return dict(predictor.predict(text, pairs=pair).answers[task].probabilities)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (None, "`inputs` must be a string or a list."),
        (True, "`inputs` must be a string or a list."),
        ([["a", "b", "c"]], "`inputs.0` is a list, and not of one text or two."),
        (["a", []], "`inputs.1` is a list, and not of one text or two."),
    ],
)
def test_a_wrong_shape_is_told_in_plain_words(
    served: FastAPI, ask: Any, inputs: Any, words: str
) -> None:
    answer = ask(served, "/predict", {"inputs": inputs})
    assert answer.status_code == 422
    assert words in answer.json()["error"]


def test_one_text_and_the_first_task(served: FastAPI, predictor: Predictor, ask: Any) -> None:
    for inputs in (TEXTS[0], [TEXTS[0]]):
        answer = ask(served, "/predict", {"inputs": inputs})
        assert answer.status_code == 200
        assert_scores(answer.json(), shares(predictor, "sentiment", TEXTS[0]))
    answer = ask(served, "/predict", {"inputs": TEXTS[0], "task": "sarcasm", "model": "tiny"})
    assert_scores(answer.json(), shares(predictor, "sarcasm", TEXTS[0]))


@pytest.mark.parametrize("inputs", [TEXTS[:2], TEXTS, [[text] for text in TEXTS], [TEXTS[:1]]])
def test_every_text_of_a_batch_is_answered(
    served: FastAPI, predictor: Predictor, ask: Any, inputs: list[Any]
) -> None:
    answers = ask(served, "/predict", {"inputs": inputs}).json()
    assert len(answers) == len(inputs)
    for item, found in zip(inputs, answers, strict=True):
        text = item[0] if isinstance(item, list) else item
        assert_scores(found, shares(predictor, "sentiment", text))


def test_two_strings_are_a_pair_for_a_model_of_pairs(moods: Predictor, ask: Any) -> None:
    app = create_app({"pairs": pair_reader(moods)}, settings=ServiceSettings())
    pair = shares(moods, "mood", *TEXTS[:2])
    assert pair != pytest.approx(shares(moods, "mood", TEXTS[0]), abs=1e-4)
    assert_scores(ask(app, "/predict", {"inputs": TEXTS[:2]}).json(), pair)
    mixed = ask(app, "/predict", {"inputs": [TEXTS[:2], TEXTS[2:]]}).json()
    assert_scores(mixed[0], pair)
    assert_scores(mixed[1], shares(moods, "mood", TEXTS[2]))
    app.state.service.close()


def test_raw_scores_are_what_the_model_computes(
    served: FastAPI, predictor: Predictor, moods: Predictor, ask: Any
) -> None:
    for name, task, own in (("tiny", "sarcasm", predictor), ("moods", "mood", moods)):
        (runtime,) = own.runtimes
        logits = runtime.logits(runtime.tokenizer.encode(TEXTS))[task]
        body = {"inputs": TEXTS, "raw_scores": True, "model": name, "task": task}
        for found, row in zip(ask(served, "/predict", body).json(), logits, strict=True):
            assert_scores(found, dict(zip(own.tasks[task].labels, row.tolist(), strict=True)))
        assert not np.allclose(logits.sum(1), 1)


def test_a_number_stands_under_the_name_of_its_task(
    served: FastAPI, moods: Predictor, ask: Any
) -> None:
    number = moods.predict(TEXTS[0]).answers["warmth"].label
    for raw in (False, True):
        body = {"inputs": TEXTS[0], "model": "moods", "task": "warmth", "raw_scores": raw}
        (found,) = ask(served, "/predict", body).json()
        assert found["label"] == "warmth"
        assert found["score"] == pytest.approx(number, abs=1e-5)


def test_a_long_text_is_cut_only_when_that_is_asked_for(served: FastAPI, ask: Any) -> None:
    long = "x " * 300
    for inputs in (long, [[TEXTS[0]], [long]]):
        refused = ask(served, "/predict", {"inputs": inputs})
        assert refused.status_code == 413
        assert refused.json()["error_type"] == "Validation"
        assert '"truncate": true' in refused.json()["error"]
        assert ask(served, "/predict", {"inputs": inputs, "truncate": True}).status_code == 200
    assert "Number 1 of" in refused.json()["error"]


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({"inputs": [[text] for text in "abcde"]}, 413, "Validation"),
        ({"inputs": "x" * 2001}, 413, "Validation"),
        ({"inputs": " "}, 422, "Tokenizer"),
        ({"inputs": [["tea"], [None]]}, 422, "Tokenizer"),
        ({"inputs": []}, 422, "Validation"),
        ({"inputs": [[]]}, 422, "Validation"),
        ({"inputs": [["a", "b", "c"]]}, 422, "Validation"),
        ({"inputs": {}}, 422, "Validation"),
        ({"inputs": None}, 422, "Validation"),
        ({"inputs": "tea", "truncation_direction": "Left"}, 422, "Validation"),
        ({"inputs": "tea", "normalize": True}, 422, "Validation"),
        ({"inputs": "tea", "task": "mood"}, 404, "Validation"),
        ({"inputs": "tea", "model": "x"}, 404, "Validation"),
        ({}, 422, "Validation"),
        (b"{", 400, "Validation"),
    ],
)
def test_errors_have_the_shape_its_clients_know(
    served: FastAPI, ask: Any, body: Any, status: int, kind: str
) -> None:
    answer = ask(served, "/predict", body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    content = answer.json()
    assert content.keys() == {"error", "error_type"}
    assert content["error_type"] == kind
    assert content["error"].endswith((".", "true."))


def test_a_service_that_loads_or_is_full_says_so(fake_app_of: Any, ask: Any) -> None:
    for app, status, kind in fake_app_of:
        answer = ask(app, "/predict", {"inputs": "tea"})
        assert (answer.status_code, answer.json()["error_type"]) == (status, kind)
        assert int(answer.headers["retry-after"]) >= 1


@pytest.fixture
def fake_app_of(moods: Predictor) -> Iterator[list[tuple[FastAPI, int, str]]]:
    loading = create_app(lambda: {"moods": moods}, settings=ServiceSettings())
    full = create_app({"moods": moods}, settings=ServiceSettings())
    full.state.service.batcher.close()
    yield [(loading, 503, "Unhealthy"), (full, 429, "Overloaded")]
    for app in (loading, full):
        app.state.service.close()


def test_it_needs_the_token_and_tells_pages_of_other_sites(predictor: Predictor, ask: Any) -> None:
    settings = ServiceSettings(token="s3cret", allowed_origins=("https://example.org",))
    app = create_app({"tiny": predictor}, settings=settings)
    body = {"inputs": "tea"}
    assert ask(app, "/predict", body).status_code == 401
    answer = ask(app, "/predict", body, headers={"Authorization": "Bearer s3cret"})
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    asked = {"origin": "https://example.org", "access-control-request-method": "POST"}
    allowed = ask(app, "/predict", method="OPTIONS", headers=asked)
    assert allowed.headers["access-control-allow-methods"] == "POST"
    app.state.service.close()
