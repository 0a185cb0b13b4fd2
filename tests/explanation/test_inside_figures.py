"""The figures of the analyses: one for each, nothing covers anything, one scale for what is
compared, holes are seen as holes.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from made_results import MADE, Maker, made
from matplotlib.figure import Figure
from matplotlib.text import Text
from test_analyses import base_of, result_of
from tiny_models import KINDS, model_of, observations_of

from litotes.core.figures import render_figure
from litotes.encoder.pretrained import Pretrained
from litotes.explanation.analyses import ANALYSES
from litotes.explanation.analyses.analysis import Result
from litotes.explanation.analyses.drawing import MapGroup, maps_figure
from litotes.explanation.analyses.trace import WordStay


def texts_of(picture: Figure) -> list[Text]:
    """All that can be read: titles, labels, names and numbers of ticks within the axes, what stands
    in cells.
    """
    found = [text for legend in picture.legends for text in legend.get_texts()]
    for ax in picture.axes:
        assert not ax.get_title(loc="left")  # would go unseen here
        assert not ax.get_title(loc="right")
        found += [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.texts]
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            found += [
                tick.label1
                for tick in axis.get_major_ticks()
                if tick.label1.get_visible() and low <= tick.get_loc() <= high
            ]
            found += [
                tick.label2
                for tick in axis.get_major_ticks()
                if tick.label2.get_visible() and low <= tick.get_loc() <= high
            ]
        found += ax.get_legend().get_texts() if ax.get_legend() else []
    return [text for text in found if text.get_text()]


def assert_nothing_overlaps(picture: Figure) -> None:
    picture.draw_without_rendering()
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts_of(picture)]
    assert boxes
    for (one, box), (other, other_box) in combinations(boxes, 2):
        assert not box.shrunk(0.97, 0.97).overlaps(other_box), f"{one!r} and {other!r}"


def words_of(picture: Figure) -> str:
    """All that is written anywhere in a figure."""
    picture.draw_without_rendering()
    return " ".join(text.get_text() for text in picture.findobj(Text)).casefold()


def figure_of(name: str, result: Result) -> Figure:
    return result.figure()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size"), [*((name, (12, 12)) for name in sorted(MADE)), ("change", (2, 4))]
)
def test_nothing_overlaps(name: str, size: tuple[int, int]) -> None:
    assert_nothing_overlaps(figure_of(name, made(name, *size, missing=True)))


def test_nothing_overlaps_in_a_large_model() -> None:
    picture = figure_of("change", made("change", 24, 16))
    assert_nothing_overlaps(picture)
    assert picture.get_size_inches()[0] < 11


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cascade"])
@pytest.mark.parametrize("name", sorted(ANALYSES))
def test_results_of_real_models_are_drawn(name: str, kind: str, tiny: Pretrained) -> None:
    model = model_of(tiny, **KINDS[kind])
    result = result_of(name, model, observations_of(model, base=base_of(model)))
    assert all(ax.has_data() or ax.texts for ax in figure_of(name, result).axes)


def test_words_that_cannot_be_drawn_do_no_harm() -> None:
    words = (WordStay("🫠", 0.2, 5), WordStay("tur\u202en\x00ed", 0.3, 6), WordStay("$x^$", 0.4, 7))
    result = replace(Maker(2, 4).trace(), first_to_leave=words, last_to_leave=words)
    svg = render_figure(figure_of("trace", result), "svg").decode()
    assert "🫠 (n 5)" in svg
    assert "tur▯n▯ed (n 6)" in svg
    assert "$x^$ (n 7)" in svg


@pytest.mark.slow
def test_is_drawn_the_same_twice() -> None:
    one, other = (render_figure(figure_of("trace", made("trace", 2, 4)), "svg") for _ in range(2))
    assert one == other


def test_what_is_missing_is_hatched_and_what_is_negative_has_a_dash() -> None:
    tables = {"holed": [[0.2, None], [-0.1, 0.4]]}
    ax, _ = maps_figure([MapGroup(tables, "weight", framed={"holed": [(1, 1)]})]).axes
    assert ax.patch.get_hatch()
    assert ax.get_images()[0].get_array().mask.tolist() == [[False, True], [False, False]]
    assert "hatched" in ax.get_xlabel()
    assert [(text.get_text(), text.get_position()) for text in ax.texts] == [("–", (0, 1))]
    assert ax.patches[0].get_xy() == (0.5, 0.5)


def test_heads_and_layers_count_from_one() -> None:
    ax = figure_of("effective", made("effective", 3, 5)).axes[0]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "2", "3", "4", "5"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("values", "limits"),
    [((0.31, 0.62), (0.3, 0.7)), ((0.5, 0.5), (0.5, 0.6)), ((1.0, 1.0), (1.0, 1.1))],
)
def test_a_scale_holds_its_numbers_and_is_never_empty(
    values: tuple[float, float], limits: tuple[float, float]
) -> None:
    assert MapGroup({"": [values]}, "").limits == pytest.approx(limits)


@pytest.mark.parametrize("values", [(0.3, 1.0), (1.0, 1.0), (0.99, 1 + 5e-10)])
def test_a_cosine_ends_at_one(values: tuple[float, float]) -> None:
    low, high = MapGroup({"": [values]}, "", high=1).limits
    assert high == pytest.approx(1, abs=1e-12)
    assert low < high


@pytest.mark.parametrize("name", ["patterns", "change", "token_types"])
def test_two_kinds_that_are_the_same_are_drawn_once(name: str) -> None:
    both = made(name, 2, 4)
    tables = {
        key: {kind: getattr(both, key)["standard"] for kind in ("standard", "effective")}
        for key in ("shares", "by_layer", "similarity", "by_type", "from_first")
        if hasattr(both, key)
    }
    if name == "token_types":
        for key in ("over_layers", "from_others"):
            tables[key] = {
                special: dict.fromkeys(kinds, kinds["standard"])
                for special, kinds in getattr(both, key).items()
            }
    one = replace(both, **tables)
    assert "effective" in words_of(figure_of(name, both))
    assert "effective" not in words_of(figure_of(name, one))
