"""What the runs of `variety_stress` say together: numbers with intervals over texts and seeds.

real        macro-F1 on real texts, trained here and tested there, plain and augmented; the
            difference is paired by seed and by text
features    how often a feature changes an answer, less its control, mean over the varieties
            trained on; p of the paired permutation test, Holm's correction over all features of
            all encoders and tasks
pooled      the same over all features that are common where a model was trained (home) and over
            those that are common elsewhere alone (foreign)
training    augmented less plain: does training with features make models steadier under them?

Where an encoder has not all of its runs, its complete seeds are used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from litotes.core.errors import UserError
from litotes.core.json_text import read_as
from litotes.core.numbers import Floats
from litotes.evaluation.significance import holm, permutation_test, seed_margin, widen_interval
from litotes.evaluation.stress.statistics import clustered_interval, sign_test
from litotes.study.runs import CellAnswers
from litotes.study.tables import Estimate, weighted_sum
from reproduction.variety_jobs import VARIETIES, studied_rewrites

FEWEST = 20
"""Texts of a feature that has a test."""
KINDS = ("plain", "augmented")


@dataclass(frozen=True)
class Run:
    """What a run's file says."""

    encoder: str
    task: str
    trained_on: str
    is_augmented: bool
    seed: int
    n_rewritten: int
    recipe: dict[str, Any]
    notes: list[str]
    tests: dict[str, dict[str, Any]]
    cases: str
    stress: dict[str, list[float | None]]
    seconds: dict[str, float]


@dataclass(frozen=True)
class Models:
    """The complete seeds of one encoder and task, by kind and by what they were trained on.

    flips, control_flips: (seed, case), nan without a control.
    """

    encoder: str
    task: str
    seeds: tuple[int, ...]
    answers: Mapping[tuple[str, str, str], CellAnswers]  # kind, trained on, tested on
    flips: Mapping[tuple[str, str], Floats]  # kind, trained on
    control_flips: Mapping[tuple[str, str], Floats]

    @property
    def place(self) -> dict[str, str]:
        return {"encoder": self.encoder, "task": self.task}


@dataclass(frozen=True)
class Cases:
    """Of every case its feature and the number of its text. (case,) each"""

    rewrite: np.ndarray[Any, Any]
    text: np.ndarray[Any, Any]


def summarise(files: Sequence[Path], cases: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """files: OUT/runs/*.json; cases: OUT/cases.json"""
    advice = "Delete it and start again: what is missing is made again."
    runs = [read_as(file, Run, advice=advice) for file in files]
    if len({run.cases for run in runs}) > 1:
        raise UserError("The runs answered different cases. Delete the older ones.")
    _, numbers = np.unique([case["text"] for case in cases], return_inverse=True)
    places = Cases(np.array([case["rewrite"] for case in cases]), numbers)
    models = list(_models(runs))
    if not models:
        raise UserError("No encoder has a seed whose runs are all there: run the rest first.")
    return {
        "n_runs": len(runs),
        "seeds": [one.place | {"seeds": list(one.seeds)} for one in models],
        "n_cases": len(cases),
        "n_texts": int(numbers.max()) + 1,
        "real": _corrected([row for one in models for row in _real(one)]),
        "gaps": [row for one in models for row in _gaps(one)],
        "features": _by_kind([row for one in models for row in _features(one, places)]),
        "pooled": [row for one in models for row in _pooled(one, places)],
        "training": [row for one in models for row in _training(one, places)],
        "recipe": runs[0].recipe,
        "seconds": _seconds(runs),
    }


def _models(runs: Sequence[Run]) -> Iterator[Models]:
    by_place: dict[tuple[str, str], dict[tuple[str, str, int], Run]] = {}
    for run in runs:
        key = (KINDS[run.is_augmented], run.trained_on, run.seed)
        by_place.setdefault((run.encoder, run.task), {})[key] = run
    for (encoder, task), own in by_place.items():
        seeds = sorted({seed for _, _, seed in own})
        whole = []
        for seed in seeds:
            wanted = [(kind, variety, seed) for kind in KINDS for variety in VARIETIES]
            if all(key in own for key in wanted):
                whole.append(seed)
        if whole:
            yield _gather(encoder, task, whole, own)


def _gather(
    encoder: str, task: str, seeds: Sequence[int], own: Mapping[tuple[str, str, int], Run]
) -> Models:
    answers, flips, control_flips = {}, {}, {}
    for kind in KINDS:
        for variety in VARIETIES:
            runs = [own[kind, variety, seed] for seed in seeds]
            flips[kind, variety] = _matrix(runs, "flips")
            control_flips[kind, variety] = _matrix(runs, "control_flips")
            for tested_on in VARIETIES:
                parts = [run.tests[tested_on] for run in runs]
                answers[kind, variety, tested_on] = _answers(parts)
    return Models(encoder, task, tuple(seeds), answers, flips, control_flips)


def _matrix(runs: Sequence[Run], name: str) -> Floats:
    """(seed, case), nan where there is no control"""
    return np.array([run.stress[name] for run in runs], dtype=np.float64)


def _answers(parts: Sequence[Mapping[str, Any]]) -> CellAnswers:
    return CellAnswers(
        gold=np.array(parts[0]["gold"]),
        answers=np.array([part["answers"] for part in parts]),
        probability=np.array([part["probability"] for part in parts]),
        temperature=np.ones(len(parts)),
        labels=tuple(parts[0]["labels"]),
        texts=parts[0]["texts"],
    )


def _real(models: Models) -> Iterator[dict[str, Any]]:
    """Every cell: trained here, tested there."""
    for trained_on in VARIETIES:
        for tested_on in VARIETIES:
            plain, augmented = (models.answers[kind, trained_on, tested_on] for kind in KINDS)
            p = permutation_test(plain.gold, augmented.answers, plain.answers, plain.n_classes)
            yield {
                **models.place,
                "trained_on": trained_on,
                "tested_on": tested_on,
                "n": len(plain.gold),
                "plain": weighted_sum([(1.0, plain)]).as_json(),
                "augmented": weighted_sum([(1.0, augmented)]).as_json(),
                "difference": weighted_sum([(1.0, augmented), (-1.0, plain)]).as_json(),
                "p": p,
            }


def _gaps(models: Models) -> Iterator[dict[str, Any]]:
    """Means over cells at home and elsewhere, and the gap between them, plain and augmented."""
    weights: dict[str, dict[tuple[str, str], float]] = {"home": {}, "elsewhere": {}, "gap": {}}
    for trained_on in VARIETIES:
        for tested_on in VARIETIES:
            where, weight = ("home", 1 / 3) if trained_on == tested_on else ("elsewhere", 1 / 6)
            weights[where][trained_on, tested_on] = weight
            weights["gap"][trained_on, tested_on] = weight if where == "home" else -weight
    for what, cells in weights.items():
        plain = [(weight, models.answers["plain", *cell]) for cell, weight in cells.items()]
        after = [(weight, models.answers["augmented", *cell]) for cell, weight in cells.items()]
        less = [(-weight, answers) for weight, answers in plain]
        yield {
            **models.place,
            "what": what,
            "plain": weighted_sum(plain).as_json(),
            "augmented": weighted_sum(after).as_json(),
            "difference": weighted_sum([*after, *less]).as_json(),
        }


def _features(models: Models, cases: Cases) -> Iterator[dict[str, Any]]:
    common = studied_rewrites()
    for kind in KINDS:
        flips = np.mean([models.flips[kind, variety] for variety in VARIETIES], axis=0)
        control = np.mean([models.control_flips[kind, variety] for variety in VARIETIES], axis=0)
        for rewrite in dict.fromkeys(cases.rewrite.tolist()):
            own = (cases.rewrite == rewrite) & ~np.isnan(control[0])  # (case,)
            if own.sum() >= FEWEST:
                difference = (flips - control)[:, own]  # (seed, case)
                yield {
                    **models.place,
                    "kind": kind,
                    "rewrite": rewrite,
                    "common_in": list(common[rewrite]),
                    "n": int(own.sum()),
                    "flips": float(flips[:, own].mean()),
                    "control": float(control[:, own].mean()),
                    "difference": _estimate(difference, cases.text[own]).as_json(),
                    "p": sign_test(difference.mean(0), seed=0),
                }


def _pooled(models: Models, cases: Cases) -> Iterator[dict[str, Any]]:
    for kind in KINDS:
        for where in ("home", "foreign"):
            for trained_on in (*VARIETIES, "all"):
                flips, control, texts = _together(models, cases, kind, where, trained_on)
                if not len(texts):
                    continue
                yield {
                    **models.place,
                    "kind": kind,
                    "features": where,
                    "trained_on": trained_on,
                    "n": flips.shape[1],
                    "flips": _estimate(flips, texts).as_json(),
                    "control": _estimate(control, texts).as_json(),
                    "difference": _estimate(flips - control, texts).as_json(),
                }


def _training(models: Models, cases: Cases) -> Iterator[dict[str, Any]]:
    """Flips of augmented models less those of plain ones, of the same seed on the same texts."""
    for where in ("home", "foreign"):
        for trained_on in (*VARIETIES, "all"):
            plain, plain_control, texts = _together(models, cases, "plain", where, trained_on)
            after, control, _ = _together(models, cases, "augmented", where, trained_on)
            if not len(texts):
                continue
            yield {
                **models.place,
                "features": where,
                "trained_on": trained_on,
                "flips": _estimate(after - plain, texts).as_json(),
                "control": _estimate(control - plain_control, texts).as_json(),
            }


def _together(
    models: Models, cases: Cases, kind: str, where: str, trained_on: str
) -> tuple[Floats, Floats, np.ndarray[Any, Any]]:
    """Flips and those of the controls, (seed, case) each, and the text of each case."""
    common = studied_rewrites()
    flips, control, texts = [], [], []
    for variety in VARIETIES if trained_on == "all" else (trained_on,):
        at_home = np.array([variety in common[rewrite] for rewrite in cases.rewrite])
        own = at_home if where == "home" else ~at_home
        own = own & ~np.isnan(models.control_flips[kind, variety][0])
        flips.append(models.flips[kind, variety][:, own])
        control.append(models.control_flips[kind, variety][:, own])
        texts.append(cases.text[own])
    return np.hstack(flips), np.hstack(control), np.concatenate(texts)


def _estimate(values: Floats, texts: np.ndarray[Any, Any]) -> Estimate:
    """The mean, with an interval over texts, drawn whole, and seeds. (seed, case), (case,)"""
    _, places = np.unique(texts, return_inverse=True)
    sums = np.bincount(places, weights=values.mean(0))
    counts = np.bincount(places).astype(np.float64)
    value = float(values.mean())
    over_texts = clustered_interval(np.asarray(sums), counts, seed=0)
    margin = seed_margin(values.mean(1))
    return Estimate(value, widen_interval(value, over_texts, margin, within=(-1.0, 1.0)))


def _corrected(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    adjusted = holm([row["p"] for row in rows]) if rows else ()
    return [row | {"adjusted_p": p} for row, p in zip(rows, adjusted, strict=True)]


def _by_kind(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Plain and augmented models are corrected apart: the first is the question that was asked."""
    found: list[dict[str, Any]] = []
    for kind in KINDS:
        found += _corrected([row for row in rows if row["kind"] == kind])
    return found


def _seconds(runs: Sequence[Run]) -> dict[str, dict[str, float]]:
    """Mean of a run, by encoder."""
    found: dict[str, dict[str, float]] = {}
    for encoder in dict.fromkeys(run.encoder for run in runs):
        own = [run.seconds for run in runs if run.encoder == encoder]
        found[encoder] = {
            name: float(np.mean([one[name] for one in own])) for name in ("training", "answering")
        }
    return found
