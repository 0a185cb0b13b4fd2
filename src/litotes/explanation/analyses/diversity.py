"""diversity: how much the attention heads of a layer differ, how sparse and how sure they are, and
which have a clear role.

Correia, Niculae and Martins 2019, "Adaptively Sparse Transformers", arXiv 1909.00015, §5:
Jensen-Shannon divergence between heads, density, positional heads and heads that merge the pieces
of a word; confidence after Voita et al. 2019, arXiv 1905.09418.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from litotes.encoder.attention.entmax import Entmax
from litotes.encoder.tokenizer import ReadText
from litotes.encoder.walk import TextAttention
from litotes.explanation.analyses.analysis import Analysis, Number, Result, Table, plain
from litotes.explanation.analyses.drawing import Box, Canvas, MapGroup, draw_series, maps_figure
from litotes.explanation.observation import Observation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OFFSETS = {"previous piece": -1, "same piece": 0, "next piece": 1}
"""Where a positional head may look."""

MERGES = "pieces of a word"

NAMED = 0.7
"""A head has a clear role when it does one thing this much: the share of queries whose largest
weight falls there (Voita et al. say 90 %, of a translation model; sentence encoders are softer), or
the weight it keeps within words of several pieces.
"""

FEWEST_PIECES = 4
"""That a layer must see of a text: between two or three there is little to choose from, and every
head seems to look at the previous one.
"""

FEWEST_TEXTS = 5
"""That must show a role, or all where there are fewer."""

_TOP = 2.4  # inches


@dataclass(frozen=True)
class NamedHead:
    """An attention head with a clear role. strength: how much it does it, 0 to 1."""

    layer: int
    attention_head: int
    job: str
    strength: float


@dataclass(frozen=True)
class Diversity(Result):
    """Tables are (layer, attention_head) and count from 0; means over texts.

    divergence: per layer, Jensen-Shannon divergence between its attention heads in bits per query
    (0: all alike; at most log₂ of their number), with half of its 95 % interval over texts.
    density: the share of weights above 0. entropy: bits per query. confidence: the mean over
    queries of the largest weight.
    alpha: of α-entmax, as trained; empty for other weightings.
    positional: {job: table}, the share of queries whose largest weight falls on the piece that far
    away, by the names in OFFSETS.
    merging: the weight that pieces of words of several pieces keep within their own word, those
    pieces themselves aside.
    """

    name: ClassVar[str] = "diversity"
    fewest_pieces: ClassVar[int] = FEWEST_PIECES
    enough: ClassVar[float] = NAMED
    divergence: tuple[Number, ...]
    divergence_half_width: tuple[Number, ...]
    density: Table
    entropy: Table
    confidence: Table
    alpha: Table
    positional: dict[str, Table]
    merging: Table
    named: tuple[NamedHead, ...]

    @property
    def layers(self) -> list[tuple[float, int]]:
        """Those that say something, with their divergence; counted from 1."""
        layers = enumerate(self.divergence, start=1)
        return [(value, layer) for layer, value in layers if value is not None]

    def nothing_to_say(self) -> str | None:
        if self.layers:
            return None
        return f"says nothing of texts so short: no layer sees {FEWEST_PIECES} pieces of one"

    def figure(self) -> Figure:
        """Draws how much the heads of a layer differ; how sure and how sparse each is; which of
        them have a clear role.

        Each map has its own scale; density and α only where they say something: softmax leaves
        nothing out.
        """
        sureness, unit = "Sureness: the largest weight", "mean of the largest weight"
        groups = [
            MapGroup({"Spread": self.entropy}, "entropy, bits a query", low=0, step=0.5),
            MapGroup({sureness: self.confidence}, unit, low=0, high=1),
        ]
        density = MapGroup({"Density": self.density}, "share of weights above 0", low=0, high=1)
        if (density.known < 1).any():
            groups.append(density)
        if self.alpha:
            unit = "α (1: softmax, 2: sparsemax)"
            groups.append(MapGroup({"α as learned": self.alpha}, unit, low=1, high=2))
        jobs = {job: (f"Looks at the {job}", table) for job, table in self.positional.items()}
        jobs[MERGES] = "Looks at the rest of its word", self.merging
        framed: dict[str, list[tuple[int, int]]] = {title: [] for title, _ in jobs.values()}
        for head in self.named:  # that do so most of the time
            framed[jobs[head.job][0]].append((head.layer, head.attention_head))
        maps = list(jobs.values())
        for pair, unit in (
            (maps[:2], "share of queries"),
            (maps[2:], "share of queries or of weight"),
        ):
            groups.append(MapGroup(dict(pair), unit, low=0, high=1, framed=framed))
        return maps_figure(groups, top=_TOP, draw_above=self._draw_divergence)

    def _draw_divergence(self, canvas: Canvas) -> None:
        ax = canvas.chart(Box(0, 0, canvas.width, _TOP), x="layer", y="divergence, bits")
        draw_series({"divergence": (self.divergence, self.divergence_half_width)}, ax)
        ax.set_ylim(bottom=0)


class DiversityAnalysis(Analysis):
    """How attention heads differ, how sparse and sure they are, which look at a place or join word
    pieces.
    """

    def measure(self, observation: Observation) -> dict[str, Any]:
        views = observation.layers
        tables = self.by_head(observation, [_of_heads(view, observation.read) for view in views])
        divergences = [_of_large(view, divergence_between(view.weights)) for view in views]
        positional = {job: tables.pop(job) for job in OFFSETS}
        return tables | {"divergence": torch.stack(divergences), "positional": positional}

    def result(self) -> Diversity:
        return self.means_as(Diversity, alpha=self._alpha(), named=self._named_heads())

    def _named_heads(self) -> tuple[NamedHead, ...]:
        fewest = min(FEWEST_TEXTS, self.n_texts)
        found = []
        for job, table in {**self.means["positional"], MERGES: self.means["merging"]}.items():
            for layer, head in np.argwhere((table.mean >= NAMED) & (table.n >= fewest)).tolist():
                found.append(NamedHead(layer, head, job, float(table.mean[layer, head])))
        return tuple(sorted(found, key=lambda head: (head.layer, head.attention_head)))

    def _alpha(self) -> Table:
        blocks = self.model.classifier.encoder.attentions
        whole = torch.full(self.shape, math.nan)
        for layer, block in enumerate(self.spec.walk):
            if isinstance(weighting := blocks[block].weighting, Entmax):
                whole[layer, blocks[block].heads] = weighting.alpha.detach().float().cpu()
        found: Table = () if whole.isnan().all() else plain(whole.numpy())
        return found


def _of_heads(view: TextAttention, read: ReadText) -> dict[str, Tensor]:
    """Measures a layer's attention heads on one text, {name: (attention_head,)}"""
    weights = view.weights
    return {
        "density": (weights > 0).float().mean((-2, -1)),
        "entropy": _bits(weights).mean(-1),
        "confidence": weights.amax(-1).mean(-1),
        "merging": _merging(view, read),
        **{job: _of_large(view, _at_offset(view, offset)) for job, offset in OFFSETS.items()},
    }


def _of_large(view: TextAttention, values: Tensor) -> Tensor:
    """The values of a layer; NaN where it sees too few pieces."""
    return values if len(view.origin) >= FEWEST_PIECES else torch.full_like(values, math.nan)


def divergence_between(weights: Tensor) -> Tensor:
    """JS = H(mean of heads) − mean of H(head), in bits, the mean over queries. weights:
    (attention_head, query, key)
    """
    return (_bits(weights.mean(0)) - _bits(weights).mean(0)).mean().clamp(min=0)


def _bits(weights: Tensor) -> Tensor:
    """−Σ w log₂ w over keys, with 0 log 0 = 0."""
    return -torch.special.xlogy(weights, weights).sum(-1) / math.log(2)


def _at_offset(view: TextAttention, offset: int) -> Tensor:
    """The share of queries that weigh the piece `offset` away most, among those that have one
    there. (attention_head,)
    """
    place = view.origin
    # fused pieces stand nowhere
    has_one = torch.isin(place + offset, place[place >= 0]) & (place >= 0)
    if not has_one.any():
        return torch.full((len(view.heads),), math.nan)
    chosen = place[view.weights.argmax(-1)]  # (attention_head, query)
    return ((chosen == place + offset) & has_one).sum(-1) / has_one.sum()


def _merging(view: TextAttention, read: ReadText) -> Tensor:
    """The weight on the other pieces of the same word, mean over the pieces that have some.

    (attention_head,); NaN where no word has two of its pieces left.
    """
    word_of = torch.tensor([-1 if word is None else word for word in read.word_of()])
    place = view.origin.cpu()
    # of special and fused pieces: -1
    words = torch.where(place < 0, -1, word_of[place]).to(view.weights.device)
    same = (words[:, None] == words) & (words >= 0)  # (query, key)
    same &= ~torch.eye(len(words), dtype=torch.bool, device=words.device)
    asking = same.any(-1)
    if not asking.any():
        return torch.full((len(view.heads),), math.nan)
    return (view.weights * same).sum(-1)[:, asking].mean(-1)
