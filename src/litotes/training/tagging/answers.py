"""What a model of words answers to texts: logits by window, then labels and spans by text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from litotes.core.progress import Watch, ignore_progress
from litotes.data.words.corpus import Span
from litotes.encoder.packing import batches_without_gradients
from litotes.encoder.word_pieces import Window, pack_windows
from litotes.model.classifier import WordModel


@dataclass(frozen=True)
class TextAnswers:
    """What is answered about one text.

    probabilities: of each label for each word, (word, label); None of a span.
    span, probability: of a span.
    """

    probabilities: Tensor | None
    span: Span | None = None
    probability: float | None = None


def answer_texts(
    network: WordModel,
    windows: Sequence[Sequence[Window]],
    *,
    watch: Watch = ignore_progress,
    what: str = "testing",
) -> list[TextAnswers]:
    """windows: of each text. The network is in evaluation mode afterwards."""
    flat = [window for own in windows for window in own]
    logits = window_logits(network, flat, watch=watch, what=what)
    answers, place = [], 0
    for own in windows:
        chosen = logits[place : place + len(own)]
        place += len(own)
        if network.kind == "span":
            answers.append(_best_span(chosen[0], own[0]))
        else:
            answers.append(TextAnswers(_join(chosen, own)))
    return answers


def window_logits(
    network: WordModel,
    windows: Sequence[Window],
    *,
    watch: Watch = ignore_progress,
    what: str = "testing",
) -> list[Tensor]:
    """Of each window, on the CPU. (word, output)"""
    network.eval()
    found: list[Tensor] = []
    lengths = [len(window.pieces.ids) for window in windows]
    with torch.no_grad():
        for places in batches_without_gradients(lengths, network.device):
            chosen = [windows[place] for place in places]
            words = pack_windows(chosen, network.device, with_first=network.reads_first)
            logits = network(words).float().cpu()
            found += logits.split(words.places.texts.lengths)
            watch(what, len(found), len(windows), "")
    return found


def _join(logits: Sequence[Tensor], windows: Sequence[Window]) -> Tensor:
    """The probabilities of each word's labels, from the window that answers it. (word, label)"""
    parts = []
    for values, window in zip(logits, windows, strict=True):
        start = window.answered.start - window.first
        parts.append(values[start : start + len(window.answered)])
    return torch.cat(parts).softmax(-1)


def _best_span(logits: Tensor, window: Window) -> TextAnswers:
    """The most probable pair i ≤ j of words that were read, or none. logits (position, 2)"""
    unread = torch.tensor([False, *(not own for own in window.places)])
    # words that were not read take no share: they repeat what the first piece says
    shares = logits.masked_fill(unread[:, None], -torch.inf).log_softmax(0)
    starts, ends = shares[:, 0], shares[:, 1]  # (position,)
    scores = starts[:, None] + ends[None, :]  # (first, last)
    possible = torch.ones_like(scores, dtype=torch.bool).triu()
    # position 0 is "none" and goes with itself alone
    possible[0, 1:] = False
    possible[unread] = False
    possible[:, unread] = False
    best = int(scores.masked_fill(~possible, -torch.inf).argmax())
    first, last = divmod(best, len(logits))
    span = None if first == 0 else (first - 1, last)
    return TextAnswers(None, span, float(scores[first, last].exp()))
