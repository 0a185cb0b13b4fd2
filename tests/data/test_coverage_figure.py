"""Pictures: the numbers are in them, the same result gives the same bytes."""

from __future__ import annotations

from litotes.core.figures import ON_LIGHT, render_figure
from litotes.data.coverage import Coverage, figure

NAMES = ("en-AU $review$", "en-IN review", "Twitter")


def made(*rows: tuple[float, ...], names: tuple[str, ...] = NAMES) -> Coverage:
    ones = (1,) * len(names)
    return Coverage(
        "pieces", 1000, names, ("review", "review", "Twitter")[: len(names)], ones, ones, rows
    )


def test_coverage_shows_every_name_and_number() -> None:
    svg = render_figure(
        figure(made((1, 0.614, 0.31), (0.614, 1, 0.42), (0.31, 0.42, 1))), "svg"
    ).decode()
    for shown in (*NAMES, "0.61", "0.31", "0.42", "1,000 most frequent pieces"):
        assert shown in svg


def test_coverage_is_drawn_the_same_twice() -> None:
    found = made((1, 0.5), (0.25, 1), names=NAMES[:2])
    for kind in ("svg", "png"):
        assert render_figure(figure(found), kind) == render_figure(figure(found), kind)


def test_one_part_alone_can_be_drawn() -> None:
    assert render_figure(figure(made((1,), names=NAMES[:1])), "png").startswith(b"\x89PNG")


def test_a_share_has_the_colours_of_0_to_1_and_letters_of_their_own() -> None:
    """Letters on cells must not turn light with a dark page."""
    ax = figure(made((1, 0.97), (0.95, 1), names=NAMES[:2])).axes[0]
    assert ax.get_images()[0].get_clim() == (0, 1)
    low = figure(made((1, 0.1), (0.1, 1), names=NAMES[:2])).axes[0]
    assert {text.get_color() for text in (*ax.texts, *low.texts)} == {"white", ON_LIGHT}
