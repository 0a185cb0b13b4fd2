"""An encoder's size and shape as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

POSITION_TERMS = ("c2p", "p2c")
"""Of disentangled attention: a piece's content against the distance to another, and the reverse."""


@dataclass(frozen=True)
class EncoderSpec:
    """All that is needed to build an encoder of any family; the family's table (families.py) fills
    it from a `config.json`.

    first_position: the position number of a text's first piece (2 for RoBERTa and MPNet, whose
    first rows are reserved).
    n_segments: 0 for families that do not tell the two texts of a pair apart.
    n_layer_groups, group_size: ALBERT walks few blocks many times; 0 groups mean a block of its own
    for every layer.
    has_positions: whether the embeddings have a table of positions; else attention alone knows
    where a piece stands, by one of the three kinds that follow.
    n_relative_buckets: MPNet's bias by distance; 0 elsewhere.
    position_terms: of disentangled attention (DeBERTa, disentangled.py), `c2p` and `p2c`; its
    distances reach to `farthest`, in `n_distance_buckets` (0: a bucket for each distance), their
    embeddings normed by `distance_norm` (none or layer_norm) and projected as the pieces are
    (`shares_projections`) or on their own.
    rotary_base: θ of rotary positions (ModernBERT, rotary.py), `local_rotary_base` that of layers
    with a window; 0 elsewhere.
    window: how far a local layer looks, half of it to either side; every `global_every`-th layer
    looks at the whole text. 0: all layers do.
    is_gated: the feed-forward part multiplies by a gate. norm_first: norms come before attention
    and feed-forward instead of after, and one more at the end.
    attention_bias, feed_forward_bias, norm_bias: whether these have offsets.
    weighting, pruning and their options: the two seams of attention, see `litotes list weightings`
    and `litotes list prunings`.
    heads_kept: the attention heads each block still has, by their first numbers; empty where no
    block has lost any.
    """

    family: str
    n_vocabulary: int
    width: int
    n_layers: int
    n_attention_heads: int
    inner_width: int
    n_positions: int
    n_segments: int = 0
    embedding_width: int = 0
    has_projection: bool = False
    activation: str = "gelu"
    norm_epsilon: float = 1e-12
    dropout: float = 0.1
    attention_dropout: float = 0.1
    padding_piece: int = 0
    first_position: int = 0
    n_layer_groups: int = 0
    group_size: int = 1
    has_positions: bool = True
    n_relative_buckets: int = 0
    position_terms: Sequence[str] = ()
    n_distance_buckets: int = 0
    farthest: int = 0
    distance_norm: str = "none"
    shares_projections: bool = False
    rotary_base: float = 0.0
    local_rotary_base: float = 0.0
    window: int = 0
    global_every: int = 1
    is_gated: bool = False
    norm_first: bool = False
    attention_bias: bool = True
    feed_forward_bias: bool = True
    norm_bias: bool = True
    weighting: str = "softmax"
    weighting_options: Mapping[str, Any] = field(default_factory=dict)
    pruning: str = "none"
    pruning_options: Mapping[str, Any] = field(default_factory=dict)
    heads_kept: Sequence[Sequence[int]] = ()

    @property
    def max_pieces(self) -> int:
        """The longest text the encoder was made for, special pieces included."""
        return self.n_positions - self.first_position

    @property
    def n_blocks(self) -> int:
        """Blocks with weights of their own."""
        return self.n_layer_groups * self.group_size if self.n_layer_groups else self.n_layers

    @property
    def walk(self) -> tuple[int, ...]:
        """The block each layer uses, in order."""
        if not self.n_layer_groups:
            return tuple(range(self.n_layers))
        per_group = self.n_layers / self.n_layer_groups
        return tuple(
            int(layer / per_group) * self.group_size + inner
            for layer in range(self.n_layers)
            for inner in range(self.group_size)
        )

    @property
    def head_width(self) -> int:
        return self.width // self.n_attention_heads

    @property
    def n_distances(self) -> int:
        """Buckets of distances to one side, for disentangled attention."""
        return self.n_distance_buckets or self.farthest

    def is_local(self, layer: int) -> bool:
        """Whether the pieces of this layer read only those near them."""
        return self.window > 0 and layer % self.global_every != 0

    def heads_of(self, block: int) -> Sequence[int]:
        """The attention heads block `block` has, by their first numbers."""
        return self.heads_kept[block] if self.heads_kept else range(self.n_attention_heads)

    @property
    def is_plain(self) -> bool:
        """Whether `transformers` computes the same from the weights."""
        return self.weighting == "softmax" and self.pruning == "none" and not self.heads_kept

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
