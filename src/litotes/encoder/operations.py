"""What a forward pass is made of: the operations that walk.py, weightings, prunings and heads call.

The walk is written once. A set of operations says how it is computed: torch (torch_operations.py,
which is the definition and has gradients), Triton's kernels on a GPU, or the nodes of an ONNX file.
A value is whatever the set makes of it: a tensor, or the name of one in a file. Values can be
added, subtracted, multiplied, divided (+ − * /) and compared (> <) with each other and with
numbers; nothing but an operation may ask for their sizes. Shapes are given as torch has them:

    piece               the pieces of all texts, laid end to end
    rows of affinities  (text, attention_head, query, key)

How many pieces stay in a text after a layer follows from its length and the plan, so boundaries
(`State.texts`) are known beforehand wherever the set keeps them; only which pieces stay is found
out by the walk.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from torch import nn

from litotes.encoder.layout import Plan

Value = Any
"""A tensor, as a set of operations has it."""

Texts = Any
"""Where each text's pieces begin and end, as a set of operations has it."""

Part = Any
"""The encoder, or one of its parts with their weights (encoder.py)."""

S = TypeVar("S")


@dataclass(frozen=True)
class Encoding:
    """What heads read: hidden states (piece, width) of texts laid end to end.

    layout: where each text's pieces are. origin: the place each piece had in its text before a
    pruning took others away, (piece,); −1 for a piece that stands for those gone.
    """

    hidden: Value
    layout: Texts
    origin: Value


@dataclass(frozen=True)
class State:
    """What goes from layer to layer: the pieces still there.

    hidden: (piece, width). texts, whole: the boundaries now, and those the walk began with.
    origin: as in `Encoding`. importance: of each piece, as the pruning measures it, (piece,).
    heads: the attention heads each text still uses, and their importance. removed: what left, if it
    will be restored. context: what all layers share until pieces leave. None: nothing yet.
    """

    hidden: Value
    texts: Texts
    whole: Texts
    origin: Value
    importance: Value = None
    heads: Any = None
    removed: Any = None
    context: Any = None

    @property
    def encoding(self) -> Encoding:
        return Encoding(self.hidden, self.texts, self.origin)


@dataclass(frozen=True)
class Wanted:
    """What besides the gathered values the attention of a layer is asked for.

    importance: what each piece received; by_value: weighted by the lengths of the values that
    moved. head_sizes: how large each attention head's outputs are. weights: the weights
    themselves, for an observer.
    """

    importance: bool = False
    by_value: bool = False
    head_sizes: bool = False
    weights: bool = False

    def __bool__(self) -> bool:
        return self.importance or self.head_sizes or self.weights


@dataclass(frozen=True)
class Seen:
    """What the attention of one layer gave.

    mixed: what each piece gathered, (piece, attention_head × head_width).
    The others only where they were wanted, in a form of the set's own; torch's:
    received: the weight each piece got from all queries of its text, (piece, attention_head).
    value: (piece, attention_head, head_width).
    head_sizes: how large each attention head's outputs are; torch reads that off `mixed`.
    weights: per block of rows (text, attention_head, query, key), padding included.
    """

    mixed: Value
    received: Value = None
    value: Value = None
    weights: Sequence[Value] = ()
    head_sizes: Value = None


@dataclass(frozen=True)
class Choice:
    """Which pieces go on: what `State` holds of them afterwards, and how to find them.

    how: the set's own.
    """

    texts: Texts
    origin: Value
    importance: Value
    how: Any


class Operations(ABC):
    """One way to compute a walk. Where a body stands here, it is what the operation means in terms
    of the others, and a set may do better.
    """

    # Products and norms: pieces in, pieces out

    @abstractmethod
    def embed(self, embeddings: Part, batch: Any) -> Value:
        """norm(piece + position + segment), of those tables there are. (piece, embedding_width)

        Positions count from `first_position`; a segment beyond its table's end takes its last row.
        """

    @abstractmethod
    def linear(self, layer: nn.Linear, x: Value, activation: str | None = None) -> Value:
        """act(W x + b); activation: a name in ACTIVATIONS. (…, input) → (…, output)"""

    @abstractmethod
    def linear_parts(self, layer: nn.Linear, x: Value, n: int) -> tuple[Value, ...]:
        """W x + b as n parts of equal width. (…, input) → n times (…, output / n)"""

    @abstractmethod
    def activate(self, name: str, x: Value) -> Value:
        """An activation by its name in ACTIVATIONS."""

    @abstractmethod
    def norm(self, norm: nn.LayerNorm, x: Value) -> Value:
        """(x − mean) / √(variance + ε) × gain + offset. (piece, width)"""

    def add_norm(self, norm: nn.LayerNorm, x: Value, residual: Value) -> Value:
        """norm(residual + x). (piece, width)"""
        return self.norm(norm, self.add(x, residual))

    def add(self, x: Value, residual: Value) -> Value:
        """Residual + x. (piece, width)"""
        return residual + x

    def dropout(self, dropout: nn.Dropout, x: Value) -> Value:
        """Zeros by chance, in training."""
        return x

    # Attention

    @abstractmethod
    def context(self, encoder: Part, texts: Texts, whole: Texts, origin: Value) -> Any:
        """What all layers share until pieces leave: where each text's rows lie, how far apart
        their pieces stand. In the set's own form; it goes into `State.context`.
        """

    @abstractmethod
    def project(self, attention: Part, read: Value, state: State, *, firsts: bool) -> Any:
        """Queries, keys and values of all pieces; firsts: queries of each text's first piece alone.

        In the set's own form; torch's: (piece, attention_head, head_width) each.
        """

    @abstractmethod
    def rotate(self, projected: Any, state: State, *, local: bool, firsts: bool) -> Any:
        """Queries and keys turned by where they stand (Su et al. 2021, arXiv 2104.09864, §3.2), so
        that their product knows how far apart they are:

            x'_j       = x_j cos(p ω_j) − x_{j+d/2} sin(p ω_j)
            x'_{j+d/2} = x_{j+d/2} cos(p ω_j) + x_j sin(p ω_j)     ω_j = θ^{−2j/d},  j = 0 … d/2 − 1

        for a piece at place p and an attention head of width d. Local layers have a θ of their own.
        """

    @abstractmethod
    def attend(
        self,
        encoder: Part,
        layer: int,
        state: State,
        projected: Any,
        wanted: Wanted,
        *,
        firsts: bool,
    ) -> Seen:
        """What each piece gathers from the pieces of its text that it may read:

            mixed_q = Σ_k weights[q, k] value_k
            weights = weighting(query · key / √d + what the family adds for where they stand)

        firsts: queries are those of first pieces, mixed is (text, …). Attention heads that a text
        has lost (`state.heads`) give zeros and are not counted.
        """

    # From affinities to weights: what a weighting calls

    @abstractmethod
    def softmax(self, affinity: Value, chosen: Value | None) -> Value:
        """exp(a_k) / Σ_j exp(a_j) over the chosen keys (None: all), exactly 0 for the others and
        in a row without any.
        """

    @abstractmethod
    def entmax(self, affinity: Value, alpha: Value | float, live: Value | None) -> Value:
        """[(α − 1) a_k − τ]₊^{1/(α−1)} over the live keys (None: all), exactly 0 for the others.

        alpha: a number, or one that `per_head` has laid out.
        """

    @abstractmethod
    def per_head(self, numbers: nn.Parameter | Value, heads: Value | None) -> Value:
        """A number for each attention head, (attention_head,), laid out to meet an affinity.

        heads: which heads an affinity shows, as the weighting was told.
        """

    @abstractmethod
    def best(self, scores: Value, live: Value | None, share: float) -> Value:
        """Whether a score is among the ⌈share × live⌉ highest live ones of its row; of equals the
        earlier one is. Booleans in the shape of `scores`.
        """

    @abstractmethod
    def blocks(
        self, affinity: Value, axis: int, size: int, *, first_alone: bool
    ) -> tuple[Value, Value]:
        """The neighbours along an axis, −2 queries or −1 keys, in blocks of so many: the block of
        each, (neighbour,), and the same as ones and zeros, (neighbour, block).

        first_alone: the first is a block by itself.
        """

    @abstractmethod
    def block_sums(self, values: Value, of_queries: Value, of_keys: Value) -> Value:
        """The sums of weights, or of booleans, over blocks of queries and of keys, as ones and
        zeros say. (…, query, key) → (…, query_block, key_block)
        """

    @abstractmethod
    def real_queries(self, affinity: Value, live: Value | None) -> Value | float:
        """1 for the queries that are a text's own pieces, 0 for padding, (text, 1, query, 1); or
        just 1 where all are.
        """

    @abstractmethod
    def live_like(self, affinity: Value, live: Value | None) -> Value:
        """Which keys are live, in the shape of `affinity`."""

    # Pruning: who goes on

    @abstractmethod
    def add_received(
        self, importance: Value | None, seen: Seen, factor: Value | None, *, by_value: bool
    ) -> Value:
        """(importance + Σ_heads received) × factor, without a gradient; None: nothing so far, no
        factor. (piece,)
        """

    def add_up(self, state: State) -> Value:
        """Importance where no piece leaves: `add_received` may put its work off until `select`."""
        return state.importance

    @abstractmethod
    def keep_heads(self, state: State, seen: Seen, n: int) -> Any:
        """Adds Σ_t Σ_d |mixed_{h,t,d}| to the importance of each text's attention heads; the n most
        important of those left go on. Gives the next `State.heads`.
        """

    @abstractmethod
    def select(self, state: State, plan: Plan, layer: int, *, fuse: bool) -> Choice | None:
        """The most important pieces of each text, as many as the plan says stay after `layer`; its
        first always does, and of equals the earlier one. None: all of them.

        fuse: one piece more in every text that loses any, in the place of all it has lost.
        """

    @abstractmethod
    def keep(self, choice: Choice, hidden: Value, mixed: Value) -> tuple[Value, Value]:
        """Both, of the pieces that go on; a fused piece is the mean of those that leave, weighted
        by importance. (piece, width) → (new piece, width)
        """

    @abstractmethod
    def remember(self, state: State, choice: Choice) -> Any:
        """`State.removed`, with the states of the pieces that leave now."""

    @abstractmethod
    def restore(self, state: State) -> State:
        """All pieces the walk began with, those removed in the state they left in."""

    @abstractmethod
    def keep_texts(self, encoder: Part, state: State, stays: Value) -> State:
        """The state without the texts that leave whole. stays: (text,), bool"""

    # What heads read of a text

    @abstractmethod
    def first_pieces(self, hidden: Value, texts: Texts) -> Value:
        """(piece, width) → (text, width)"""

    @abstractmethod
    def firsts(self, texts: Texts) -> tuple[Texts, Value]:
        """The boundaries of first pieces alone, and their places, (text,): zeros."""

    @abstractmethod
    def mean_by_text(self, hidden: Value, texts: Texts) -> Value:
        """The mean of each text's pieces, 0 of none. (piece, width) → (text, width)"""

    @abstractmethod
    def neighbours(self, hidden: Value, texts: Texts) -> Value:
        """Each piece between its two neighbours, zeros beyond a text's ends.

        (piece, width) → (piece, 3 × width)
        """

    @abstractmethod
    def read_both_ways(self, lstm: nn.LSTM, hidden: Value, texts: Texts) -> Value:
        """What an LSTM knows at each text's first piece: forwards it has read that piece alone,
        backwards the whole text. (piece, width) → (text, width)
        """

    # Arithmetic

    @abstractmethod
    def take(self, values: Value, places: Value, axis: int = 0) -> Value:
        """The entries at these places, a vector, along an axis."""

    @abstractmethod
    def concat(self, *values: Value) -> Value:
        """Side by side, along the last axis."""

    @abstractmethod
    def dot(self, x: Value, vector: nn.Parameter | Value) -> Value:
        """Multiplies by a vector in float32, no gradient for x. (piece, width) → (piece,)"""

    @abstractmethod
    def exp(self, x: Value) -> Value: ...

    @abstractmethod
    def log(self, x: Value) -> Value: ...

    @abstractmethod
    def tanh(self, x: Value) -> Value: ...

    @abstractmethod
    def sum(self, x: Value) -> Value:
        """Along the last axis, which stays with one entry."""

    @abstractmethod
    def largest(self, x: Value) -> Value:
        """The same for the maximum."""

    @abstractmethod
    def where(self, chosen: Value, x: Value | float, otherwise: Value | float) -> Value: ...

    @abstractmethod
    def both(self, a: Value, b: Value) -> Value:
        """The and of booleans."""

    @abstractmethod
    def any(self, x: Value) -> Value:
        """Whether any is true along the last axis, which stays with one entry."""

    def recompute(self, step: Callable[[S], S], state: S) -> S:
        """step(state), computed once more in the backward pass instead of kept until then."""
        return step(state)
