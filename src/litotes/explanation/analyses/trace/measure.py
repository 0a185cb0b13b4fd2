"""trace: which pieces and attention heads left at which layer.

Nespolo et al., "Figurative Language Understanding", appendix D.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import ceil

import torch

from litotes.encoder.tokenizer import ReadText
from litotes.explanation.analyses.analysis import Measure, Result
from litotes.explanation.analyses.means import Number, RunningMean, Table, numbers, table
from litotes.explanation.analyses.punctuation import is_plain_mark
from litotes.explanation.observation import Observation
from litotes.explanation.trace import Trace, trace_of
from litotes.model.checkpoint import Model

FEWEST = 5
"""A word must occur this often before its mean says anything."""

N_WORDS = 15
"""How many of the words that leave first, and of those that stay longest, are listed."""


@dataclass(frozen=True)
class WordStay:
    """A word and the share of the layers it is there for, the mean over its occurrences."""

    word: str
    share: float
    n: int


@dataclass(frozen=True)
class Traces(Result):
    """kept: the share of a text's pieces whose keys and values each layer sees, with half of its 95
    % interval over texts.

    heads: the share of texts that use an attention head. (layer, attention_head)
    first_to_leave, last_to_leave: words (in lower case) by the share of the layers they are there
    for; no word is in both, and full stops and the like are in none.
    """

    kept: tuple[Number, ...]
    kept_half_width: tuple[Number, ...]
    heads: Table
    first_to_leave: tuple[WordStay, ...]
    last_to_leave: tuple[WordStay, ...]

    @property
    def ranks_words(self) -> bool:
        """Whether some words leave before others."""
        if not self.last_to_leave:
            return False
        return self.first_to_leave[0].share < max(one.share for one in self.last_to_leave)

    def findings(self) -> tuple[str, ...]:
        last = self.kept[-1]
        if last == 1.0 and all(share == 1.0 for row in self.heads for share in row):
            return ("Nothing leaves: every layer sees all pieces, with all attention heads.",)
        said = [f"The last layer sees {last:.0%} of the pieces."] if last is not None else []
        if self.ranks_words:
            early = ", ".join(word.word for word in self.first_to_leave[:6])
            late = ", ".join(word.word for word in self.last_to_leave[:6])
            said.append(f"First to leave: {early}. Last: {late}.")
        return tuple(said)


@dataclass
class _Stay:
    """The occurrences of a word so far, and the sum of the shares of layers that saw it."""

    n: int = 0
    total: float = 0.0


class TraceMeasure(Measure):
    """Which pieces and attention heads left at which layer of a pruned model."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.kept = RunningMean(self.n_layers)
        self.heads = RunningMean(self.n_layers, self.n_attention_heads)
        self.stays: defaultdict[str, _Stay] = defaultdict(_Stay)
        self.n_texts = 0

    def add(self, observation: Observation) -> None:
        self.n_texts += 1
        trace = trace_of(observation)
        self.kept.add(torch.tensor([sum(row) / len(row) for row in trace.seen]))
        used = torch.zeros(self.n_layers, self.n_attention_heads)
        for layer, heads in enumerate(trace.heads):
            used[layer, list(heads)] = 1.0
        self.heads.add(used)
        self._add_words(observation.read, trace)

    def _add_words(self, read: ReadText, trace: Trace) -> None:
        # how many layers see each piece
        n_layers = [self.n_layers if left is None else left + 1 for left in trace.left_after]
        for word in read.words:
            stay = self.stays[word.written.casefold()]
            stay.n += 1
            stay.total += max(n_layers[piece] for piece in word.pieces) / self.n_layers

    def result(self) -> Traces:
        words = []
        for word, stay in self.stays.items():
            if stay.n >= FEWEST and not is_plain_mark(word):
                words.append(WordStay(word, stay.total / stay.n, stay.n))
        words.sort(key=lambda one: (one.share, one.word))
        return Traces(
            n_texts=self.n_texts,
            kept=numbers(self.kept.mean),
            kept_half_width=numbers(self.kept.half_width),
            heads=table(self.heads.mean),
            first_to_leave=tuple(words[: min(N_WORDS, ceil(len(words) / 2))]),
            last_to_leave=tuple(words[::-1][: min(N_WORDS, len(words) // 2)]),
        )
