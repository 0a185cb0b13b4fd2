"""A decoder's size and shape as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

POSITIONS = ("sinusoidal", "learned")
TIES = ("all", "target", "none")
_MOST = {"n_layers": 1000, "n_attention_heads": 1024}
_LARGEST = 2**24


@dataclass(frozen=True)
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

    n_vocabulary: int
    width: int
    source_width: int
    n_layers: int
    n_attention_heads: int
    inner_width: int
    n_positions: int
    positions: str = "sinusoidal"
    norm_first: bool = True
    tied: str = "all"
    activation: str = "relu"
    norm_epsilon: float = 1e-6
    dropout: float = 0.1
    attention_dropout: float = 0.1
    weighting: str = "softmax"
    weighting_options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def head_width(self) -> int:
        return self.width // self.n_attention_heads

    @property
    def n_weights(self) -> int:
        """At least: biases and norms are not counted, nor tables of pieces that are shared."""
        attention = 4 * self.width * self.width + 2 * self.width * (self.width + self.source_width)
        blocks = self.n_layers * (attention + 2 * self.width * self.inner_width)
        n_tables = {"all": 0, "target": 1, "none": 2}[self.tied]
        return blocks + (self.n_positions + n_tables * self.n_vocabulary) * self.width

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def decoder_spec_from_json(content: Mapping[str, Any]) -> DecoderSpec:
    """Reads what `DecoderSpec.as_json` wrote; what no decoder can have is a ValueError."""
    if not isinstance(content, dict):
        raise ValueError("the decoder is not a table")
    known = {one.name: one for one in fields(DecoderSpec)}
    for setting, value in content.items():
        if setting not in known:
            raise ValueError(f"the decoder's setting {setting!r:.60} is unknown")
        if not _can_be(setting, known[setting].type, value):
            raise ValueError(f"no decoder has {setting} = {value!r:.60}")
    spec = DecoderSpec(**content)
    if spec.width % spec.n_attention_heads:
        raise ValueError(
            f"width {spec.width} is not a multiple of {spec.n_attention_heads} attention heads"
        )
    return spec


def _can_be(setting: str, kind: object, value: Any) -> bool:
    match kind:
        case "int":
            return type(value) is int and 1 <= value <= _MOST.get(setting, _LARGEST)
        case "float":
            return type(value) in (int, float) and 0 <= value < 1
        case "bool":
            return isinstance(value, bool)
        case "str":
            choices = {"positions": POSITIONS, "tied": TIES}.get(setting)
            return isinstance(value, str) and (choices is None or value in choices)
    return isinstance(value, dict)
