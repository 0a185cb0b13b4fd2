"""A report in a browser: dark where the reader's screen is, its pictures too, and on a phone
nothing runs out of the page.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page

from litotes.core import pages
from litotes.core.figures import Heatmap, render_figure, stacked_figure

pytestmark = pytest.mark.slow

PAGE = """{% extends "core/report.html" %}{% from "core/parts.html" import figure %}
{% block title %}Name{% endblock %}{% block lead %}lead{% endblock %}
{% block parts %}{{ part("Part") }}{{ figure(svg, "broad", "below", narrow=svg) }}{% endblock %}"""


@pytest.fixture(scope="module")
def article(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page with a picture of two forms; one cell is light, one dark."""
    names = ("light", "dark")
    values = {(row, column): 0.05 if row == "light" else 0.95 for row in names for column in names}
    svg = render_figure(stacked_figure([Heatmap("scores", "row", names, names, values, {})]), "svg")
    template = pages._environment().overlay(autoescape=True).from_string(PAGE)
    file = tmp_path_factory.mktemp("article") / "report.html"
    file.write_text(template.render(part=pages._Contents(), svg=svg), "utf-8")
    return file.as_uri()


def opened(browser: Browser, address: str, *, width: int, scheme: str) -> Page:
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme=scheme,  # type: ignore[arg-type]
    )
    shown = context.new_page()
    shown.goto(address)
    return shown


def colour(shown: Page, selector: str, name: str) -> int:
    """Of the first such element, as the sum of red, green and blue."""
    script = "([what, name]) => getComputedStyle(document.querySelector(what))[name]"
    value = shown.evaluate(script, [selector, name])
    return sum(int(part) for part in value.strip("rgb()").split(",")[:3])


@pytest.mark.parametrize(("scheme", "is_dark"), [("light", False), ("dark", True)])
def test_pictures_go_with_the_page(
    browser: Browser, article: str, scheme: str, is_dark: bool
) -> None:
    shown = opened(browser, article, width=1280, scheme=scheme)
    paper = colour(shown, "body", "backgroundColor")
    assert (paper < 200) == is_dark
    # the picture's own paper, and the names beside its cells
    assert colour(shown, "#broad-patch_1 path", "fill") == paper
    assert (colour(shown, "#broad-axes_1 text", "fill") > 500) == is_dark
    # letters on cells keep the contrast they have with their cells
    on_light, on_dark = 'text[style*="#111111"]', 'text[style*="#ffffff"]'
    assert colour(shown, on_light, "fill") < 100 < 700 < colour(shown, on_dark, "fill")
    shown.context.close()


@pytest.mark.parametrize(("width", "form"), [(1280, "broad"), (390, "narrow-broad")])
def test_a_phone_has_a_picture_of_its_own(
    browser: Browser, article: str, width: int, form: str
) -> None:
    shown = opened(browser, article, width=width, scheme="light")
    visible = [
        one for one in ("broad", "narrow-broad") if shown.locator(f"#{one}-figure_1").is_visible()
    ]
    assert visible == [form]
    overflow = "document.documentElement.scrollWidth - innerWidth"
    assert shown.evaluate(overflow) <= 0
    picture = shown.locator(f"#{form}-figure_1").bounding_box()
    assert picture is not None
    assert picture["x"] + picture["width"] <= width
    shown.context.close()
