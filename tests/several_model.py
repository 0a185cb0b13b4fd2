"""A tiny model that may give a text several labels, and a table it learns from."""

from __future__ import annotations

import json
from pathlib import Path

from litotes.training.recipe import Recipe
from litotes.training.run import train

WORDS = {"great": "glad", "bad": "angry", "love": "fond"}
TEXTS = ("great tea", "bad queue", "i love great tea", "it is a queue", "love the bad queue")


def write_table(folder: Path, *, n: int = 96) -> Path:
    """Words of a text decide its labels, so that letters can learn them."""
    lines = []
    for number in range(n):
        words = [word for place, word in enumerate(WORDS) if number >> place & 1]
        labels = sorted(WORDS[word] for word in words)
        text = f"{' '.join(words)} tea {number}"
        split = "test" if number // 8 % 4 == 3 else "train"
        moods = "|".join(labels) or "none"
        lines.append(json.dumps({"text": text, "moods": moods, "split": split}))
    table = folder / "moods.jsonl"
    table.write_text("\n".join(lines))
    return table


def train_several(recipe: Recipe, folder: Path, *, epochs: int = 12) -> Path:
    """recipe: that of a tiny model; only the data are others."""
    source = f"table:{write_table(folder)}?label=moods&several=|&split=split"
    own = recipe.changed(
        data__source=source,
        data__where={},
        training__epochs=epochs,
        training__learning_rate=3e-3,
        model__max_pieces=16,
        model__head="mean",
    )
    return train(own, folder / "model").folder
