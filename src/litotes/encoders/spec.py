"""An encoder's size and shape as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class EncoderSpec:
    """All that is needed to build an encoder of any family; the family's table (families.py) fills
    it from a `config.json`.

    first_position: the position number of a text's first piece (2 for RoBERTa and MPNet, whose
    first rows are reserved).
    n_segments: 0 for families that do not tell the two texts of a pair apart.
    n_layer_groups, group_size: ALBERT walks few blocks many times; 0 groups mean a block of its own
    for every layer.
    n_relative_buckets: MPNet's relative positions; 0 elsewhere.
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
    n_relative_buckets: int = 0
    weighting: str = "softmax"
    weighting_options: Mapping[str, Any] = field(default_factory=dict)
    pruning: str = "none"
    pruning_options: Mapping[str, Any] = field(default_factory=dict)
    heads_kept: Sequence[Sequence[int]] = ()

    @property
    def max_pieces(self) -> int:
        """The longest text the position table has room for, special pieces included."""
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

    def heads_of(self, block: int) -> Sequence[int]:
        """The attention heads block `block` has, by their first numbers."""
        return self.heads_kept[block] if self.heads_kept else range(self.n_attention_heads)

    @property
    def is_plain(self) -> bool:
        """Whether `transformers` computes the same from the weights."""
        return self.weighting == "softmax" and self.pruning == "none" and not self.heads_kept

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
