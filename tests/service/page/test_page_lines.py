"""Many lines: a table, its CSV, and what is not answered at once."""

from __future__ import annotations

import csv
import re
import time
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pytest
from page_server import Opens
from playwright.sync_api import Page, Route, expect

from litotes.prediction.predictor import Predictor

pytestmark = pytest.mark.slow

CLIPBOARD = ["clipboard-read", "clipboard-write"]
RISKY = ['=SUM(A1:A9) "tea", bad', "+tea", "-tea", "@tea", "\ttea"]
LINES = [
    *RISKY,
    *(f"the tea is {'bad' if place % 3 else 'great'} and {place}" for place in range(195)),
]


def paste(page: Page, text: str) -> None:
    page.evaluate("text => navigator.clipboard.writeText(text)", text)
    page.locator("#text").focus()
    page.keyboard.press("Control+A")
    page.keyboard.press("Control+V")


def downloaded(page: Page, folder: Path) -> str:
    with page.expect_download() as waiting:
        page.locator("#download").click()
    waiting.value.save_as(folder / "litotes.csv")
    return (folder / "litotes.csv").read_bytes().decode("utf-8")


def test_two_hundred_lines_become_a_table_and_a_file(
    open_page: Opens, predictors: dict[str, Predictor], tmp_path: Path
) -> None:
    page = open_page(permissions=CLIPBOARD)
    requests = []
    page.on(
        "request",
        lambda request: (
            requests.append(request.post_data_json) if request.url.endswith("/v1/predict") else None
        ),
    )
    paste(page, "\n".join(LINES))
    expect(page.locator("#lines-note")).to_have_text("All 200 lines answered.")
    assert [len(body["texts"]) for body in requests if "texts" in body] == [64, 64, 64, 8]
    expect(page.locator("#table tbody tr")).to_have_count(200)
    expected = predictors["pruned"].predict(LINES)

    content = downloaded(page, tmp_path)
    assert content.startswith(
        "\ufefftext,sentiment,sentiment_probability,sentiment_probability_negative,"
        "sentiment_probability_positive,sarcasm,sarcasm_probability,sarcasm_probability_literal,"
        "sarcasm_probability_sarcastic,truncated,unreadable,problem\r\n"
    )
    rows = list(csv.DictReader(StringIO(content.removeprefix("\ufeff"), newline="")))
    assert [row["text"] for row in rows] == [f"'{line}" for line in RISKY] + LINES[len(RISKY) :]
    for row, prediction in zip(rows, expected, strict=True):
        assert row["sarcasm"] == prediction.answers["sarcasm"].label
        share = prediction.answers["sentiment"].probability
        assert float(row["sentiment_probability"]) == pytest.approx(share, abs=1e-5)
        assert row["truncated"] == row["unreadable"] == "False"

    page.locator("#table thead button").nth(3).click()
    expect(page.locator("#table thead th").nth(3)).to_have_attribute("aria-sort", "descending")
    surest = max(expected, key=lambda prediction: prediction.answers["sentiment"].probability or 0)
    expect(page.locator("#table tbody tr").first).to_contain_text(surest.text.strip())


def test_lines_may_be_one_text_all_the_same(open_page: Opens) -> None:
    page = open_page()
    page.locator("#text").fill("the tea is bad\n\nthe queue is great")
    expect(page.locator("#reading")).to_be_visible()  # typed lines are offered
    expect(page.locator("#lines")).to_be_hidden()
    page.locator('#reading input[value="lines"]').check(force=True)
    expect(page.locator("#lines-note")).to_have_text("All 2 lines answered.")
    page.locator('#reading input[value="one"]').check(force=True)
    expect(page.locator("#lines")).to_be_hidden()
    expect(page.locator("#shaded")).to_contain_text("queue")


def test_a_line_that_cannot_be_answered_does_not_stop_the_others(
    open_page: Opens, tmp_path: Path
) -> None:
    page = open_page(permissions=CLIPBOARD)
    # the third is blank to Python; the fourth gets a lone surrogate, which no clipboard keeps
    paste(page, "\n".join(["tea", "x" * 10_017, "\x1f", "half \ufffd pair", "bad"]))
    page.locator("#text").evaluate(
        """box => {
          box.value = box.value.replace("\\ufffd", "\\ud83d");
          box.dispatchEvent(new Event("input"));
        }"""
    )
    expect(page.locator("#lines-note")).to_contain_text("2 lines could not be answered")
    rows = page.locator("#table tbody tr")
    expect(rows.nth(1)).to_contain_text("Too long by 17 characters; the limit is 10,000.")
    assert (rows.nth(1).bounding_box() or {})["height"] < 300  # its text is cut short
    expect(rows.nth(2)).to_contain_text("half ‹U+D83D› pair")
    expect(rows.nth(2)).to_contain_text("A text that cannot be read. It holds half of a surrogate")
    for place in (0, 3):
        expect(rows.nth(place).locator("td.label").first).to_have_text(
            re.compile("negative|positive")
        )
    content = downloaded(page, tmp_path).removeprefix("\ufeff")
    found = list(csv.DictReader(StringIO(content, newline="")))
    assert [bool(row["problem"]) for row in found] == [False, True, True, False]
    assert found[1]["sarcasm"] == found[1]["sarcasm_probability_literal"] == ""
    assert found[2]["truncated"] == found[2]["unreadable"] == "False"


def test_lines_with_three_labels_show_the_next_one_and_keep_all_in_the_file(
    open_page: Opens, predictors: dict[str, Predictor], tmp_path: Path
) -> None:
    page = open_page("#text=tea&model=moods", permissions=CLIPBOARD)
    lines = ["the tea is great", "bad queue", "love it"]
    paste(page, "\n".join(lines))
    expect(page.locator("#lines-note")).to_have_text("All 3 lines answered.")
    expected = [prediction.answers for prediction in predictors["moods"].predict(lines)]
    for row, answers in zip(page.locator("#table tbody tr").all(), expected, strict=True):
        _, (label, share), _ = sorted(
            answers["mood"].probabilities.items(), key=lambda item: -item[1]
        )
        expect(row.locator("td.share small")).to_have_text(f"then {label} {share * 100:.0f} %")
    content = downloaded(page, tmp_path).removeprefix("\ufeff")
    found = list(csv.DictReader(StringIO(content, newline="")))
    shares = [f"mood_probability_{label}" for label in ("angry", "content", "calm")]
    expected_names = ["text", "mood", "mood_probability", *shares, "warmth"]
    assert list(found[0]) == [*expected_names, "truncated", "unreadable", "problem"]
    for line, answers in zip(found, expected, strict=True):
        for label, share in answers["mood"].probabilities.items():
            assert float(line[f"mood_probability_{label}"]) == pytest.approx(share, abs=1e-5)


def test_an_unreadable_line_has_a_note_and_no_label(
    open_page: Opens, predictors: dict[str, Predictor], tmp_path: Path
) -> None:
    page = open_page(permissions=CLIPBOARD)
    lines = ["😀", "tea", "\u200b", "bad"]
    paste(page, "\n".join(lines))
    expect(page.locator("#lines-note")).to_have_text(
        "All 4 lines answered. 2 lines are unreadable: the model knows no part of them."
    )
    page.locator("#table thead button").nth(3).click()  # the most certain first
    rows = page.locator("#table tbody tr")
    for place, text in ((2, "😀"), (3, "‹U+200B›")):  # those without an answer come last
        expect(rows.nth(place).locator("td.text")).to_have_text(
            f"{text}unreadable: the model knows no part of it"
        )
        for cell in rows.nth(place).locator("td.label, td.share").all():
            expect(cell).to_have_text("")
    expect(rows.nth(0).locator("td.label").first).to_have_text(re.compile("negative|positive"))
    content = downloaded(page, tmp_path).removeprefix("\ufeff")
    found = {row["text"]: row for row in csv.DictReader(StringIO(content, newline=""))}
    for prediction in predictors["pruned"].predict(lines):
        row = found[prediction.text]
        assert row["unreadable"] == str(prediction.unreadable)
        assert row["sarcasm"] == prediction.answers["sarcasm"].label  # the data keep it


@pytest.mark.timed
def test_a_busy_service_is_asked_again_and_all_can_be_stopped(open_page: Opens) -> None:
    page = open_page(may_complain=True, permissions=CLIPBOARD)
    expect(page.locator("html")).to_have_attribute("data-explained", "sarcasm/occlusion/4")
    requests: list[float] = []

    def refuse(route: Route) -> None:
        requests.append(time.monotonic())
        route.fulfill(
            status=429,
            headers={"Retry-After": "1"},
            content_type="application/problem+json",
            body="{}",
        )

    page.route("**/v1/predict", refuse)
    paste(page, "\n".join(LINES[:70]))
    expect(page.locator("#notice-said")).to_have_text("The service is busy. Trying again in 1 s.")
    page.wait_for_timeout(2_200)
    assert len(requests) >= 2
    # as it was asked to wait
    assert min(after - before for before, after in pairwise(requests)) > 0.9
    page.locator("#stop").click()
    expect(page.locator("#lines-note")).to_have_text("0 of 70 lines answered; stopped.")
    page.unroute("**/v1/predict")
    page.locator("#stop").click()  # it says: Go on
    expect(page.locator("#lines-note")).to_have_text("All 70 lines answered.")
    expect(page.locator("#notice")).to_be_hidden()
