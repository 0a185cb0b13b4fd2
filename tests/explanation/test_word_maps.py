"""Attention between words is that between their pieces, added and averaged by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from tiny_models import KINDS, TEXTS, model_of

from litotes.encoder import pretrained
from litotes.explanation.explanation import MOST_WORDS, Explanation, word_maps
from litotes.model.checkpoint import Model
from litotes.prediction.predictor import Predictor

QUICK: dict[str, Any] = {"methods": ("standard",), "method": "standard", "faithfulness": False}


def explained(model: Model, text: str) -> Explanation:
    return Predictor(model, device="cpu").explain(text, **QUICK)


def by_hand(
    explanation: Explanation, layer: int, kind: str
) -> tuple[list[list[float]], list[float]]:
    """Loops over places, with nothing clever."""
    maps, word_of = explanation.layers[layer], explanation.read.word_of()
    mean = getattr(maps, kind).mean(0)
    n_words, there = (
        len(explanation.read.words),
        [(at, word_of[piece]) for at, piece in enumerate(maps.origin) if piece >= 0],
    )
    places = [[at for at, owner in there if owner == word] for word in range(n_words)]
    specials = [[at] for at, owner in there if owner is None]

    def given(asking: list[int], asked: list[int]) -> float:
        return (
            sum(float(mean[p, q]) for p in asking for q in asked) / len(asking) if asking else 0.0
        )

    between = [[given(one, other) for other in places] for one in places]
    askers = [group for group in places + specials if group]
    return between, [sum(given(group, word) for group in askers) / len(askers) for word in places]


@pytest.mark.parametrize("text", TEXTS)
def test_words_are_their_pieces_together(model: Model, text: str) -> None:
    explanation = explained(model, text)
    found = json.loads(json.dumps(word_maps(explanation), allow_nan=False))
    assert len(found) == len(explanation.layers)
    for layer, content in enumerate(found):
        assert content["attention_heads"] == len(explanation.layers[layer].heads)
        for kind in ("standard", "effective"):
            between, received = by_hand(explanation, layer, kind)
            assert content["received"][kind] == pytest.approx(received, abs=1e-4)
            torch.testing.assert_close(
                torch.tensor(content["between"][kind]), torch.tensor(between), atol=1e-4, rtol=0
            )


def test_a_word_that_has_left_has_nothing(tiny: pretrained.Pretrained) -> None:
    explanation = explained(model_of(tiny, **KINDS["cascade"]), TEXTS[2])
    gone = [word for word, left in enumerate(explanation.left_at_layer) if left == 0]
    assert gone
    last = word_maps(explanation)[1]
    for word in gone:
        assert last["received"]["standard"][word] == 0
        assert not any(last["between"]["standard"][word])
        assert not any(row[word] for row in last["between"]["standard"])
    assert any(last["received"]["standard"])


def test_what_words_and_specials_receive_adds_up_to_one(dense: Model) -> None:
    explanation = explained(dense, "tea is bad")  # a piece for every word
    mean = explanation.layers[0].standard.mean(0)
    specials = float(mean[:, [0, -1]].sum(1).mean())
    assert sum(word_maps(explanation)[0]["received"]["standard"]) + specials == pytest.approx(
        1, abs=1e-3
    )


def test_many_words_have_no_map_between_them(dense: Model) -> None:
    assert word_maps(explained(dense, "tea " * MOST_WORDS))[0]["between"] is not None
    longer = word_maps(explained(dense, "tea " * (MOST_WORDS + 1)))[0]
    assert longer["between"] is None
    assert len(longer["received"]["effective"]) == MOST_WORDS + 1
