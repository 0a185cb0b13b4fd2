"""A text cut into its words and what stands between them, and how strongly each word is shaded:
what the page, the figure, the terminal and a notebook have in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from litotes.core.text import markup
from litotes.core.values import Answer, label_text
from litotes.encoder.tokenizer import ReadText

N_SHADES = 8
"""Steps from nothing to the greatest weight; the page's style sheet has a rule for each."""

_MOST_UNREAD = 300
"""Characters shown of what the model did not read."""

_FOR = "background:rgba(111,177,232,{share});border-bottom:2px solid #0a5ea8"
_AGAINST = "background:rgba(245,160,79,{share});border-bottom:2px dotted #a84300"


def answer_in_words(answer: Answer) -> str:
    """`sarcastic, 87 % sure`; a regression's number as it is."""
    if answer.probability is None:
        is_number = isinstance(answer.label, float)
        return f"{answer.label:.3g}" if is_number else label_text(answer.label, digits=3)
    # no model is certain, whatever floating point says
    sure = "over 99 %" if answer.probability >= 0.995 else f"{answer.probability * 100:.0f} %"
    return f"{answer.label}, {sure} sure"


def shades(weights: Sequence[float]) -> list[int]:
    """From −N_SHADES to N_SHADES, of which the text's greatest weight has one end; 0 near 0."""
    greatest = max(map(abs, weights), default=0.0) or 1.0
    return [round(N_SHADES * weight / greatest) for weight in weights]


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


def unread_html(read: ReadText, *, is_pair: bool) -> str:
    """The beginning of it in italics; a book need not follow."""
    rest = unread(read, is_pair=is_pair)
    if len(rest) > _MOST_UNREAD:
        rest = f"{rest[:_MOST_UNREAD]}… and {len(rest) - _MOST_UNREAD:,} more characters"
    return f'<i class="unread">{markup(rest)}</i>' if rest else ""


def notebook_html(read: ReadText, weights: Sequence[float], *, title: str, note: str) -> str:
    """The text with its words shaded, between a title and a note, for a cell of a notebook.

    Styles are inline: a notebook has no style sheet of ours.
    """
    paragraphs = []
    for is_pair in (False,) if read.pair is None else (False, True):
        spans = _shaded_spans(read, weights, is_pair=is_pair)
        rest = unread_html(read, is_pair=is_pair)
        paragraphs.append(
            f'<p dir="auto" style="white-space:pre-wrap;line-height:1.8">{spans}{rest}</p>'
        )
    return (
        f"<div><p><b>{markup(title)}</b></p>{''.join(paragraphs)}"
        f"<p><small>{markup(note)}</small></p></div>"
    )


def _shaded_spans(read: ReadText, weights: Sequence[float], *, is_pair: bool) -> str:
    steps = shades(weights)
    html = ""
    for part, number in segments(read, is_pair=is_pair):
        if number is None or not steps[number]:
            html += markup(part)
            continue
        look = _FOR if steps[number] > 0 else _AGAINST
        style = look.format(share=abs(steps[number]) / N_SHADES)
        html += f'<span style="{style}" title="{weights[number]:+.3g}">{markup(part)}</span>'
    return html


def _side(read: ReadText, *, is_pair: bool) -> str:
    return (read.pair or "") if is_pair else read.text
