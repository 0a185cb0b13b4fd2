"""Weightings of every entry of the table, with options that make a difference, as contracts try
them.
"""

from __future__ import annotations

from typing import Any

import torch

from litotes.core.registry import build
from litotes.encoder.attention import WEIGHTINGS, Weighting

SETTINGS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in sorted(WEIGHTINGS)),
    ("entmax", {"alpha": 2.0}),
    ("entmax", {"alpha": 1.3}),
    ("entmax", {"alpha": "learned"}),
    ("top_k", {"sparsity": 0.0}),
    ("top_k", {"sparsity": 0.95}),
    ("top_k", {"ramp": 0.5}),
    ("block_top_k", {"sparsity": 0.0}),
    ("block_top_k", {"sparsity": 0.95, "block": 2}),
    ("block_top_k", {"block": 1}),
]


def name_of(setting: tuple[str, dict[str, Any]]) -> str:
    name, options = setting
    return " ".join([name, *(f"{key}={value}" for key, value in options.items())])


def make_weighting(setting: tuple[str, dict[str, Any]], n_heads: int) -> Weighting:
    name, options = setting
    made = build(WEIGHTINGS, name, "weighting", n_heads, options=options)
    made.progress = 0.3  # in the middle of a ramp, where there is one
    with torch.no_grad():
        for parameter in made.parameters():
            parameter += torch.linspace(-1, 1, n_heads)  # attention heads that differ
    return made
