"""The second part of the page: the text as it was written, every word shaded by how much a method says it counts."""

from __future__ import annotations

from collections.abc import Sequence

from litotes.analysis.explanation import Explanation, Shading
from litotes.analysis.why.harmless import harmless, markup
from litotes.data.pieces import ReadText

_MOST_UNREAD = 300
"""Characters shown of what the model did not read."""

N_SHADES = 8
"""Steps from nothing to the greatest weight; the style sheet has a rule for each."""


def classes(shading: Shading) -> list[str]:
    """How each word looks: `for s8` is the greatest weight, `against s3` a middling one below 0; nothing near 0."""
    greatest = max(map(abs, shading.weights), default=0.0) or 1.0
    steps = [round(N_SHADES * weight / greatest) for weight in shading.weights]
    return [f"{'for' if step > 0 else 'against'} s{abs(step)}" if step else "" for step in steps]


def text_html(read: ReadText, looks: Sequence[str], *, name: str) -> str:
    """The text and its pair with a span for every word; `name` is the place on the page. What was cut off is marked as unread."""
    parts = [(False, read.text), (True, read.pair)] if read.pair is not None else [(False, read.text)]
    paragraphs = []
    for is_pair, text in parts:
        label = "" if read.pair is None else f'<p class="which">{"second" if is_pair else "first"} text</p>'
        paragraphs.append(f'{label}<p class="text" dir="auto">{_spans(read, text or "", looks, is_pair=is_pair)}</p>')
    return f'<div class="texts" id="{name}">{"".join(paragraphs)}</div>'


def _spans(read: ReadText, text: str, looks: Sequence[str], *, is_pair: bool) -> str:
    parts, end = [], 0
    for number, word in enumerate(read.words):
        if word.is_pair == is_pair and word.end > end:
            start = max(word.start, end)  # a tokenizer may let words share a letter
            look = f"word {looks[number]}".strip()
            parts.append(f'{markup(text[end:start])}<span class="{look}" data-word="{number}">{markup(text[start : word.end])}</span>')
            end = word.end
    is_unread = read.pieces.truncated and text[end:].strip()
    return "".join([*parts, _unread(text[end:]) if is_unread else markup(text[end:])])


def _unread(rest: str) -> str:
    """The beginning of what was cut off; a book need not follow."""
    if len(rest) <= _MOST_UNREAD:
        return f'<i class="unread">{markup(rest)}</i>'
    return f'<i class="unread">{markup(rest[:_MOST_UNREAD])}… and {len(rest) - _MOST_UNREAD:,} more characters</i>'


def words_table(explanation: Explanation) -> str:
    """Every word with its weight by every method, and where it left: for screen readers and for who wants numbers."""
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
        f'<details><summary>All words in numbers</summary><div class="scroll"><table class="numbers"><thead><tr><th scope="col">word</th>'
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div></details>"
    )


def method_name(method: str) -> str:
    return harmless(method.replace("_", " "))
