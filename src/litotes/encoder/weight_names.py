"""Which weights an encoder has, by our names and by its family's."""

from __future__ import annotations

from collections.abc import Iterator

from litotes.encoder.families import DISTANCE_KEY, DISTANCE_QUERY, FAMILIES, Family
from litotes.encoder.spec import EncoderSpec

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
    for ours, theirs in _name_patterns(FAMILIES[spec.family]):
        if not _has_part(spec, ours):
            continue
        suffixes = (".weight", ".bias") if _has_bias(spec, ours) else (".weight",)
        for block in _blocks_with(spec, ours):
            for suffix in suffixes:
                names = tuple(_place(name, block, spec) + suffix for name in theirs)
                yield _place(ours, block, spec) + suffix, names


def _name_patterns(family: Family) -> Iterator[tuple[str, tuple[str, ...]]]:
    for ours, theirs in family.weights.items():
        yield ours, (theirs,)
    yield "blocks.{block}.attention.qkv", family.qkv


def _has_part(spec: EncoderSpec, ours: str) -> bool:
    """Whether an encoder of this family has the part; most parts are there always."""
    has_own_projections = not spec.shares_projections
    optional = {
        "embeddings.projection": spec.has_projection,
        "embeddings.position": spec.has_positions,
        "embeddings.segment": spec.n_segments > 0,
        "distances.norm": spec.distance_norm == "layer_norm",
        DISTANCE_KEY: has_own_projections and "c2p" in spec.position_terms,
        DISTANCE_QUERY: has_own_projections and "p2c" in spec.position_terms,
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


def _blocks_with(spec: EncoderSpec, ours: str) -> range:
    """The blocks that have the part; one of no block is named once."""
    if "{block}" not in ours:
        return range(1)
    has_first = not (spec.norm_first and ours.endswith("attention_norm"))
    return range(0 if has_first else 1, spec.n_blocks)


def _place(name: str, block: int, spec: EncoderSpec) -> str:
    """The weight's name in one block."""
    group, inner = divmod(block, spec.group_size)
    return name.format(block=block, group=group, inner=inner)
