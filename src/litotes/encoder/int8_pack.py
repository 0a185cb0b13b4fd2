"""A RoBERTa encoder from an int8 pack (`.hmsemb`), as a folder's files.

    8 bytes   HMSEMB01
    8 bytes   length of the header, little-endian
    header    JSON: sizes (`arch`), length of the tokenizer, and a list of tensors
    tokenizer tokenizer.json as it is
    tensors   in the list's order: float32, or int8 followed by a float32 scale for each group

A weight is w = q · s, with the scale of its group of consecutive weights. It is all plain numbers;
who calls has compared the file's hash, so that it is the one this reader was written for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from litotes.core.storage import json_bytes

_LAYER = {
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "f1": "intermediate.dense",
    "f2": "output.dense",
    "fln": "output.LayerNorm",
}
_EMBEDDINGS = {
    "word_emb": "embeddings.word_embeddings.weight",
    "pos_emb": "embeddings.position_embeddings.weight",
    "type_emb": "embeddings.token_type_embeddings.weight",
    "emb_ln.w": "embeddings.LayerNorm.weight",
    "emb_ln.b": "embeddings.LayerNorm.bias",
}


def read_pack(content: bytes) -> dict[str, bytes]:
    """The encoder's files by name."""
    begin = 16 + int.from_bytes(content[8:16], "little")
    header = json.loads(content[16:begin])
    end = begin + header["tokenizer_len"]
    tensors: dict[str, NDArray[np.float32]] = {}
    for name, tensor in _read_tensors(header["tensors"], memoryview(content)[end:]):
        tensors |= _family_tensors(name, tensor)
    return {
        "config.json": json_bytes(_config(header["arch"])),
        "tokenizer.json": content[begin:end],
        "model.safetensors": save(tensors, metadata={"format": "pt"}),
    }


def _read_tensors(
    described: list[dict[str, Any]], content: memoryview
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    place = 0
    for one in described:
        raw = content[place : place + one["len"]]
        place += one["len"]
        if one["dtype"] == "i8":
            n_weights = int(np.prod(one["shape"]))
            steps = np.frombuffer(raw[:n_weights], np.int8).reshape(-1, one["group"])
            scales = np.frombuffer(bytes(raw[n_weights:]), "<f4")
            values = steps * scales[:, None]  # (group, weight)
        else:
            values = np.frombuffer(bytes(raw), "<f4")
        yield one["name"], values.astype(np.float32).reshape(one["shape"])


def _family_tensors(name: str, tensor: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
    """The tensor under RoBERTa's name; the fused projection as three."""
    if name in _EMBEDDINGS:
        return {_EMBEDDINGS[name]: tensor}
    layer, part, kind = name.split(".")
    before = f"encoder.layer.{layer.removeprefix('l')}."
    suffix = {"w": "weight", "b": "bias"}[kind]
    if part != "qkv":
        return {f"{before}{_LAYER[part]}.{suffix}": tensor}
    parts = zip(("query", "key", "value"), np.split(tensor, 3), strict=True)
    return {f"{before}attention.self.{one}.{suffix}": np.copy(part) for one, part in parts}


def _config(arch: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "architectures": ["RobertaModel"],
        "model_type": "roberta",
        "vocab_size": arch["vocab"],
        "hidden_size": arch["hidden"],
        "num_hidden_layers": arch["layers"],
        "num_attention_heads": arch["heads"],
        "intermediate_size": arch["intermediate"],
        "max_position_embeddings": arch["max_positions"],
        "type_vocab_size": arch["type_vocab"],
        "layer_norm_eps": arch["layer_norm_eps"],
        "pad_token_id": arch["position_offset"] - 1,
        "hidden_act": "gelu",
        "torch_dtype": "float32",
    }
