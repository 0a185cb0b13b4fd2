"""The frontier as a figure: every point named, every interval inside."""

from __future__ import annotations

from dataclasses import replace

import pytest

from litotes.core.errors import UserError
from litotes.core.figures import render_figure
from litotes.training.distillation.figure import figure
from litotes.training.distillation.frontier import Point, Score

TEACHER = Point("teacher", 3, 12, 768, 109_000_000, 40.0, Score(0.69, (0.66, 0.72)), {})
POINTS = (
    TEACHER,
    replace(TEACHER, name="student", texts_per_second=300.0, score=Score(0.65, (0.61, 0.68))),
    replace(TEACHER, name="baseline", texts_per_second=290.0, score=Score(0.61, (0.5, 0.64))),
)


def test_every_point_is_named_and_its_interval_inside() -> None:
    picture = figure(POINTS)
    (ax,) = picture.axes
    low, high = ax.get_ylim()
    assert low < 0.5
    assert high > 0.72
    names = [text.get_text().split(",")[0] for text in ax.texts]
    assert sorted(names) == ["baseline", "student", "teacher"]
    colours = {bars.get_label(): bars.lines[0].get_markerfacecolor() for bars in ax.containers}
    assert colours["labels alone"] == "white"
    assert len(set(colours.values())) == 3
    assert render_figure(picture, "svg") == render_figure(figure(POINTS), "svg")


def test_nothing_tested_is_not_drawn() -> None:
    with pytest.raises(UserError, match="test split"):
        figure([replace(TEACHER, score=None)])
