"""diversity: how much the attention heads of a layer differ, how sparse and how sure they are, and
which have a plain job.

Correia, Niculae and Martins 2019, "Adaptively Sparse Transformers", arXiv 1909.00015, §5:
Jensen-Shannon divergence between heads, density, positional heads and heads that merge the pieces
of a word; confidence after Voita et al. 2019, arXiv 1905.09418.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from litotes.attention.entmax import Entmax
from litotes.attention.observer import TextAttention
from litotes.explain.observation import Observation
from litotes.inside.analysis import Measure, Result
from litotes.inside.heads_table import by_head
from litotes.inside.means import Number, RunningMean, Table, numbers, table
from litotes.model.checkpoint import Model
from litotes.text.tokenizer import ReadText

OFFSETS = {"previous piece": -1, "same piece": 0, "next piece": 1}
"""Where a positional head may look."""

NAMED = 0.7
"""A head has a plain job when it does it this much: the share of queries whose largest weight falls
there (Voita et al. say 90 %, of a translation model; sentence encoders are softer), or the weight
it keeps within words of several pieces.
"""


@dataclass(frozen=True)
class NamedHead:
    """An attention head with a plain job. strength: how much it does it, 0 to 1."""

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

    divergence: tuple[Number, ...]
    divergence_half_width: tuple[Number, ...]
    density: Table
    entropy: Table
    confidence: Table
    alpha: Table
    positional: dict[str, Table]
    merging: Table
    named: tuple[NamedHead, ...]

    def findings(self) -> tuple[str, ...]:
        known = [value for value in self.divergence if value is not None]
        said = []
        if known:
            most, least = max(known), min(known)
            said.append(
                f"Attention heads differ most in layer {self.divergence.index(most) + 1}"
                f" (Jensen-Shannon divergence {most:.2f} bits) and least in layer"
                f" {self.divergence.index(least) + 1} ({least:.2f})."
            )
        jobs = [
            f"{one.job} in layer {one.layer + 1}, head {one.attention_head + 1}"
            f" ({one.strength:.2f})"
            for one in self.named
        ]
        none = f"No attention head does one plain job {NAMED:.0%} of the time."
        said.append(f"Attention heads with a plain job: {', '.join(jobs)}." if jobs else none)
        return tuple(said)


class DiversityMeasure(Measure):
    """How attention heads differ, how sparse and sure they are, which look at a place or join word
    pieces.
    """

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        shape = (self.n_layers, self.n_attention_heads)
        self.divergence = RunningMean(self.n_layers)
        self.density, self.entropy, self.confidence, self.merging = (
            RunningMean(*shape) for _ in range(4)
        )
        self.positional = {job: RunningMean(*shape) for job in OFFSETS}
        self.n_texts = 0

    def add(self, observation: Observation) -> None:
        self.n_texts += 1
        views = observation.layers
        self.divergence.add(torch.stack([divergence_between(view.weights) for view in views]))
        for running, measure in (
            (self.density, _density),
            (self.entropy, _entropy),
            (self.confidence, _confidence),
        ):
            running.add(
                by_head(views, [measure(view.weights) for view in views], self.n_attention_heads)
            )
        self.merging.add(
            by_head(
                views, [_merging(view, observation.read) for view in views], self.n_attention_heads
            )
        )
        for job, running in self.positional.items():
            running.add(
                by_head(
                    views,
                    [_at_offset(view, OFFSETS[job]) for view in views],
                    self.n_attention_heads,
                )
            )

    def result(self) -> Diversity:
        merging = self.merging.mean
        positional = {job: running.mean for job, running in self.positional.items()}
        return Diversity(
            n_texts=self.n_texts,
            divergence=numbers(self.divergence.mean),
            divergence_half_width=numbers(self.divergence.half_width),
            density=table(self.density.mean),
            entropy=table(self.entropy.mean),
            confidence=table(self.confidence.mean),
            alpha=self._alpha(),
            positional={job: table(values) for job, values in positional.items()},
            merging=table(merging),
            named=_named(positional | {"pieces of a word": merging}),
        )

    def _alpha(self) -> Table:
        blocks = self.model.classifier.encoder.attentions
        whole = torch.full((self.n_layers, self.n_attention_heads), math.nan)
        for layer, block in enumerate(self.spec.walk):
            if isinstance(weighting := blocks[block].weighting, Entmax):
                whole[layer, blocks[block].heads] = weighting.alpha.detach().float().cpu()
        return () if whole.isnan().all() else table(whole)


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
    """(attention_head,); NaN where no word has two of its pieces left."""
    word_of = read.word_of()
    words = torch.tensor(
        [
            -1 if place < 0 or (word := word_of[place]) is None else word
            for place in view.origin.tolist()
        ]
    )
    words = words.to(view.weights.device)
    # (query, key)
    same = (
        (words[:, None] == words)
        & (words >= 0)
        & ~torch.eye(len(words), dtype=torch.bool, device=words.device)
    )
    asking = same.any(-1)
    if not asking.any():
        return torch.full((len(view.heads),), math.nan)
    return (view.weights * same).sum(-1)[:, asking].mean(-1)


def _named(jobs: Mapping[str, Tensor]) -> tuple[NamedHead, ...]:
    found = [
        NamedHead(layer, head, job, float(strength))
        for job, values in jobs.items()
        for layer, row in enumerate(values)
        for head, strength in enumerate(row)
        if strength >= NAMED
    ]
    return tuple(sorted(found, key=lambda head: (head.layer, head.attention_head)))
