"""What a whole study found, in at most eight sentences: the first thing a reader sees, computed
like everything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from litotes.study.confidence import Confidence
from litotes.study.leak import LeakEffect
from litotes.study.overall import home_less_elsewhere, less_paper
from litotes.study.plan import Study
from litotes.study.results import Comparison, Findings, Panel
from litotes.study.sentences import COMPARED, counted, higher_or_lower, is_inside
from litotes.study.setup import corpora, encoder_name
from litotes.study.vocabulary import Vocabulary, deviations, exchanges


def study_words(
    study: Study, all_findings: Sequence[Findings], *, n_runs: int, n_failed: int
) -> Iterator[str]:
    """What was done, and what the tables say together."""
    seeds = "one seed" if len(study.seeds) == 1 else f"{len(study.seeds)} seeds"
    runs = counted(n_runs, "run") + (f", of which {n_failed} failed" if n_failed else "")
    if n_runs:
        recipes = [
            setting.recipe for experiment in study.experiments for setting in experiment.grid
        ]
        encoders = dict.fromkeys(encoder_name(recipe.model.encoder) for recipe in recipes)
        yield (
            f"{runs}: {counted(len(study.experiments), 'experiment')}, {seeds} each, "
            f"encoder {', '.join(encoders)}, corpora {', '.join(corpora(study))}."
        )
    panels = [panel for found in all_findings for panel in found.panels]
    yield from _beside_paper(all_findings)
    yield from _travel(panels)
    yield from _compared(all_findings)
    yield from _useless(panels)


def leak_summary(effects: Sequence[LeakEffect]) -> Iterator[str]:
    """One sentence about what leaking texts are worth."""
    for way, words in (("keep", ""), ("join", ", with the labels they are tested for,")):
        if own := [effect for effect in effects if effect.way == way]:
            parts = ", ".join(f"{effect.overall.signed()} in {effect.task}" for effect in own)
            yield (
                f"Training on texts that leak into the test split{words} changes macro-F1 by"
                f" {parts}."
            )


def vocabulary_summary(vocabularies: Sequence[Vocabulary]) -> Iterator[str]:
    """One sentence about figure 1."""
    for vocabulary in vocabularies:
        if by_group := deviations(vocabulary):
            swapped = [of for of, *_ in exchanges(vocabulary)]
            exchanged = f"; its rows of {' and '.join(swapped)} look exchanged" if swapped else ""
            closest, furthest = min(by_group.values()), max(by_group.values())
            what = f"Shares of frequent {vocabulary.coverage.by}"
            yield (
                f"{what} deviate from the paper's by {closest:.3f} to {furthest:.3f}, by"
                f" group{exchanged}."
            )


def confidence_summary(confidences: Sequence[Confidence]) -> Iterator[str]:
    """One sentence about calibration, mean over experiments."""
    by_task: dict[str, list[Confidence]] = {}
    for one in confidences:
        by_task.setdefault(one.task, []).append(one)
    parts = [
        f"{np.mean([one.before.reliability.ece for one in own]):.3f} to"
        f" {np.mean([one.after.reliability.ece for one in own]):.3f} in {task}"
        for task, own in by_task.items()
    ]
    if parts:
        yield (
            "Calibration changes the calibration error, mean over experiments, from"
            f" {' and from '.join(parts)}."
        )


def _beside_paper(all_findings: Sequence[Findings]) -> Iterator[str]:
    ours = {
        found.experiment.settings.name: [panel for panel in found.panels if panel.paper]
        for found in all_findings
    }
    ours = {name: panels for name, panels in ours.items() if panels}
    if not ours:
        return
    together = [panel for panels in ours.values() for panel in panels]
    cells = [
        (cell, panel.paper[place])
        for panel in together
        for cell in panel.table.cells
        if (place := (cell.trained_on, cell.tested_on)) in panel.paper
    ]
    overall = less_paper(*together)
    if overall is None:
        return
    n_inside = sum(is_inside(cell, paper) for cell, paper in cells)
    inside = f"The paper's figure lies inside our 95 % interval in {n_inside} of {len(cells)} cells"
    apart = {
        name: difference
        for name, panels in ours.items()
        if (difference := less_paper(*panels)) is not None and difference.is_clear
    }
    if apart:
        furthest = sorted(apart, key=lambda name: -abs(apart[name].value))
        listed = ", ".join(f"{name} {apart[name].signed()}" for name in furthest)
        yield f"{inside}; clearly apart from it, mean over an experiment's cells: {listed}."
    else:
        yield (
            f"{inside}; on average over all of them ours is {higher_or_lower(overall)}, and no"
            " experiment as a whole is clearly apart."
        )


def _travel(panels: Sequence[Panel]) -> Iterator[str]:
    """What a model loses where it was not trained, by task."""
    by_task: dict[str, list[Panel]] = {}
    for panel in panels:
        by_task.setdefault(panel.table.task, []).append(panel)
    parts = []
    for task, own in by_task.items():
        gap = home_less_elsewhere(*own)
        if gap is not None:
            parts.append(
                f"{task} {gap.shown()}"
                if gap.interval[0] > 0
                else f"{task} {gap.signed()}{'' if gap.is_clear else ', which may be chance'}"
            )
    if parts:
        yield (
            "Away from where it was trained a model loses, in macro-F1 on average:"
            f" {'; '.join(parts)}."
        )


def _compared(all_findings: Sequence[Findings]) -> Iterator[str]:
    """How many differences of each kind are significant, over all experiments that ask."""
    kinds: dict[str, list[Comparison]] = {}
    for found in all_findings:
        path = found.experiment.settings.compare
        for one in found.comparisons:
            what = (
                "with another experiment"
                if one.elsewhere
                else f"between {COMPARED.get(path or '', f'values of {path}')}"
            )
            kinds.setdefault(what, []).append(one)
    if not kinds:
        return
    real = [one for comparisons in kinds.values() for one in comparisons if one.is_significant]
    counts = [
        f"{sum(one.is_significant for one in own) or 'none'} of {len(own)} {what}"
        for what, own in kinds.items()
    ]
    n_unsure = sum(one.difference.interval[0] <= 0 <= one.difference.interval[1] for one in real)
    unsure = f"; in {n_unsure} of these the interval over seeds holds 0" if n_unsure else ""
    yield f"Significant after Holm's correction: {', '.join(counts)}{unsure}."


def _useless(panels: Sequence[Panel]) -> Iterator[str]:
    cells = [cell for panel in panels for cell in panel.table.cells]
    n_useless = sum(cell.interval[0] <= cell.majority for cell in cells)
    n_collapsed = sum(cell.n_collapsed > 0 for cell in cells)
    if n_useless:
        collapsed = (
            f"; in {n_collapsed} a model gives one answer to everything" if n_collapsed else ""
        )
        yield (
            f"{n_useless} of {len(cells)} cells are not clearly above the majority line{collapsed}."
        )
