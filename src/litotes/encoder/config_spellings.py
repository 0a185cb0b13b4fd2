"""Settings that a family spells in several ways, brought to the one way its table reads
(families.py); what we cannot compute is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from litotes.core.errors import UserError
from litotes.encoder.spec import POSITION_TERMS

Config = Mapping[str, Any]


def normalise_deberta(config: Config, where: str) -> Config:
    """DeBERTa-v2 and v3."""
    _check_deberta(config, where)
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


def _check_deberta(config: Config, where: str) -> None:
    if not config.get("relative_attention"):
        raise UserError(
            f"{where}: a deberta-v2 encoder without relative_attention is not supported. Use one"
            " with it: all published ones have it."
        )
    if config.get("conv_kernel_size"):
        raise UserError(
            f"{where}: conv_kernel_size = {config['conv_kernel_size']!r} asks for a convolution"
            " after the first layer, which is not supported. Use a DeBERTa without one, for example"
            " any DeBERTa-v3."
        )
    width, n_heads = config.get("hidden_size"), config.get("num_attention_heads")
    if config.get("embedding_size", width) != width:
        raise UserError(
            f"{where}: embedding_size {config['embedding_size']!r} other than hidden_size {width!r}"
            " is not supported for deberta-v2. Use an encoder in which they are equal."
        )
    head_width = config.get("attention_head_size")
    are_counts = isinstance(head_width, int) and isinstance(n_heads, int)
    if head_width is not None and not (are_counts and head_width * n_heads == width):
        raise UserError(
            f"{where}: attention_head_size {head_width!r} times {n_heads!r} attention heads is not"
            f" hidden_size {width!r}, which is not supported. Use an encoder in which it is."
        )


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
