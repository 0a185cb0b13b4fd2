"""trace: which pieces and attention heads left at which layer.

Nespolo et al., "Figurative Language Understanding", appendix D.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, ClassVar

import torch

from litotes.explanation.analyses.analysis import (
    Analysis,
    Number,
    Result,
    RunningMean,
    Table,
    half_widths,
    is_plain_mark,
    means,
)
from litotes.explanation.analyses.drawing import (
    Box,
    HeadMap,
    MapGroup,
    NamedMean,
    Series,
    draw_group,
    draw_ranking,
    draw_series,
    label_width,
    new_canvas,
    ranking_height,
)
from litotes.explanation.observation import Observation, trace_of
from litotes.model.checkpoint import Model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWEST = 5
"""A word must occur this often before its mean says anything."""

N_WORDS = 15
"""How many of the words that leave first, and of those that stay longest, are listed."""

_LEFT = 4.6  # inches


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

    name: ClassVar[str] = "trace"
    fewest: ClassVar[int] = FEWEST
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

    @property
    def keeps_all(self) -> bool:
        return self.kept[-1] == 1.0 and all(share == 1.0 for row in self.heads for share in row)

    def figure(self) -> Figure:
        """The share of pieces every layer sees, the attention heads it uses, and the words that
        leave first and last.
        """
        group = MapGroup((HeadMap("Attention heads in use", self.heads),), "share of texts", (0, 1))
        bottom = ranking_height(len(self.first_to_leave)) if self.ranks_words else 0.0
        canvas = new_canvas(_LEFT + group.width, group.height + bottom)
        ax = canvas.chart(Box(0, 0, _LEFT, group.height))
        draw_series({"kept": Series(self.kept, self.kept_half_width)}, ax)
        ax.set_ylim(0, 1.05)
        ax.set_xlabel("layer", fontsize=8)
        ax.set_ylabel("share of pieces seen", fontsize=8)
        draw_group(group, canvas, left=_LEFT, top=0)
        lists = {"First to leave": self.first_to_leave, "Last to leave": self.last_to_leave}
        half = canvas.width / 2
        for number, (title, words) in enumerate(lists.items() if self.ranks_words else ()):
            stays = [NamedMean(word.word, word.share, note=f"n {word.n}") for word in words]
            box = Box(number * half, group.height, half, bottom)
            ax = canvas.chart(box, left=label_width(stays))
            draw_ranking(stays, ax)
            ax.set_xlim(-0.02, 1.02)
            ax.set_title(title, fontsize=9)
            ax.set_xlabel("share of the layers that see the word", fontsize=8)
        return canvas.figure


class TraceAnalysis(Analysis):
    """Which pieces and attention heads left at which layer of a pruned model."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.kept, self.heads = RunningMean(self.shape[0]), RunningMean(*self.shape)
        # {word: [occurrences, sum of the shares of layers that saw it]}
        self.stays: defaultdict[str, list[float]] = defaultdict(lambda: [0, 0.0])

    def add(self, observation: Observation) -> None:
        self.n_texts += 1
        trace, n_layers = trace_of(observation), self.shape[0]
        self.kept.add(torch.tensor([sum(row) / len(row) for row in trace.seen]))
        used = torch.zeros(self.shape)
        for layer, heads in enumerate(trace.heads):
            used[layer, list(heads)] = 1.0
        self.heads.add(used)
        # how many layers see each piece
        seen = [n_layers if left is None else left + 1 for left in trace.left_after]
        for word in observation.read.words:
            stay = self.stays[word.written.casefold()]
            stay[0] += 1
            stay[1] += max(seen[piece] for piece in word.pieces) / n_layers

    def result(self) -> Traces:
        words = []
        for word, (n, total) in self.stays.items():
            if n >= FEWEST and not is_plain_mark(word):
                words.append(WordStay(word, total / n, int(n)))
        words.sort(key=lambda one: (one.share, one.word))
        return Traces(
            n_texts=self.n_texts,
            kept=means(self.kept),
            kept_half_width=half_widths(self.kept),
            heads=means(self.heads),
            first_to_leave=tuple(words[: min(N_WORDS, ceil(len(words) / 2))]),
            last_to_leave=tuple(words[::-1][: min(N_WORDS, len(words) // 2)]),
        )
