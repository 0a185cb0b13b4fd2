"""Figures for a page and for a phone: one scale, letters that can be read, names in full."""

from __future__ import annotations

from itertools import combinations
from xml.dom.minidom import parseString

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from litotes.core.figures import Heatmap, draw_heatmap, render_figure, stacked_figure

CELLS = ("en-AU Google", "en-AU Reddit", "en-IN Google", "en-IN Reddit", "en-UK Google", "en-UK")


def heatmap(*names: str) -> Heatmap:
    """The last cell of the first row is a hole."""
    hole = (names[0], names[-1])
    places = [(row, column) for row in names for column in names if (row, column) != hole]
    small = dict.fromkeys(places, "0.10–0.20") | {hole: "not printed"}
    title = "ours: a title that is rather longer than a phone is wide, sentiment"
    return Heatmap(title, "trained on", names, names, dict.fromkeys(places, 0.15), small)


def written(picture: Figure) -> list[tuple[str, object]]:
    """What can be read, and where it stands."""
    FigureCanvasAgg(picture).draw()
    texts = []
    for ax in picture.axes:
        texts += [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.texts]
        texts += [*ax.get_xticklabels(), *ax.get_yticklabels()]
    return [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text()]


@pytest.mark.parametrize("names", [("en-AU", "en-UK"), CELLS, tuple(map(str, range(12)))])
def test_a_stack_covers_nothing_and_fits_a_phone(names: tuple[str, ...]) -> None:
    picture = stacked_figure([heatmap(*names)])
    shown = written(picture)
    for (one, box), (other, other_box) in combinations(shown, 2):
        assert not box.shrunk(0.97, 0.97).overlaps(other_box), f"{one!r} and {other!r}"
    assert picture.get_size_inches()[0] <= (4.1 if len(names) <= 6 else 6)
    texts = [text for text, _ in shown]
    assert {name for name in names if " " not in name} <= set(texts)
    if len(names) == 2:
        assert texts.count("0.150") == texts.count("0.10–0.20") == 3
    else:  # small cells show two decimals, and holes say why
        assert texts.count("0.15") == len(names) ** 2 - 1
        assert "not\nprinted" in texts
        assert "0.10–0.20" not in texts


def test_a_score_has_the_colours_of_0_to_1_and_names_are_broken() -> None:
    """A model of many labels may lie far below a third."""
    ax = Figure(figsize=(7, 7)).subplots()
    assert draw_heatmap(heatmap(*CELLS), ax).get_clim() == (0, 1)
    assert "en-AU\nGoogle" in [label.get_text() for label in ax.get_xticklabels()]


def test_a_label_never_breaks_the_file() -> None:
    picture = Figure()
    axes = picture.subplots()
    axes.set_xticks([0], ["red\x1b[31m \x9b \u202e"], parse_math=False)
    axes.set_title("\x00 & <b>", parse_math=False)
    svg = render_figure(picture, "svg").decode()
    assert parseString(svg.encode())
    assert "red‹U+001B›[31m" in svg
    assert render_figure(picture, "png").startswith(b"\x89PNG")
