"""trace: which pieces and attention heads left at which layer.

Nespolo et al., "Figurative Language Understanding", appendix D.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from litotes.explanation.analyses.analysis import Analysis, Number, Result, Table, is_plain_mark
from litotes.explanation.analyses.drawing import (
    Box,
    MapGroup,
    NamedMean,
    draw_group,
    draw_series,
    in_rows,
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
        """True if some words leave before others."""
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
        group = MapGroup({"Attention heads in use": self.heads}, "share of texts", low=0, high=1)
        bottom = ranking_height(len(self.first_to_leave)) if self.ranks_words else 0.0
        canvas = new_canvas(_LEFT + group.width, group.height + bottom)
        box = Box(0, 0, _LEFT, group.height)
        ax = canvas.chart(box, x="layer", y="share of pieces seen")
        draw_series({"kept": (self.kept, self.kept_half_width)}, ax)
        ax.set_ylim(0, 1.05)
        draw_group(group, canvas, left=_LEFT, top=0)
        if self.ranks_words:
            lists = {"First to leave": self.first_to_leave, "Last to leave": self.last_to_leave}
            boxes = in_rows(2, Box(0, group.height, canvas.width, bottom), abreast=2)
            for box, (title, words) in zip(boxes, lists.items(), strict=True):
                stays = [NamedMean(word.word, word.share, note=f"n {word.n}") for word in words]
                unit = "share of the layers that see the word"
                canvas.ranking(box, title, stays, x=unit).set_xlim(-0.02, 1.02)
        return canvas.figure


class TraceAnalysis(Analysis):
    """Which pieces and attention heads left at which layer of a pruned model."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        # of each word its occurrences, and the shares of layers that saw it, added up
        self.n: Counter[str] = Counter()
        self.stays: dict[str, float] = {}

    def measure(self, observation: Observation) -> dict[str, Any]:
        trace, n_layers = trace_of(observation), self.shape[0]
        # how many layers see each piece
        seen = [n_layers if left is None else left + 1 for left in trace.left_after]
        for word in observation.read.words:
            spelling = word.written.casefold()
            self.n[spelling] += 1
            share = max(seen[piece] for piece in word.pieces) / n_layers
            self.stays[spelling] = self.stays.get(spelling, 0.0) + share
        there = [{"heads": torch.ones(len(view.heads))} for view in observation.layers]
        return {
            "kept": trace.seen.mean(1),
            "heads": self.by_head(observation, there)["heads"].nan_to_num(0.0),
        }

    def result(self) -> Traces:
        words = [
            WordStay(word, self.stays[word] / n, n)
            for word, n in self.n.items()
            if n >= FEWEST and not is_plain_mark(word)
        ]
        words.sort(key=lambda one: (one.share, one.word))
        return self.means_as(
            Traces,
            first_to_leave=tuple(words[: min(N_WORDS, ceil(len(words) / 2))]),
            last_to_leave=tuple(words[::-1][: min(N_WORDS, len(words) // 2)]),
        )
