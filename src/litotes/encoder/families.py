"""Encoder families as data: how each spells its settings and its weights.

Everything that differs between BERT, RoBERTa, DistilBERT, ELECTRA, ALBERT, MPNet, DeBERTa and
ModernBERT stands in this table; the encoder itself (encoder.py) knows none of them. In weight names
`{block}` counts blocks; ALBERT counts groups and places within a group. A `config.json` is read by
config.py; which of the weights an encoder has, weight_names.py says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Family:
    """One family: `config.json` keys by our names, values it fixes, and its weight names by ours.

    qkv: the names of the three projections that we hold fused, or of one that is fused already.
    prefix: what checkpoints with a task head put before every encoder weight.
    written: what its `config.json` must say besides.
    """

    architecture: str
    prefix: str
    keys: Mapping[str, str]
    weights: Mapping[str, str]
    qkv: tuple[str, ...]
    defaults: Mapping[str, Any]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    written: Mapping[str, Any] = field(default_factory=dict)


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

DISTANCE_KEY = "blocks.{block}.attention.disentangled.key"
DISTANCE_QUERY = "blocks.{block}.attention.disentangled.query"
_DEBERTA_KEYS = {
    "has_positions": "position_biased_input",
    "position_terms": "pos_att_type",
    "n_distance_buckets": "position_buckets",
    "farthest": "max_relative_positions",
    "distance_norm": "norm_rel_ebd",
    "shares_projections": "share_att_key",
}
_DEBERTA_WEIGHTS = _BERT_WEIGHTS | {
    "distances.table": "encoder.rel_embeddings",
    "distances.norm": "encoder.LayerNorm",
    DISTANCE_KEY: _BERT_BLOCK + "attention.self.pos_key_proj",
    DISTANCE_QUERY: _BERT_BLOCK + "attention.self.pos_query_proj",
}
_DEBERTA_QKV = (
    _BERT_BLOCK + "attention.self.query_proj",
    _BERT_BLOCK + "attention.self.key_proj",
    _BERT_BLOCK + "attention.self.value_proj",
)

_MODERNBERT_KEYS = {
    "n_vocabulary": "vocab_size",
    "width": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_attention_heads": "num_attention_heads",
    "inner_width": "intermediate_size",
    "n_positions": "max_position_embeddings",
    "activation": "hidden_activation",
    "norm_epsilon": "norm_eps",
    "dropout": "mlp_dropout",
    "attention_dropout": "attention_dropout",
    "padding_piece": "pad_token_id",
    "rotary_base": "global_rope_theta",
    "local_rotary_base": "local_rope_theta",
    "window": "local_attention",
    "global_every": "global_attn_every_n_layers",
    "attention_bias": "attention_bias",
    "feed_forward_bias": "mlp_bias",
    "norm_bias": "norm_bias",
}
_MODERNBERT_BLOCK = "layers.{block}."
_MODERNBERT_WEIGHTS = {
    "embeddings.piece": "embeddings.tok_embeddings",
    "embeddings.norm": "embeddings.norm",
    "blocks.{block}.attention_norm": _MODERNBERT_BLOCK + "attn_norm",
    "blocks.{block}.attention.output": _MODERNBERT_BLOCK + "attn.Wo",
    "blocks.{block}.outer_norm": _MODERNBERT_BLOCK + "mlp_norm",
    "blocks.{block}.inner": _MODERNBERT_BLOCK + "mlp.Wi",
    "blocks.{block}.outer": _MODERNBERT_BLOCK + "mlp.Wo",
    "final_norm": "final_norm",
}

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
    "deberta-v2": Family(  # v3 as well
        "DebertaV2Model",
        "deberta.",
        _COMMON_KEYS | _SEGMENTS | _DEBERTA_KEYS,
        _DEBERTA_WEIGHTS,
        _DEBERTA_QKV,
        _BASE_DEFAULTS
        | {
            "norm_epsilon": 1e-7,
            "n_segments": 0,
            "has_positions": True,
            "n_distance_buckets": 0,
            "distance_norm": "none",
            "shares_projections": False,
        },
        written={"relative_attention": True},
    ),
    "modernbert": Family(
        "ModernBertModel",
        "model.",
        _MODERNBERT_KEYS,
        _MODERNBERT_WEIGHTS,
        (_MODERNBERT_BLOCK + "attn.Wqkv",),
        {
            "activation": "gelu",
            "norm_epsilon": 1e-5,
            "dropout": 0.0,
            "attention_dropout": 0.0,
            "rotary_base": 160_000.0,
            "local_rotary_base": 10_000.0,
            "window": 128,
            "global_every": 3,
            "attention_bias": False,
            "feed_forward_bias": False,
            "norm_bias": False,
        },
        fixed={"has_positions": False, "is_gated": True, "norm_first": True},
    ),
}
