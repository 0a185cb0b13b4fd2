"""Problems are explained in a sentence, and those that pass are retried."""

from __future__ import annotations

import re

import pytest
from page_server import Opens, Server
from playwright.sync_api import expect

from litotes.prediction.predictor import Predictor

pytestmark = pytest.mark.slow


def test_a_text_too_long_says_by_how_much(open_page: Opens) -> None:
    page = open_page()
    page.locator("#text").fill("a" * 10_240)
    expect(page.locator("#answer-note")).to_have_text(
        "10,240 characters are 240 more than the 10,000 that can be read: shorten the text."
    )
    page.locator("#text").fill("a " * 1_500)
    sentence = (
        "3,000 characters are 1,000 more than the 2,000 that can be explained: shorten the text."
    )
    expect(page.locator("#why-note")).to_have_text(sentence)
    expect(page.locator("#explained")).to_be_hidden()


def test_the_service_goes_away_and_comes_back(
    open_page: Opens, predictors: dict[str, Predictor]
) -> None:
    own = Server(predictors)
    own.start()
    page = open_page(at=own, may_complain=True)
    expect(page.locator("html")).to_have_attribute("data-explained", "sarcasm/occlusion/4")
    own.stop()
    page.locator("#text").fill("the tea is great")
    expect(page.locator("#notice-said")).to_have_text(
        re.compile(r"The service does not answer\. Trying again in [1-5] s\.")
    )
    page.wait_for_timeout(1_000)  # by now the explanation has not come either
    own.start()
    expect(page.locator("#notice")).to_be_hidden()
    expect(page.locator("#shaded")).to_have_text("the tea is great")
    own.stop()


def test_a_token_is_asked_for_and_kept_for_the_tab(
    open_page: Opens, predictors: dict[str, Predictor]
) -> None:
    own = Server(predictors, token="open-sesame")
    own.start()
    page = open_page(at=own, may_complain=True)
    for token, sentence in (
        ("wrong", "Whoever started it has one"),
        ("open-sesame", "did not accept that token"),
    ):
        expect(page.locator("#token-said")).to_contain_text(sentence)
        page.locator("#token").fill(token)
        page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-explained", "sarcasm/occlusion/4")
    assert "sesame" not in page.url
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-explained", "sarcasm/occlusion/4")
    expect(page.locator("#token-dialog")).to_be_hidden()
    own.stop()


@pytest.mark.parametrize(("status", "path"), [(504, "predict"), (500, "explain")])
def test_a_lasting_problem_is_shown_and_can_be_retried(
    open_page: Opens, status: int, path: str
) -> None:
    page = open_page(may_complain=True)
    expect(page.locator("html")).to_have_attribute("data-explained", "sarcasm/occlusion/4")
    problem = '{"title": "Not answered in time", "detail": "Send less."}'
    page.route(
        f"**/v1/{path}",
        lambda route: route.fulfill(
            status=status, content_type="application/problem+json", body=problem
        ),
        times=1,
    )
    page.locator("#text").fill("the tea")
    where = page.locator("#notice-said" if path == "predict" else "#why-note")
    expect(where).to_have_text("Not answered in time. Send less.")
    page.locator("#again" if path == "predict" else "#explain").click()
    expect(page.locator("#shaded")).to_have_text("the tea")
    expect(page.locator("#notice")).to_be_hidden()
