"""The curve can be read, however little perplexity changes."""

from __future__ import annotations

import pytest

from litotes.core.figures import render_figure
from litotes.training.pretraining.course import draw_curve


@pytest.mark.parametrize("values", [(4000, 600, 340), (19.0, 13.0, 11.0)])
def test_the_axis_has_numbers_on_it(values: tuple[float, ...]) -> None:
    history = [{"step": 10 * n, "perplexity": value} for n, value in enumerate(values)]
    picture = draw_curve(history, unigram=max(values))
    assert render_figure(picture, "svg") == render_figure(picture, "svg")
    (ax,) = picture.axes
    low, high = ax.get_ylim()
    shown = [tick for tick in ax.get_yticks() if low <= tick <= high]
    assert len(shown) >= 2
