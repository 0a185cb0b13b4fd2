"""`litotes explain TEXT [--model M] [--out why.html]`: a file, or words shaded on the terminal, and
marked so that a pipe or a printer keeps it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.cli.display import print_json, print_lines, progress, say, visible
from litotes.cli.inputs import for_kind
from litotes.cli.tables import print_rendered, print_rows
from litotes.core.errors import has_extra, require_extra
from litotes.core.pages import render_paragraphs
from litotes.core.storage import find_target
from litotes.explanation.attribution import available_methods, by_weight
from litotes.explanation.explain import METHOD, check_format, chosen_methods, write_explanation
from litotes.explanation.explanation import Explanation, Shading
from litotes.prediction.predictor import Predictor

if TYPE_CHECKING:
    from rich.text import Text


def explain(options: argparse.Namespace) -> None:
    explain_other_kind = for_kind(options)
    if explain_other_kind is not None:
        explain_other_kind(options)
        return
    # wrong names are reported before anything is computed
    out = None if options.out is None else Path(options.out)
    if out is not None:
        check_format(out)
        find_target(out)
    chosen_methods(options.method or METHOD)
    highlighted = None
    if options.highlight_model is not None:
        require_extra("train", "--highlight-model")
        from litotes.cli.words import mark_words, marked_lines  # with torch

        highlighted = mark_words(options, options.highlight_model)
    runtime = "torch" if has_extra("train") else "onnx"
    predictor = Predictor.load(options.model, device=options.device, runtime=runtime)
    if runtime == "onnx":
        others = "the other methods and the layers need `pip install 'litotes[train]'`."
        say([f"Explained by {' and '.join(available_methods())}; {others}"])
    with progress() as watch:
        explanation = predictor.explain(
            options.text, pair=options.pair, task=options.task, method=options.method, watch=watch
        )
    if options.task is None and len(predictor.tasks) > 1:
        tasks = " and ".join(predictor.tasks)
        about = f"this is about {explanation.task}. --task chooses another."
        say([f"The model answers {tasks}; {about}"])
    if out is not None:
        write_explanation(explanation, out, locus=highlighted)
        say([f"Written to {options.out}."])
    if options.json:
        marks = {} if highlighted is None else {"locus": highlighted.as_json()}
        print_json(explanation.as_json(maps=False) | marks)
    elif out is None:
        print_explanation(explanation)
        if highlighted is not None:
            print_lines(*marked_lines(highlighted))


FOR, AGAINST = (86, 180, 233), (230, 159, 0)
"""Blue and orange, which colour-blind readers can tell apart (Okabe and Ito 2008)."""

STRONG, CLEAR = 2 / 3, 1 / 3
"""Shares of the largest weight from which a word is marked twice, and once."""

N_TOP_WORDS = 3

TEMPLATE = "cli/explanation.txt"
"""The sentences before and after the shaded text."""

METHODS = """\
method: {0[name]}
comprehensiveness: {0[shading].faithfulness.comprehensiveness:+z.3f}
sufficiency loss: {0[shading].faithfulness.sufficiency_loss:+z.3f}
first words: {0[words]}
"""
"""The faithfulness of each method, and the words it puts first."""


def print_explanation(explanation: Explanation) -> None:
    shading = explanation.shadings[explanation.method]
    words, order = [word.written for word in explanation.read.words], _weighed_words(shading)
    sides = {"most": order}
    if shading.is_signed:
        against = [word for word in reversed(order) if shading.weights[word] < 0]
        sides = {"for": [word for word in order if shading.weights[word] > 0], "against": against}
    left = explanation.left_at_layer
    layers = sorted({layer for layer in left if layer is not None})
    shown = {
        "explained": explanation,
        "shading": shading,
        "words": words,
        "sides": {side: found[:N_TOP_WORDS] for side, found in sides.items()},
        "form": "%+.3f" if shading.is_signed else "%.3f",
        "departures": {
            layer: [word for word, after in zip(words, left, strict=True) if after == layer]
            for layer in ([*layers, None] if layers else [])
        },
    }
    print_lines(*render_paragraphs(TEMPLATE, "answer", **shown))
    for text in shaded_texts(explanation):
        print_lines("")
        print_rendered([text], soft_wrap=True)
    print_lines("", *render_paragraphs(TEMPLATE, "words", **shown))
    rows = []
    for name, one in explanation.shadings.items():
        first = ", ".join(words[place] for place in _weighed_words(one)[:N_TOP_WORDS])
        rows.append({"name": name, "shading": one, "words": first or "no word"})
    print_rows(METHODS, rows)


def shaded_texts(explanation: Explanation) -> Iterator[Text]:
    """The text, and its pair if it has one, as written, with their words marked."""
    from rich.text import Text

    shading = explanation.shadings[explanation.method]
    greatest = max(map(abs, shading.weights)) or 1.0
    for side in explanation.sides:
        text = Text()
        for part, word in side.parts:
            if word is None:
                text.append(visible(part))
            else:
                text.append(*_mark_word(visible(part), shading.weights[word] / greatest, shading))
        text.append(visible(side.unread))
        yield text


def _mark_word(word: str, strength: float, shading: Shading) -> tuple[str, str]:
    """The word with its marks, and a style of as much colour as it has weight."""
    size = min(abs(strength), 1.0)
    sign = ("+" if strength > 0 else "-") if shading.is_signed else "*"
    marks = sign * ((size >= STRONG) + (size >= CLEAR))
    hue = AGAINST if strength < 0 else FOR
    red, green, blue = (round(255 + (part - 255) * size) for part in hue)
    style = f"black on rgb({red},{green},{blue})" if size >= CLEAR / 2 else ""
    return (f"[{marks}{word}]" if marks else word), style


def _weighed_words(shading: Shading) -> list[int]:
    """The words that have a weight, the greatest first: one that left has none by attention."""
    return [word for word in by_weight(shading.weights) if shading.weights[word]]
