"""An encoder and a decoder: a source text in, the logits of every next piece out.

    p(y_t | y_<t, x) = softmax(E h_t + b)

with E the table of pieces, the same as that of the decoder's input (Press and Wolf 2017, arXiv
1608.05859) unless the spec says otherwise. In a layer of the decoder each piece reads the target up
to itself, then the source, then itself:

    a_l     = norm(h_l + Attention(h_l, h_l up to itself))
    b_l     = norm(a_l + Attention(a_l, source))
    h_{l+1} = norm(b_l + W₂ act(W₁ b_l))

with norms after (Vaswani et al. 2017, arXiv 1706.03762, §3.1) or, steadier, before each part, and
one at the end (Xiong et al. 2020, arXiv 2002.04745). Every attention may be sparse with an α of its
own for each attention head (Correia, Niculae & Martins 2019, arXiv 1909.00015).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, cast

import pydantic.dataclasses
import torch
from pydantic import ConfigDict, Field
from torch import Tensor, nn
from torch.nn import functional

from litotes.core.errors import UserError
from litotes.core.registry import build, pick
from litotes.encoder.attention import WEIGHTINGS
from litotes.encoder.encoder import Encoder
from litotes.encoder.layout import Batch, Layout
from litotes.encoder.operations import ACTIVATIONS, Encoding, Rows
from litotes.encoder.walk import Observer
from litotes.kernels.encode import encode

SELF, ACROSS = "decoder self", "across"
SLOWEST = 10_000.0
"""The longest wave of fixed positions, in pieces."""

Size = Annotated[int, Field(ge=1, le=2**24)]
Share = Annotated[float, Field(ge=0, lt=1)]


@pydantic.dataclasses.dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class DecoderSpec:
    """All that is needed to build a decoder on top of an encoder.

    source_width: the width of what the encoder gives.
    positions: fixed waves (sinusoidal) or a table that is learned.
    norm_first: norms come before attention and feed-forward instead of after, and one more at the
    end.
    tied: which tables of pieces are one: that of the encoder, of the decoder's input and of its
    output (all), the latter two (target), or none.
    weighting, weighting_options: how affinities become weights, as in an encoder.
    """

    n_vocabulary: Size
    width: Size
    source_width: Size
    n_layers: Annotated[int, Field(ge=1, le=1000)]
    n_attention_heads: Annotated[int, Field(ge=1, le=1024)]
    inner_width: Size
    n_positions: Size
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    norm_first: bool = True
    tied: Literal["all", "target", "none"] = "all"
    activation: str = "relu"
    norm_epsilon: Share = 1e-6
    dropout: Share = 0.1
    attention_dropout: Share = 0.1
    weighting: str = "softmax"
    weighting_options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.width % self.n_attention_heads:
            raise ValueError(
                f"width {self.width} is not a multiple of {self.n_attention_heads} attention heads"
            )


def sinusoids(n_positions: int, width: int) -> Tensor:
    """Makes positions of waves of many lengths. (position, width)

        p[t, 2i] = sin(t / 10000^{2i/width})      p[t, 2i+1] = cos(t / 10000^{2i/width})

    Vaswani et al. 2017, §3.5; as large as the embedding of a piece: there the paper multiplies
    pieces by √width, here waves are divided by it, and the norm that follows makes both the same.
    """
    places = torch.arange(n_positions, dtype=torch.float64)[:, None]
    steps = torch.arange(0, width, 2, dtype=torch.float64) / width
    angles = places * torch.exp(-math.log(SLOWEST) * steps)  # (position, width / 2, rounded up)
    waves = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :width]
    return (waves / math.sqrt(width)).float()


def fix_positions(table: nn.Embedding) -> None:
    """Makes a table of positions one of waves, which is not learned."""
    with torch.no_grad():
        table.weight.copy_(sinusoids(*table.weight.shape))
    table.weight.requires_grad_(False)


@dataclass(frozen=True)
class AttentionTrace:
    """The view of one attention that an observer gets.

    kind: SELF or ACROSS. weights: (text, attention_head, query, key), with padding at the ends;
    value: (text, attention_head, key, head_width).
    """

    kind: str
    layer: int
    weights: Tensor
    value: Tensor


DecoderObserver = Callable[[AttentionTrace], None]


@dataclass(frozen=True)
class Reading:
    """The pieces that read, and what they may read. In attention alone they are rows.

    queries: texts laid end to end, which are filled up to the longest; or so many texts, each with
    the newest pieces of as many hypotheses. live: the keys that a query may read, (text, 1, query
    or 1, key); None: all.
    """

    queries: Rows | int
    live: Tensor | None

    def split(self, query: Tensor) -> Tensor:
        """(piece, attention_head, head_width) → (text, attention_head, query, head_width)"""
        if isinstance(self.queries, Rows):
            return self.queries.split(query)[0]
        return query.unflatten(0, (self.queries, -1)).transpose(1, 2)

    def join(self, mixed: Tensor) -> Tensor:
        """And back. (piece, width)"""
        if isinstance(self.queries, Rows):
            return self.queries.join([mixed]).flatten(1)
        return mixed.transpose(1, 2).flatten(0, 1).flatten(1)


def require_rows_alone(weighting: str) -> None:
    """Refuses a weighting in which a query's weights depend on other queries."""
    if not pick(WEIGHTINGS, weighting, "weighting").rows_alone:
        raise UserError(
            f"The weighting {weighting!r} chooses keys for several queries at once: in a decoder a"
            " piece would see what comes after it. Choose another, see `litotes list weightings`."
        )


class DecoderAttention(nn.Module):
    """Multi-head attention whose keys may be other pieces than its queries (Vaswani et al. 2017,
    §3.2.3).

        mixed = weighting(query · key / √d) · value

    The weighting is the same seam as in an encoder (attention/weighting.py). key_width: the width
    of what is read. kind, layer: what an observer is told.
    """

    def __init__(self, spec: DecoderSpec, key_width: int, kind: str, layer: int) -> None:
        super().__init__()
        require_rows_alone(spec.weighting)
        self.n_heads, self.dropout = spec.n_attention_heads, spec.attention_dropout
        self.kind, self.layer = kind, layer
        self.query = nn.Linear(spec.width, spec.width)
        self.key_value = nn.Linear(key_width, 2 * spec.width)
        self.output = nn.Linear(spec.width, spec.width)
        self.weighting = build(
            WEIGHTINGS, spec.weighting, "weighting", self.n_heads, options=spec.weighting_options
        )

    def keys_and_values(self, read: Tensor) -> Tensor:
        """(piece, 2 · attention_head, head_width): the heads' keys, then their values."""
        return self.key_value(read).unflatten(-1, (2 * self.n_heads, -1))

    def forward(
        self,
        query: Tensor,
        kept: Tensor,
        reading: Reading,
        observer: DecoderObserver | None = None,
    ) -> Tensor:
        """Attends from each query (query piece, width) to the keys and values that are kept,
        (text, 2 · attention_head, key piece, head_width). (query piece, width)
        """
        query = reading.split(query.unflatten(-1, (self.n_heads, -1)))
        key, value = kept.chunk(2, dim=1)
        options: Any = {"live": reading.live, "dropout": self.dropout if self.training else 0.0}
        if observer is None:
            mixed = self.weighting.attend(query, key, value, **options)
        else:
            mixed, weights = self.weighting.attend_with_weights(query, key, value, **options)
            observer(AttentionTrace(self.kind, self.layer, weights.detach(), value.detach()))
        return self.output(reading.join(mixed))


class DecoderEmbeddings(nn.Module):
    """norm(piece + position). The table of pieces may be the encoder's."""

    def __init__(self, spec: DecoderSpec, piece: nn.Embedding | None) -> None:
        super().__init__()
        self.piece = piece or nn.Embedding(spec.n_vocabulary, spec.width)
        self.position = nn.Embedding(spec.n_positions, spec.width)
        if spec.positions == "sinusoidal":
            fix_positions(self.position)
        self.norm = _norm(spec)
        self.dropout = nn.Dropout(spec.dropout)

    def forward(self, pieces: Tensor, positions: Tensor) -> Tensor:
        """(piece, width), from two of (piece,)."""
        return self.dropout(self.norm(self.piece(pieces) + self.position(positions)))


class DecoderBlock(nn.Module):
    """One layer: attention to the target, attention to the source, feed-forward."""

    def __init__(self, spec: DecoderSpec, layer: int) -> None:
        super().__init__()
        self.norm_first = spec.norm_first
        self.self_attention = DecoderAttention(spec, spec.width, SELF, layer)
        self.across = DecoderAttention(spec, spec.source_width, ACROSS, layer)
        self.inner = nn.Linear(spec.width, spec.inner_width)
        self.outer = nn.Linear(spec.inner_width, spec.width)
        self.self_norm, self.across_norm, self.outer_norm = (_norm(spec) for _ in range(3))
        self.activation = pick(ACTIVATIONS, spec.activation, "activation")
        self.dropout = nn.Dropout(spec.dropout)

    def forward(
        self,
        hidden: Tensor,
        keep: Callable[[Tensor], Tensor],
        source: Tensor,
        *,
        own: Reading,
        across: Reading,
        observer: DecoderObserver | None = None,
    ) -> Tensor:
        """The layer over all pieces or over those of one step, (piece, width).

        keep: makes of the pieces' keys and values those that are read. source: those of the source.
        """

        def attend(read: Tensor) -> Tensor:
            query, new = self.self_attention.query(read), self.self_attention.keys_and_values(read)
            return self.self_attention(query, keep(new), own, observer)

        def attend_across(read: Tensor) -> Tensor:
            return self.across(self.across.query(read), source, across, observer)

        hidden = self._around(hidden, self.self_norm, attend)
        hidden = self._around(hidden, self.across_norm, attend_across)
        return self._around(
            hidden, self.outer_norm, lambda read: self.outer(self.activation(self.inner(read)))
        )

    def _around(self, hidden: Tensor, norm: nn.Module, part: Callable[[Tensor], Tensor]) -> Tensor:
        if self.norm_first:
            return hidden + self.dropout(part(norm(hidden)))
        return norm(hidden + self.dropout(part(hidden)))


@dataclass(frozen=True)
class Cache:
    """The state that a decoder keeps between steps, so that a step computes one piece and not the
    text so far.

    Rows are hypotheses: those of the first text, then those of the next, the same number for each.
    source: keys and values of each layer, (text, 2 · attention_head, source piece, head_width),
    which the hypotheses of a text share. target: those of the target so far, (row, 2 ·
    attention_head, target piece, head_width). live: which source pieces are real, (text, 1, 1,
    source piece).
    """

    source: tuple[Tensor, ...]
    target: tuple[Tensor, ...]
    live: Tensor

    def choose(self, rows: Tensor, texts: Tensor | None = None) -> Cache:
        """Other rows, or the same in another order, (row,); and some of the texts, (text,)."""
        cache = replace(self, target=tuple(one.index_select(0, rows) for one in self.target))
        if texts is None:
            return cache
        source = tuple(one.index_select(0, texts) for one in self.source)
        return replace(cache, source=source, live=self.live.index_select(0, texts))


class Decoder(nn.Module):
    """Embeddings → blocks. piece: the encoder's table of pieces, where it is shared."""

    def __init__(self, spec: DecoderSpec, piece: nn.Embedding | None = None) -> None:
        super().__init__()
        self.spec = spec
        self.embeddings = DecoderEmbeddings(spec, piece)
        self.blocks = nn.ModuleList(DecoderBlock(spec, layer) for layer in range(spec.n_layers))
        self.final_norm = _norm(spec) if spec.norm_first else nn.Identity()

    @property
    def layers(self) -> list[DecoderBlock]:
        return cast("list[DecoderBlock]", list(self.blocks))

    def forward(
        self,
        pieces: Tensor,
        layout: Layout,
        source: Encoding,
        *,
        observer: DecoderObserver | None = None,
    ) -> Tensor:
        """Hidden states (piece, width) of packed targets (piece,), each reading its own source."""
        rows, (kept, live) = Rows(layout, apart=False), self._keep_source(source)
        place = torch.arange(layout.longest, device=layout.device)
        up_to_itself = _live(rows) & (place[:, None] >= place)
        hidden = self.embeddings(pieces, layout.positions)
        for block, of_source in zip(self.layers, kept, strict=True):
            hidden = block(
                hidden,
                lambda new: rows.split(new)[0],
                of_source,
                own=Reading(rows, up_to_itself),
                across=Reading(rows, live),
                observer=observer,
            )
        return self.final_norm(hidden)

    def begin(self, source: Encoding, n_rows: int) -> Cache:
        """Makes a cache before the first piece. n_rows: hypotheses of each text."""
        kept, live = self._keep_source(source)
        n_texts, n_heads, _, width = kept[0].shape
        empty = kept[0].new_empty(n_texts * n_rows, n_heads, 0, width)
        return Cache(kept, (empty,) * len(kept), live)

    def _keep_source(self, source: Encoding) -> tuple[tuple[Tensor, ...], Tensor]:
        """The keys and values of the source for each layer, and which of its pieces are real."""
        rows = Rows(source.layout, apart=False)
        read = (block.across.keys_and_values(source.hidden) for block in self.layers)
        return tuple(rows.split(one)[0] for one in read), _live(rows)

    def step(self, pieces: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """The hidden state of one more piece of every row, (row, width), and the cache with it."""
        target: list[Tensor] = []
        # the newest piece of a row reads all of the row: nothing after it is there yet
        own, across = Reading(len(pieces), None), Reading(len(cache.live), cache.live)

        def keep(new: Tensor) -> Tensor:
            target.append(torch.cat([cache.target[len(target)], new.unsqueeze(2)], dim=2))
            return target[-1]

        hidden = self.embeddings(pieces, torch.full_like(pieces, cache.target[0].shape[2]))
        for block, of_source in zip(self.layers, cache.source, strict=True):
            hidden = block(hidden, keep, of_source, own=own, across=across)
        return self.final_norm(hidden), replace(cache, target=tuple(target))

    def set_progress(self, progress: float) -> None:
        """Tells the weightings how much of the training is done, 0 to 1."""
        for attention in self.attentions(SELF) + self.attentions(ACROSS):
            attention.weighting.progress = progress

    def attentions(self, kind: str) -> list[DecoderAttention]:
        """Those of one kind, layer by layer."""
        return [block.self_attention if kind == SELF else block.across for block in self.layers]


class EncoderDecoder(nn.Module):
    """Batch of sources, targets so far → logits of the next pieces."""

    def __init__(self, encoder: Encoder, spec: DecoderSpec) -> None:
        super().__init__()
        self.spec, self.encoder = spec, encoder
        shared = encoder.embeddings.piece if spec.tied == "all" else None
        if shared is not None and shared.weight.shape != (spec.n_vocabulary, spec.width):
            raise UserError(
                f"The encoder's table of pieces is {tuple(shared.weight.shape)}, the decoder's"
                f" ({spec.n_vocabulary}, {spec.width}): they cannot be one. Set model.tied ="
                " \"target\", or the decoder's width to that of the encoder's embeddings."
            )
        self.decoder = Decoder(spec, shared)
        self.bias = nn.Parameter(torch.zeros(spec.n_vocabulary))
        is_own = spec.tied == "none"
        self.output = nn.Embedding(spec.n_vocabulary, spec.width) if is_own else None

    @property
    def device(self) -> torch.device:
        return self.bias.device

    def read(self, batch: Batch, *, observer: Observer | None = None) -> Encoding:
        """Encodes the sources."""
        return encode(self.encoder, batch, observer=observer)

    def forward(
        self,
        batch: Batch,
        pieces: Tensor,
        layout: Layout,
        *,
        observer: DecoderObserver | None = None,
    ) -> Tensor:
        """Logits of the piece after each piece of the packed targets. (piece, vocabulary)"""
        return self.guess(self.decoder(pieces, layout, self.read(batch), observer=observer))

    def guess(self, hidden: Tensor) -> Tensor:
        """(piece, width) → (piece, vocabulary)"""
        table = self.output or self.decoder.embeddings.piece
        return functional.linear(hidden, table.weight, self.bias)

    def step(self, pieces: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """Log-probabilities of the next piece of every row, (row, vocabulary), and the cache with
        `pieces` (row,) in it.
        """
        hidden, cache = self.decoder.step(pieces, cache)
        return self.guess(hidden).float().log_softmax(-1), cache

    def set_progress(self, progress: float) -> None:
        self.encoder.set_progress(progress)
        self.decoder.set_progress(progress)


def draw_weights(module: nn.Module, *, keep: nn.Module | None = None) -> None:
    """Draws new weights: linear layers as Glorot and Bengio 2010, tables of pieces so that a row
    has about length 1; a table of fixed positions stays.

    keep: a part that stays as it is.
    """
    for part in module.modules():
        if part is keep:
            continue
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
        if isinstance(part, nn.Embedding) and part.weight.requires_grad:
            nn.init.normal_(part.weight, std=1 / math.sqrt(part.embedding_dim))


def _live(rows: Rows) -> Tensor:
    """The real pieces. (text, 1, 1, key)"""
    (live,) = rows.live
    assert live is not None
    return live


def _norm(spec: DecoderSpec) -> nn.LayerNorm:
    return nn.LayerNorm(spec.width, eps=spec.norm_epsilon)
