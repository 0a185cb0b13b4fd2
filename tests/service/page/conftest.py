"""The page in a real browser, asking a real service with a tiny pruned model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from page_server import Opens, Server
from playwright.sync_api import Browser, BrowserContext, Page

from litotes.core.values import Task
from litotes.encoder import pretrained
from litotes.encoder.encoder import Encoder
from litotes.model.checkpoint import Model
from litotes.model.classifier import Classifier
from litotes.prediction.predictor import Predictor

SHORT = "#text=tea"
TASKS = (Task("sentiment", ("negative", "positive")), Task("sarcasm", ("literal", "sarcastic")))
MOODS = (Task("mood", ("angry", "content", "calm")), Task("warmth", ()))
PRUNED: dict[str, object] = {
    "n_layers": 4,
    "pruning": "cascade",
    "pruning_options": {"schedule": [0.8, 0.6, 0.4, 0.3], "final_heads": 0.5},
}


@pytest.fixture(scope="session")
def predictors(tiny_folder: Path) -> dict[str, Predictor]:
    """Two models whose words leave and stay and that answer both tasks; one with more labels."""
    tiny = pretrained.load(str(tiny_folder))
    models = {
        "pruned": _model(tiny, TASKS, **PRUNED),
        "dense": _model(tiny, TASKS),
        "moods": _model(tiny, MOODS),
    }
    return {name: Predictor(model, device="cpu") for name, model in models.items()}


def _model(tiny: pretrained.Pretrained, tasks: tuple[Task, ...], **choices: object) -> Model:
    torch.manual_seed(0)
    encoder = Encoder(replace(tiny.encoder.spec, **choices))  # type: ignore[arg-type]
    for parameter in encoder.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    return Model(
        Classifier(encoder, tasks, head="mean", dropout=0.0).eval(), tiny.tokenizer, "tiny", None
    )


@pytest.fixture(scope="session")
def server(predictors: dict[str, Predictor]) -> Iterator[Server]:
    running = Server(predictors)
    running.start()
    yield running
    running.stop()


@pytest.fixture
def open_page(browser: Browser, server: Server) -> Iterator[Opens]:
    """Opens the page with a text that is quickly explained, unless `after` the address says
    otherwise.

    An exception, a complaint in its console (unless `may_complain`) and a request to elsewhere are
    failures.
    """
    contexts: list[BrowserContext] = []
    wrong: list[str] = []

    def opened(
        after: str = SHORT,
        *,
        at: Server = server,
        may_complain: bool = False,
        script: str = "",
        **choices: object,
    ) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **choices})  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith((at.address, "blob:")) else wrong.append(request.url)
            ),
        )
        if not may_complain:
            page.on("console", lambda message: wrong.append(message.text))
        if script:
            page.add_init_script(script)
        page.goto(at.address + after)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not wrong
