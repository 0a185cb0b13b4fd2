"""Of several texts each may fail alone, with a problem of its own; the others are answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI

from litotes.prediction.answers import as_json
from litotes.prediction.predictor import Predictor
from litotes.service import ServiceSettings, create_app
from litotes.service.problems import PROBLEM_KINDS

BAD: list[tuple[Any, str, str]] = [
    ("", "unreadable-text", "blank"),
    (" \t\u2003\n\x1f", "unreadable-text", "blank"),
    ("half \ud83d a pair", "unreadable-text", "surrogate"),
    (None, "unreadable-text", "not a string"),
    (7, "unreadable-text", "not a string"),
    (-1.5e300, "unreadable-text", "not a string"),
    (False, "unreadable-text", "not a string"),
    ("tea " * 10, "too-large", "more than 30 characters"),
]


@pytest.fixture
def moods_app(moods: Predictor) -> Iterator[FastAPI]:
    made = create_app({"moods": moods}, settings=ServiceSettings(max_characters=30))
    yield made
    made.state.service.close()


def metric(app: FastAPI, ask: Any, name: str) -> float:
    lines = ask(app, "/metrics").text.splitlines()
    (found,) = [line for line in lines if line.startswith(f"{name} ")]
    return float(found.split()[1])


@pytest.mark.parametrize(("bad", "name", "says"), BAD, ids=[repr(case[0])[:20] for case in BAD])
def test_a_bad_text_has_its_problem_and_the_others_their_answers(
    moods_app: FastAPI, moods: Predictor, ask: Any, bad: Any, name: str, says: str
) -> None:
    answer = ask(moods_app, "/v1/predict", {"texts": ["great tea", bad, "bad queue"]})
    assert answer.status_code == 200
    first, failed, last = answer.json()["predictions"]
    for found, expected in zip(
        (first, last), moods.predict(["great tea", "bad queue"]), strict=True
    ):
        document = as_json(expected, moods.tasks)
        assert found["mood"]["label"] == document["mood"]["label"]
        assert found["mood"]["probabilities"] == pytest.approx(
            document["mood"]["probabilities"], abs=1e-5
        )
        assert found["problem"] is None
    problem = failed.pop("problem")
    assert problem["type"] == f"urn:litotes:problem:{name}"
    kind = PROBLEM_KINDS[name]
    assert (problem["status"], problem["title"]) == (kind.status, kind.title)
    assert says in problem["detail"]
    assert problem.keys() == {"type", "title", "status", "detail"}
    repeated = bad if isinstance(bad, str) and len(bad) <= 30 else None
    assert failed == {
        "text": repeated,
        "mood": None,
        "warmth": None,
        "truncated": False,
        "unreadable": False,
    }


def test_every_text_may_fail(moods_app: FastAPI, ask: Any) -> None:
    answer = ask(moods_app, "/v1/predict", {"texts": [text for text, _, _ in BAD]})
    assert answer.status_code == 200
    names = [one["problem"]["type"].rpartition(":")[2] for one in answer.json()["predictions"]]
    assert names == [name for _, name, _ in BAD]
    assert metric(moods_app, ask, "litotes_bad_texts_total") == len(BAD)
    assert metric(moods_app, ask, "litotes_texts_total") == 0
    # there was nothing to compute, and nothing waited
    assert metric(moods_app, ask, "litotes_batch_texts_count") == 0
    assert metric(moods_app, ask, "litotes_queue_texts") == 0


def test_bad_texts_are_counted_apart(
    moods_app: FastAPI, ask: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(moods_app, "/v1/predict", {"texts": ["tea", "", None, "a queue"]})
    assert metric(moods_app, ask, "litotes_bad_texts_total") == 2
    assert metric(moods_app, ask, "litotes_texts_total") == 2
    moods_app.state.service.log.flush()
    line = json.loads(capsys.readouterr().err.splitlines()[0])
    assert (line["n_texts"], line["n_characters"]) == (4, 10)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        *(
            (json.dumps({"text": text}).encode(), PROBLEM_KINDS[name].status)
            for text, name, _ in BAD
        ),
        (json.dumps({"texts": ["tea", ["queue"]]}).encode(), 422),
        (json.dumps({"texts": ["tea", {}]}).encode(), 422),
        (json.dumps({"texts": "tea"}).encode(), 422),
        (json.dumps({"texts": []}).encode(), 422),
        (json.dumps({"texts": [None] * 65}).encode(), 413),
        (b'{"texts": ["tea", 01]}', 400),
        (b'{"texts": ["tea", nil]}', 400),
        (b'{"texts": ["tea", -]}', 400),
        (b'{"texts": ["tea", NaN]}', 400),
        (b'{"texts": ["tea", ' + b"9" * 5000 + b"]}", 400),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_remains_a_problem_of_the_whole_request(
    moods_app: FastAPI, ask: Any, body: bytes, status: int
) -> None:
    assert ask(moods_app, "/v1/predict", body).status_code == status
    assert metric(moods_app, ask, "litotes_bad_texts_total") == 0


def test_every_label_has_its_probability(moods_app: FastAPI, ask: Any) -> None:
    (prediction,) = ask(moods_app, "/v1/predict", {"text": "great tea"}).json()["predictions"]
    shares = prediction["mood"]["probabilities"]
    assert list(shares) == ["angry", "content", "calm"]
    assert sum(shares.values()) == pytest.approx(1)
    assert prediction["mood"]["probability"] == shares[prediction["mood"]["label"]]
    assert prediction["warmth"]["probabilities"] == {}
    explained = ask(moods_app, "/v1/explain", {"text": "great tea", "methods": []}).json()
    assert explained["answers"]["mood"]["probabilities"] == pytest.approx(shares, abs=1e-5)
    assert explained["answers"]["warmth"]["probabilities"] == {}
