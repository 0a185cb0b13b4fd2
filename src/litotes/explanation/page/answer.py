"""The first part of the page: the answer and how sure the model is of it."""

from __future__ import annotations

from litotes.core.text import markup
from litotes.explanation.explanation import Explanation
from litotes.explanation.shaded_text import answer_in_words


def answer_html(explanation: Explanation) -> str:
    """A sentence, a bar for every label, a line about the other tasks."""
    parts = [
        f'<p class="answer"><bdi>{markup(answer_in_words(explanation.answer))}</bdi></p>',
        *_notes(explanation),
    ]
    bars = ""
    for label, share in explanation.probabilities.items():
        bars += _bar(label, share, label == explanation.answer.label)
    if bars:
        parts.append(
            '<table class="bars"><caption>How sure, label by'
            f" label</caption><tbody>{bars}</tbody></table>"
        )
    others = []
    for name, answer in explanation.answers.items():
        if name != explanation.task:
            others.append(f"{name}: {answer_in_words(answer)}")
    if others:
        parts.append(f"<p>The model also says: {markup('; '.join(others))}.</p>")
    return "\n".join(parts)


def _notes(explanation: Explanation) -> list[str]:
    answer, shares = explanation.answer, explanation.probabilities
    notes = []
    if answer.probability is None:
        notes.append("This task is answered with a number; there is no label to be sure of.")
    elif isinstance(explanation.answers[explanation.task].label, tuple):
        notes.append("A text may have several of these labels; the words are shaded for this one.")
    elif shares and max(shares.values()) > shares.get(str(answer.label), 1.0):
        notes.append(
            "Another label is more probable; a threshold that was fitted on held-out texts decided"
            " for this one."
        )
    if explanation.read.pieces.truncated:
        n_pieces = len(explanation.read.written)
        notes.append(
            f"The text is longer than the model can read: it saw {n_pieces} pieces, and not what is"
            " in italics below."
        )
    if explanation.answered_at_layer is not None:
        notes.append(explanation.exit_in_words())
    return [f'<p class="note">{markup(note)}</p>' for note in notes]


def _bar(label: str, share: float, is_answer: bool) -> str:
    """Lengths are attributes of a drawing: the page's policy allows no styles beside its own."""
    drawing = (
        '<svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"><rect'
        f' class="whole" width="100" height="6"/><rect class="part" width="{share * 100:.2f}"'
        ' height="6"/></svg>'
    )
    row = ' class="chosen"' if is_answer else ""
    return (
        f'<tr{row}><th scope="row" dir="auto">{markup(label)}</th><td'
        f' class="number">{share * 100:.1f} %</td><td>{drawing}</td></tr>'
    )
