"""From interpretations of Sarcasm SIGN to numbers: BLEU and chrF beside saying the tweet again, and
what the built-in model thinks of the sentiment.

Intervals come from 1,000 samples of the test tweets, of the mean over seeds.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.data.parallel import Pair
from litotes.training.translation.scores import draw_samples, score_translations
from reproduction.translation_numbers import (
    METRICS,
    Run,
    by_weighting,
    mean_samples,
    over_texts,
    summarise,
)

N_SHOWN = 20


def summarise_sign(runs: Sequence[Run], test: Sequence[Pair], predictor: Any) -> dict[str, Any]:
    """{"copy": the tweet again, weighting: numbers, "people": numbers of the interpretations}"""
    found = summarise(runs, test)
    sources = [pair.source for pair in test]
    references = [pair.targets for pair in test]
    before, wanted = sentiments(sources, predictor), majority_sentiments(test, predictor)
    draws = draw_samples(len(test))
    copied: dict[str, Any] = {"outputs": sources}
    copied_samples = mean_samples([copied], references, draws)
    copied_said = _said([copied], sources, before, wanted, predictor)
    result = {"copy": score_translations(sources, references).as_json() | _means(copied_said)}
    for weighting, some in by_weighting(runs).items():
        said = _said(some, sources, before, wanted, predictor)
        samples = mean_samples(some, references, draws)
        less = {}
        for metric in METRICS:
            value = found[weighting][metric]["mean"] - result["copy"][metric]["value"]
            interval = over_texts(samples[metric] - copied_samples[metric])
            less[metric] = {"value": value, "interval": interval}
        moved = said["agrees"] - copied_said["agrees"]  # (text,)
        interval = over_texts(moved[draws].mean(1))
        less["agrees"] = {"value": float(moved.mean()), "interval": interval}
        result[weighting] = found[weighting] | _means(said) | {"less_copy": less}
        if weighting == "minilm":
            result[weighting]["respaced_bleu"] = _respaced_bleu(some, references)
    n_flipped = sum(one != other for one, other in zip(before, wanted, strict=True))
    result["people"] = {"flipped": n_flipped / len(test), "n": len(test)} | people_scores(test)
    return result


def people_scores(test: Sequence[Pair]) -> dict[str, Any]:
    """How near people are to one another, and the tweet to them.

    tweets_kept: the share of the tweets that at least one person left as they are. one_of_them,
    tweet: scores of an interpretation, and of the tweet, against the other interpretations, the
    mean over which one it is.
    """
    kept = [pair.source in pair.targets for pair in test]
    scores: dict[str, list[list[float]]] = {"one_of_them": [], "tweet": []}
    for place in range(min(len(pair.targets) for pair in test)):
        others = [pair.targets[:place] + pair.targets[place + 1 :] for pair in test]
        if not all(others):
            continue
        outputs = {
            "one_of_them": [pair.targets[place] for pair in test],
            "tweet": [pair.source for pair in test],
        }
        for name, texts in outputs.items():
            found = score_translations(texts, others)
            scores[name].append([found.bleu.value, found.chrf.value])
    against = {
        name: dict(zip(METRICS, np.mean(values, axis=0).tolist(), strict=True))
        for name, values in scores.items()
        if values
    }
    return {"tweets_kept": float(np.mean(kept)), "against_others": against}


def _respaced_bleu(runs: Sequence[Run], references: Sequence[Sequence[str]]) -> float:
    """BLEU, the mean over seeds, with blanks where these tweets have them: word pieces come back as
    `isn ' t` and `what?`, the tweets say `isn't` and `what ?`.
    """
    values = []
    for run in runs:
        outputs = [re.sub(r" ' (?=\w)", "'", one) for one in run["outputs"]]
        outputs = [re.sub(r"(?<=\w)([?!.,])", r" \1", one) for one in outputs]
        values.append(score_translations(outputs, references).bleu.value)
    return float(np.mean(values))


def _said(
    runs: Sequence[Run],
    sources: Sequence[str],
    before: Sequence[str],
    wanted: Sequence[str],
    predictor: Any,
) -> dict[str, NDArray[np.float64]]:
    """Of each text the share of the seeds that changed it, turned its sentiment, and gave it the
    sentiment of most interpreters. {name: (text,)}
    """
    found: dict[str, list[list[bool]]] = {"changed": [], "flipped": [], "agrees": []}
    for run in runs:
        now = sentiments([one or " ." for one in run["outputs"]], predictor)
        found["changed"].append(_differ(run["outputs"], sources))
        found["flipped"].append(_differ(now, before))
        found["agrees"].append([not one for one in _differ(now, wanted)])
    return {name: np.mean(values, axis=0) for name, values in found.items()}


def _differ(some: Iterable[str], others: Iterable[str]) -> list[bool]:
    return [one != other for one, other in zip(some, others, strict=True)]


def _means(said: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    return {name: float(values.mean()) for name, values in said.items()}


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
