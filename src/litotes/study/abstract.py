"""What a whole study found, in at most ten sentences: the first thing a reader sees.

The sentences are computed, like everything else in the report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from litotes.study.confidence import Confidence
from litotes.study.plan import Study
from litotes.study.sentences import compared_noun, count_of, higher_or_lower, is_inside
from litotes.study.setup import describe_corpora, encoder_name
from litotes.study.tables import (
    Comparison,
    ExperimentResults,
    ScoreTable,
    home_less_elsewhere,
    less_published,
)
from litotes.study.vocabulary import Vocabulary, deviations, exchanges


def study_summary(
    study: Study, results: Sequence[ExperimentResults], *, n_runs: int, n_failed: int
) -> Iterator[str]:
    """What was done, and what the tables say together."""
    if n_runs:
        yield _what_was_done(study, n_runs, n_failed)
    tables: list[ScoreTable] = []
    for one in results:
        tables += one.tables
    yield from _published_summary(results)
    yield from _travel_summary(tables)
    yield from _comparison_summary(results)
    yield from _useless_summary(tables)


def _what_was_done(study: Study, n_runs: int, n_failed: int) -> str:
    runs = count_of(n_runs, "run") + (f", of which {n_failed} failed" if n_failed else "")
    seeds = "one seed" if len(study.seeds) == 1 else f"{len(study.seeds)} seeds"
    encoders: dict[str, None] = {}  # a set that keeps its order
    for experiment in study.experiments:
        for setting in experiment.grid:
            encoders[encoder_name(setting.recipe.model.encoder)] = None
    return (
        f"{runs}: {count_of(len(study.experiments), 'experiment')}, {seeds} each, "
        f"encoder {', '.join(encoders)}, corpora {', '.join(describe_corpora(study))}."
    )


def vocabulary_summary(vocabularies: Sequence[Vocabulary]) -> Iterator[str]:
    """One sentence about shared vocabulary, where there are published shares."""
    for vocabulary in vocabularies:
        by_group = deviations(vocabulary)
        if by_group:
            swapped = [row.of for row in exchanges(vocabulary)]
            exchanged = f"; its rows of {' and '.join(swapped)} look exchanged" if swapped else ""
            closest, furthest = min(by_group.values()), max(by_group.values())
            yield (
                f"Shares of frequent {vocabulary.coverage.by} deviate from the paper's by"
                f" {closest:.3f} to {furthest:.3f}, by group{exchanged}."
            )


def confidence_summary(confidences: Sequence[Confidence]) -> Iterator[str]:
    """One sentence about calibration, mean over experiments."""
    by_task: dict[str, list[Confidence]] = {}
    for one in confidences:
        by_task.setdefault(one.task, []).append(one)
    changes, errors = [], []
    for task, own in by_task.items():
        before = f"{np.mean([one.before.reliability.ece for one in own]):.3f}"
        after = f"{np.mean([one.after.reliability.ece for one in own]):.3f}"
        errors.append(f"{after} in {task}")
        if before != after:
            changes.append(f"{before} to {after} in {task}")
    if changes:
        yield (
            "Calibration changes the calibration error, mean over experiments, from"
            f" {' and from '.join(changes)}."
        )
    elif errors:
        yield f"The calibration error, mean over experiments, is {' and '.join(errors)}."


def _published_summary(results: Sequence[ExperimentResults]) -> Iterator[str]:
    tables: list[ScoreTable] = []
    apart = {}
    for one in results:
        own = [table for table in one.tables if table.published]
        tables += own
        difference = less_published(*own)
        if difference is not None and difference.is_clear:
            apart[one.name] = difference
    overall = less_published(*tables)
    if overall is None:
        return
    inside = _inside_sentence(tables)
    if apart:
        furthest = sorted(apart, key=lambda name: -abs(apart[name].value))
        listed = ", ".join(f"{name} {apart[name].signed()}" for name in furthest)
        yield f"{inside}; clearly apart from it, mean over an experiment's cells: {listed}."
    else:
        yield (
            f"{inside}; on average over all of them ours is {higher_or_lower(overall)}, and no"
            " experiment as a whole is clearly apart."
        )


def _inside_sentence(tables: Sequence[ScoreTable]) -> str:
    n_cells = n_inside = 0
    for table in tables:
        for cell in table.matrix.cells:
            if cell.place in table.published:
                n_cells += 1
                n_inside += is_inside(cell, table.published[cell.place])
    return f"The paper's figure lies inside our 95 % interval in {n_inside} of {n_cells} cells"


def _travel_summary(tables: Sequence[ScoreTable]) -> Iterator[str]:
    """What a model loses where it was not trained, by task."""
    by_task: dict[str, list[ScoreTable]] = {}
    for table in tables:
        by_task.setdefault(table.matrix.task, []).append(table)
    parts = []
    for task, own in by_task.items():
        gap = home_less_elsewhere(*own)
        if gap is None:
            continue
        if gap.interval[0] > 0:
            parts.append(f"{task} {gap.text()}")
        else:
            parts.append(f"{task} {gap.signed()}{'' if gap.is_clear else ', which may be chance'}")
    if parts:
        yield (
            "Away from where it was trained a model loses, in macro-F1 on average:"
            f" {'; '.join(parts)}."
        )


def _comparison_summary(results: Sequence[ExperimentResults]) -> Iterator[str]:
    """How many differences of each kind are significant, over all experiments that ask."""
    kinds: dict[str, list[Comparison]] = {}
    for one in results:
        within = f"between {compared_noun(one.experiment.settings.compare)}"
        for comparison in one.comparisons:
            kind = "with another experiment" if comparison.elsewhere else within
            kinds.setdefault(kind, []).append(comparison)
    if kinds:
        yield _significance_sentence(kinds)


def _significance_sentence(kinds: Mapping[str, Sequence[Comparison]]) -> str:
    counts, n_unsure = [], 0
    for kind, own in kinds.items():
        real = [one for one in own if one.is_significant]
        counts.append(f"{len(real) or 'none'} of {len(own)} {kind}")
        for comparison in real:
            low, high = comparison.difference.interval
            n_unsure += low <= 0 <= high
    unsure = f"; in {n_unsure} of these the interval over seeds holds 0" if n_unsure else ""
    return f"Significant after Holm's correction: {', '.join(counts)}{unsure}."


def _useless_summary(tables: Sequence[ScoreTable]) -> Iterator[str]:
    n_cells = n_useless = n_collapsed = 0
    for table in tables:
        for cell in table.matrix.cells:
            n_cells += 1
            n_useless += cell.interval[0] <= cell.majority
            n_collapsed += cell.n_collapsed > 0
    if n_useless:
        collapsed = ""
        if n_collapsed:
            collapsed = f"; in {n_collapsed} a model gives one answer to everything"
        yield f"{n_useless} of {n_cells} cells are not clearly above the majority line{collapsed}."
