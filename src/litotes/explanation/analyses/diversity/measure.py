"""diversity: how much the attention heads of a layer differ, how sparse and how sure they are, and
which have a clear role.

Correia, Niculae and Martins 2019, "Adaptively Sparse Transformers", arXiv 1909.00015, §5:
Jensen-Shannon divergence between heads, density, positional heads and heads that merge the pieces
of a word; confidence after Voita et al. 2019, arXiv 1905.09418.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from litotes.encoder.attention.entmax import Entmax
from litotes.encoder.attention.observer import TextAttention
from litotes.encoder.tokenizer import ReadText
from litotes.explanation.analyses.analysis import Measure, Result
from litotes.explanation.analyses.means import (
    Number,
    RunningMean,
    Table,
    means,
    numbers,
    table,
    tables,
)
from litotes.explanation.observation import Observation
from litotes.model.checkpoint import Model

OFFSETS = {"previous piece": -1, "same piece": 0, "next piece": 1}
"""Where a positional head may look."""

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


@dataclass(frozen=True)
class NamedHead:
    """An attention head with a clear role. strength: how much it does it, 0 to 1."""

    layer: int
    attention_head: int
    job: str
    strength: float

    def in_words(self) -> str:
        place = f"layer {self.layer + 1}, head {self.attention_head + 1}"
        return f"{self.job} in {place} ({self.strength:.2f})"


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

    divergence: tuple[Number, ...]
    divergence_half_width: tuple[Number, ...]
    density: Table
    entropy: Table
    confidence: Table
    alpha: Table
    positional: dict[str, Table]
    merging: Table
    named: tuple[NamedHead, ...]

    def nothing_to_say(self) -> str | None:
        if any(value is not None for value in self.divergence):
            return None
        return f"says nothing of texts so short: no layer sees {FEWEST_PIECES} pieces of one"

    def findings(self) -> tuple[str, ...]:
        said = []
        known = [value for value in self.divergence if value is not None]
        if known:
            most, least = max(known), min(known)
            said.append(
                f"Attention heads differ most in layer {self.divergence.index(most) + 1}"
                f" (Jensen-Shannon divergence {most:.2f} bits) and least in layer"
                f" {self.divergence.index(least) + 1} ({least:.2f})."
            )
        if self.named:
            jobs = ", ".join(head.in_words() for head in self.named)
            said.append(f"Attention heads with a plain job: {jobs}.")
        else:
            said.append(f"No attention head does one plain job {NAMED:.0%} of the time.")
        return tuple(said)


class DiversityMeasure(Measure):
    """How attention heads differ, how sparse and sure they are, which look at a place or join word
    pieces.
    """

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        shape = (self.n_layers, self.n_attention_heads)
        self.divergence = RunningMean(self.n_layers)
        self.density, self.entropy = RunningMean(*shape), RunningMean(*shape)
        self.confidence, self.merging = RunningMean(*shape), RunningMean(*shape)
        self.positional = {job: RunningMean(*shape) for job in OFFSETS}
        self.n_texts = 0

    def add(self, observation: Observation) -> None:
        self.n_texts += 1
        views = observation.layers
        weights = [view.weights for view in views]  # per layer (attention_head, query, key)
        divergences = [_of_large(view, divergence_between(view.weights)) for view in views]
        self.divergence.add(torch.stack(divergences))
        for running, value in (
            (self.density, _density),
            (self.entropy, _entropy),
            (self.confidence, _confidence),
        ):
            running.add(self._by_head(observation, [value(layer) for layer in weights]))
        merging = [_merging(view, observation.read) for view in views]
        self.merging.add(self._by_head(observation, merging))
        for job, running in self.positional.items():
            shares = [_of_large(view, _at_offset(view, OFFSETS[job])) for view in views]
            running.add(self._by_head(observation, shares))

    def result(self) -> Diversity:
        return Diversity(
            n_texts=self.n_texts,
            divergence=numbers(self.divergence.mean),
            divergence_half_width=numbers(self.divergence.half_width),
            density=table(self.density.mean),
            entropy=table(self.entropy.mean),
            confidence=table(self.confidence.mean),
            alpha=self._alpha(),
            positional=tables(means(self.positional)),
            merging=table(self.merging.mean),
            named=self._named_heads(),
        )

    def _named_heads(self) -> tuple[NamedHead, ...]:
        fewest = min(FEWEST_TEXTS, self.n_texts)
        found = []
        for job, running in (*self.positional.items(), ("pieces of a word", self.merging)):
            strengths = running.mean
            is_sure = (strengths >= NAMED) & (running.n >= fewest)
            for layer, head in is_sure.nonzero().tolist():
                found.append(NamedHead(layer, head, job, float(strengths[layer, head])))
        return tuple(sorted(found, key=lambda head: (head.layer, head.attention_head)))

    def _alpha(self) -> Table:
        blocks = self.model.classifier.encoder.attentions
        whole = torch.full((self.n_layers, self.n_attention_heads), math.nan)
        for layer, block in enumerate(self.spec.walk):
            if isinstance(weighting := blocks[block].weighting, Entmax):
                whole[layer, blocks[block].heads] = weighting.alpha.detach().float().cpu()
        return () if whole.isnan().all() else table(whole)


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


def _density(weights: Tensor) -> Tensor:
    return (weights > 0).float().mean((-2, -1))


def _entropy(weights: Tensor) -> Tensor:
    return _bits(weights).mean(-1)


def _confidence(weights: Tensor) -> Tensor:
    return weights.amax(-1).mean(-1)


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
    words = _words_at(view, read)
    same = (words[:, None] == words) & (words >= 0)  # (query, key)
    same &= ~torch.eye(len(words), dtype=torch.bool, device=words.device)
    asking = same.any(-1)
    if not asking.any():
        return torch.full((len(view.heads),), math.nan)
    return (view.weights * same).sum(-1)[:, asking].mean(-1)


def _words_at(view: TextAttention, read: ReadText) -> Tensor:
    """The number of each piece's word, -1 for special and fused pieces. (piece,)"""
    word_of = read.word_of()
    words = []
    for place in view.origin.tolist():
        word = None if place < 0 else word_of[place]
        words.append(-1 if word is None else word)
    return torch.tensor(words).to(view.weights.device)
