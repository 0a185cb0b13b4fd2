"""Figures of one explanation and of one trace: all is in them, and the same is drawn twice."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from made_explanations import (
    PRUNED,
    TEXT,
    explained,
    explanation_of,
    left_after,
    shadings_of,
    without_null_space,
)
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.text import Text

from litotes.core.errors import UserError
from litotes.core.figures import render_figure
from litotes.core.values import Answer
from litotes.encoder.pretrained import Pretrained
from litotes.explanation import figures
from litotes.explanation.explanation import Explanation
from litotes.explanation.figures import N_ABREAST, draw_bands, explanation_figure


@pytest.fixture
def pruned(tiny: Pretrained) -> Explanation:
    return explained(tiny, "great tea, the queue is not bad", **PRUNED)


@pytest.fixture
def whole(tiny: Pretrained) -> Explanation:
    """Of a text with more pieces than an attention head is wide."""
    return explained(tiny)


def texts_of(svg: bytes) -> str:
    """One a line."""
    return "\n".join(re.findall(r">([^<>\n]+)</text>", svg.decode()))


def written(picture: Figure) -> str:
    return texts_of(render_figure(picture, "svg"))


def numbers_in(svg: bytes) -> list[float]:
    """Where everything stands, in points; names aside."""
    return [float(number) for number in re.findall(rb"(?<![\w#.-])-?\d+(?:\.\d+)?(?![\w.])", svg)]


@pytest.mark.slow
def test_everything_is_in_the_picture(pruned: Explanation) -> None:
    svg = render_figure(explanation_figure(pruned), "svg")
    found = texts_of(svg)
    for shown in (
        "sarcasm: sarcastic, 87 % sure",
        "86.6 %",
        "integrated gradients",
        "standard",
        "effective",
        "layer 4, mean of 2",
    ):
        assert shown in found
    assert found.count("queue") >= 2  # in the text and in what is seen of it
    assert "what each layer still sees" in found
    # its layout is solved, not given
    assert numbers_in(render_figure(explanation_figure(pruned), "svg")) == pytest.approx(
        numbers_in(svg), abs=0.05
    )


def test_a_layer_and_a_head_can_be_chosen(pruned: Explanation) -> None:
    head = pruned.layers[2].heads[-1]
    titles = [
        text.get_text() for text in explanation_figure(pruned, layer=2, head=head).findobj(Text)
    ]
    assert any(title.startswith(f"layer 3, attention head {head + 1};") for title in titles)
    with pytest.raises(UserError, match="from 0 to 3"):
        explanation_figure(pruned, layer=4)
    gone = (set(range(4)) - set(pruned.layers[3].heads)).pop()
    with pytest.raises(UserError, match="Choose one of"):
        explanation_figure(pruned, head=gone)


def images_of(picture: Figure) -> list[AxesImage]:
    return picture.findobj(AxesImage)


@pytest.mark.parametrize(
    ("layers", "shown"),
    [
        ((None, None, None, None), 4),
        ((0, 0, 1, 1), 2),
        ((0, 1, 2, None), 3),
        ((0, 0, 2, 2), 3),
        ((0, 0, 0, 0), 1),
    ],
)
def test_the_last_layer_with_half_of_the_words_is_shown(
    layers: tuple[int | None, ...], shown: int, tiny: Pretrained
) -> None:
    explanation = left_after(explained(tiny, "great tea, bad", **PRUNED), *layers)
    assert explanation.layer_to_show == shown - 1
    titles = [text.get_text() for text in explanation_figure(explanation).findobj(Text)]
    assert any(title.startswith(f"layer {shown}, ") for title in titles)


def test_a_layer_without_words_has_no_map(tiny: Pretrained) -> None:
    explanation = left_after(explained(tiny, "great tea", **PRUNED), 0, 1)
    with pytest.raises(UserError, match="from 0 to 1, the others see no word"):
        explanation_figure(explanation, layer=2)


def test_two_maps_that_are_the_same_are_drawn_once(whole: Explanation) -> None:
    assert len(images_of(explanation_figure(whole))) == 2
    picture = explanation_figure(without_null_space(whole))
    assert len(images_of(picture)) == 1
    assert any("are the same" in text.get_text() for text in picture.findobj(Text))


def test_colours_end_where_weights_may(whole: Explanation) -> None:
    assert [image.get_clim() for image in images_of(explanation_figure(whole))] == [(-1, 1)] * 2
    one = without_null_space(whole)
    assert [image.get_clim() for image in images_of(explanation_figure(one))] == [(0, 1)]
    beyond = [replace(layer, effective=-300 * layer.standard) for layer in whole.layers]
    low, high = images_of(explanation_figure(replace(whole, layers=tuple(beyond))))[1].get_clim()
    assert -low == high > 1


@pytest.mark.slow
def test_odd_texts_and_numbers_are_drawn(tiny: Pretrained) -> None:
    """Math signs, line ends, letters the font lacks; warnings would be errors."""
    one = explained(tiny, "$x_1$\n\n😂𐎀 <b> & tea", pair="second\ttext")
    number = explanation_of(
        one.read, one.layers, one.trace, answers={"intimacy": Answer(2.41, None)}
    )
    found = written(explanation_figure(number))
    assert "intimacy: 2.41" in found
    assert "▯" in found
    assert "what each layer" not in found  # nothing leaves


def test_words_stay_in_their_lines_and_in_order(tiny: Pretrained) -> None:
    read = tiny.tokenizer.read([TEXT * 3], ["a pair"])[0]
    placed = figures.lay_out(read, width=3.0)
    assert [part.number for part in placed if part.number is not None] == list(
        range(len(read.words))
    )
    assert "".join(part.written for part in placed) == TEXT * 3 + "a pair"
    assert all(part.x + part.width <= 3.0 for part in placed if part.written.strip())
    assert all(
        (a.line, a.x + a.width) <= (b.line, b.x + 1e-9) or a.line < b.line
        for a, b in pairwise(placed)
    )


def test_what_was_not_read_is_counted(tiny: Pretrained) -> None:
    read = tiny.tokenizer.read(["tea " * 94 + "x" * 1200])[0]
    assert read.pieces.truncated
    found = "".join(part.written for part in figures.lay_out(read, width=9.0))
    assert found == "tea " * 93 + "tea … 1,201 more characters were not read"


def test_shades_go_with_the_weights(tiny: Pretrained) -> None:
    read = tiny.tokenizer.read([TEXT])[0]
    shading = shadings_of(len(read.words))["occlusion"]
    ax = Figure().subplots()
    figures.draw_words(figures.lay_out(read, width=9.0), shading, ax, width=9.0)
    for patch, weight in zip(ax.patches, shading.weights, strict=True):
        red, _, blue, _ = patch.get_facecolor()
        assert (blue > red) == (weight > 0)  # blue speaks for, orange against
    strongest = max(range(len(shading.weights)), key=lambda word: abs(shading.weights[word]))
    assert min(ax.patches, key=lambda patch: min(patch.get_facecolor())) is ax.patches[strongest]


@pytest.mark.parametrize(
    ("n_names", "n_bands"), [(1, 1), (N_ABREAST, 1), (N_ABREAST + 1, 2), (4 * N_ABREAST + 1, 1)]
)
def test_bands_hold_every_name(n_names: int, n_bands: int) -> None:
    axes = draw_bands(np.ones((2, n_names)), [f"w{n}" for n in range(n_names)], Figure())
    assert len(axes) == n_bands
    assert sum(ax.collections[0].get_array().size for ax in axes) == 2 * n_names
    labels = [label.get_text() for ax in axes for label in ax.get_xticklabels()]
    assert (labels == [f"w{n}" for n in range(n_names)]) == (n_names <= 4 * N_ABREAST)
