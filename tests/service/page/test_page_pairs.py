"""A model that has learned from pairs: the page asks for two texts, and explains both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

import pytest
from page_server import Opens, Server
from playwright.sync_api import expect

from litotes.prediction.predictor import Predictor

pytestmark = pytest.mark.slow

TEXT, PAIR = "the tea is great", "i love a bad queue"


@pytest.fixture(scope="module")
def reader(predictors: dict[str, Predictor]) -> Predictor:
    (runtime,) = predictors["moods"].runtimes
    return Predictor(replace(runtime.model(), facts={"data": {"n_pairs": 4}}), device="cpu")


@pytest.fixture(scope="module")
def pairs_server(reader: Predictor, predictors: dict[str, Predictor]) -> Iterator[Server]:
    running = Server({"pairs": reader, "dense": predictors["dense"]})
    running.start()
    yield running
    running.stop()


def test_two_boxes_one_answer(open_page: Opens, pairs_server: Server, reader: Predictor) -> None:
    page = open_page("", at=pairs_server)
    expect(page.locator("#pair")).to_be_visible()
    expect(page.locator("#pair")).not_to_have_value("")  # an example stands there
    page.locator("#text").fill(TEXT)
    page.locator("#pair").fill("")
    expect(page.locator("#answer-note")).to_contain_text("reads two texts")
    page.locator("#pair").fill(PAIR)
    label = str(reader.predict(TEXT, pairs=PAIR).answers["mood"].label)
    expect(page.locator('[data-task="mood"] [aria-current="true"]')).to_contain_text(label)
    shaded = page.locator("#shaded")
    expect(shaded.locator(".second")).to_have_text(PAIR)
    expect(shaded).to_contain_text(TEXT)
    words = reader.explain(TEXT, pair=PAIR, methods=[], faithfulness=False).as_json(maps=False)
    expect(shaded.locator(".word")).to_have_count(len(words["words"]))
    expect(page.locator("#fading .second .word")).to_have_count(5)
    page.wait_for_url(lambda url: f"pair={quote(PAIR).replace('%20', '+')}" in url)


def test_lines_of_a_pair_stay_one_text(open_page: Opens, pairs_server: Server) -> None:
    page = open_page(f"#text=a%0Ab%0Ac&reading=lines&pair={quote(PAIR)}", at=pairs_server)
    expect(page.locator('[data-task="mood"] [aria-current="true"]')).to_be_visible()
    expect(page.locator("#lines")).to_be_hidden()
    expect(page.locator("#reading")).to_be_hidden()


def test_a_link_keeps_both_texts_and_another_model_asks_for_one(
    open_page: Opens, pairs_server: Server
) -> None:
    page = open_page(f"#text={quote(TEXT)}&pair={quote(PAIR)}", at=pairs_server)
    expect(page.locator("#text")).to_have_value(TEXT)
    expect(page.locator("#pair")).to_have_value(PAIR)
    expect(page.locator("#shaded .second")).to_have_text(PAIR)
    page.locator("#model").select_option("dense")
    expect(page.locator("#pair")).to_be_hidden()
    expect(page.locator('[data-task="sarcasm"] .said')).not_to_have_text("–")
    expect(page.locator("#shaded .second")).to_have_count(0)
