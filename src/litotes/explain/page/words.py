"""The second part of the page: the text as it was written, every word shaded by how much a method
says it counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from litotes.core.harmless import harmless, markup
from litotes.explain.explanation import Explanation, Shading
from litotes.text.tokenizer import ReadText

_MOST_UNREAD = 300
"""Characters shown of what the model did not read."""

N_SHADES = 8
"""Steps from nothing to the greatest weight; the style sheet has a rule for each."""


def classes(shading: Shading) -> list[str]:
    """How each word looks: `for s8` is the greatest weight, `against s3` a middling one below 0;
    nothing near 0.
    """
    greatest = max(map(abs, shading.weights), default=0.0) or 1.0
    steps = [round(N_SHADES * weight / greatest) for weight in shading.weights]
    return [f"{'for' if step > 0 else 'against'} s{abs(step)}" if step else "" for step in steps]


def text_html(read: ReadText, looks: Sequence[str], *, name: str) -> str:
    """The text and its pair with a span for every word; `name` is the place on the page.

    What was cut off is marked as unread.
    """
    paragraphs = []
    for is_pair in [False, True] if read.pair is not None else [False]:
        label = (
            ""
            if read.pair is None
            else f'<p class="which">{"second" if is_pair else "first"} text</p>'
        )
        paragraphs.append(
            f'{label}<p class="text" dir="auto">{_spans(read, looks, is_pair=is_pair)}</p>'
        )
    return f'<div class="texts" id="{name}">{"".join(paragraphs)}</div>'


def segments(read: ReadText, *, is_pair: bool) -> Iterator[tuple[str, int | None]]:
    """The text (or the pair) as far as it was read: words with their numbers, and what stands
    between them with None.
    """
    text, end = _side(read, is_pair=is_pair), 0
    for number, word in enumerate(read.words):
        if word.is_pair == is_pair and word.end > end:
            start = max(word.start, end)  # a tokenizer may let words share a letter
            if start > end:
                yield text[end:start], None
            yield text[start : word.end], number
            end = word.end
    if rest := text[end : len(text) - len(unread(read, is_pair=is_pair))]:
        yield rest, None


def unread(read: ReadText, *, is_pair: bool) -> str:
    """What follows the last word that was read, where a text had to be cut."""
    end = max((word.end for word in read.words if word.is_pair == is_pair), default=0)
    rest = _side(read, is_pair=is_pair)[end:]
    return rest if read.pieces.truncated and rest.strip() else ""


def _side(read: ReadText, *, is_pair: bool) -> str:
    return (read.pair or "") if is_pair else read.text


def _spans(read: ReadText, looks: Sequence[str], *, is_pair: bool) -> str:
    parts = [
        (
            markup(part)
            if number is None
            else (
                f'<span class="{f"word {looks[number]}".strip()}"'
                f' data-word="{number}">{markup(part)}</span>'
            )
        )
        for part, number in segments(read, is_pair=is_pair)
    ]
    rest = unread(read, is_pair=is_pair)
    if len(rest) > _MOST_UNREAD:  # a book need not follow
        rest = f"{rest[:_MOST_UNREAD]}… and {len(rest) - _MOST_UNREAD:,} more characters"
    return "".join([*parts, f'<i class="unread">{markup(rest)}</i>' if rest else ""])


def words_table(explanation: Explanation) -> str:
    """Every word with its weight by every method, and where it left: for screen readers and for who
    wants numbers.
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
