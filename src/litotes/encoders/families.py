"""Encoder families as data: how each spells its settings and its weights.

Everything that differs between BERT, RoBERTa, DistilBERT, ELECTRA, ALBERT and MPNet stands in this
table; the encoder itself (encoder.py) knows none of them. In weight names `{block}` counts blocks;
ALBERT counts groups and places within a group. A `config.json` is read by config.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

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


def weight_names(spec: EncoderSpec) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Pairs of our weight name and the family's; three of the family's for the fused projection."""
    for ours, theirs in _name_patterns(FAMILIES[spec.family]):
        if ours == "embeddings.projection" and not spec.has_projection:
            continue
        suffixes = (".weight",) if ours in _WITHOUT_BIAS else (".weight", ".bias")
        for block in range(spec.n_blocks) if "{block}" in ours else (0,):
            for suffix in suffixes:
                names = tuple(_place(name, block, spec) + suffix for name in theirs)
                yield _place(ours, block, spec) + suffix, names


def _name_patterns(family: Family) -> Iterator[tuple[str, tuple[str, ...]]]:
    for ours, theirs in family.weights.items():
        yield ours, (theirs,)
    yield "blocks.{block}.attention.qkv", family.qkv


def _place(name: str, block: int, spec: EncoderSpec) -> str:
    """The weight's name in one block."""
    group, inner = divmod(block, spec.group_size)
    return name.format(block=block, group=group, inner=inner)


_WITHOUT_BIAS = (
    "embeddings.piece",
    "embeddings.position",
    "embeddings.segment",
    "relative_bias.by_bucket",
)
