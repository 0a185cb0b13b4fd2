from __future__ import annotations

from xml.dom.minidom import parseString

from matplotlib.figure import Figure

from litotes.core.figures import render_figure


def test_a_label_never_breaks_the_file() -> None:
    picture = Figure()
    axes = picture.subplots()
    axes.set_xticks([0], ["red\x1b[31m \x9b \u202e"], parse_math=False)
    axes.set_title("\x00 & <b>", parse_math=False)
    svg = render_figure(picture, "svg").decode()
    assert parseString(svg.encode())
    assert "red‹U+001B›[31m" in svg
    assert render_figure(picture, "png")
