"""diversity: how much the attention heads of a layer differ, how sparse and how sure they are, and
which have a clear role.

Correia, Niculae and Martins 2019, "Adaptively Sparse Transformers", arXiv 1909.00015, §5:
Jensen-Shannon divergence between heads, density, positional heads and heads that merge the pieces
of a word; confidence after Voita et al. 2019, arXiv 1905.09418.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from litotes.encoder.attention.entmax import Entmax
from litotes.encoder.tokenizer import ReadText
from litotes.encoder.walk import TextAttention
from litotes.explanation.analyses.analysis import (
    Analysis,
    Number,
    Result,
    RunningMean,
    Table,
    half_widths,
    means,
    plain,
)
from litotes.explanation.analyses.drawing import (
    Box,
    Canvas,
    HeadMap,
    MapGroup,
    Series,
    draw_series,
    maps_figure,
    single_map,
)
from litotes.explanation.observation import Observation
from litotes.model.checkpoint import Model

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
        """How much the heads of a layer differ; how sure and how sparse each is; which of them have
        a clear role.

        Each map has its own scale; density and α only where they say something: softmax leaves
        nothing out.
        """
        sureness, unit = "Sureness: the largest weight", "mean of the largest weight"
        groups = [
            single_map("Spread", self.entropy, "entropy, bits a query", low=0, step=0.5),
            single_map(sureness, self.confidence, unit, low=0, high=1),
        ]
        density = HeadMap("Density", self.density)
        if any(share < 1 for share in density.known_values):
            groups.append(MapGroup((density,), "share of weights above 0", (0, 1)))
        if self.alpha:
            alpha = HeadMap("α as learned", self.alpha)
            groups.append(MapGroup((alpha,), "α (1: softmax, 2: sparsemax)", (1, 2)))
        previous, same, following = (
            self._job_map(job, job, values) for job, values in self.positional.items()
        )
        merging = self._job_map(MERGES, "rest of its word", self.merging)
        groups.append(MapGroup((previous, same), "share of queries", (0, 1)))
        groups.append(MapGroup((following, merging), "share of queries or of weight", (0, 1)))
        return maps_figure(groups, top=_TOP, draw_above=self._draw_divergence)

    def _job_map(self, job: str, target: str, values: Table) -> HeadMap:
        """Framed: the heads that do so most of the time."""
        framed = [(head.layer, head.attention_head) for head in self.named if head.job == job]
        return HeadMap(f"Looks at the {target}", values, framed)

    def _draw_divergence(self, canvas: Canvas) -> None:
        ax = canvas.chart(Box(0, 0, canvas.width, _TOP))
        draw_series({"divergence": Series(self.divergence, self.divergence_half_width)}, ax)
        ax.set_ylim(bottom=0)
        ax.set_xlabel("layer", fontsize=8)
        ax.set_ylabel("divergence, bits", fontsize=8)


class DiversityAnalysis(Analysis):
    """How attention heads differ, how sparse and sure they are, which look at a place or join word
    pieces.
    """

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.divergence = RunningMean(self.shape[0])
        names = ("density", "entropy", "confidence", MERGES, *OFFSETS)
        self.tables = {name: RunningMean(*self.shape) for name in names}

    def add(self, observation: Observation) -> None:
        self.n_texts += 1
        views = observation.layers
        divergences = [_of_large(view, divergence_between(view.weights)) for view in views]
        self.divergence.add(torch.stack(divergences))
        found = {
            "density": [(view.weights > 0).float().mean((-2, -1)) for view in views],
            "entropy": [_bits(view.weights).mean(-1) for view in views],
            "confidence": [view.weights.amax(-1).mean(-1) for view in views],
            MERGES: [_merging(view, observation.read) for view in views],
        }
        for job, offset in OFFSETS.items():
            found[job] = [_of_large(view, _at_offset(view, offset)) for view in views]
        for name, values in found.items():
            self.tables[name].add(self.by_head(observation, values))

    def result(self) -> Diversity:
        tables = means(self.tables)
        return Diversity(
            n_texts=self.n_texts,
            divergence=means(self.divergence),
            divergence_half_width=half_widths(self.divergence),
            density=tables["density"],
            entropy=tables["entropy"],
            confidence=tables["confidence"],
            alpha=self._alpha(),
            positional={job: tables[job] for job in OFFSETS},
            merging=tables[MERGES],
            named=self._named_heads(),
        )

    def _named_heads(self) -> tuple[NamedHead, ...]:
        fewest = min(FEWEST_TEXTS, self.n_texts)
        found = []
        for job in (*OFFSETS, MERGES):
            strengths = self.tables[job].mean
            is_sure = (strengths >= NAMED) & (self.tables[job].n >= fewest)
            for layer, head in is_sure.nonzero().tolist():
                found.append(NamedHead(layer, head, job, float(strengths[layer, head])))
        return tuple(sorted(found, key=lambda head: (head.layer, head.attention_head)))

    def _alpha(self) -> Table:
        blocks = self.model.classifier.encoder.attentions
        whole = torch.full(self.shape, math.nan)
        for layer, block in enumerate(self.spec.walk):
            if isinstance(weighting := blocks[block].weighting, Entmax):
                whole[layer, blocks[block].heads] = weighting.alpha.detach().float().cpu()
        found: Table = () if whole.isnan().all() else plain(whole)
        return found


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
