"""For every eye, hand and screen: keys alone, narrow, dark, and names for what has no letters."""

from __future__ import annotations

import re

import pytest
from page_server import Opens
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.slow

WIDE = "pneumonoultramicroscopicsilicovolcanoconiosis" * 6 + " tea"
"""A word too long for the tokenizer, and one that it knows: alone, the first is not explained."""


def focused(page: Page) -> str:
    active = "document.activeElement"
    return str(page.evaluate(f"{active}.id || {active}.className || {active}.tagName"))


def test_everything_is_reached_by_keys(open_page: Opens) -> None:
    page = open_page("")
    expect(page.locator("html")).to_have_attribute("data-explained", "sarcasm/occlusion/4")
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.append(focused(page))
        if seen[-1] == "BODY":
            break
        assert page.evaluate("document.activeElement.matches(':focus-visible')"), seen[-1]
    controls = "copy-link theme text model method explain layer standard effective"
    assert set(controls.split()) <= set(seen)
    assert any(name.startswith("word") for name in seen)
    assert sum(name.startswith("word") for name in seen) == 1  # the other words by arrows

    page.locator("#text").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("the tea is bad", delay=10)
    expect(page.locator("#shaded")).to_have_text("the tea is bad")
    page.locator("#explain").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    expect(page.locator("#word-said")).to_contain_text("“bad”")
    page.keyboard.press("Enter")
    expect(page.locator("#shaded .chosen")).to_have_text("bad")


@pytest.mark.parametrize(
    "text", ["the tea is bad, and the queue is great", WIDE, "tea\nbad\n" + WIDE]
)
def test_nothing_scrolls_sideways_at_360_pixels(open_page: Opens, text: str) -> None:
    page = open_page(viewport={"width": 360, "height": 740})
    page.locator("#text").dispatch_event("paste")
    page.locator("#text").fill(text)
    expect(page.locator("#lines-note" if "\n" in text else "#shaded")).to_contain_text(
        "All 3 lines" if "\n" in text else text[:20]
    )
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_a_wide_screen_has_words_and_layers_side_by_side(open_page: Opens) -> None:
    page = open_page(viewport={"width": 1400, "height": 900})
    expect(page.locator("html")).to_have_attribute("data-explained", "sarcasm/occlusion/4")

    def edges() -> tuple[dict[str, float], dict[str, float]]:
        words, layers = (page.locator(name).bounding_box() for name in ("#why", "#layers"))
        assert words is not None
        assert layers is not None
        return dict(words), dict(layers)

    words, layers = edges()
    assert layers["y"] == pytest.approx(words["y"], abs=2)
    assert layers["x"] >= words["x"] + words["width"]
    page.set_viewport_size({"width": 1000, "height": 900})
    words, layers = edges()
    assert layers["y"] >= words["y"] + words["height"]


def brightness(page: Page) -> float:
    color = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(map(float, re.findall(r"[\d.]+", color)[:3])) / 3


def test_dark_and_light(open_page: Opens) -> None:
    page = open_page(color_scheme="dark")
    assert brightness(page) < 60
    expect(page.locator("#theme")).to_have_attribute("aria-pressed", "true")
    page.locator("#theme").click()
    assert brightness(page) > 200
    page.reload()
    assert brightness(page) > 200  # the choice is kept
    page.emulate_media(media="print", color_scheme="dark")
    assert brightness(page) > 200


def test_controls_and_regions_have_names(open_page: Opens) -> None:
    page = open_page("")
    expect(page.locator("html")).to_have_attribute("data-explained", "sarcasm/occlusion/4")
    tree = page.locator("body").aria_snapshot()
    for kind in ("textbox", "combobox", "slider", "button", "application", "region", "radio"):
        found = re.findall(rf"^\s*- {kind}\b(.*)$", tree, re.MULTILINE)
        assert found, kind
        assert all(name.strip().startswith('"') for name in found), (kind, found)
    for landmark in ("banner", "main", "contentinfo"):
        assert f"- {landmark}" in tree
