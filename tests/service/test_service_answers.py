"""What is asked over HTTP is answered as Python answers it: labels of texts and pairs, scores for
clients of text-embeddings-inference, explanations; of several texts each may fail alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from fastapi import FastAPI
from pairs_model import PAIRS

from litotes.core.values import Task
from litotes.encoder import pretrained
from litotes.encoder.pretrained import Pretrained
from litotes.explanation.attribution import METHODS
from litotes.model.checkpoint import SavedWordModel
from litotes.model.classifier import WordModel
from litotes.prediction.answers import as_json
from litotes.prediction.predictor import Predictor
from litotes.service import ServiceSettings, create_app
from litotes.service.answers import Explanation
from litotes.service.problems import PROBLEM_KINDS
from litotes.training.tagging.tagger import Tagger

TEXTS = [
    "The tea is great.",
    "Hate it, hate it: the queue!",
    "ok",
    "x " * 300,
    "\u202egreat\u202c \x01 \U0001f9cb é",
    "\u200b \U0001f9cb",
]
LONG = "x " * 300

Serve = Callable[..., FastAPI]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """An app with these models, closed at the end."""
    made = []

    def create(models: Any, load_locus: Any = None, **settings: Any) -> FastAPI:
        own = ServiceSettings(**settings)
        made.append(create_app(models, settings=own, load_locus=load_locus))
        return made[-1]

    yield create
    for app in made:
        app.state.service.close()


@pytest.fixture(scope="module")
def reader(pairs_folder: Path) -> Predictor:
    return Predictor.load(pairs_folder, device="cpu")


def assert_same(found: Any, expected: Any) -> None:
    """Batches of other sizes may round otherwise."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert_same(found[name], value)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=1e-5)
    else:
        assert found == expected


def documents(predictor: Predictor, *arguments: Any, **more: Any) -> list[dict[str, Any]]:
    found = predictor.predict(*arguments, **more)
    return json.loads(json.dumps([as_json(one, predictor.tasks) for one in found]))


def assert_predicted(answer: Any, expected: list[dict[str, Any]]) -> None:
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    for found, one in zip(answer.json()["predictions"], expected, strict=True):
        assert_same(found, one)


def test_texts_in_their_order(serve: Serve, predictor: Predictor, ask: Any) -> None:
    app = serve({"first": predictor, "first@5": predictor})
    expected = documents(predictor, TEXTS)
    assert [one["truncated"] for one in expected] == [False, False, False, True, False, False]
    assert [one["unreadable"] for one in expected] == [False, False, False, False, False, True]
    answer = ask(app, "/v1/predict", {"texts": TEXTS, "model": "first@5"})
    assert_predicted(answer, expected)
    assert answer.json()["model"] == "first@5"
    assert_predicted(ask(app, "/v1/predict", {"text": TEXTS[0]}), expected[:1])


def test_pairs(serve: Serve, reader: Predictor, predictor: Predictor, ask: Any) -> None:
    app = serve({"pairs": reader, "tiny": predictor})
    texts, seconds = zip(*PAIRS, strict=True)
    expected = documents(reader, texts, pairs=seconds)
    alone = documents(reader, texts)
    assert expected[0]["agreement"] != alone[0]["agreement"]
    many = ask(app, "/v1/predict", {"texts": [*map(list, PAIRS), texts[0]]})
    assert_predicted(many, [*expected, alone[0]])
    for (text, pair), one in zip(PAIRS, expected, strict=True):
        assert_predicted(ask(app, "/v1/predict", {"text": text, "pair": pair}), [one])
    described = ask(app, "/v1/models").json()["models"]
    assert {one["name"]: one["pairs"] for one in described} == {"pairs": True, "tiny": False}
    text, pair = PAIRS[0]
    content = ask(app, "/v1/explain", {"text": text, "pair": pair, "methods": []}).json()
    explained = reader.explain(text, pair=pair, methods=[], faithfulness=False)
    assert (content["pair"], content["words"]) == (pair, explained.as_json(maps=False)["words"])
    items = [["tea", "bad tea"], ["tea", " "], [None, "tea"], ["x" * 10_001, "tea"]]
    good, *failed = ask(app, "/v1/predict", {"texts": items}).json()["predictions"]
    assert good["problem"] is None
    kinds = [one["problem"]["type"].rsplit(":")[-1] for one in failed]
    assert kinds == ["unreadable-text", "unreadable-text", "too-large"]
    shown = [(one["text"], one["pair"]) for one in failed]
    assert shown == [("tea", " "), (None, "tea"), (None, None)]
    weights = content["shadings"]["occlusion"]["weights"]
    assert weights == pytest.approx(explained.shadings["occlusion"].weights, abs=1e-4)


@pytest.mark.parametrize("variety", [None, "en-AU"])
def test_a_model_that_may_be_unsure(
    serve: Serve, unsure_folder: Path, ask: Any, variety: str | None
) -> None:
    model = Predictor.load(unsure_folder, device="cpu")
    app, own = serve({"tiny": model}), model.for_variety(variety)
    expected = documents(own, TEXTS[:3])
    assert all(one["sarcasm"]["labels"] is not None for one in expected)
    body = {"texts": TEXTS[:3], **({} if variety is None else {"variety": variety})}
    assert_predicted(ask(app, "/v1/predict", body), expected)
    (described,) = ask(app, "/v1/models").json()["models"]
    coverage = {"sentiment": 0.9, "sarcasm": 0.9}
    assert described["unsure"] == {"coverage": coverage, "varieties": ["en-AU"]}
    answer = ask(app, "/v1/predict", {"text": "tea", "variety": "en-XX"})
    assert answer.status_code == 404
    assert "en-AU" in answer.json()["detail"]


def test_a_model_with_other_labels_that_was_not_calibrated(
    serve: Serve, moods: Predictor, ask: Any
) -> None:
    app = serve({"moods": moods})
    assert "unsure" not in ask(app, "/v1/models").json()["models"][0]
    (found,) = ask(app, "/v1/predict", {"text": "great tea"}).json()["predictions"]
    assert_same([found], documents(moods, ["great tea"]))
    assert list(found["mood"]["probabilities"]) == ["angry", "content", "calm"]
    assert (set(found["mood"]), found["warmth"]["probabilities"]) == (set(found["warmth"]), {})
    answer = ask(app, "/v1/predict", {"text": "tea", "variety": "en-AU"})
    assert answer.json()["type"] == "urn:litotes:problem:unknown-variety"


# Texts that fail alone

BAD: list[tuple[Any, str, str]] = [
    ("", "unreadable-text", "blank"),
    (" \t\u2003\n\x1f", "unreadable-text", "blank"),
    ("half \ud83d a pair", "unreadable-text", "surrogate"),
    (None, "unreadable-text", "not a string"),
    (-1.5e300, "unreadable-text", "not a string"),
    (False, "unreadable-text", "not a string"),
    ("tea " * 10, "too-large", "30 characters"),
]


@pytest.fixture
def moods_app(serve: Serve, moods: Predictor) -> FastAPI:
    return serve({"moods": moods}, max_characters=30)


def metric(app: FastAPI, ask: Any, name: str) -> float:
    lines = ask(app, "/metrics").text.splitlines()
    (found,) = [line for line in lines if line.startswith(f"{name} ")]
    return float(found.split()[1])


def test_bad_texts_have_their_problems_and_the_others_their_answers(
    moods_app: FastAPI, moods: Predictor, ask: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(moods_app, "/v1/predict", {"texts": ["", None]}).status_code == 200
    assert metric(moods_app, ask, "litotes_batch_texts_count") == 0  # nothing waited
    moods_app.state.service.log.flush()
    capsys.readouterr()
    good = ["great tea", "bad queue"]
    items = [good[0], *(text for text, _, _ in BAD), good[1]]
    answer = ask(moods_app, "/v1/predict", {"texts": items})
    assert answer.status_code == 200
    first, *failed, last = answer.json()["predictions"]
    assert_same([first, last], documents(moods, good))
    for found, (bad, name, says) in zip(failed, BAD, strict=True):
        problem, kind = found.pop("problem"), PROBLEM_KINDS[name]
        assert says in problem.pop("detail")
        own = {"title": kind.title, "status": kind.status}
        assert problem == {"type": f"urn:litotes:problem:{name}", **own}
        repeated = bad if isinstance(bad, str) and len(bad) <= 30 else None
        nothing = {"mood": None, "warmth": None, "truncated": False, "unreadable": False}
        assert found == {"text": repeated, **nothing}
    assert metric(moods_app, ask, "litotes_bad_texts_total") == 2 + len(BAD)
    assert metric(moods_app, ask, "litotes_texts_total") == 2
    moods_app.state.service.log.flush()
    line = json.loads(capsys.readouterr().err.splitlines()[0])
    n_characters = sum(len(item) for item in items if isinstance(item, str))
    assert (line["n_texts"], line["n_characters"]) == (len(items), n_characters)


# Explanations


def test_an_explanation(app: FastAPI, predictor: Predictor, ask: Any) -> None:
    answer = ask(app, "/v1/explain", {"text": TEXTS[1], "task": "sarcasm"})
    assert answer.status_code == 200
    content = answer.json()
    expected = predictor.explain(
        TEXTS[1], task="sarcasm", methods=["effective", "standard"], faithfulness=False
    )
    layers = content.pop("layers")
    assert content == json.loads(json.dumps(expected.as_json(maps=False)))
    assert len(layers) == 2
    for layer in layers:
        assert {len(one) for one in layer["received"].values()} == {len(content["words"])}
    body = {"text": TEXTS[0], "method": "rollout", "methods": ["random"], "faithfulness": True}
    content = ask(app, "/v1/explain", body).json()
    assert (content["task"], content["method"]) == ("sentiment", "rollout")
    assert set(content["shadings"]) == {"rollout", "random"}
    assert "comprehensiveness" in content["shadings"]["rollout"]["faithfulness"]
    assert "locus" not in content


def test_explanations_carry_the_marks_of_a_model_of_words(
    serve: Serve, shared_tiny: Pretrained, predictor: Predictor, ask: Any
) -> None:
    source = pretrained.load(shared_tiny.name)
    network = WordModel(
        source.encoder, Task("locus", ("kept", "changed")), kind="tagging", dropout=0.0
    )
    with torch.no_grad():  # it prefers the second label everywhere
        output: Any = network.heads["locus"]
        output.output.weight.zero_()
        output.output.bias.copy_(torch.tensor([0.0, 5.0]))
    model = SavedWordModel(network, source.tokenizer, source.name, None, "signs")
    app = serve({"tiny": predictor}, load_locus=lambda: Tagger(model, device="cpu"))
    body = {"text": "so great. tea", "methods": ["random"], "method": "random"}
    content = ask(app, "/v1/explain", body).json()
    Explanation.model_validate(content)
    # words with nothing but blanks between them are one mark; there is one label to mark
    (mark,) = content["locus"]["marks"]
    assert (mark["start"], mark["end"], mark["label"]) == (0, 13, None)


# Clients of text-embeddings-inference


@pytest.fixture
def served(serve: Serve, predictor: Predictor, moods: Predictor) -> FastAPI:
    return serve({"tiny": predictor, "moods": moods}, max_texts=4, max_characters=2000)


def shares(predictor: Predictor, task: str, text: str, pair: str | None = None) -> Any:
    return dict(predictor.predict(text, pairs=pair).answers[task].probabilities)


def assert_scores(found: list[dict[str, Any]], expected: dict[str, float]) -> None:
    assert [one.keys() for one in found] == [{"score", "label"}] * len(expected)
    assert {one["label"]: one["score"] for one in found} == pytest.approx(expected, abs=1e-5)
    scores = [one["score"] for one in found]
    assert scores == sorted(scores, reverse=True)


def test_texts_in_every_shape(
    served: FastAPI, predictor: Predictor, moods: Predictor, ask: Any
) -> None:
    """Of the first task, unless another is named; every text of a batch is answered."""
    for inputs in (TEXTS[0], [TEXTS[0]]):
        answer = ask(served, "/predict", {"inputs": inputs})
        assert_scores(answer.json(), shares(predictor, "sentiment", TEXTS[0]))
    answer = ask(served, "/predict", {"inputs": TEXTS[0], "task": "sarcasm", "model": "tiny"})
    assert_scores(answer.json(), shares(predictor, "sarcasm", TEXTS[0]))
    several = TEXTS[:2], TEXTS[:3], [[one] for one in TEXTS[:3]], [TEXTS[:1]]
    for batch in several:
        answers = ask(served, "/predict", {"inputs": batch}).json()
        for item, found in zip(batch, answers, strict=True):
            text = item[0] if isinstance(item, list) else item
            assert_scores(found, shares(predictor, "sentiment", text))
    number = moods.predict(TEXTS[0]).answers["warmth"].label
    for raw in (False, True):
        body = {"inputs": TEXTS[0], "model": "moods", "task": "warmth", "raw_scores": raw}
        (found,) = ask(served, "/predict", body).json()
        assert found == {"label": "warmth", "score": pytest.approx(number, abs=1e-5)}


def test_two_strings_are_a_pair_for_a_model_of_pairs(
    serve: Serve, moods: Predictor, ask: Any
) -> None:
    (runtime,) = moods.runtimes
    model = replace(runtime.model(), facts={"data": {"n_pairs": 1}})
    app = serve({"pairs": Predictor(model, device="cpu")})
    pair = shares(moods, "mood", *TEXTS[:2])
    assert pair != pytest.approx(shares(moods, "mood", TEXTS[0]), abs=1e-4)
    assert_scores(ask(app, "/predict", {"inputs": TEXTS[:2]}).json(), pair)
    mixed = ask(app, "/predict", {"inputs": [TEXTS[:2], TEXTS[2:3]]}).json()
    assert_scores(mixed[0], pair)
    assert_scores(mixed[1], shares(moods, "mood", TEXTS[2]))


def test_raw_scores_are_what_the_model_computes(
    served: FastAPI, predictor: Predictor, moods: Predictor, ask: Any
) -> None:
    for name, task, own in (("tiny", "sarcasm", predictor), ("moods", "mood", moods)):
        (runtime,) = own.runtimes
        logits = runtime.compute(runtime.tokenizer.encode(TEXTS[:3])).logits[task]
        body = {"inputs": TEXTS[:3], "raw_scores": True, "model": name, "task": task}
        for found, row in zip(ask(served, "/predict", body).json(), logits, strict=True):
            assert_scores(found, dict(zip(own.tasks[task].labels, row.tolist(), strict=True)))


def test_a_long_text_is_cut_only_when_that_is_asked_for(served: FastAPI, ask: Any) -> None:
    for inputs in (LONG, [[TEXTS[0]], [LONG]]):
        refused = ask(served, "/predict", {"inputs": inputs})
        assert (refused.status_code, refused.json()["error_type"]) == (413, "Validation")
        assert '"truncate": true' in refused.json()["error"]
        assert ask(served, "/predict", {"inputs": inputs, "truncate": True}).status_code == 200
    assert "Number 1 of" in refused.json()["error"]


@pytest.mark.parametrize(
    ("body", "status", "kind", "says"),
    [
        ({"inputs": [[text] for text in "abcde"]}, 413, "Validation", "4 texts"),
        ({"inputs": "x" * 2001}, 413, "Validation", "2,000 characters"),
        ({"inputs": " "}, 422, "Tokenizer", "blank"),
        ({"inputs": [["tea"], [None]]}, 422, "Tokenizer", "number 1"),
        ({"inputs": []}, 422, "Validation", "`inputs`"),
        ({"inputs": ["a", []]}, 422, "Validation", "`inputs.1` is a list"),
        ({"inputs": [["a", "b", "c"]]}, 422, "Validation", "one text or two"),
        ({"inputs": {}}, 422, "Validation", "`inputs` must be a string or a list"),
        ({"inputs": "tea", "truncation_direction": "Left"}, 422, "Validation", "Right"),
        ({"inputs": "tea", "normalize": True}, 422, "Validation", "not known"),
        ({"inputs": "tea", "task": "mood"}, 404, "Validation", "sarcasm"),
        ({"inputs": "tea", "model": "x"}, 404, "Validation", "tiny, moods"),
        ({}, 422, "Validation", "`inputs`"),
        (b"{", 400, "Validation", "JSON"),
    ],
)
def test_errors_have_the_shape_its_clients_know(
    served: FastAPI, ask: Any, body: Any, status: int, kind: str, says: str
) -> None:
    answer = ask(served, "/predict", body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    content = answer.json()
    assert content == {"error": content["error"], "error_type": kind}
    assert says in content["error"]


def test_a_service_that_loads_or_is_full_says_so(serve: Serve, moods: Predictor, ask: Any) -> None:
    loading, full = serve(lambda: {"moods": moods}), serve({"moods": moods})
    full.state.service.batcher.close()
    for app, status, kind in ((loading, 503, "Unhealthy"), (full, 429, "Overloaded")):
        answer = ask(app, "/predict", {"inputs": "tea"})
        assert (answer.status_code, answer.json()["error_type"]) == (status, kind)
        assert int(answer.headers["retry-after"]) >= 1


# The service itself


def test_the_list_of_models(serve: Serve, predictor: Predictor, ask: Any) -> None:
    app = serve({"first": predictor, "second": predictor}, max_texts=100, queue_texts=50)
    content = ask(app, "/v1/models").json()
    first, second = content["models"]
    about = first.pop("about")
    assert len(about) == 1
    assert first == {
        "name": "first",
        "is_default": True,
        "tasks": {"sentiment": ["negative", "positive"], "sarcasm": ["literal", "sarcastic"]},
        "runtime": "torch",
        "most_pieces": 32,
        "n_layers": 2,
        "multi_label": [],
        "pairs": False,
    }
    assert (second["name"], second["is_default"]) == ("second", False)
    assert content["methods"] == list(METHODS)
    assert content["limits"] == {
        "texts": 50,
        "characters": 10000,
        "explained_characters": 2000,
        "body_bytes": 1000000,
        "seconds": 30.0,
    }


def test_probes_and_the_page(app: FastAPI, ask: Any) -> None:
    assert ask(app, "/live").json() == {"status": "live"}
    assert ask(app, "/ready").json() == {"status": "ready"}
    page = ask(app, "/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert ask(app, "/page/index.html").content == page.content
    for path in ("/docs", "/redoc"):  # they would load scripts from other sites
        assert ask(app, path).status_code == 404
