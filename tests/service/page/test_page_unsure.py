"""The page shows that a model is unsure and why, and several labels, as Python says it."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from urllib.parse import urlencode

import pytest
from page_server import Opens, Server
from playwright.sync_api import expect
from several_model import TEXTS as SEVERAL_TEXTS
from tiny_models import TEXTS

from litotes.prediction.predictor import Predictor

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def unsure(unsure_folder: Path) -> Predictor:
    return Predictor.load(unsure_folder, device="cpu")


@pytest.fixture(scope="module")
def calibrated_server(unsure: Predictor) -> Iterator[Server]:
    running = Server({"tiny": unsure})
    running.start()
    yield running
    running.stop()


def test_an_unsure_answer_has_its_reason(
    open_page: Opens, calibrated_server: Server, unsure: Predictor
) -> None:
    page = open_page("#text=tea", at=calibrated_server)
    for text in TEXTS[:2]:
        page.locator("#text").fill(text)
        for task, answer in unsure.predict([text])[0].answers.items():
            said = page.locator(f'[data-task="{task}"] .said')
            doubt = page.locator(f'[data-task="{task}"] .doubt')
            if answer.unsure is None:
                expect(said).to_contain_text(str(answer.label))
                expect(doubt).to_be_hidden()
            else:
                expect(said).to_have_text("unsure")
                expect(doubt).to_contain_text(answer.unsure)
    page.locator("#variety").select_option("en-AU")
    for task in unsure.tasks:
        doubt = page.locator(f'[data-task="{task}"] .doubt')
        expect(doubt).to_contain_text("several labels are possible")
    expect(page).to_have_url(
        f"{calibrated_server.address}#text=a&task=sarcasm&method=occlusion&layer=2&variety=en-AU"
    )


def test_lines_are_saved_with_the_labels_that_are_possible(
    open_page: Opens, calibrated_server: Server, unsure: Predictor, tmp_path: Path
) -> None:
    page = open_page("#reading=lines&text=" + "%0A".join(TEXTS[:2]), at=calibrated_server)
    expect(page.locator("#lines-note")).to_contain_text("All 2 lines answered")
    with page.expect_download() as waiting:
        page.locator("#download").click()
    waiting.value.save_as(tmp_path / "litotes.csv")
    content = (tmp_path / "litotes.csv").read_bytes().decode("utf-8-sig")
    for row in csv.DictReader(StringIO(content, newline="")):
        for task, answer in unsure.predict([row["text"]])[0].answers.items():
            assert row[f"{task}_labels"] == "|".join(answer.labels or ())
            assert row[f"{task}_unsure"] == (answer.unsure or "")


def test_several_labels_are_shown_with_their_shares(open_page: Opens, several_folder: Path) -> None:
    model = Predictor.load(several_folder, device="cpu")
    server = Server({"several": model})
    server.start()
    for text in SEVERAL_TEXTS:
        page = open_page(f"#{urlencode({'text': text})}", at=server)
        for task, answer in model.predict(text).answers.items():
            card = page.locator(f'[data-task="{task}"]')
            given = list(answer.label) if isinstance(answer.label, tuple) else []
            expect(card.locator(".said")).to_have_text(", ".join(given) or "none of them")
            expect(card.locator('[aria-current="true"] bdi')).to_have_text(given)
            for label, share in answer.probabilities.items():
                row = card.locator("li").filter(has_text=label)
                (shown,) = row.locator(".share").all_inner_texts()
                assert abs(int("".join(filter(str.isdigit, shown))) - 100 * share) < 1.01
    server.stop()


def test_a_model_that_is_not_calibrated_asks_for_no_variety(open_page: Opens) -> None:
    page = open_page()
    expect(page.locator('[data-task="sarcasm"] .said')).not_to_have_text("–")
    expect(page.locator("#variety-choice")).to_be_hidden()
