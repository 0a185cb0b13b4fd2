"""How well annotators agreed on a corpus, where its authors say so: a ceiling for any model.

Whoever wants more than that asks a model to know better than the people whose labels it learned.
"""

from __future__ import annotations

from collections.abc import Mapping

KAPPA: Mapping[str, Mapping[tuple[str, str], float]] = {
    # Srirag et al. 2025, BESSTIE: three values a task, read in the order Australian, Indian,
    # British; that order is not confirmed by the paper's own table
    "besstie": {
        ("sentiment", "en-AU"): 0.61,
        ("sentiment", "en-IN"): 0.65,
        ("sentiment", "en-UK"): 0.79,
        ("sarcasm", "en-AU"): 0.47,
        ("sarcasm", "en-IN"): 0.51,
        ("sarcasm", "en-UK"): 0.63,
    }
}
"""Cohen's κ of two annotators, by corpus, then by task and variety."""


def annotator_kappa(corpus: str, task: str, variety: str) -> float | None:
    """None where it is not known."""
    return KAPPA.get(corpus, {}).get((task, variety))
