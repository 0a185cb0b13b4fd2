"""An explanation on a terminal: words shaded, and marked so that a pipe or a printer keeps it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from litotes.cli.display import visible
from litotes.explain.attribution import by_weight
from litotes.explain.page.words import segments, unread

if TYPE_CHECKING:
    from rich.text import Text

    from litotes.explain.explanation import Explanation, Shading

FOR, AGAINST = (86, 180, 233), (230, 159, 0)
"""Blue and orange, which colour-blind readers tell apart (Okabe and Ito 2008)."""

STRONG, CLEAR = 2 / 3, 1 / 3
"""Of the largest weight: words that are marked twice, and once."""

N_TOLD = 3


def print_explanation(explanation: Explanation) -> None:
    from rich.console import Console

    from litotes.cli.display import print_table

    # A file or a pipe has no edge to wrap at.
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False, markup=False)
    for line in _answer_lines(explanation):
        console.print(line, soft_wrap=True)
    for text in shaded_texts(explanation):
        console.print()
        console.print(text, soft_wrap=True)
    console.print()
    for line in (*_word_lines(explanation), *_left_lines(explanation)):
        console.print(line, soft_wrap=True)
    rows = [
        (name, *(_faithfulness(shading)), ", ".join(_first_words(explanation, shading)))
        for name, shading in explanation.shadings.items()
    ]
    print_table(("method", "comprehensiveness", "sufficiency loss", "first words"), rows)


def _answer_lines(explanation: Explanation) -> Iterator[str]:
    answer = explanation.answer
    if isinstance(answer.label, float):
        yield f"{explanation.task}: {answer.label:.3f}"
    else:
        others = ", ".join(
            f"{label} {p:.1%}"
            for label, p in explanation.probabilities.items()
            if label != answer.label
        )
        yield f"{explanation.task}: {answer.label}, {answer.probability or 0:.1%} sure ({others})"
    if explanation.read.pieces.truncated:
        yield "(the text is longer than the model reads; its end was not seen)"


def shaded_texts(explanation: Explanation) -> Iterator[Text]:
    """The text and its pair as they were written, with their words marked."""
    from rich.text import Text

    read, shading = explanation.read, explanation.shadings[explanation.method]
    most = max(map(abs, shading.weights)) or 1.0
    for is_pair in [False, True] if read.pair is not None else [False]:
        shown = Text()
        for part, word in segments(read, is_pair=is_pair):
            (
                shown.append(visible(part))
                if word is None
                else shown.append(*_marked(visible(part), shading.weights[word] / most, shading))
            )
        yield shown + Text(visible(unread(read, is_pair=is_pair)))


def _marked(word: str, strength: float, shading: Shading) -> tuple[str, str]:
    """The word with its marks, and a style of as much colour as it has weight."""
    size = min(abs(strength), 1.0)
    sign = ("+" if strength > 0 else "-") if shading.is_signed else "*"
    marks = sign * ((size >= STRONG) + (size >= CLEAR))
    hue = AGAINST if strength < 0 else FOR
    red, green, blue = (round(255 + (part - 255) * size) for part in hue)
    style = f"black on rgb({red},{green},{blue})" if size >= CLEAR / 2 else ""
    return (f"[{marks}{word}]" if marks else word), style


def _word_lines(explanation: Explanation) -> Iterator[str]:
    shading = explanation.shadings[explanation.method]
    order = by_weight(shading.weights)
    if not shading.is_signed:
        yield f"{shading.method}: [*word] counts, [**word] counts most"
        yield f"most: {_told(explanation, order[:N_TOLD])}"
        return
    yield (
        f"{shading.method}: [+word] speaks for the answer, [-word] against it, [++word] and"
        " [--word] most"
    )
    for what, side in (("for", [word for word in order if shading.weights[word] > 0]),
                       ("against", [word for word in order[::-1] if shading.weights[word] < 0])):  # fmt: skip
        yield f"{what}: {_told(explanation, side[:N_TOLD]) or 'no word'}"


def _told(explanation: Explanation, words: Sequence[int]) -> str:
    shading = explanation.shadings[explanation.method]
    form = "+.3f" if shading.is_signed else ".3f"
    return ", ".join(
        f"{visible(explanation.read.words[word].written)} {shading.weights[word]:{form}}"
        for word in words
    )


def _left_lines(explanation: Explanation) -> Iterator[str]:
    """Layers count from 1, as for people everywhere."""
    by_layer: dict[int, list[str]] = {}
    for word, layer in zip(explanation.read.words, explanation.left_at_layer, strict=True):
        if layer is not None:
            by_layer.setdefault(layer, []).append(visible(word.written))
    for layer, words in sorted(by_layer.items()):
        yield f"left after layer {layer + 1}: {', '.join(words)}"
    if by_layer:
        stayed = [
            visible(w.written)
            for w, left in zip(explanation.read.words, explanation.left_at_layer, strict=True)
            if left is None
        ]
        yield f"stayed to the end: {', '.join(stayed) or 'no word'}"


def _faithfulness(shading: Shading) -> tuple[str, str]:
    found = shading.faithfulness
    return (
        ("", "")
        if found is None
        else (f"{found.comprehensiveness:+.3f}", f"{found.sufficiency_loss:+.3f}")
    )


def _first_words(explanation: Explanation, shading: Shading) -> list[str]:
    return [
        visible(explanation.read.words[word].written)
        for word in by_weight(shading.weights)[:N_TOLD]
    ]
