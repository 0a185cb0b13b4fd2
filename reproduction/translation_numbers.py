"""From the outputs of `reproduction.translation` to numbers: BLEU, chrF, differences, attention,
and for Sarcasm SIGN what the built-in model thinks of the sentiment.

Intervals over seeds are Student's; differences to softmax come from 1,000 samples of the test
texts, the same for all runs, of the mean over seeds.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from litotes.data.parallel import Pair
from litotes.translation.attention_statistics import KINDS
from litotes.translation.scores import draw_samples, resample_scores, score_translations

METRICS = ("bleu", "chrf")
BASELINE = "softmax"
N_SHOWN = 20

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
    for name in (BASELINE, "entmax", "learned"):
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
    """To softmax, with the interval over texts."""
    if weighting == BASELINE or BASELINE not in samples:
        return None
    result = {}
    for metric in METRICS:
        moved = samples[weighting][metric] - samples[BASELINE][metric]
        value = found[weighting][metric]["mean"] - found[BASELINE][metric]["mean"]
        interval = np.percentile(moved, [2.5, 97.5]).tolist()
        result[metric] = {"value": value, "interval": interval}
    return result


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


def summarise_sign(runs: Sequence[Run], test: Sequence[Pair], predictor: Any) -> dict[str, Any]:
    """The same for interpretations, beside saying the tweet again, with the sentiment of what is
    said.
    """
    found = summarise(runs, test)
    sources = [pair.source for pair in test]
    copied = {"weighting": "copy", "seed": 0, "outputs": sources}
    wanted = majority_sentiments(test, predictor)
    before = sentiments(sources, predictor)
    references = [pair.targets for pair in test]
    result = {"copy": score_translations(sources, references).as_json()}
    result["copy"] |= _said([copied], sources, before, wanted, predictor)
    for weighting, some in by_weighting(runs).items():
        result[weighting] = found[weighting]
        result[weighting] |= _said(some, sources, before, wanted, predictor)
    n_flipped = sum(one != other for one, other in zip(before, wanted, strict=True))
    result["people"] = {"flipped": n_flipped / len(test), "n": len(test)}
    return result


def _said(
    runs: Sequence[Run],
    sources: Sequence[str],
    before: Sequence[str],
    wanted: Sequence[str],
    predictor: Any,
) -> dict[str, float]:
    """Shares of the texts, means over seeds: that were changed, whose sentiment was turned, and
    whose sentiment is that of most interpreters.
    """
    shares = []
    for run in runs:
        now = sentiments([one or " ." for one in run["outputs"]], predictor)
        changed = [one != other for one, other in zip(run["outputs"], sources, strict=True)]
        flipped = [one != other for one, other in zip(now, before, strict=True)]
        agrees = [one == other for one, other in zip(now, wanted, strict=True)]
        shares.append([np.mean(changed), np.mean(flipped), np.mean(agrees)])
    means = np.mean(shares, axis=0).tolist()
    return dict(zip(("changed", "flipped", "agrees"), means, strict=True))


def sentiments(texts: Sequence[str], predictor: Any) -> list[str]:
    return [one.answers["sentiment"].label for one in predictor.predict(list(texts))]


def majority_sentiments(test: Sequence[Pair], predictor: Any) -> list[str]:
    """What most interpretations of each text are; of equals the first."""
    flat = [target for pair in test for target in pair.targets]
    labels = iter(sentiments(flat, predictor))
    return [Counter([next(labels) for _ in pair.targets]).most_common(1)[0][0] for pair in test]


def shown_outputs(runs: Sequence[Run], test: Sequence[Pair]) -> list[dict[str, str]]:
    """Some texts drawn by chance, with what the first seed of each weighting made of them."""
    places = sorted(random.Random(0).sample(range(len(test)), min(N_SHOWN, len(test))))
    lines = []
    for place in places:
        line = {"text": test[place].source, "people": test[place].targets[0]}
        for weighting, some in by_weighting(runs).items():
            line[weighting] = some[0]["outputs"][place]
        lines.append(line)
    return lines
