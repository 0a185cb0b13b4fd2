"""A Hugging Face `config.json` to and from our own description of an encoder.

Every value is checked before an encoder is built from it: a damaged or hostile file must not make
us ask for the memory of an encoder that cannot exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from litotes.core.errors import UserError
from litotes.core.registry import pick
from litotes.encoder.config_spellings import NORMALISERS
from litotes.encoder.families import FAMILIES, Family
from litotes.encoder.spec import POSITION_TERMS, EncoderSpec

_LIMITS = {
    "n_vocabulary": (1, 10_000_000),
    "width": (1, 65_536),
    "n_layers": (1, 1_000),
    "n_attention_heads": (1, 1_024),
    "inner_width": (1, 1_000_000),
    "n_positions": (3, 1_000_000),
    "padding_piece": (0, 10_000_000),
    "n_segments": (1, 1_024),
    "embedding_width": (1, 65_536),
    "n_layer_groups": (1, 1_000),
    "group_size": (1, 1_000),
    "n_relative_buckets": (4, 10_000),
    "n_distance_buckets": (4, 100_000),
    "farthest": (2, 1_000_000),
    "window": (1, 1_000_000),
    "global_every": (1, 1_000),
    "first_position": (0, 1_000_000),
}

_MAY_BE_ZERO = (
    "n_segments",
    "embedding_width",
    "n_layer_groups",
    "n_relative_buckets",
    "n_distance_buckets",
    "farthest",
    "window",
    "rotary_base",
    "local_rotary_base",
)
"""Of an encoder that has no such thing."""

_KINDS: dict[str, type | tuple[type, ...]] = {
    "family": str,
    "activation": str,
    "weighting": str,
    "pruning": str,
    "weighting_options": dict,
    "pruning_options": dict,
    "heads_kept": (list, tuple),
    "has_projection": bool,
    "has_positions": bool,
    "position_terms": (list, tuple),
    "distance_norm": str,
    "shares_projections": bool,
    "is_gated": bool,
    "norm_first": bool,
    "attention_bias": bool,
    "feed_forward_bias": bool,
    "norm_bias": bool,
}
"""Of the settings that are not numbers."""

_LARGEST_BASE = 1e12
"""Of the angles of rotary positions."""

_REFUSED = {
    "auto_map": "names Python code to be run, and litotes runs no code from a model folder",
    "custom_pipelines": "names Python code to be run, and litotes runs no code from a model folder",
    "_attn_implementation": (
        "asks for an attention implementation to be fetched, and litotes runs no code from a model"
        " folder"
    ),
    "_attn_implementation_internal": (
        "asks for an attention implementation to be fetched, and litotes runs no code from a model"
        " folder"
    ),
    "is_decoder": "describes a decoder, and litotes reads encoders",
    "quantization_config": (
        "describes quantised weights; save the model in float32 or float16 first"
    ),
}


def spec_from_config(config: Mapping[str, Any], where: str) -> EncoderSpec:
    """Reads a Hugging Face `config.json`; `where` names the file in errors."""
    _check_supported(config, where)
    name = config.get("model_type", "")
    family = pick(FAMILIES, str(name), f"encoder family (model_type in {where})")
    if name in NORMALISERS:
        config = NORMALISERS[name](config, where)
    values = _read_values(config, family, where)
    _check_ranges(values, family, where)
    if name in ("roberta", "xlm-roberta"):
        values["first_position"] = values["padding_piece"] + 1
    if name == "electra":
        values["has_projection"] = values["embedding_width"] != values["width"]
    spec = EncoderSpec(name, **values)
    try:
        _check_positions(spec)
    except ValueError as error:
        raise UserError(f"{where}: {error}. Download or save the encoder again.") from error
    return spec


def _check_supported(config: Mapping[str, Any], where: str) -> None:
    for key, reason in _REFUSED.items():
        if config.get(key):
            raise UserError(f"{where}: {key!r} {reason}. Use a plain encoder folder instead.")
    positions = config.get("position_embedding_type", "absolute")
    if positions != "absolute":
        raise UserError(
            f"{where}: position_embedding_type {positions!r} is not supported, only 'absolute'."
        )


def _read_values(config: Mapping[str, Any], family: Family, where: str) -> dict[str, Any]:
    """The settings by our names."""
    values = dict(family.fixed)
    for ours, theirs in family.keys.items():
        value = config.get(theirs, family.defaults.get(ours))
        if value is None:
            raise UserError(
                f"{where}: the key {theirs!r} is missing; a {config['model_type']} encoder cannot"
                " be built without it."
            )
        values[ours] = value
    return values


def _check_ranges(values: Mapping[str, Any], family: Family, where: str) -> None:
    """Refuses values that no encoder has, before memory is asked for them."""
    for ours, theirs in family.keys.items():
        if not _can_be(ours, values[ours]):
            raise UserError(
                f"{where}: {theirs} = {values[ours]!r} is not something an encoder can be built"
                " with."
            )
    width, n_attention_heads = values["width"], values["n_attention_heads"]
    if width % n_attention_heads:
        raise UserError(
            f"{where}: width {width} is not a multiple of {n_attention_heads} attention heads."
        )


def _can_be(setting: str, value: Any) -> bool:
    """Whether an encoder can have the setting, or can be without it."""
    is_absent = setting in _MAY_BE_ZERO and type(value) in (int, float) and value == 0
    return is_absent or _is_plausible(setting, value)


def _is_plausible(setting: str, value: Any) -> bool:
    if setting in _KINDS:
        return isinstance(value, _KINDS[setting])
    if isinstance(value, bool):
        return False
    if setting in ("rotary_base", "local_rotary_base"):
        return isinstance(value, int | float) and 1 < value <= _LARGEST_BASE
    if setting not in _LIMITS:  # a dropout or an epsilon
        return isinstance(value, int | float) and 0 <= value < 1
    lowest, highest = _LIMITS[setting]
    return isinstance(value, int) and lowest <= value <= highest


def spec_from_json(content: Mapping[str, Any]) -> EncoderSpec:
    """Reads what `EncoderSpec.as_json` wrote; what no encoder can have is a ValueError."""
    known = {field.name for field in fields(EncoderSpec)}
    for setting, value in content.items():
        if setting not in known:
            raise ValueError(f"the encoder's setting {setting!r} is unknown")
        if not _can_be(setting, value):
            raise ValueError(f"no encoder has {setting} = {value!r:.60}")
    spec = EncoderSpec(**content)
    if spec.family not in FAMILIES:
        raise ValueError(f"the encoder family {spec.family!r:.60} is unknown")
    if spec.width % spec.n_attention_heads:
        raise ValueError(
            f"width {spec.width} is not a multiple of {spec.n_attention_heads} attention heads"
        )
    if spec.max_pieces < 1:
        raise ValueError(f"{spec.n_positions} positions leave no room for a text")
    _check_positions(spec)
    _check_heads(spec)
    return spec


def _check_positions(spec: EncoderSpec) -> None:
    """Settings of positions that go together."""
    terms = [term for term in POSITION_TERMS if term in spec.position_terms]
    if sorted(map(repr, spec.position_terms)) != sorted(map(repr, terms)):
        raise ValueError(f"no encoder has position_terms = {spec.position_terms!r:.60}")
    if terms and spec.farthest - 1 <= spec.n_distance_buckets // 2:
        raise ValueError(
            f"{spec.n_distance_buckets} buckets are too many for distances up to {spec.farthest}"
        )
    if spec.distance_norm not in ("none", "layer_norm"):
        raise ValueError(f"no encoder has distance_norm = {spec.distance_norm!r:.60}")
    if spec.rotary_base and spec.head_width % 2:
        raise ValueError(
            f"attention heads {spec.head_width} wide cannot be turned by rotary positions, which"
            " take two numbers at a time"
        )


def _check_heads(spec: EncoderSpec) -> None:
    """Every block has attention heads, and none twice."""
    if not spec.heads_kept:
        return
    if len(spec.heads_kept) != spec.n_blocks:
        raise ValueError(f"heads_kept of {len(spec.heads_kept)} blocks; there are {spec.n_blocks}")
    possible = range(spec.n_attention_heads)
    for heads in spec.heads_kept:
        is_list = isinstance(heads, list | tuple) and all(type(head) is int for head in heads)
        if not is_list or not heads or sorted(set(heads).intersection(possible)) != sorted(heads):
            raise ValueError(f"no block has the attention heads {heads!r:.60}")


def config_from_spec(spec: EncoderSpec) -> dict[str, Any]:
    """The `config.json` from which `transformers` builds the same encoder."""
    family = FAMILIES[spec.family]
    config: dict[str, Any] = {
        "architectures": [family.architecture],
        "model_type": spec.family,
        "torch_dtype": "float32",
        **family.written,
    }
    for ours, theirs in family.keys.items():
        config[theirs] = getattr(spec, ours)
    return config
