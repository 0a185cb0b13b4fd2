"""Which hosts, pages and tokens are accepted; the log never holds what was sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi import FastAPI

from litotes.core.errors import UserError
from litotes.prediction.predictor import Predictor
from litotes.service import ServiceSettings, create_app


def app_with(predictor: Predictor, **settings: Any) -> FastAPI:
    return create_app({"tiny": predictor}, settings=ServiceSettings(**settings))


NAMED = ("Served.example", "dotted.example.", "[fe80::1]")
OWN = "localhost LOCALHOST:8000 127.0.0.1 127.0.0.1:1 [::1]:8000 localhost. served.example:80"
OWN += " dotted.example.:80 [fe80::1]:80"
STRANGE = "evil.example localhost.evil.example 127.0.0.1.evil.example evil.example:127.0.0.1"
STRANGE += " 127.0.0.1@evil.example evil.example#localhost 10.0.0.1 0.0.0.0 [::1 localhost/x"
STRANGE += " localhost:abc:1 \x7flocalhost"


def test_names_of_the_service_and_of_others(predictor: Predictor, ask: Any) -> None:
    """DNS rebinding: evil.example now means 127.0.0.1, and its page sends requests to its name."""
    app = app_with(predictor, allowed_hosts=NAMED)
    for host in OWN.split():
        assert ask(app, "/live", headers={"host": host}).status_code == 200, host
    for host in ("", *STRANGE.split(" ")):
        for path in ("/live", "/v1/models", "/nowhere"):
            answer = ask(app, path, headers={"host": host})
            assert answer.status_code == 403, host
            assert answer.json()["type"] == "urn:litotes:problem:host-not-allowed"
    everywhere = app_with(predictor, host="0.0.0.0")  # any address will do, but no name
    assert ask(everywhere, "/live", headers={"host": "10.0.0.1:8000"}).status_code == 200
    assert ask(everywhere, "/live", headers={"host": "evil.example"}).status_code == 403


SENSELESS: list[tuple[dict[str, Any], str]] = [
    *(({"allowed_hosts": (name,)}, "without scheme, port and path") for name in ("", ".", "*.a.b")),
    ({"allowed_hosts": ("served.example:8080",)}, "without scheme"),
    ({"allowed_hosts": ("https://served.example",)}, "without scheme"),
    ({"allowed_hosts": ("served.example/",)}, "without scheme"),
    *(({"allowed_origins": (one,)}, "scheme, name and port") for one in ("*", "a.b", "null")),
    ({"allowed_origins": ("https://a.b/",)}, "without a path"),
    ({"allowed_origins": ("HTTPS://A.B",)}, "small letters"),
    ({"port": 70000}, "Port 70000"),
    ({"port": -1}, "Port -1"),
    ({"max_texts": 0}, "max_texts is 0"),
    ({"seconds": -1.0}, "seconds is -1"),
    ({"seconds": float("nan")}, "seconds is nan"),
    ({"seconds": 5.0}, "body_seconds"),
    ({"token": ""}, "token"),
    ({"token": "a\nb"}, "token"),
]


@pytest.mark.parametrize(("wrong", "says"), SENSELESS, ids=str)
def test_settings_that_make_no_sense(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        ServiceSettings(**wrong)
    assert ServiceSettings(port=65535).is_public is ServiceSettings(host="::1").is_public is False
    assert ServiceSettings(host="0.0.0.0").is_public


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "",
        "http://127.0.0.1",
        "http://127.0.0.1:8000.evil.example",
        "ftp://127.0.0.1:8000",
    ],
)
def test_pages_from_elsewhere(app: FastAPI, ask: Any, origin: str) -> None:
    answer = ask(app, "/v1/predict", {"text": "ok"}, headers={"origin": origin})
    assert answer.status_code == 403
    assert answer.json()["type"] == "urn:litotes:problem:origin-not-allowed"
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_own_pages_packed_bodies_and_headers(predictor: Predictor, ask: Any) -> None:
    app = app_with(predictor, allowed_origins=("https://friend.example",))
    given: list[tuple[Any, int]] = [({"content-encoding": "gzip"}, 415)]
    given += [({"content-encoding": "br"}, 415), ({"content-encoding": "identity"}, 200)]
    for own in ("http://127.0.0.1:8000", "https://127.0.0.1:8000", "https://friend.example"):
        given.append(({"origin": own}, 200))
    for headers, status in given:
        assert ask(app, "/v1/predict", {"text": "ok"}, headers=headers).status_code == status
    answer = ask(app, "/live", headers=[("host", "127.0.0.1"), ("host", "evil.example")])
    assert answer.status_code == 400
    assert answer.json()["type"] == "urn:litotes:problem:bad-http"


def test_a_page_that_may_ask_may_also_read_the_answer(predictor: Predictor, ask: Any) -> None:
    app = app_with(predictor, allowed_origins=("https://friend.example",), token="s3cret")
    headers = {"origin": "https://friend.example"}
    asking = headers | {
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type",
        "access-control-request-private-network": "true",
    }
    answer = ask(app, "/v1/predict", method="OPTIONS", headers=asking)  # without the token
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == "https://friend.example"
    assert answer.headers["access-control-allow-methods"] == "POST"
    assert answer.headers["access-control-allow-headers"] == "Authorization, Content-Type"
    assert answer.headers["access-control-allow-private-network"] == "true"
    assert "origin" in answer.headers["vary"].lower()
    token = headers | {"authorization": "Bearer s3cret"}
    for given, status in ((headers, 401), (token, 200)):  # problems can be read as well
        answer = ask(app, "/v1/predict", {"text": "ok"}, headers=given)
        assert answer.status_code == status
        assert answer.headers["access-control-allow-origin"] == "https://friend.example"
        assert "x-request-id" in answer.headers["access-control-expose-headers"].lower()
    stranger = asking | {"origin": "https://evil.example"}
    answer = ask(app, "/v1/predict", method="OPTIONS", headers=stranger)
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


def test_a_token(predictor: Predictor, ask: Any) -> None:
    app = app_with(predictor, token="s3cret-Token")
    wrong = (
        "",
        "Bearer",
        "Bearer wrong",
        "Bearer s3cret-Token2",
        "Basic s3cret-Token",
        "s3cret-Token",
    )
    bodies = {
        "/v1/predict": {"text": "ok"},
        "/v1/explain": {"text": "ok"},
        "/predict": {"inputs": "ok"},
    }
    for path in ("/v1/models", "/metrics", *bodies):
        for given in (None, *wrong, "Bearer \xff"):
            headers = {} if given is None else {"authorization": given.encode("latin-1")}
            answer = ask(app, path, bodies.get(path), headers=headers)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
            assert "s3cret" not in answer.text
        right = {"authorization": "bearer s3cret-Token"}
        assert ask(app, path, bodies.get(path), headers=right).status_code == 200
    for path in ("/", "/live", "/ready", "/page/index.html", "/openapi.json"):
        assert ask(app, path).status_code == 200
    described = ask(app, "/openapi.json").json()["paths"]["/v1/models"]["get"]
    assert described["security"] == [{"token": []}]
    assert "s3cret" not in repr(ServiceSettings(token="s3cret-Token"))


def test_logs_are_lines_of_json_without_what_was_sent(
    predictor: Predictor, ask: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    app = app_with(predictor, token="s3cret-Token")
    headers = {"authorization": "Bearer s3cret-Token"}
    asked: list[tuple[str, Any, str, int]] = [
        ("/v1/predict", {"texts": ["zebra crossing", "ok"]}, "/v1/predict", 200),
        ("/v1/predict", {"text": "zebra", "zebra": 1}, "/v1/predict", 422),
        ("/v1/explain", {"text": "zebra"}, "/v1/explain", 200),
        ("/v1/predict", {"text": "ok", "model": "zebra"}, "/v1/predict", 404),
        ("/zebra/../crossing?zebra=1", None, "unknown", 404),
        ("/page/zebra", None, "/page/{name}", 404),
    ]
    capsys.readouterr()
    found = [ask(app, path, body, headers=headers) for path, body, _, _ in asked]
    ids = [answer.headers["x-request-id"] for answer in found]
    app.state.service.log.flush()
    own = ids[0].partition("-")[0]  # services of other tests may still have something to write
    written = [line for line in capsys.readouterr().err.splitlines() if own in line]
    lines = [json.loads(line) for line in written]
    assert [line["id"] for line in lines] == ids
    assert [(line["route"], line["status"]) for line in lines] == [one[2:] for one in asked]
    assert (lines[0]["n_texts"], lines[0]["n_characters"]) == (2, 16)
    names = ["time", "event", "id", "route", "status", "n_texts", "n_characters", "milliseconds"]
    assert all(list(line) == names for line in lines)
    assert not {"zebra", "s3cret"} & {word for word in ("zebra", "s3cret") if word in str(written)}


def test_metrics(app: FastAPI, ask: Any) -> None:
    ask(app, "/v1/predict", {"texts": ["ok", "x " * 300, "😀", "\u200b"]})
    ask(app, "/v1/predict", {"text": "zebra", "model": "zebra"})
    ask(app, "/zebra")
    answer = ask(app, "/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    values = {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}
    expected = {
        'requests_total{route="/v1/predict",status="200"}': 1,
        'requests_total{route="/v1/predict",status="404"}': 1,
        'requests_total{route="unknown",status="404"}': 1,
        'request_seconds_count{route="/v1/predict"}': 2,
        'refused_total{problem="unknown-model"}': 1,
        "texts_total": 4,
        "truncated_texts_total": 1,
        "unreadable_texts_total": 2,
        "batch_texts_count": 1,
        'batch_texts_bucket{le="4.0"}': 1,
        'batch_texts_bucket{le="2.0"}': 0,
        "batch_pieces_count": 1,
        "queue_texts": 0,
        "queue_explanations": 0,
        "requests_in_flight": 1,
        'model_info{name="tiny",runtime="torch",tasks="sentiment, sarcasm"}': 1,
    }
    assert {name: values[f"litotes_{name}"] for name in expected} == expected
    assert values["litotes_pieces_per_second"] > 0
    assert "zebra" not in answer.text


def test_every_answer_has_its_headers(app: FastAPI, ask: Any) -> None:
    for path, body in (("/live", None), ("/nowhere", None), ("/", None), ("/v1/predict", b"{")):
        headers = ask(app, path, body).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["x-request-id"]
        assert (headers.get("cache-control") == "no-store") == path.startswith("/v1/")
