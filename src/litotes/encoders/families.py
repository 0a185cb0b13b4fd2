"""Encoder families as data: how each spells its settings and its weights.

Everything that differs between BERT, RoBERTa, DistilBERT, ELECTRA, ALBERT and MPNet stands in this
table; the encoder itself (encoder.py) knows none of them. In weight names `{block}` counts blocks;
ALBERT counts groups and places within a group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from litotes.core.errors import UserError
from litotes.core.registry import pick
from litotes.encoders.spec import EncoderSpec


@dataclass(frozen=True)
class Family:
    """One family: `config.json` keys by our names, values it fixes, and its weight names by ours.

    qkv: the names of the three projections that we hold fused.
    prefix: what checkpoints with a task head put before every encoder weight.
    """

    architecture: str
    prefix: str
    keys: Mapping[str, str]
    weights: Mapping[str, str]
    qkv: tuple[str, str, str]
    defaults: Mapping[str, Any]
    fixed: Mapping[str, Any] = field(default_factory=dict)


_COMMON_KEYS = {
    "n_vocabulary": "vocab_size",
    "width": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_attention_heads": "num_attention_heads",
    "inner_width": "intermediate_size",
    "n_positions": "max_position_embeddings",
    "activation": "hidden_act",
    "norm_epsilon": "layer_norm_eps",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "padding_piece": "pad_token_id",
}
_SEGMENTS = {"n_segments": "type_vocab_size"}
_NARROW = {"embedding_width": "embedding_size"}
_GROUPS = {"n_layer_groups": "num_hidden_groups", "group_size": "inner_group_num"}

_DISTILBERT_KEYS = {
    "n_vocabulary": "vocab_size",
    "width": "dim",
    "n_layers": "n_layers",
    "n_attention_heads": "n_heads",
    "inner_width": "hidden_dim",
    "n_positions": "max_position_embeddings",
    "activation": "activation",
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "padding_piece": "pad_token_id",
}

# What a family assumes where its config.json is silent.
_BASE_DEFAULTS = {
    "activation": "gelu",
    "norm_epsilon": 1e-12,
    "dropout": 0.1,
    "attention_dropout": 0.1,
    "padding_piece": 0,
}
_ROBERTA_DEFAULTS = _BASE_DEFAULTS | {"padding_piece": 1}

_EMBEDDINGS = {
    "embeddings.piece": "embeddings.word_embeddings",
    "embeddings.position": "embeddings.position_embeddings",
    "embeddings.norm": "embeddings.LayerNorm",
}
_SEGMENT_EMBEDDING = {"embeddings.segment": "embeddings.token_type_embeddings"}

_BERT_BLOCK = "encoder.layer.{block}."
_BERT_WEIGHTS = (
    _EMBEDDINGS
    | _SEGMENT_EMBEDDING
    | {
        "blocks.{block}.attention.output": _BERT_BLOCK + "attention.output.dense",
        "blocks.{block}.attention_norm": _BERT_BLOCK + "attention.output.LayerNorm",
        "blocks.{block}.inner": _BERT_BLOCK + "intermediate.dense",
        "blocks.{block}.outer": _BERT_BLOCK + "output.dense",
        "blocks.{block}.outer_norm": _BERT_BLOCK + "output.LayerNorm",
    }
)
_BERT_QKV = (
    _BERT_BLOCK + "attention.self.query",
    _BERT_BLOCK + "attention.self.key",
    _BERT_BLOCK + "attention.self.value",
)

_DISTILBERT_BLOCK = "transformer.layer.{block}."
_DISTILBERT_WEIGHTS = _EMBEDDINGS | {
    "blocks.{block}.attention.output": _DISTILBERT_BLOCK + "attention.out_lin",
    "blocks.{block}.attention_norm": _DISTILBERT_BLOCK + "sa_layer_norm",
    "blocks.{block}.inner": _DISTILBERT_BLOCK + "ffn.lin1",
    "blocks.{block}.outer": _DISTILBERT_BLOCK + "ffn.lin2",
    "blocks.{block}.outer_norm": _DISTILBERT_BLOCK + "output_layer_norm",
}
_DISTILBERT_QKV = (
    _DISTILBERT_BLOCK + "attention.q_lin",
    _DISTILBERT_BLOCK + "attention.k_lin",
    _DISTILBERT_BLOCK + "attention.v_lin",
)

_ALBERT_BLOCK = "encoder.albert_layer_groups.{group}.albert_layers.{inner}."
_ALBERT_WEIGHTS = (
    _EMBEDDINGS
    | _SEGMENT_EMBEDDING
    | {
        "embeddings.projection": "encoder.embedding_hidden_mapping_in",
        "blocks.{block}.attention.output": _ALBERT_BLOCK + "attention.dense",
        "blocks.{block}.attention_norm": _ALBERT_BLOCK + "attention.LayerNorm",
        "blocks.{block}.inner": _ALBERT_BLOCK + "ffn",
        "blocks.{block}.outer": _ALBERT_BLOCK + "ffn_output",
        "blocks.{block}.outer_norm": _ALBERT_BLOCK + "full_layer_layer_norm",
    }
)
_ALBERT_QKV = (
    _ALBERT_BLOCK + "attention.query",
    _ALBERT_BLOCK + "attention.key",
    _ALBERT_BLOCK + "attention.value",
)

_MPNET_WEIGHTS = _EMBEDDINGS | {
    "relative_bias.by_bucket": "encoder.relative_attention_bias",
    "blocks.{block}.attention.output": _BERT_BLOCK + "attention.attn.o",
    "blocks.{block}.attention_norm": _BERT_BLOCK + "attention.LayerNorm",
    "blocks.{block}.inner": _BERT_BLOCK + "intermediate.dense",
    "blocks.{block}.outer": _BERT_BLOCK + "output.dense",
    "blocks.{block}.outer_norm": _BERT_BLOCK + "output.LayerNorm",
}
_MPNET_QKV = (
    _BERT_BLOCK + "attention.attn.q",
    _BERT_BLOCK + "attention.attn.k",
    _BERT_BLOCK + "attention.attn.v",
)

FAMILIES: dict[str, Family] = {
    "bert": Family(
        "BertModel",
        "bert.",
        _COMMON_KEYS | _SEGMENTS,
        _BERT_WEIGHTS,
        _BERT_QKV,
        _BASE_DEFAULTS | {"n_segments": 2},
    ),
    "roberta": Family(
        "RobertaModel",
        "roberta.",
        _COMMON_KEYS | _SEGMENTS,
        _BERT_WEIGHTS,
        _BERT_QKV,
        _ROBERTA_DEFAULTS | {"n_segments": 2},
    ),
    "xlm-roberta": Family(
        "XLMRobertaModel",
        "roberta.",
        _COMMON_KEYS | _SEGMENTS,
        _BERT_WEIGHTS,
        _BERT_QKV,
        _ROBERTA_DEFAULTS | {"n_segments": 2},
    ),
    "distilbert": Family(
        "DistilBertModel",
        "distilbert.",
        _DISTILBERT_KEYS,
        _DISTILBERT_WEIGHTS,
        _DISTILBERT_QKV,
        _BASE_DEFAULTS,
    ),
    "electra": Family(
        "ElectraModel",
        "electra.",
        _COMMON_KEYS | _SEGMENTS | _NARROW,
        _BERT_WEIGHTS | {"embeddings.projection": "embeddings_project"},
        _BERT_QKV,
        _BASE_DEFAULTS | {"n_segments": 2, "embedding_width": 128},
    ),
    "albert": Family(
        "AlbertModel",
        "albert.",
        _COMMON_KEYS | _SEGMENTS | _NARROW | _GROUPS,
        _ALBERT_WEIGHTS,
        _ALBERT_QKV,
        {
            "activation": "gelu_new",
            "norm_epsilon": 1e-12,
            "dropout": 0.0,
            "attention_dropout": 0.0,
            "padding_piece": 0,
            "n_segments": 2,
            "embedding_width": 128,
            "n_layer_groups": 1,
            "group_size": 1,
        },
        fixed={"has_projection": True},
    ),
    "mpnet": Family(
        "MPNetModel",
        "mpnet.",
        _COMMON_KEYS | {"n_relative_buckets": "relative_attention_num_buckets"},
        _MPNET_WEIGHTS,
        _MPNET_QKV,
        _ROBERTA_DEFAULTS | {"n_relative_buckets": 32},
        fixed={"first_position": 2},  # whatever the padding piece is called
    ),
}

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
}

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
    for key, reason in _REFUSED.items():
        if config.get(key):
            raise UserError(f"{where}: {key!r} {reason}. Use a plain encoder folder instead.")
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise UserError(
            f"{where}: position_embedding_type {config['position_embedding_type']!r} is not"
            " supported, only 'absolute'."
        )
    name = config.get("model_type", "")
    family = pick(FAMILIES, str(name), f"encoder family (model_type in {where})")
    values = {"family": name} | dict(family.fixed)
    for ours, theirs in family.keys.items():
        value = config.get(theirs, family.defaults.get(ours))
        if value is None:
            raise UserError(
                f"{where}: the key {theirs!r} is missing; a {name} encoder cannot be built"
                " without it."
            )
        values[ours] = value
    _check_ranges(values, family, where)
    if name in ("roberta", "xlm-roberta"):
        values["first_position"] = values["padding_piece"] + 1
    if name == "electra":
        values["has_projection"] = values["embedding_width"] != values["width"]
    if values["width"] % values["n_attention_heads"]:
        raise UserError(
            f"{where}: width {values['width']} is not a multiple of {values['n_attention_heads']}"
            " attention heads."
        )
    return EncoderSpec(**values)


def _check_ranges(values: Mapping[str, Any], family: Family, where: str) -> None:
    """Numbers that are none, or that no encoder has, are told before memory is asked for them."""
    for ours, theirs in family.keys.items():
        value, limits = values[ours], _LIMITS.get(ours)
        if limits is None:
            fits = (
                isinstance(value, str)
                if ours == "activation"
                else isinstance(value, int | float) and 0 <= value < 1
            )
        else:
            fits = (
                isinstance(value, int)
                and not isinstance(value, bool)
                and limits[0] <= value <= limits[1]
            )
        if not fits:
            raise UserError(
                f"{where}: {theirs} = {value!r} is not something an encoder can be built with."
            )


def config_from_spec(spec: EncoderSpec) -> dict[str, Any]:
    """The `config.json` from which `transformers` builds the same encoder."""
    family = FAMILIES[spec.family]
    settings = {theirs: getattr(spec, ours) for ours, theirs in family.keys.items()}
    return {
        "architectures": [family.architecture],
        "model_type": spec.family,
        "torch_dtype": "float32",
    } | settings


def weight_names(spec: EncoderSpec) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Pairs of our weight name and the family's; three of the family's for the fused projection."""
    family = FAMILIES[spec.family]
    table = {ours: (theirs,) for ours, theirs in family.weights.items()} | {
        "blocks.{block}.attention.qkv": family.qkv
    }
    for ours, names in table.items():
        if ours == "embeddings.projection" and not spec.has_projection:
            continue
        suffixes = ("weight",) if _is_table(ours) else ("weight", "bias")
        for block in range(spec.n_blocks) if "{block}" in ours else (0,):
            place = {
                "block": block,
                "group": block // spec.group_size,
                "inner": block % spec.group_size,
            }
            for suffix in suffixes:
                yield (
                    f"{ours.format(**place)}.{suffix}",
                    tuple(f"{name.format(**place)}.{suffix}" for name in names),
                )


def _is_table(name: str) -> bool:
    return name in (
        "embeddings.piece",
        "embeddings.position",
        "embeddings.segment",
        "relative_bias.by_bucket",
    )
