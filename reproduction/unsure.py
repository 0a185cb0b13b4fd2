"""What "unsure" promises and keeps on BESSTIE: `python reproduction/unsure.py PATH OUT.json`.

PATH holds BESSTIE. The built-in model has never seen its texts. They are asked once; then the
labelled validation texts are divided in two halves by 200 seeds, one half calibrates, the other is
counted. A table of the first seed is what one calibration gives; the means say whether the promise
is kept. After that all Google texts calibrate and all Reddit texts are counted: another platform.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from litotes.core.storage import write_json
from litotes.core.values import Answer
from litotes.data.corpus import Corpus
from litotes.data.sources import load
from litotes.evaluation.evaluate import TaskPredictions, predict_corpus
from litotes.evaluation.unsure import SetCoverage, set_coverages
from litotes.model.calibration import Calibration, LabelSets, find_labels, fit_bound, label_shares
from litotes.prediction.predictor import Predictor

COVERAGES = (0.8, 0.9, 0.95)
N_SPLITS = 200

Thresholds = Mapping[str, float | None]


def main(path: str, out: str) -> None:
    predictor = Predictor.load("builtin", device="cpu")
    corpus = load(f"besstie:{path}").where(split="valid")
    predictions = predict_corpus(predictor, corpus)
    thresholds: dict[str, float | None] = {}
    for runtime in predictor.runtimes:
        for task in runtime.tasks:
            thresholds[task] = runtime.calibration.get(task, Calibration()).threshold
    content = {
        "one": [row.as_json() for row in split_rows(predictions, corpus, thresholds, seed=0)],
        "mean": list(mean_rows(predictions, corpus, thresholds)),
        "shift": [row.as_json() for row in shifted_rows(predictions, corpus, thresholds)],
    }
    write_json(Path(out), content)


def split_rows(
    predictions: Mapping[str, TaskPredictions],
    corpus: Corpus,
    thresholds: Thresholds,
    *,
    seed: int,
) -> Iterator[SetCoverage]:
    """One half calibrates by variety, the other is counted."""
    _, half = corpus.hold_out(0.5, seed=seed)
    chosen = {id(example) for example in half}
    for task, result in predictions.items():
        is_counted = [id(example) in chosen for example in result.examples]
        fitted = result.only([not own for own in is_counted])
        yield from counted_rows(fitted, result.only(is_counted), corpus, thresholds[task])


def shifted_rows(
    predictions: Mapping[str, TaskPredictions], corpus: Corpus, thresholds: Thresholds
) -> Iterator[SetCoverage]:
    """Google calibrates, Reddit is counted; and the other way round."""
    for task, result in predictions.items():
        for here in ("Google", "Reddit"):
            is_here = [example.source == here for example in result.examples]
            counted = result.only([not own for own in is_here])
            for row in counted_rows(result.only(is_here), counted, corpus, thresholds[task]):
                yield replace(row, cell=f"{here} → {row.cell}")


def counted_rows(
    fitted: TaskPredictions, counted: TaskPredictions, corpus: Corpus, threshold: float | None
) -> Iterator[SetCoverage]:
    for coverage in COVERAGES:
        sets = fit(fitted, threshold, coverage)
        given = replace(
            counted,
            task=replace(counted.task, coverage=coverage),
            answers=tuple(give_sets(counted, sets, threshold)),
        )
        yield from set_coverages({given.task.name: given}, corpus)


def fit(fitted: TaskPredictions, threshold: float | None, coverage: float) -> LabelSets:
    shares, gold = shares_of(fitted, threshold), fitted.gold()
    varieties = {}
    for name in sorted({str(example.variety) for example in fitted.examples}):
        own = np.array([example.variety == name for example in fitted.examples])
        varieties[name] = fit_bound(shares[own], gold[own], coverage)
    return LabelSets(coverage, fit_bound(shares, gold, coverage), varieties)


def give_sets(
    counted: TaskPredictions, sets: LabelSets, threshold: float | None
) -> Iterator[Answer]:
    shares = shares_of(counted, threshold)
    for example, answer, own in zip(counted.examples, counted.answers, shares, strict=True):
        least = sets.bound(example.variety).least
        (labels,) = find_labels(own[None], counted.task.labels, least)
        yield replace(answer, labels=labels)


def shares_of(predictions: TaskPredictions, threshold: float | None) -> Any:
    """(text, class)"""
    labels = predictions.task.labels
    rows = [[answer.probabilities[label] for label in labels] for answer in predictions.answers]
    return label_shares(np.array(rows), threshold)


def mean_rows(
    predictions: Mapping[str, TaskPredictions], corpus: Corpus, thresholds: Thresholds
) -> Iterator[dict[str, Any]]:
    """Means over the seeds, and how much one calibration differs from another."""
    found: dict[tuple[str, str, float], list[tuple[float, float, float]]] = defaultdict(list)
    for seed in range(N_SPLITS):
        for row in split_rows(predictions, corpus, thresholds, seed=seed):
            shares = (row.coverage.value, row.unsure.value, row.accuracy.value)
            if None not in shares:
                found[row.task, row.cell, row.promised].append(shares)  # type: ignore[arg-type]
    for (task, cell, promised), values in found.items():
        yield {"task": task, "cell": cell, "promised": promised, **_summary(values)}


def _summary(values: Sequence[tuple[float, float, float]]) -> dict[str, float]:
    coverage, unsure, accuracy = np.array(values).mean(0).tolist()
    spread = float(np.array(values)[:, 0].std(ddof=1))
    return {
        "coverage": coverage,
        "standard_deviation": spread,
        "unsure": unsure,
        "accuracy": accuracy,
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
