"""What leaking texts are worth: the same experiment with `data.leaks = "drop"` and with `"keep"` or
`"join"`, told apart.

kept (or joined) less dropped, over all cells and by what was tested on; and, where the experiment
is set against single-task training and the paper has numbers for both, how much of the paper's
advantage is left when nothing leaks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from litotes.study.overall import Estimate, difference_of, signed
from litotes.study.plan import named
from litotes.study.results import Answers, Findings, Panel
from litotes.study.sentences import higher_or_lower

LEAKS = "data.leaks"
WAYS = {
    "keep": "on the leaking texts as well",
    "join": "on the leaking texts as well, with the very labels they are tested for,",
}


@dataclass(frozen=True)
class Advantage:
    """Over the other experiment's models, mean over cells: ours without and with leaks, and the
    paper's.
    """

    over: str
    dropped: Estimate
    leaking: Estimate
    paper: float | None


@dataclass(frozen=True)
class LeakEffect:
    """Leaks kept or joined (`way`) less leaks dropped for one task on one test; n_significant is
    None where cells were not compared.
    """

    experiment: str
    way: str
    task: str
    tested_on: str
    n_cells: int
    overall: Estimate
    by_column: Mapping[str, Estimate]
    n_significant: int | None
    advantages: tuple[Advantage, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"words": list(leak_words(self))}


def leak_effects(all_findings: Sequence[Findings]) -> tuple[LeakEffect, ...]:
    """An effect per task and test of every experiment whose grid has both ways of treating leaks."""
    by_name = {one.experiment.settings.name: one.panels for one in all_findings}
    return tuple(effect for one in all_findings for effect in _effects(one, by_name))


def leak_words(effect: LeakEffect) -> Iterator[str]:
    """The paragraph of one task."""
    chance = "" if effect.overall.is_clear else ", which may be chance"
    parts = ", ".join(
        f"{column} {estimate.signed()}" for column, estimate in effect.by_column.items()
    )
    yield (
        f"{effect.task.capitalize()}: models that were trained {WAYS[effect.way]} score"
        f" {effect.overall.signed()} compared with models that were not, mean over {effect.n_cells}"
        f" cells{chance}. By what was tested on: {parts}."
    )
    if effect.n_significant is not None:
        n = effect.n_significant
        yield (
            f"{n or 'None'} of the {effect.n_cells} cells {'differs' if n == 1 else 'differ'}"
            " significantly after Holm's correction."
        )
    for advantage in effect.advantages:
        yield from _advantage_words(advantage, effect)


def _advantage_words(one: Advantage, effect: LeakEffect) -> Iterator[str]:
    yield (
        f"Without the leaking texts {effect.experiment} is"
        f" {higher_or_lower(one.dropped, one.over)}; with them it is"
        f" {higher_or_lower(one.leaking, one.over)}."
    )
    if one.paper is None:
        return
    if one.paper <= 0:
        yield (
            f"The paper has no advantage to explain here: its tables differ by {signed(one.paper)}."
        )
        return
    yield (
        f"The paper's own tables differ by {signed(one.paper)} on average. Of this advantage"
        f" {_share(one.dropped.value, one.paper)} remains without the leak,"
        f" {_share(one.leaking.value, one.paper)} with it."
    )
    if effect.overall.interval[1] < one.paper / 2:
        yield (
            "What the leak is worth here lies wholly below half of that advantage: with this recipe"
            " the leak alone does not explain it."
        )
    elif effect.overall.interval[0] > one.paper / 2:
        yield (
            "What the leak is worth here lies wholly above half of that advantage: the leak"
            " explains most of it."
        )
    else:
        yield "How much of that advantage the leak explains cannot be told from these runs."


def _share(part: float, whole: float) -> str:
    return "nothing" if part <= 0 else f"{100 * part / whole:.0f} %"


def _effects(found: Findings, by_name: Mapping[str, Sequence[Panel]]) -> Iterator[LeakEffect]:
    ways = found.experiment.settings.grid.get(LEAKS, [])
    for way in (way for way in WAYS if way in ways and "drop" in ways):
        yield from _effects_of(way, found, by_name)


def _effects_of(
    way: str, found: Findings, by_name: Mapping[str, Sequence[Panel]]
) -> Iterator[LeakEffect]:
    leaking, dropped = _side(found, way), _side(found, "drop")
    for task, tested_on in dict.fromkeys(
        (panel.table.task, panel.tested_on) for panel in found.panels
    ):
        shared = [place for place in leaking if place in dropped and place[:2] == (task, tested_on)]
        if shared:
            pairs = {place: (leaking[place], dropped[place]) for place in shared}
            columns = dict.fromkeys(place[-1] for place in shared)
            yield LeakEffect(
                experiment=found.experiment.settings.name,
                way=way,
                task=task,
                tested_on=tested_on,
                n_cells=len(shared),
                overall=difference_of(list(pairs.values())),
                by_column={
                    column: difference_of([pairs[place] for place in shared if place[-1] == column])
                    for column in columns
                },
                n_significant=_n_significant(found, way, task, tested_on),
                advantages=tuple(_advantages(found, by_name, way, task, tested_on)),
            )


Place = tuple[str, str, str, str, str]
"""task, tested on, the other values of the grid, row, column."""


def _side(found: Findings, way: str) -> dict[Place, Answers]:
    """The answers with leaks treated in one way, by what else they share."""
    side: dict[Place, Answers] = {}
    for panel in found.panels:
        others = ", ".join(
            named(path, value) for path, value in panel.values.items() if path != LEAKS
        )
        for (row, column), answers in panel.answers.items():
            is_row = found.experiment.settings.rows == LEAKS
            value, rest = (row, "") if is_row else (str(panel.values[LEAKS]), row)
            if value == way:
                side[panel.table.task, panel.tested_on, others, rest, column] = answers
    return side


def _n_significant(found: Findings, way: str, task: str, tested_on: str) -> int | None:
    if found.experiment.settings.compare != LEAKS:
        return None
    here = [
        one
        for one in found.comparisons
        if (one.task, one.tested_on, one.elsewhere) == (task, tested_on, None)
    ]
    return sum(
        one.is_significant for one in here if one.system.startswith((named(LEAKS, way), way))
    )


def _advantages(
    found: Findings, by_name: Mapping[str, Sequence[Panel]], way: str, task: str, tested_on: str
) -> Iterator[Advantage]:
    """Over the first table of the same task and test of each experiment that this one is set
    against.
    """
    panels = {
        panel.values.get(LEAKS): panel
        for panel in found.panels
        if (panel.table.task, panel.tested_on) == (task, tested_on)
    }
    if not {"drop", way} <= panels.keys():
        return
    for name in found.experiment.settings.against:
        other = next(
            (
                panel
                for panel in by_name[name]
                if (panel.table.task, panel.tested_on) == (task, tested_on)
            ),
            None,
        )
        dropped, leaking = (
            _over(panels[value], other) if other else None for value in ("drop", way)
        )
        if other and dropped and leaking:
            yield Advantage(
                other.of(name), dropped, leaking, _paper_advantage(panels["drop"], other)
            )


def _over(panel: Panel, other: Panel) -> Estimate | None:
    pairs = [
        (own, other.answers[place])
        for place, own in panel.answers.items()
        if place in other.answers
    ]
    return difference_of(pairs) if pairs else None


def _paper_advantage(panel: Panel, other: Panel) -> float | None:
    shared = [place for place in panel.paper if place in other.paper]
    return (
        float(np.mean([panel.paper[place] - other.paper[place] for place in shared]))
        if shared
        else None
    )
