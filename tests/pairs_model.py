"""A tiny model that has learned from pairs of texts."""

from __future__ import annotations

import json
from pathlib import Path

from litotes.training.recipe import Recipe
from litotes.training.run import train

PAIRS = (("the tea is great", "i love tea"), ("the queue is bad", "it is not a great queue"))


def train_pairs(recipe: Recipe, folder: Path) -> Path:
    """recipe: that of a tiny model of texts; only the data are others."""
    lines = []
    for number in range(24):
        text, pair = PAIRS[number % 2]
        other = PAIRS[(number // 2) % 2][1]
        label = "same" if pair == other else "other"
        document = {"text": f"{text} {number}", "second": f"{other} {number}", "label": label}
        lines.append(json.dumps(document))
    table = folder / "pairs.jsonl"
    table.write_text("\n".join(lines))
    source = f"table:{table}?pair=second&label=label&task=agreement&test=0"
    own = recipe.changed(data__source=source, data__where={}, training__epochs=1)
    return train(own, folder / "model").folder
