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


OWN = [
    "localhost",
    "LOCALHOST:8000",
    "127.0.0.1",
    "127.0.0.1:1",
    "[::1]:8000",
    "localhost.",
    "served.example:80",
]
STRANGE = [
    "",
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "evil.example:127.0.0.1",
    "127.0.0.1@evil.example",
    "evil.example#localhost",
    "10.0.0.1",
    "0.0.0.0",
    "[::1",
    "localhost/x",
    "localhost:abc:1",
    "\x7flocalhost",
]


@pytest.mark.parametrize("host", OWN)
def test_own_names(predictor: Predictor, ask: Any, host: str) -> None:
    assert (
        ask(
            app_with(predictor, allowed_hosts=("Served.example",)), "/live", headers={"host": host}
        ).status_code
        == 200
    )


@pytest.mark.parametrize("host", STRANGE)
def test_foreign_host_names_are_refused(app: FastAPI, ask: Any, host: str) -> None:
    """DNS rebinding: evil.example now means 127.0.0.1, and its page sends requests to its name."""
    for path in ("/live", "/", "/v1/models", "/nowhere"):
        answer = ask(app, path, headers={"host": host})
        assert answer.status_code == 403
        assert answer.json()["type"] == "urn:litotes:problem:host-not-allowed"


def test_where_it_listens_everywhere_any_address_will_do_but_no_name(
    predictor: Predictor, ask: Any
) -> None:
    app = app_with(predictor, host="0.0.0.0")
    assert ask(app, "/live", headers={"host": "10.0.0.1:8000"}).status_code == 200
    assert ask(app, "/live", headers={"host": "evil.example"}).status_code == 403


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


def test_own_pages_and_those_named(predictor: Predictor, ask: Any) -> None:
    app = app_with(predictor, allowed_origins=("https://friend.example",))
    for origin in ("http://127.0.0.1:8000", "https://127.0.0.1:8000", "https://friend.example"):
        assert (
            ask(app, "/v1/predict", {"text": "ok"}, headers={"origin": origin}).status_code == 200
        )


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


@pytest.mark.parametrize(
    "origin", ["*", "friend.example", "https://friend.example/", "HTTPS://FRIEND.EXAMPLE", "null"]
)
def test_what_is_not_an_origin(origin: str) -> None:
    with pytest.raises(UserError, match=r"https://example\.org"):
        ServiceSettings(allowed_origins=(origin,))


def test_packed_bodies_are_refused(app: FastAPI, ask: Any) -> None:
    for coding, status in (("gzip", 415), ("br", 415), ("identity", 200)):
        headers = {"content-encoding": coding}
        answer = ask(app, "/v1/predict", {"text": "ok"}, headers=headers)
        assert answer.status_code == status


def test_a_token(predictor: Predictor, ask: Any) -> None:
    app = app_with(predictor, token="s3cret-Token")
    for path, body in (
        ("/v1/models", None),
        ("/v1/predict", {"text": "ok"}),
        ("/v1/explain", {"text": "ok"}),
        ("/metrics", None),
    ):
        for given in (
            None,
            "",
            "Bearer",
            "Bearer wrong",
            "Bearer s3cret-Token2",
            "Basic s3cret-Token",
            "s3cret-Token",
            "Bearer \xff",
        ):
            headers = {} if given is None else {"authorization": given.encode("latin-1")}
            answer = ask(app, path, body, headers=headers)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert "s3cret" not in answer.text
        assert (
            ask(app, path, body, headers={"authorization": "bearer s3cret-Token"}).status_code
            == 200
        )
    for path in ("/", "/live", "/ready", "/page/index.html", "/openapi.json"):
        assert ask(app, path).status_code == 200
    assert ask(app, "/openapi.json").json()["paths"]["/v1/models"]["get"]["security"] == [
        {"token": []}
    ]
    assert "s3cret" not in repr(ServiceSettings(token="s3cret-Token"))


def test_a_header_twice(app: FastAPI, ask: Any) -> None:
    answer = ask(app, "/live", headers=[("host", "127.0.0.1"), ("host", "evil.example")])
    assert answer.status_code == 400
    assert answer.json()["type"] == "urn:litotes:problem:bad-http"


def test_logs_are_lines_of_json_without_what_was_sent(
    predictor: Predictor, ask: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    app = app_with(predictor, token="s3cret-Token")
    headers = {"authorization": "Bearer s3cret-Token"}
    capsys.readouterr()
    ids = []
    for path, body in (
        ("/v1/predict", {"texts": ["zebra crossing", "ok"]}),
        ("/v1/predict", {"text": "zebra", "zebra": 1}),
        ("/v1/explain", {"text": "zebra"}),
        ("/v1/predict", {"text": "ok", "model": "zebra"}),
        ("/zebra/../crossing?zebra=1", None),
        ("/page/zebra", None),
    ):
        ids.append(ask(app, path, body, headers=headers).headers["x-request-id"])
    app.state.service.log.flush()
    own = ids[0].partition("-")[0]  # services of other tests may still have something to write
    written = "\n".join(line for line in capsys.readouterr().err.splitlines() if own in line)
    lines = [json.loads(line) for line in written.splitlines()]
    assert [line["id"] for line in lines] == ids
    assert [line["status"] for line in lines] == [200, 422, 200, 404, 404, 404]
    assert [line["route"] for line in lines] == [
        "/v1/predict",
        "/v1/predict",
        "/v1/explain",
        "/v1/predict",
        "unknown",
        "/page/{name}",
    ]
    assert (lines[0]["n_texts"], lines[0]["n_characters"]) == (2, 16)
    assert all(
        line.keys()
        == {"time", "event", "id", "route", "status", "n_texts", "n_characters", "milliseconds"}
        for line in lines
    )
    assert "zebra" not in written
    assert "s3cret" not in written


def test_metrics(app: FastAPI, ask: Any) -> None:
    ask(app, "/v1/predict", {"texts": ["ok", "x " * 300, "😀", "\u200b"]})
    ask(app, "/v1/predict", {"text": "zebra", "model": "zebra"})
    ask(app, "/zebra")
    answer = ask(app, "/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    values = dict(
        line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#")
    )
    assert values['litotes_requests_total{route="/v1/predict",status="200"}'] == "1.0"
    assert values['litotes_requests_total{route="/v1/predict",status="404"}'] == "1.0"
    assert values['litotes_requests_total{route="unknown",status="404"}'] == "1.0"
    assert values['litotes_refused_total{problem="unknown-model"}'] == "1.0"
    assert values["litotes_texts_total"] == "4.0"
    assert values["litotes_truncated_texts_total"] == "1.0"
    assert values["litotes_unreadable_texts_total"] == "2.0"
    assert values["litotes_batch_texts_count"] == "1.0"
    assert values["litotes_queue_texts"] == "0.0"
    assert values["litotes_requests_in_flight"] == "1.0"
    assert (
        values['litotes_model_info{name="tiny",runtime="torch",tasks="sentiment, sarcasm"}']
        == "1.0"
    )
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


@pytest.mark.parametrize(
    "name",
    [
        "served.example:8080",
        "https://served.example",
        "served.example/",
        "*.served.example",
        "",
        ".",
    ],
)
def test_a_host_that_no_request_can_name_is_refused(name: str) -> None:
    """It was taken, and every request under that name was refused."""
    with pytest.raises(UserError, match="without scheme, port and path"):
        ServiceSettings(allowed_hosts=(name,))


@pytest.mark.parametrize("name", ["served.example.", "[fe80::1]"])
def test_a_host_may_be_written_as_a_request_writes_it(
    predictor: Predictor, ask: Any, name: str
) -> None:
    served = app_with(predictor, allowed_hosts=(name,))
    assert ask(served, "/live", headers={"host": f"{name}:80"}).status_code == 200
