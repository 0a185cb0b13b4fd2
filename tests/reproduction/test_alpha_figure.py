"""The picture of learned α: a row for each layer, its means written, all its heads inside the
scale.
"""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from litotes.core.errors import UserError
from litotes.core.figures import render_figure
from reproduction.alpha_figure import figure

ALPHA = [[1.11, 1.13, 1.15], [1.41, 1.43, 1.45], [1.27, 1.27, 1.27]]
DENSITY = [[1.0, 0.9, 0.8], [0.1, 0.2, 0.3], [0.5, 0.5, 0.65]]


def n_counted(picture: Figure, column: int) -> list[int]:
    """How many heads the bars of each row stand for."""
    return [round(sum(bar.get_height() for bar in ax.patches)) for ax in picture.axes[column::2]]


@pytest.mark.slow
def test_every_layer_has_its_means() -> None:
    svg = render_figure(figure(ALPHA, DENSITY, start=1.2), "svg").decode()
    for shown in (
        "layer 1",
        "layer 2",
        "layer 3",
        "1.130",
        "1.430",
        "1.270",
        "0.900",
        "0.200",
        "0.550",
        "start",
    ):
        assert shown in svg
    assert "layer 4" not in svg


def test_no_head_is_left_out() -> None:
    picture = figure(ALPHA, DENSITY, start=1.2)
    assert n_counted(picture, 0) == n_counted(picture, 1) == [3, 3, 3]


@pytest.mark.parametrize("start", [1.05, 1.2, 1.9])
def test_the_scale_holds_the_start_and_every_head(start: float) -> None:
    low, high = figure(ALPHA, DENSITY, start=start).axes[0].get_xlim()
    assert low <= min(1.11, start)
    assert high >= max(1.45, start)
    assert low >= 1
    assert high <= 2


def test_heads_that_are_all_alike_can_be_drawn() -> None:
    picture = figure([[1.2, 1.2]], [[1.0, 1.0]], start=1.2)
    assert n_counted(picture, 0) == n_counted(picture, 1) == [2]


@pytest.mark.slow
def test_is_drawn_the_same_twice() -> None:
    for kind in ("svg", "png"):
        assert render_figure(figure(ALPHA, DENSITY, start=1.2), kind) == render_figure(
            figure(ALPHA, DENSITY, start=1.2), kind
        )


@pytest.mark.parametrize(
    ("alpha", "density"), [([], []), (ALPHA, DENSITY[:2]), (ALPHA, [*DENSITY[:2], []])]
)
def test_a_layer_without_numbers_is_told(
    alpha: list[list[float]], density: list[list[float]]
) -> None:
    with pytest.raises(UserError, match="for every layer"):
        figure(alpha, density, start=1.2)
