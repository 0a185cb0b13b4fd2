"""An encoder's size and shape, and its family, as data.

Everything that differs between BERT, RoBERTa, DistilBERT, ELECTRA, ALBERT, MPNet, DeBERTa and
ModernBERT stands in families.toml and in what a `config.json` says; the walk knows none of them.
Every value is checked before an encoder is built from it: a damaged or hostile file must not make
us ask for the memory of an encoder that cannot exist.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.core.registry import pick

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
    position_terms: of disentangled attention (DeBERTa), `c2p` and `p2c`; its
    distances reach to `farthest`, in `n_distance_buckets` (0: a bucket for each distance), their
    embeddings normed by `distance_norm` (none or layer_norm) and projected as the pieces are
    (`shares_projections`) or on their own.
    rotary_base: θ of rotary positions (ModernBERT), `local_rotary_base` that of layers
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
        """Tells whether the pieces of this layer read only those near them."""
        return self.window > 0 and layer % self.global_every != 0

    def heads_of(self, block: int) -> Sequence[int]:
        """The attention heads block `block` has, by their first numbers."""
        return self.heads_kept[block] if self.heads_kept else range(self.n_attention_heads)

    @property
    def is_plain(self) -> bool:
        """True if `transformers` computes the same from the weights."""
        return self.weighting == "softmax" and self.pruning == "none" and not self.heads_kept

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Family:
    """One family, as families.toml has it."""

    architecture: str
    prefix: str
    qkv: Sequence[str]
    keys: Mapping[str, str]
    weights: Mapping[str, str]
    defaults: Mapping[str, Any]
    fixed: Mapping[str, Any]
    written: Mapping[str, Any]
    classifier: Sequence[str]
    classifier_config: dict[str, Any]


def _read_families() -> tuple[dict[str, Family], dict[str, tuple[float, float]]]:
    """The families, and between which numbers a setting may lie."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    limits, families = tables.pop("limits"), dict[str, Any]()
    for name, table in tables.items():
        base: dict[str, Any] = families.get(table.pop("like", ""), {})
        families[name] = base | table
        for part in ("keys", "weights", "defaults", "fixed", "written", "classifier_config"):
            whole = base.get(part, {}) | table.get(part, {})
            families[name][part] = {ours: theirs for ours, theirs in whole.items() if theirs != ""}
    return {name: Family(**table) for name, table in families.items()}, limits


FAMILIES, LIMITS = _read_families()

_TABLES = (
    "embeddings.piece",
    "embeddings.position",
    "embeddings.segment",
    "relative_bias.by_bucket",
    "distances.table",
)
"""Parts that are looked up: they have no offset."""


def weight_names(spec: EncoderSpec) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Pairs of our weight name and the family's; three of the family's for the fused projection."""
    family = FAMILIES[spec.family]
    patterns = {ours: [theirs] for ours, theirs in family.weights.items()}
    for ours, theirs in {**patterns, "blocks.{block}.attention.qkv": family.qkv}.items():
        if not _has_part(spec, ours):
            continue
        suffixes = (".weight", ".bias") if _has_bias(spec, ours) else (".weight",)
        # where norms come first, the embeddings' is that of the first block's attention
        first = int(spec.norm_first and ours.endswith("attention_norm"))
        # a part of no block is named once
        for block in range(first, spec.n_blocks) if "{block}" in ours else (0,):
            group, inner = divmod(block, spec.group_size)
            place = {"block": block, "group": group, "inner": inner}
            for suffix in suffixes:
                names = tuple(name.format(**place) + suffix for name in theirs)
                yield ours.format(**place) + suffix, names


def _has_part(spec: EncoderSpec, ours: str) -> bool:
    """Tells whether an encoder of this family has the part; most parts are always there."""
    own_terms = () if spec.shares_projections else spec.position_terms
    optional = {
        "embeddings.projection": spec.has_projection,
        "embeddings.position": spec.has_positions,
        "embeddings.segment": spec.n_segments > 0,
        "distances.norm": spec.distance_norm == "layer_norm",
        "blocks.{block}.attention.disentangled.key": "c2p" in own_terms,
        "blocks.{block}.attention.disentangled.query": "p2c" in own_terms,
    }
    return optional.get(ours, True)


def _has_bias(spec: EncoderSpec, ours: str) -> bool:
    if ours in _TABLES:
        return False
    if ours.endswith("norm"):
        return spec.norm_bias
    if ours.endswith((".inner", ".outer")):
        return spec.feed_forward_bias
    return spec.attention_bias or not ours.endswith((".qkv", ".attention.output"))


Config = Mapping[str, Any]


def normalise_deberta(config: Config, where: str) -> Config:
    """DeBERTa-v2 and v3."""
    width: Any = config.get("hidden_size")
    n_heads: Any = config.get("num_attention_heads")
    are_counts = isinstance(width, int) and isinstance(n_heads, int) and n_heads > 0
    supported = {
        "relative_attention": (True,),
        "conv_kernel_size": (None, 0),  # after the first layer
        "embedding_size": (None, width),
        "attention_head_size": (None, width / n_heads if are_counts else None),
    }
    for key, values in supported.items():
        if config.get(key) not in values:
            raise UserError(
                f"{where}: a deberta-v2 encoder with {key} = {config.get(key)!r:.60} is not"
                " supported. Use one with relative_attention, without a convolution, and with"
                " embedding_size and num_attention_heads × attention_head_size equal to"
                " hidden_size, as all DeBERTa-v3 are."
            )
    terms = config.get("pos_att_type") or ()
    if isinstance(terms, str):  # "p2c|c2p" in the first checkpoints
        terms = [term.strip() for term in terms.lower().split("|")]
    if not terms or not set(map(str, terms)) <= set(POSITION_TERMS):
        raise UserError(
            f"{where}: pos_att_type {config.get('pos_att_type')!r} is not supported, only c2p and"
            " p2c, one or both."
        )
    norm = str(config.get("norm_rel_ebd") or "none").strip().lower()
    if norm not in ("none", "layer_norm"):
        raise UserError(f"{where}: norm_rel_ebd {norm!r} is not supported, only 'layer_norm'.")
    changes = {
        "pos_att_type": [term for term in POSITION_TERMS if term in terms],
        "norm_rel_ebd": norm,
        "position_buckets": _or_instead(config.get("position_buckets"), 0),
        "max_relative_positions": _or_instead(
            config.get("max_relative_positions"), config.get("max_position_embeddings")
        ),
    }
    return {**config, **changes}


def _or_instead(value: Any, instead: Any) -> Any:
    """DeBERTa's −1 stands for another number."""
    return instead if value is None or (type(value) is int and value < 1) else value


def normalise_modernbert(config: Config, where: str) -> Config:
    """Since transformers 5 a list of layers and a table of rotations take the place of four
    numbers.
    """
    rotations = _table(config, "rope_parameters", where)
    changes: dict[str, Any] = {}
    for kind, key in _THETAS.items():
        rotation = _table(rotations, kind, where)
        if rotation.get("rope_type", "default") != "default" or config.get("rope_scaling"):
            raise UserError(
                f"{where}: rotary positions that are scaled (rope_type other than 'default') are"
                " not supported. Use the encoder as it was before it was stretched to longer texts."
            )
        if "rope_theta" in rotation:
            changes[key] = rotation["rope_theta"]
    if config.get("local_rope_theta", 0) is None:  # as in the layers that read the whole text
        changes.setdefault("local_rope_theta", config.get("global_rope_theta"))
    if config.get("layer_types"):
        changes["global_attn_every_n_layers"] = _global_every(config["layer_types"], where)
    return {**config, **changes}


_THETAS = {"full_attention": "global_rope_theta", "sliding_attention": "local_rope_theta"}


def _table(config: Config, key: str, where: str) -> Config:
    found = config.get(key) or {}
    if not isinstance(found, dict):
        raise UserError(f"{where}: {key} = {found!r:.60} should be a table of settings.")
    return found


def _global_every(layer_types: Any, where: str) -> int:
    """The n for which every n-th layer reads the whole text and the others do not."""
    kinds = layer_types if isinstance(layer_types, list) else [None]
    is_global = [kind == "full_attention" for kind in kinds]
    later = [layer for layer, whole in enumerate(is_global) if whole and layer > 0]
    every = later[0] if later else len(is_global)
    if is_global != [layer % every == 0 for layer in range(len(is_global))]:
        raise UserError(
            f"{where}: layer_types of this kind are not supported: every n-th layer, from the first"
            " on, has to be 'full_attention' and the others 'sliding_attention'."
        )
    return every


NORMALISERS: dict[str, Callable[[Config, str], Config]] = {
    "deberta-v2": normalise_deberta,
    "modernbert": normalise_modernbert,
}


SHARE = (0, 1 - 1e-9)
"""The limits of numbers that have none in families.toml: of a dropout, of an epsilon."""

_KINDS: dict[str, Any] = {"str": str, "bool": bool, "Mapping": dict, "Sequence": (list, tuple)}
"""Of the settings that are not numbers, by how they are annotated."""

_REFUSED = {
    **dict.fromkeys(
        ("auto_map", "custom_pipelines", "_attn_implementation", "_attn_implementation_internal"),
        "names code to be fetched or run, and litotes runs no code from a model folder",
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
    values = dict(family.fixed)
    for ours, theirs in family.keys.items():
        value = values[ours] = config.get(theirs, family.defaults.get(ours))
        if value is None:
            raise UserError(
                f"{where}: the key {theirs!r} is missing; a {name} encoder cannot be built without"
                " it."
            )
        # before memory is asked for
        if not _can_be(ours, value):
            raise UserError(
                f"{where}: {theirs} = {value!r} is not something an encoder can be built with."
            )
    if name in ("roberta", "xlm-roberta"):
        values["first_position"] = values["padding_piece"] + 1
    if name == "electra":
        values["has_projection"] = values["embedding_width"] != values["width"]
    spec = EncoderSpec(name, **values)
    try:
        _check_together(spec)
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


def _can_be(setting: str, value: Any) -> bool:
    """Tells whether an encoder's setting can have the value."""
    kind = EncoderSpec.__annotations__[setting].partition("[")[0]
    if kind in _KINDS:
        return isinstance(value, _KINDS[kind])
    if isinstance(value, bool) or not isinstance(value, int if kind == "int" else int | float):
        return False
    lowest, highest = LIMITS.get(setting, SHARE)
    return lowest <= value <= highest or value == getattr(EncoderSpec, setting, None) == 0


def spec_from_json(content: Mapping[str, Any]) -> EncoderSpec:
    """Reads what `EncoderSpec.as_json` wrote; what no encoder can have is a ValueError."""
    for setting, value in content.items():
        if setting not in EncoderSpec.__annotations__:
            raise ValueError(f"the encoder's setting {setting!r} is unknown")
        if not _can_be(setting, value):
            raise ValueError(f"no encoder has {setting} = {value!r:.60}")
    spec = EncoderSpec(**content)
    if spec.family not in FAMILIES:
        raise ValueError(f"the encoder family {spec.family!r:.60} is unknown")
    _check_together(spec)
    return spec


def _check_together(spec: EncoderSpec) -> None:
    """Settings that have to go together."""
    terms = [term for term in POSITION_TERMS if term in spec.position_terms]
    possible = range(spec.n_attention_heads)
    impossible = {
        f"width {spec.width} is not a multiple of {spec.n_attention_heads} attention heads": (
            spec.width % spec.n_attention_heads != 0
        ),
        f"{spec.n_positions} positions leave no room for a text": spec.max_pieces < 1,
        f"no encoder has position_terms = {spec.position_terms!r:.60}": (
            sorted(map(repr, spec.position_terms)) != sorted(map(repr, terms))
        ),
        f"{spec.n_distance_buckets} buckets are too many for distances up to {spec.farthest}": (
            bool(terms) and spec.farthest - 1 <= spec.n_distance_buckets // 2
        ),
        f"no encoder has distance_norm = {spec.distance_norm!r:.60}": (
            spec.distance_norm not in ("none", "layer_norm")
        ),
        f"attention heads {spec.head_width} wide cannot be turned by rotary positions, which take"
        " two numbers at a time": bool(spec.rotary_base) and spec.head_width % 2 == 1,
        f"heads_kept of {len(spec.heads_kept)} blocks; there are {spec.n_blocks}": (
            len(spec.heads_kept) not in (0, spec.n_blocks)
        ),
    }
    for reason, is_so in impossible.items():
        if is_so:
            raise ValueError(reason)
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
