"""From the outputs of `reproduction.translation` to numbers: BLEU, chrF, differences, attention.

Intervals over seeds are Student's, of differences to softmax paired by seed; those over texts come
from 1,000 samples of the test texts, the same for all runs, of the mean over seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from litotes.data.parallel import Pair
from litotes.training.translation.attention_statistics import KINDS
from litotes.training.translation.scores import draw_samples, resample_scores, score_translations
from reproduction.translation import SIGN_WAYS, WEIGHTINGS

METRICS = ("bleu", "chrf")
BASELINE = "softmax"
NAMES = {
    "softmax": "softmax",
    "entmax": "1.5-entmax",
    "learned": "learned α",
    "plain": "plain texts too",
    "minilm": "plain texts too, `minilm`",
}
"""Of weightings, and of the other ways for Sarcasm SIGN, on pages."""

Run = Mapping[str, Any]


def summarise(runs: Sequence[Run], test: Sequence[Pair]) -> dict[str, Any]:
    """Of the runs of one corpus and direction: {weighting: numbers}."""
    references = [pair.targets for pair in test]
    draws = draw_samples(len(test))
    found, samples = {}, {}
    for weighting, some in by_weighting(runs).items():
        scores = [score_translations(run["outputs"], references).as_json() for run in some]
        found[weighting] = _numbers(some, scores)
        samples[weighting] = mean_samples(some, references, draws)
    for weighting in found:
        found[weighting]["difference"] = difference(samples, found, weighting)
    return found


def by_weighting(runs: Sequence[Run]) -> dict[str, list[Run]]:
    grouped: dict[str, list[Run]] = {}
    for name in (*WEIGHTINGS, *SIGN_WAYS):
        some = [run for run in runs if run["weighting"] == name]
        if some:
            grouped[name] = sorted(some, key=lambda run: run["seed"])
    return grouped


def _numbers(runs: Sequence[Run], scores: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    numbers: dict[str, Any] = {
        "seeds": [run["seed"] for run in runs],
        "steps": runs[0]["steps"],
        "n_weights": runs[0]["n_weights"],
        "valid_loss": float(np.mean([run["valid_loss"] for run in runs])),
        "signature": {metric: scores[0][metric]["signature"] for metric in METRICS},
        "attention": _attention([run["attention"] for run in runs]),
    }
    for metric in METRICS:
        values = [one[metric]["value"] for one in scores]
        numbers[metric] = {"mean": float(np.mean(values)), "values": values}
        numbers[metric]["interval"] = over_seeds(values)
    return numbers


def over_seeds(values: Sequence[float]) -> list[float] | None:
    """95 %, Student's t; None for a single seed."""
    if len(values) < 2:
        return None
    spread = float(np.std(values, ddof=1)) / len(values) ** 0.5
    half = float(stats.t.ppf(0.975, len(values) - 1)) * spread
    mean = float(np.mean(values))
    return [mean - half, mean + half]


def mean_samples(
    runs: Sequence[Run], references: Sequence[Sequence[str]], draws: NDArray[np.int64]
) -> dict[str, NDArray[np.float64]]:
    """{metric: (sample,)}, the mean over seeds."""
    found = [resample_scores(run["outputs"], references, draws) for run in runs]
    return {metric: np.mean([one[metric] for one in found], axis=0) for metric in METRICS}


def difference(
    samples: Mapping[str, Any], found: Mapping[str, Any], weighting: str
) -> dict[str, Any] | None:
    """To softmax, with the interval over texts, and that over seeds."""
    if weighting == BASELINE or BASELINE not in samples:
        return None
    result = {}
    for metric in METRICS:
        moved = samples[weighting][metric] - samples[BASELINE][metric]
        value = found[weighting][metric]["mean"] - found[BASELINE][metric]["mean"]
        result[metric] = {"value": value, "interval": over_texts(moved)}
        result[metric]["over_seeds"] = _paired(found[weighting], found[BASELINE], metric)
    return result


def over_texts(moved: NDArray[np.float64]) -> list[float]:
    """95 % of the samples. moved: (sample,)"""
    low, high = np.percentile(moved, [2.5, 97.5]).tolist()
    return [low, high]


def _paired(one: Mapping[str, Any], other: Mapping[str, Any], metric: str) -> list[float] | None:
    """Of the differences between runs of the same seed; None where the seeds differ."""
    if one["seeds"] != other["seeds"]:
        return None
    pairs = zip(one[metric]["values"], other[metric]["values"], strict=True)
    return over_seeds([mine - theirs for mine, theirs in pairs])


def _attention(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """density, diversity: {kind: (layer,)}, means over seeds and attention heads; alpha: {kind:
    (layer, attention_head of all seeds)}.
    """
    result: dict[str, Any] = {"density": {}, "diversity": {}, "alpha": {}}
    for kind in KINDS:
        density = np.array([one["density"][kind] for one in runs])  # (seed, layer, attention_head)
        result["density"][kind] = density.mean((0, 2)).tolist()
        diversity = np.array([one["diversity"][kind] for one in runs])  # (seed, layer)
        result["diversity"][kind] = diversity.mean(0).tolist()
        alpha = np.array([one["alpha"][kind] for one in runs])
        by_layer = alpha.transpose(1, 0, 2) if alpha.size else np.zeros((0, 0, 0))
        result["alpha"][kind] = [layer.flatten().tolist() for layer in by_layer]
    return result
