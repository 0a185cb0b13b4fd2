"""The random maps that the pattern network learns from, and its training."""

from __future__ import annotations

import torch

from litotes.core.storage import sha256_of
from litotes.explanation.analyses.map_patterns import load_network
from reproduction.patterns import (
    SHA256,
    WEIGHTS,
    confusion_of,
    generate,
    label_maps,
    train,
)


def test_generated_maps_are_attention() -> None:
    """Standard ones are distributions; many are effective: signed, and free in their sums."""
    made = list(generate(100, seed=12345))
    standard = [weights for weights, _ in made if (weights >= 0).all()]
    assert 0.3 < len(standard) / len(made) < 0.7
    for weights in standard:
        torch.testing.assert_close(weights.sum(-1), torch.ones(len(weights)), atol=1e-4, rtol=0)


def test_the_shipped_weights_are_those_the_training_states() -> None:
    assert sha256_of(WEIGHTS) == SHA256
    assert sum(parameter.numel() for parameter in load_network().parameters()) < 60_000


def test_a_little_training_beats_chance_and_is_repeatable() -> None:
    few = label_maps(100, seed=5)
    one, again = (train(few, n_epochs=12) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), again.parameters(), strict=True))
    counts = confusion_of(one, few)
    assert counts.trace() / counts.sum() > 0.4  # chance: 0.2
