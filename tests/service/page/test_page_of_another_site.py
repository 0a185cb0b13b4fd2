"""A page of another site, in a real browser, asks the service and reads its answer."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from page_server import Server
from playwright.sync_api import Browser

from litotes.prediction.predictor import Predictor

pytestmark = pytest.mark.slow

ASK = """
async ([address, token]) => {
  try {
    const headers = { "Content-Type": "application/json", Authorization: `Bearer ${token}` };
    const body = JSON.stringify({ text: "tea" });
    const answer = await fetch(address + "v1/predict", { method: "POST", headers, body });
    return [answer.status, (await answer.json()).predictions?.[0].text ?? null];
  } catch (error) {
    return [0, null];
  }
}
"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """The origin of another site."""
    (tmp_path / "index.html").write_text("<!doctype html><title>Elsewhere</title>")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=tmp_path)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("is_allowed", [True, False])
def test_only_a_page_that_is_named_reads_answers(
    browser: Browser, predictors: dict[str, Predictor], site: str, *, is_allowed: bool
) -> None:
    server = Server(predictors, token="s3cret", allowed_origins=(site,) if is_allowed else ())
    server.start()
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(site)
        found = page.evaluate(ASK, [server.address, "s3cret"])
        wrong_token = page.evaluate(ASK, [server.address, "wrong"])
    server.stop()
    assert found == ([200, "tea"] if is_allowed else [0, None])
    assert wrong_token == ([401, None] if is_allowed else [0, None])
