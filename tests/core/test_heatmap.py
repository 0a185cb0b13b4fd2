"""Heatmaps for a page and for a phone: one scale, letters that can be read, names in full."""

from __future__ import annotations

from itertools import combinations

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from litotes.core.figures import Heatmap, draw_heatmap, stacked_figure

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
    picture = stacked_figure([heatmap(*names), heatmap(*names)])
    for (one, box), (other, other_box) in combinations(written(picture), 2):
        assert not box.shrunk(0.97, 0.97).overlaps(other_box), f"{one!r} and {other!r}"
    assert picture.get_size_inches()[0] <= (4.1 if len(names) <= 6 else 6)


def test_small_cells_show_two_decimals_and_holes_say_why() -> None:
    texts = [text for text, _ in written(stacked_figure([heatmap(*CELLS)]))]
    assert texts.count("0.15") == len(CELLS) ** 2 - 1
    assert "not\nprinted" in texts
    assert "0.10–0.20" not in texts
    assert set(CELLS) <= set(texts)  # names are written in full
    few = [text for text, _ in written(stacked_figure([heatmap("a", "b")]))]
    assert few.count("0.150") == few.count("0.10–0.20") == 3


def test_names_of_columns_do_not_cover_one_another() -> None:
    ax = Figure(figsize=(7, 7)).subplots()
    draw_heatmap(heatmap(*CELLS), ax)
    assert "en-AU\nGoogle" in [label.get_text() for label in ax.get_xticklabels()]


def test_a_score_has_the_colours_of_0_to_1() -> None:
    """A model of many labels may lie far below a third."""
    image = draw_heatmap(heatmap("a", "b"), Figure().subplots())
    assert image.get_clim() == (0, 1)
