"""Rewrites real texts, asks the model about each version, and counts what changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

from litotes.core.errors import UserError
from litotes.core.numbers import Floats
from litotes.core.progress import Watch, ignore_progress
from litotes.core.values import Answer, Example
from litotes.data.corpus import Corpus
from litotes.data.rewrites.control import control_of
from litotes.data.rewrites.rewrite import Rewrite
from litotes.evaluation.reliability import wilson
from litotes.evaluation.significance import holm
from litotes.evaluation.stress.result import (
    ALL,
    Comparison,
    Contrast,
    Measured,
    StressResult,
    StressRow,
    VarietyRow,
)
from litotes.evaluation.stress.statistics import (
    Bools,
    clustered_interval,
    difference_interval,
    mcnemar,
    mean_interval,
    sign_test,
)
from litotes.prediction.predictor import Predictor

N_TEXTS = 200
"""Texts under each rewrite, at most."""

FEWEST = 20
"""With fewer texts that have a control there is no test."""

_CHUNK = 256
Answers = dict[tuple[str, str | None], Mapping[str, Answer]]


@dataclass(frozen=True)
class _Case:
    """A text under one rewrite."""

    rewrite: str
    example: Example
    rewritten: str
    control: str | None


@dataclass(frozen=True)
class _Effects:
    """What rewriting does to one task's answers. (text,) each; control: nan without one."""

    cases: Sequence[_Case]
    flips: Bools
    change: Floats
    control_flips: Floats
    control_change: Floats
    n_broken: int
    n_mended: int


def stress(
    predictor: Predictor,
    corpus: Corpus,
    rewrites: Mapping[str, Rewrite],
    *,
    model: str = "model",
    n_texts: int = N_TEXTS,
    seed: int = 0,
    watch: Watch = ignore_progress,
) -> StressResult:
    """Each rewrite on at most `n_texts` texts that it applies to, drawn at random.

    The seed fixes the texts, the rewrites, the controls and the draws of intervals and tests.
    """
    cases = _make_cases(corpus, rewrites, n_texts, seed, watch)
    if not cases:
        raise UserError(
            f"None of the {len(rewrites)} rewrites applies to a text of {corpus.name}: choose other"
            " rewrites with --only, or other texts."
        )
    answers = _ask(predictor, cases, watch)
    tasks = [name for name, task in predictor.tasks.items() if task.is_choice]
    if not tasks:
        raise UserError(
            "The model gives numbers or several labels at once: there is no one label that could"
            " change."
        )
    rows, pooled = [], []
    for task in tasks:
        rows += list(_rows(cases, answers, task, seed))
        pooled += list(_varieties(cases, rewrites, answers, task, seed))
    applied = {case.rewrite for case in cases}
    return StressResult(
        model=model,
        data=corpus.name,
        seed=seed,
        n_texts=len({case.example.text for case in cases}),
        rows=_correct(rows),
        varieties=tuple(pooled),
        examples=_examples(cases),
        not_applied=tuple(name for name in rewrites if name not in applied),
    )


def _make_cases(
    corpus: Corpus, rewrites: Mapping[str, Rewrite], n_texts: int, seed: int, watch: Watch
) -> list[_Case]:
    examples = list({(example.text, example.pair): example for example in corpus}.values())
    Random(seed).shuffle(examples)
    cases: list[_Case] = []
    for number, (name, rewrite) in enumerate(rewrites.items()):
        watch("rewriting", number, len(rewrites), name)
        n_found = 0
        for example in examples:
            rewritten = rewrite(example.text, seed=seed)
            if rewritten != example.text:
                control = control_of(example.text, rewritten, seed=seed)
                cases.append(_Case(name, example, rewritten, control))
                n_found += 1
            if n_found == n_texts:
                break
    return cases


def _ask(predictor: Predictor, cases: Sequence[_Case], watch: Watch) -> Answers:
    """Every version of a text is asked about once, the short ones first."""
    asked: dict[tuple[str, str | None], None] = {}
    for case in cases:
        for text in (case.example.text, case.rewritten, case.control):
            if text is not None:
                asked[text, case.example.pair] = None
    keys = sorted(asked, key=lambda key: (len(key[0]), key[0], key[1] or ""))
    answers: Answers = {}
    for start in range(0, len(keys), _CHUNK):
        chunk = keys[start : start + _CHUNK]
        found = predictor.predict([key[0] for key in chunk], pairs=[key[1] for key in chunk])
        for key, prediction in zip(chunk, found, strict=True):
            answers[key] = prediction.answers
        watch("answering", start + len(chunk), len(keys), "")
    return answers


def _effects(cases: Sequence[_Case], answers: Answers, task: str) -> _Effects:
    flips, change, control_flips, control_change = [], [], [], []
    n_broken = n_mended = 0
    for case in cases:
        pair = case.example.pair
        first = answers[case.example.text, pair][task]
        flip, fall = _compare(first, answers[case.rewritten, pair][task])
        flips.append(flip)
        change.append(fall)
        if case.control is None:
            control_flips.append(np.nan)
            control_change.append(np.nan)
        else:
            flip_of_control, fall_of_control = _compare(first, answers[case.control, pair][task])
            control_flips.append(float(flip_of_control))
            control_change.append(fall_of_control)
        gold = case.example.labels.get(task)
        if flip and gold is not None:
            n_broken += first.label == gold
            n_mended += answers[case.rewritten, pair][task].label == gold
    return _Effects(
        cases,
        np.array(flips, dtype=bool),
        np.array(change),
        np.array(control_flips),
        np.array(control_change),
        n_broken,
        n_mended,
    )


def _compare(first: Answer, second: Answer) -> tuple[bool, float]:
    """Whether the label changes, and by how much the probability of the first label does."""
    label = str(first.label)
    change = second.probabilities[label] - first.probabilities[label]
    return second.label != first.label, change


def _rows(cases: Sequence[_Case], answers: Answers, task: str, seed: int) -> Iterator[StressRow]:
    """All texts, then by variety, for each rewrite."""
    by_rewrite: dict[str, list[_Case]] = {}
    for case in cases:
        by_rewrite.setdefault(case.rewrite, []).append(case)
    for own in by_rewrite.values():
        yield _row(_effects(own, answers, task), task, ALL, seed)
        varieties = sorted({case.example.variety for case in own if case.example.variety})
        for variety in varieties:
            part = [case for case in own if case.example.variety == variety]
            yield _row(_effects(part, answers, task), task, variety, seed)


def _row(effects: _Effects, task: str, cell: str, seed: int) -> StressRow:
    return StressRow(
        rewrite=effects.cases[0].rewrite,
        task=task,
        cell=cell,
        n=len(effects.cases),
        flips=_share(effects.flips),
        change=_mean(effects.change, seed),
        n_broken=effects.n_broken,
        n_mended=effects.n_mended,
        control=_control(effects, seed),
    )


def _share(flips: Bools) -> Measured:
    share = float(flips.mean())
    return Measured(share, wilson(share, len(flips)))


def _mean(values: Floats, seed: int) -> Measured:
    return Measured(float(values.mean()), mean_interval(values, seed=seed))


def _control(effects: _Effects, seed: int) -> Comparison | None:
    there = ~np.isnan(effects.control_change)  # (text,)
    if not there.any():
        return None
    flips, control_flips = effects.flips[there], effects.control_flips[there].astype(bool)
    change, control_change = effects.change[there], effects.control_change[there]
    by_flip = by_change = None
    if len(flips) >= FEWEST:
        share = float(flips.mean() - control_flips.mean())
        p = mcnemar(flips, control_flips)
        by_flip = Contrast(share, difference_interval(flips, control_flips), p, p)
        mean = _mean(change - control_change, seed)
        p = sign_test(change - control_change, seed=seed)
        by_change = Contrast(mean.value, mean.interval, p, p)
    return Comparison(
        len(flips), _share(control_flips), _mean(control_change, seed), by_flip, by_change
    )


def _correct(rows: Sequence[StressRow]) -> tuple[StressRow, ...]:
    """Holm's correction over all tests of all texts, and apart from it over those by variety."""
    tests: dict[tuple[bool, int, str], Contrast] = {}
    for number, row in enumerate(rows):
        for name in ("flip_difference", "change_difference"):
            contrast = getattr(row.control, name, None)
            if contrast is not None:
                tests[row.cell == ALL, number, name] = contrast
    corrected: dict[int, dict[str, Any]] = {}
    for family in (True, False):
        keys = [key for key in tests if key[0] is family]
        adjusted = holm([tests[key].p for key in keys])
        for key, p in zip(keys, adjusted, strict=True):
            corrected.setdefault(key[1], {})[key[2]] = replace(tests[key], adjusted_p=p)
    found = []
    for number, row in enumerate(rows):
        if number in corrected:
            assert row.control is not None
            row = replace(row, control=replace(row.control, **corrected[number]))
        found.append(row)
    return tuple(found)


def _varieties(
    cases: Sequence[_Case],
    rewrites: Mapping[str, Rewrite],
    answers: Answers,
    task: str,
    seed: int,
) -> Iterator[VarietyRow]:
    """Features that are common in a variety, pooled over the texts that have a control."""
    common = {name: rewrite.common_in() for name, rewrite in rewrites.items()}
    for variety in sorted({tag for tags in common.values() for tag in tags}):
        own = [case for case in cases if variety in common[case.rewrite] and case.control]
        if own:
            effects = _effects(own, answers, task)
            differences = effects.flips - effects.control_flips
            yield VarietyRow(
                variety,
                task,
                n_rewrites=len({case.rewrite for case in own}),
                n=len(own),
                flips=_by_text(own, effects.flips.astype(float), seed),
                difference=_by_text(own, differences, seed),
            )


def _by_text(cases: Sequence[_Case], values: Floats, seed: int) -> Measured:
    _, places = np.unique([case.example.text for case in cases], return_inverse=True)
    sums: Any = np.bincount(places, weights=values)
    counts: Floats = np.bincount(places).astype(np.float64)
    return Measured(float(values.mean()), clustered_interval(sums, counts, seed=seed))


def _examples(cases: Sequence[_Case]) -> dict[str, tuple[str, str, str | None]]:
    """The shortest text of each rewrite."""
    found: dict[str, _Case] = {}
    for case in cases:
        earlier = found.get(case.rewrite)
        if earlier is None or len(case.example.text) < len(earlier.example.text):
            found[case.rewrite] = case
    return {name: (case.example.text, case.rewritten, case.control) for name, case in found.items()}
