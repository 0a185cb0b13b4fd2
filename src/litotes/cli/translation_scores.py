"""BLEU and chrF as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def print_translation_scores(scores: Mapping[str, Any]) -> None:
    """scores: as `TranslationScores.as_json` has them."""
    from litotes.cli.display import print_table

    rows = []
    for name, key in (("BLEU", "bleu"), ("chrF", "chrf")):
        score = scores[key]
        low, high = score["interval"]
        rows.append([name, f"{score['value']:.1f}", f"{low:.1f}–{high:.1f}", str(scores["n"])])
    print_table(["score", "value", "95 % interval", "texts"], rows, title="Test texts")
