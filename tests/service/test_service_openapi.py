"""The description in /openapi.json is true: schemathesis asks for all it allows, and for what it
does not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI

from litotes.prediction.predictor import Predictor
from litotes.service import ServiceSettings, create_app
from litotes.service.problems import PROBLEM_KINDS


def test_the_schema_has_every_path_and_status(app: FastAPI) -> None:
    content = app.openapi()
    own = {"/v1/predict", "/v1/explain", "/v1/models"}
    assert set(content["paths"]) == {*own, "/predict", "/live", "/ready", "/metrics"}
    predict = content["paths"]["/v1/predict"]["post"]["responses"]
    statuses = {200, *(kind.status for kind in PROBLEM_KINDS.values())} - {431}
    assert {int(status) for status in predict} == statuses
    for status, answer in predict.items():
        assert status == "200" or "application/problem+json" in answer["content"]
    assert predict["429"]["headers"]["Retry-After"]["required"]
    many = content["components"]["schemas"]["ManyTexts"]["properties"]["texts"]
    assert (many["minItems"], many["maxItems"]) == (1, 64)
    one = content["components"]["schemas"]["OneText"]["properties"]["text"]
    assert one["maxLength"] == 10_000
    assert "HTTPValidationError" not in content["components"]["schemas"]
    inference = content["paths"]["/predict"]["post"]["responses"]
    assert inference.keys() == predict.keys()
    for status, answer in inference.items():
        reference = answer["content"]["application/json"]["schema"].get("$ref", "")
        assert reference.endswith("/InferenceError") == (status != "200")
    prediction = content["components"]["schemas"]["Prediction"]
    assert prediction["required"] == ["text", "truncated", "unreadable", "problem"]
    assert "locus" not in prediction["properties"]  # a task may have this name
    assert "locus" in content["components"]["schemas"]["Explanation"]["properties"]
    answer = content["components"]["schemas"]["Answer"]
    assert answer["required"] == ["label", "probability", "probabilities"]


def find_failures(
    app: FastAPI, headers: dict[str, str], most_examples: int
) -> tuple[int, list[str]]:
    """How many requests were made, and what was found in any phase, by any check."""

    def accepting(path: str, *statuses: int) -> dict[str, Any]:
        expected = {"expected-statuses": ["2xx", *statuses]}
        return {"include-path": path, "checks": {"positive_data_acceptance": expected}}

    generation = {"max-examples": most_examples, "database": "none", "deterministic": True}
    # too much of something is 413, which is not among the statuses it expects by default
    rejected = {"expected-statuses": [400, 401, 403, 404, 405, 413, 415, 422]}
    # no schema can tell that a text has no known word, or more pieces than a model reads
    operations = [accepting("/v1/explain", 404, 422), accepting("/predict", 404, 413)]
    config = schemathesis.Config.from_dict(
        {
            "seed": 7,
            "headers": headers,
            "generation": generation,
            "checks": {"negative_data_rejection": rejected},
            "operations": operations,
        }
    )
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, config=config)
    n_requests, found = 0, []
    for event in schemathesis.engine.from_schema(schema).execute():
        recorder = getattr(event, "recorder", None)
        if type(event).__name__ in ("NonFatalError", "FatalError", "EngineError"):
            found.append(str(getattr(event, "info", event)))
        if recorder is None:
            continue
        n_requests += len(recorder.interactions)
        for checks in recorder.checks.values():
            failures = [one.failure_info for one in checks if one.failure_info is not None]
            found += [f"{one.failure}\n{one.code_sample[:1000]}" for one in failures]
    return n_requests, found


@pytest.mark.slow
@pytest.mark.parametrize("token", [None, "s3cret"])
def test_schemathesis_finds_nothing(
    predictor: Predictor, several_folder: Path, token: str | None
) -> None:
    """Once of a model with one label for each task, once of one that may give several."""
    model = predictor if token is None else Predictor.load(several_folder, device="cpu")
    app = create_app(
        {"tiny": model}, settings=ServiceSettings(allowed_hosts=("testserver",), token=token)
    )
    headers: dict[str, Any] = {} if token is None else {"Authorization": f"Bearer {token}"}
    n_requests, found = find_failures(app, headers, most_examples=10 if token is None else 3)
    assert not found, "\n\n".join(found[:5])
    assert n_requests > 100
