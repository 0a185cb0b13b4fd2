"""What a run has written about itself into `litotes.json`, checked when the folder is opened.

A model that no run has made may know nothing about itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_FACTS: dict[str, Any] = {"key": str, "recipe": dict, "data": dict, "notes": list}
_MORE: dict[str, Any] = {"best_epoch": int | None, "seconds_per_step": float | int}
"""What a pruned model does not have."""


def check_facts(facts: object) -> None:
    """Facts of a run must be whole; what is not is a ValueError."""
    if not isinstance(facts, dict):
        raise ValueError("its facts are not a table")
    if not facts.keys() & _FACTS.keys():
        return
    kinds = _FACTS | {name: kind for name, kind in _MORE.items() if name in facts}
    for name, kind in kinds.items():
        if not isinstance(facts.get(name), kind):
            raise ValueError(f"its facts have no {name}, or a wrong one")
    data, settings = facts["data"], facts["recipe"].get("data")
    counts = data.get("n_train"), data.get("n_pairs", 0)
    are_counts = all(isinstance(count, int) for count in counts)
    if not are_counts or not isinstance(data.get("sha256"), str):
        raise ValueError("its facts do not say which texts it learned from")
    if not isinstance(settings, dict) or not isinstance(settings.get("source"), str):
        raise ValueError("its recipe names no source")
    if not all(isinstance(note, str) for note in facts["notes"]):
        raise ValueError("its notes are not sentences")


def takes_pairs(facts: Mapping[str, Any]) -> bool:
    """Whether a model has learned from pairs of texts; earlier versions did not write it down."""
    return bool(facts.get("data", {}).get("n_pairs"))


def name_model(base: str, head: str, pruning: str) -> str:
    """What a model without a name of its own is called: encoder, head and pruning."""
    name = f"{Path(base).name}, {head}"
    return name if pruning == "none" else f"{name}, {pruning}"
