"""Texts of words ready to be packed: their windows, and what is to be learned from each.

A target of a tagging is the number of each word's label; of a span the positions of its first and
its last word, where position 0 stands for "there is none" and the words begin at 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from litotes.core.errors import UserError
from litotes.core.progress import Watch, ignore_progress
from litotes.core.values import MISSING, Example, Task
from litotes.data.words import Span, WordCorpus, WordExample, load_words
from litotes.encoder.packing import (
    Window,
    WordBatch,
    batches_without_gradients,
    pack_windows,
    read_whole,
    read_windows,
)
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.model.classifier import WordModel
from litotes.model.folder import read_trained_texts, text_hash
from litotes.training.tagging.scores import WordScores, score_spans, score_tags


@dataclass(frozen=True)
class WordSet:
    """Windows with their targets, (word,) or (2,) a window; MISSING where nothing is learned.

    n_cut: texts that were not read whole. with_first: as a span is looked for.
    """

    windows: tuple[Window, ...]
    targets: tuple[Tensor, ...]
    n_cut: int
    with_first: bool

    def __len__(self) -> int:
        return len(self.windows)

    @property
    def lengths(self) -> list[int]:
        return lengths_of(self.windows)

    def batch(self, places: Sequence[int], device: torch.device) -> WordBatch:
        windows = [self.windows[place] for place in places]
        return pack_windows(windows, device, with_first=self.with_first)

    def targets_of(self, places: Sequence[int]) -> Tensor:
        """Tagging: (word,), one window after the other. Span: (window, 2)."""
        chosen = [self.targets[place] for place in places]
        return torch.stack(chosen) if self.with_first else torch.cat(chosen)


def lengths_of(windows: Sequence[Window]) -> list[int]:
    return [len(window.pieces.ids) for window in windows]


def make_windows(
    texts: Sequence[Sequence[str]], tokenizer: PieceTokenizer, kind: str
) -> list[list[Window]]:
    """Cuts texts into windows; a span is looked for in as much as an encoder reads at once."""
    if kind == "span":
        return [[window] for window in read_whole(tokenizer, texts)]
    return read_windows(tokenizer, texts)


def make_word_set(
    examples: Sequence[WordExample], task: Task, tokenizer: PieceTokenizer, kind: str
) -> WordSet:
    number = {label: place for place, label in enumerate(task.labels)}
    by_text = make_windows([one.words for one in examples], tokenizer, kind)
    windows, targets = [], []
    for example, own in zip(examples, by_text, strict=True):
        windows += own
        if kind == "span":
            targets += [_span_target(example, window) for window in own]
        else:
            targets += [_tag_target(example.tags or (), window, number) for window in own]
    n_cut = sum(any(window.pieces.truncated for window in own) for own in by_text)
    return WordSet(tuple(windows), tuple(targets), n_cut, kind == "span")


def _tag_target(tags: Sequence[str], window: Window, number: Mapping[str, int]) -> Tensor:
    """The numbers of the labels; of neighbours that another window answers, nothing. (word,)"""
    words = range(window.first, window.first + len(window.places))
    return torch.tensor(
        [number[tags[word]] if word in window.answered else MISSING for word in words],
        dtype=torch.long,
    )


def _span_target(example: WordExample, window: Window) -> Tensor:
    """Positions of the first and the last word. (2,)"""
    if example.span is None:
        return torch.tensor([0, 0])
    first, last = example.span[0], example.span[1] - 1
    if not window.places[first] or not window.places[last]:  # beyond what is read
        return torch.tensor([MISSING, MISSING])
    return torch.tensor([first + 1, last + 1])


# What a model of words answers to texts: logits by window, then labels and spans by text.


@dataclass(frozen=True)
class TextAnswers:
    """The answers about one text.

    probabilities: of each label for each word, (word, label); None of a span.
    span, probability: of a span.
    """

    probabilities: Tensor | None
    span: Span | None = None
    probability: float | None = None


@torch.no_grad()
def answer_texts(
    network: WordModel, windows: Sequence[Sequence[Window]], *, watch: Watch = ignore_progress
) -> list[TextAnswers]:
    """windows: of each text. The network is in evaluation mode afterwards."""
    network.eval()
    every = [window for own in windows for window in own]
    found: list[Tensor] = []  # of each window, on the CPU: (word, output)
    for places in batches_without_gradients(lengths_of(every), network.device):
        chosen = [every[place] for place in places]
        words = pack_windows(chosen, network.device, with_first=network.reads_first)
        found += network(words).float().cpu().split(words.places.texts.lengths)
        watch("testing", len(found), len(every), "")
    logits = iter(found)
    if network.kind == "span":
        return [_best_span(next(logits), window) for (window,) in windows]
    answers = []
    for own in windows:
        # each word by the window that answers it
        starts = [window.answered.start - window.first for window in own]
        parts = [
            next(logits)[start:][: len(window.answered)]
            for start, window in zip(starts, own, strict=True)
        ]
        answers.append(TextAnswers(torch.cat(parts).softmax(-1)))
    return answers


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


# Scores of a model of words on texts whose answers are known.


def evaluate_words(
    network: WordModel,
    tokenizer: PieceTokenizer,
    corpus: WordCorpus,
    *,
    seed: int = 0,
    watch: Watch = ignore_progress,
) -> WordScores:
    """corpus: of texts with the answers that this kind of model gives."""
    corpus, task = corpus.for_kind(network.kind), network.task
    unknown = sorted(set(corpus.labels) - set(task.labels))
    if network.kind == "tagging" and unknown:
        raise UserError(
            f"{corpus.name} has labels that the model does not know: {', '.join(unknown)[:200]}."
            f" It knows {', '.join(task.labels)[:200]}."
        )
    windows = make_windows([one.words for one in corpus], tokenizer, network.kind)
    answers = answer_texts(network, windows, watch=watch)
    if network.kind == "span":
        spans = [one.span for one in answers]
        return score_spans(task.name, [one.span for one in corpus], spans, seed=seed)
    tags = [tags_of(one, task) for one in answers]
    return score_tags(task.name, task.labels, [one.tags or () for one in corpus], tags, seed=seed)


def tags_of(answers: TextAnswers, task: Task) -> list[str]:
    """The most probable label of each word."""
    assert answers.probabilities is not None
    return [task.labels[number] for number in answers.probabilities.argmax(-1).tolist()]


# Which texts a model of words may be scored on: the test split, or texts it has not seen.


def fair_words(source: str, model: str | Path) -> WordCorpus:
    """The test split of a source; of one without, all texts that the model was not trained on.

    What the user should know is in the notes of the corpus.
    """
    corpus, trained_on = load_words(source), read_trained_texts(model) or frozenset()
    fresh = tuple(one for one in corpus if text_hash(Example(one.text, {})) not in trained_on)
    for split in ("test", "valid"):
        chosen = corpus.only(split)
        if chosen.examples:
            n_seen = len(chosen) - sum(one.split == split for one in fresh)
            note = (
                f"WARNING: the model was trained on {n_seen} of these {len(chosen)} texts: scores"
                " on them are too high."
            )
            return replace(chosen, notes=(note,) if n_seen else ())
    if not fresh:
        raise UserError(
            f"The model was trained on all {len(corpus)} texts of {corpus.name}: scores on them"
            " would say nothing. Give texts that are new to it."
        )
    note = (
        f"{corpus.name} has no split: the {len(fresh)} texts that the model was not trained on are"
        " used."
    )
    return replace(corpus, examples=fresh, notes=(note,))
