"""One text: its label as it is typed, its words, its layers, and the link that shows it again."""

from __future__ import annotations

import re

import pytest
from page_server import Opens
from playwright.sync_api import Page, Route, expect

from litotes.explanation.explanation import word_maps
from litotes.prediction.predictor import Predictor

pytestmark = pytest.mark.slow

TEXT = "Oh great, the queue is not bad. I love it, and the tea!"
LONG = "the tea is bad and the queue is great, " * 12


def expect_answer(page: Page, predictors: dict[str, Predictor], text: str) -> None:
    for task, answer in predictors["pruned"].predict(text).answers.items():
        share = answer.probability or 0
        shown = "over 99 %" if share >= 0.995 else f"{share * 100:.0f} %"
        for part in (str(answer.label), shown):
            expect(page.locator(f'[data-task="{task}"] .said')).to_contain_text(part)


def test_a_first_visit_shows_an_example_already_answered(
    open_page: Opens, predictors: dict[str, Predictor]
) -> None:
    page = open_page("")
    expect(page.locator("html")).to_have_attribute("data-explained", "sarcasm/occlusion/4")
    text = page.locator("#text").input_value()
    assert len(text) > 40
    expect_answer(page, predictors, text)
    expect(page.locator("#shaded")).to_have_text(text)
    expect(page.locator("#about")).to_contain_text("Answered by pruned, run by torch")
    assert page.locator("#examples button").count() >= 5


def test_typing_is_answered_as_python_answers(
    open_page: Opens, predictors: dict[str, Predictor]
) -> None:
    page = open_page()
    page.locator("#text").fill("")
    expect(page.locator("#answer-note")).to_contain_text("nothing to label yet")
    page.locator("#text").press_sequentially("the tea is bad", delay=15)
    expect_answer(page, predictors, "the tea is bad")
    expect(page.locator("#announced")).to_contain_text(re.compile("sentiment: .*; sarcasm: .*"))
    expect(page.locator("#shaded")).to_have_text("the tea is bad")


@pytest.mark.parametrize("text", ["\u200b", "😀", "\ue000"])
def test_an_unreadable_text_gets_a_note_in_place_of_a_label(open_page: Opens, text: str) -> None:
    page = open_page(may_complain=True)  # the browser writes down that it is not explained
    expect(page.locator("html")).to_have_attribute("data-explained", re.compile("sarcasm"))
    page.locator("#text").fill(text)
    expect(page.locator("#answer-note")).to_have_text(
        "Unreadable: the model knows no part of this text, so no answer is shown."
    )
    for task in ("sentiment", "sarcasm"):
        expect(page.locator(f'[data-task="{task}"] .said')).to_have_text("–")
    expect(page.locator("#why-note")).to_contain_text("no word that it knows")
    expect(page.locator("#explained")).to_be_hidden()
    page.locator("#text").fill("tea")
    expect(page.locator("#answer-note")).not_to_contain_text("Unreadable")
    expect(page.locator('[data-task="sarcasm"] .said')).to_contain_text("%")


def test_three_labels_have_a_bar_each_and_the_answer_is_marked(
    open_page: Opens, predictors: dict[str, Predictor]
) -> None:
    page = open_page("#text=the tea is bad&model=moods", may_complain=True)  # as above
    answers = predictors["moods"].predict(["the tea is bad"])[0].answers
    card = page.locator('[data-task="mood"]')
    expect(card.locator(".said")).to_contain_text(str(answers["mood"].label))
    bars = card.locator(".labels li")
    expect(bars).to_have_count(3)
    for bar, (label, share) in zip(bars.all(), answers["mood"].probabilities.items(), strict=True):
        expect(bar).to_have_text(f"{label}{share * 100:.0f} %")
        drawn = bar.locator(".fill").evaluate(
            "fill => fill.clientWidth / fill.parentElement.clientWidth"
        )
        assert drawn == pytest.approx(share, abs=0.02)
    expect(card.locator("[aria-current]")).to_contain_text(str(answers["mood"].label))
    # a number has no bars, and two labels have one between them
    expect(page.locator('[data-task="warmth"] .track')).to_be_hidden()
    expect(page.locator('[data-task="warmth"] .said')).to_contain_text(re.compile(r"\d"))
    page.locator("#text").fill("\u200b")
    expect(card.locator(".said")).to_have_text("–")
    expect(card.locator("[aria-current]")).to_have_count(0)
    for bar in bars.all():
        expect(bar.locator(".share")).to_have_text("")
    page.locator("#model").select_option("pruned")
    expect(page.locator('[data-task="sarcasm"] .labels')).to_have_count(0)


LATE = """
const originalFetch = window.fetch;
window.fetch = async (path, options = {}) => {
  if (!String(options.body).includes("late")) return originalFetch(path, options);
  const answer = await originalFetch(path, { ...options, signal: undefined });
  await new Promise((done) => setTimeout(done, 900));
  return answer;
};
"""


def test_an_older_answer_never_overwrites_a_newer_one(
    open_page: Opens, predictors: dict[str, Predictor]
) -> None:
    page = open_page(script=LATE)
    expect(page.locator("html")).to_have_attribute("data-explained", re.compile("sarcasm"))
    with page.expect_request("**/v1/predict"):
        page.locator("#text").fill("late, bad and late again")
    page.locator("#text").fill("love the tea")
    expect_answer(page, predictors, "love the tea")
    page.wait_for_timeout(1300)
    expect_answer(page, predictors, "love the tea")
    expect(page.locator("#shaded")).to_have_text("love the tea")


def test_words_are_shaded_by_their_weights(
    open_page: Opens, predictors: dict[str, Predictor]
) -> None:
    page = open_page()
    page.locator("#text").fill(TEXT)
    expect(page.locator("#shaded")).to_have_text(TEXT)
    explanation = predictors["pruned"].explain(
        TEXT, task="sarcasm", methods=["occlusion"], faithfulness=False
    )
    weights = explanation.shadings["occlusion"].weights
    words = page.locator("#shaded .word")
    assert words.all_inner_texts() == [word.written for word in explanation.read.words]
    greatest = max(range(len(weights)), key=lambda place: abs(weights[place]))
    look = words.nth(greatest).get_attribute("class")
    assert look == f"word {'for' if weights[greatest] > 0 else 'against'}"
    words.nth(greatest).hover()
    expect(page.locator("#word-said")).to_contain_text(f"number 1 of {len(weights)} words")
    page.locator("#method").select_option("rollout")
    expect(page.locator("#legend")).to_contain_text("most used")
    page.locator('#tasks input[value="sentiment"]').check(force=True)
    expect(page.locator("html")).to_have_attribute("data-explained", "sentiment/rollout/4")


def test_words_leave_as_the_slider_moves(
    open_page: Opens, predictors: dict[str, Predictor]
) -> None:
    page = open_page()
    page.locator("#text").fill(TEXT)
    expect(page.locator("#fading")).to_have_text(TEXT)
    explanation = predictors["pruned"].explain(
        TEXT, methods=["standard"], method="standard", faithfulness=False
    )
    page.locator("#layer").focus()
    for layer in (4, 3, 2, 1):
        n_gone = sum(left is not None and left < layer - 1 for left in explanation.left_at_layer)
        n_seen, n_pieces = len(explanation.trace.there(layer - 1)), len(explanation.read.written)
        expect(page.locator("#layer-said")).to_contain_text(
            f"Layer {layer} of 4 sees {n_seen} of {n_pieces} pieces"
        )
        expect(page.locator("#fading .gone")).to_have_count(n_gone)
        page.keyboard.press("ArrowLeft")
    assert any(left is not None for left in explanation.left_at_layer)
    expect(page.locator("#standard")).to_be_visible()


def test_maps_tell_the_weights_between_words(
    open_page: Opens, predictors: dict[str, Predictor]
) -> None:
    page = open_page()
    page.locator("#text").fill("tea is bad")
    expect(page.locator("#shaded")).to_have_text("tea is bad")
    page.locator("#layer").fill("1")
    page.locator("#standard").focus()
    for key in ("ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    maps = word_maps(
        predictors["pruned"].explain(
            "tea is bad", methods=[], method="standard", faithfulness=False
        )
    )
    cell_note = page.locator("#cell-said").inner_text()
    assert cell_note.startswith("“tea” looks at “is”")
    standard = re.search(r"standard ([\d.]+)", cell_note)
    assert standard is not None
    assert float(standard[1]) == pytest.approx(maps[0]["between"]["standard"][0][1], rel=0.06)


def test_long_texts_wait_for_the_button_and_get_bars(open_page: Opens) -> None:
    page = open_page()
    expect(page.locator("html")).to_have_attribute("data-explained", re.compile("sarcasm"))
    page.locator("#text").fill(LONG)
    expect(page.locator("#why-note")).to_contain_text("press Explain")
    expect(page.locator("#answer-note")).to_contain_text("longer than the model reads")
    page.locator("#text").press("Control+Enter")
    expect(page.locator("#shaded .unread")).to_be_visible()
    page.locator("#layer").fill("1")
    expect(page.locator("#bars")).to_be_visible()
    assert page.locator("#bars li").count() > 64
    expect(page.locator("#maps")).to_be_hidden()


def test_a_link_shows_the_view_again(open_page: Opens) -> None:
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    page.locator("#text").fill(TEXT)
    page.locator("#method").select_option("effective")
    page.locator('#tasks input[value="sentiment"]').check(force=True)
    expect(page.locator("html")).to_have_attribute("data-explained", "sentiment/effective/4")
    page.locator("#layer").fill("2")
    page.locator("#copy-link").click()
    expect(page.locator("#copy-link")).to_have_text("Copied")
    link = page.evaluate("navigator.clipboard.readText()")
    other = open_page(link.partition("/#")[2].join(["#", ""]))
    expect(other.locator("html")).to_have_attribute("data-explained", "sentiment/effective/2")
    expect(other.locator("#text")).to_have_value(TEXT)
    expect(other.locator("#layer-said")).to_contain_text("Layer 2 of 4")
    page.locator("#text").fill("x" * 9000)
    page.locator("#copy-link").click()
    expect(page.locator("#copy-link")).to_contain_text("Too long for a link")


def test_a_link_to_what_is_not_there_gives_way(open_page: Opens) -> None:
    page = open_page("#text=tea&task=irony&method=magic&layer=99&model=other")
    expect(page.locator("html")).to_have_attribute("data-explained", "sarcasm/occlusion/4")
    expect(page.locator("#text")).to_have_value("tea")
    expect(page.locator("#answer-note")).to_contain_text("is not here; the first one answers")


HOSTILE = (
    "<img src=x onerror=\"document.title='broken in'\"><script>document.title='in'</script> tea"
    " \u202eevil\u202c &amp; 😀 \x07 tea"
)


def test_a_hostile_text_stays_text(open_page: Opens) -> None:
    page = open_page()
    page.locator("#text").fill(HOSTILE)
    expect(page.locator("#shaded")).to_contain_text("<img src=x onerror=")
    expect(page.locator("#shaded")).to_contain_text("‹U+202E›evil‹U+202C› &amp; 😀 ‹U+0007› tea")
    # an emoji before it moves nothing
    assert page.locator("#shaded .word").last.inner_text() == "tea"
    assert page.title() == "litotes: sentiment and sarcasm"
    assert page.locator("main img, main script").count() == 0


def test_a_service_without_torch_shades_words_and_shows_no_layers(open_page: Opens) -> None:
    page = open_page()

    def leave_layers_out(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json=answer.json() | {"layers": []})

    page.route("**/v1/explain", leave_layers_out)
    page.locator("#text").fill("the queue is bad")
    expect(page.locator("#shaded")).to_have_text("the queue is bad")
    expect(page.locator("#layers")).to_be_hidden()
    page.locator("#shaded .word").first.click()
    expect(page.locator("#word-said")).to_contain_text("the")
