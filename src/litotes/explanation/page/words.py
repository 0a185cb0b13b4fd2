"""The second part of the page: the text as it was written, every word shaded by how much a method
says it counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from litotes.core.text import harmless, markup
from litotes.encoder.tokenizer import ReadText
from litotes.explanation.explanation import Explanation, Shading
from litotes.explanation.shaded_text import segments, shades, unread_html


def shade_classes(shading: Shading) -> list[str]:
    """How each word looks: `for s8` is the greatest weight, `against s3` a middling one below 0;
    nothing near 0.
    """
    classes = []
    for step in shades(shading.weights):
        side = "for" if step > 0 else "against"
        classes.append(f"{side} s{abs(step)}" if step else "")
    return classes


def text_html(read: ReadText, classes: Sequence[str], *, name: str) -> str:
    """The text and its pair with a span for every word; `name` is the place on the page.

    What was cut off is marked as unread.
    """
    if read.pair is None:
        paragraphs = _paragraph(read, classes, is_pair=False)
    else:
        first = _paragraph(read, classes, is_pair=False)
        second = _paragraph(read, classes, is_pair=True)
        paragraphs = (
            f'<p class="which">first text</p>{first}<p class="which">second text</p>{second}'
        )
    return f'<div class="texts" id="{name}">{paragraphs}</div>'


def _paragraph(read: ReadText, classes: Sequence[str], *, is_pair: bool) -> str:
    spans = ""
    for part, number in segments(read, is_pair=is_pair):
        if number is None:
            spans += markup(part)
        else:
            look = f"word {classes[number]}".strip()
            spans += f'<span class="{look}" data-word="{number}">{markup(part)}</span>'
    return f'<p class="text" dir="auto">{spans}{unread_html(read, is_pair=is_pair)}</p>'


def words_table(explanation: Explanation) -> str:
    """Every word with its weight by every method, and where it left: for screen readers and for
    readers who want numbers.
    """
    shadings, lefts = explanation.shadings, explanation.left_at_layer
    has_left = any(left is not None for left in lefts)
    names = [*map(method_name, shadings), *(["left after layer"] if has_left else [])]
    rows = []
    for number, (word, left) in enumerate(zip(explanation.read.words, lefts, strict=True)):
        cells = [f"{shading.weights[number]:.3g}" for shading in shadings.values()]
        if has_left:
            cells.append("stays" if left is None else str(left + 1))
        numbers = "".join(f"<td>{cell}</td>" for cell in cells)
        rows.append(f'<tr><th scope="row" dir="auto">{markup(word.written)}</th>{numbers}</tr>')
    head = "".join(f'<th scope="col">{markup(name)}</th>' for name in names)
    return (
        f'<details><summary>All words in numbers</summary><div class="scroll"><table'
        f' class="numbers"><thead><tr><th scope="col">word</th>'
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div></details>"
    )


def method_name(method: str) -> str:
    return harmless(method.replace("_", " "))
