"""The study of words: its statistics, its lines without a model, and its page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from litotes.data.words import WordExample
from reproduction.tagging_page import page
from reproduction.word_answers import best_threshold, mark_from, mark_strongest
from reproduction.word_statistics import (
    accuracy_counts,
    compare,
    f1,
    f1_counts,
    ratio,
    span_counts,
    summarise,
    word_auc,
)

GOLD = [["changed", "kept", "kept"], ["kept", "changed"]]
FOUND = [["changed", "changed", "kept"], ["kept", "kept"]]


def test_counts_give_the_usual_scores() -> None:
    assert summarise([accuracy_counts(GOLD, FOUND)], ratio)["mean"] == pytest.approx(3 / 5)
    flat = [sum(map(list, one), []) for one in (GOLD, FOUND)]  # noqa: RUF017
    wanted = f1_score(*flat, pos_label="changed")
    assert summarise([f1_counts(GOLD, FOUND, "changed")], f1)["mean"] == pytest.approx(wanted)
    scores = [[0.9, 0.8, 0.1], [0.2, 0.2]]
    meant = [tag == "changed" for tags in GOLD for tag in tags]
    assert word_auc(GOLD, scores, "changed") == pytest.approx(
        roc_auc_score(meant, [score for own in scores for score in own])
    )


def test_seeds_widen_the_interval() -> None:
    generator = np.random.default_rng(0)
    sizes = np.full(200, 10.0)
    alike = [np.stack([generator.binomial(10, 0.8, 200), sizes], 1)] * 2
    apart = [alike[0], np.stack([generator.binomial(10, 0.6, 200), sizes], 1)]
    narrow, wide = (summarise(counts, ratio)["interval"] for counts in (alike, apart))
    assert wide[1] - wide[0] > narrow[1] - narrow[0]
    found = compare(alike, alike, ratio)
    assert found["difference"] == 0
    assert found["interval"] == pytest.approx((0, 0))


def test_lines_of_occlusion() -> None:
    texts = [WordExample(("a", "b", "c"), ("changed", "kept", "kept"))]
    assert best_threshold(texts, [[0.5, 0.1, -0.2]]) == 0.5
    assert mark_from([[0.5, 0.1, -0.2], [0.7]], 0.5) == [["changed", "kept", "kept"], ["changed"]]
    assert mark_strongest([[0.1, 0.5, -0.2], [0.3]], 0.34) == [
        ["kept", "changed", "kept"],
        ["changed"],
    ]


def result(mean: float) -> dict[str, Any]:
    return {"mean": mean, "interval": [mean - 0.01, mean + 0.01], "by_seed": [mean]}


@pytest.mark.parametrize(("loss", "said"), [(-0.002, "**held**"), (-0.02, "**missed**")])
def test_the_page_says_hit_or_miss(loss: float, said: str) -> None:
    against = {"difference": loss, "interval": [loss - 0.001, loss + 0.001]}
    row = result(0.7) | {"less_than_model": against, "auc": 0.6}
    names = ("model", "model_tuned", "all_words", "frequent_tag", "adjectives", "occlusion")
    spans = {"exact_match": result(0.2), "overlap_f1": result(0.5)}
    counts = span_counts([(0, 1)], [(0, 1)])
    assert counts.tolist() == [[1.0, 1.0, 1.0]]
    cost = {"fewer_operations": 1.53, "seconds": [2.0, 1.5], "faster": 1.33}
    pruned = result(0.94) | {"cost": cost}
    worse = {"difference": -0.1, "interval": [-0.2, 0.0]}
    ways = {"early": {"schedule": [1.0, 0.5]}, "late": {"schedule": [1.0, 0.1]}}
    written = page(
        {
            "machine": {"model": "a processor"},
            "settings": {"seeds": 2, "epochs": 3, "encoder": "minilm", "ways": ways},
            "parts_of_speech": {
                "n_texts": 3,
                "n_words": 9,
                "n_train": 5,
                "dense": result(0.95),
                "ways": {
                    "early": pruned | {"held_out": 0.93, "less_dense": worse},
                    "late": pruned | {"held_out": 0.94, "less_dense": against},
                },
                "chosen": "late",
                "most_frequent_tag": result(0.8),
            },
            "locus": {
                "n_texts": 3,
                "changed_share": 0.5,
                "rows": dict.fromkeys((*names, "occlusion_share"), row),
            },
            "span": {
                "n_texts": 3,
                "rows": dict.fromkeys(("model", "longest_of_tags", "whole_text", "none"), spans),
            },
        }
    )
    assert said in written
    assert "95.0 | 94.0 to 96.0" in written
    prose = [line for line in written.splitlines() if not line.startswith("|")]
    assert max(map(len, prose)) <= 100
