"""What leaking texts are worth: the same experiment with `data.leaks = "drop"` and with `"keep"` or
`"join"`.

    python -m reproduction.leak reproduction/study_leak.toml --out runs/leak

Reads a study that `litotes study` has finished in --out, prints a paragraph per task, and writes
all numbers to OUT/leak.json: kept (or joined) less dropped, over all cells and by what was tested
on; and, where the experiment is compared with single-task training and there are published scores
for both, how much of the published advantage is left when nothing leaks.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from litotes.core.storage import write_json
from litotes.study.plan import label_value, label_values, read_study
from litotes.study.runs import CellAnswers, StudyRuns, plan_jobs
from litotes.study.sentences import higher_or_lower
from litotes.study.tables import (
    Estimate,
    ExperimentResults,
    ScoreTable,
    Tables,
    difference_of,
    find_table,
    read_results,
    signed,
)

LEAKS = "data.leaks"
TREATMENTS = {
    "keep": "on the leaking texts as well",
    "join": "on the leaking texts as well, with the very labels they are tested for,",
}

Place = tuple[str, str, str]
"""The other values of the grid, row, column."""


@dataclass(frozen=True)
class Advantage:
    """Over the other experiment's models, mean over cells: without leaks, with leaks, published."""

    over: str
    dropped: Estimate
    leaking: Estimate
    paper: float | None


@dataclass(frozen=True)
class LeakEffect:
    """Leaks kept or joined (`way`) less leaks dropped, for one task on one test.

    n_significant: None where cells were not compared.
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
        return asdict(self) | {"words": list(effect_sentences(self))}


def leak_effects(results: Sequence[ExperimentResults]) -> tuple[LeakEffect, ...]:
    """An effect per task and test of every experiment whose grid treats leaks in both ways."""
    tables = {one.name: one.tables for one in results}
    effects: list[LeakEffect] = []
    for one in results:
        treatments = one.experiment.settings.grid.get(LEAKS, [])
        for way in TREATMENTS:
            if way in treatments and "drop" in treatments:
                effects += _effects(way, one, tables)
    return tuple(effects)


def leak_summary(effects: Sequence[LeakEffect]) -> Iterator[str]:
    """One sentence for each way of training on leaks."""
    for way, words in (("keep", ""), ("join", ", with the labels they are tested for,")):
        own = [effect for effect in effects if effect.way == way]
        if own:
            parts = ", ".join(f"{effect.overall.signed()} in {effect.task}" for effect in own)
            yield (
                f"Training on texts that leak into the test split{words} changes macro-F1 by"
                f" {parts}."
            )


def effect_sentences(effect: LeakEffect) -> Iterator[str]:
    """The paragraph of one task."""
    chance = "" if effect.overall.is_clear else ", which may be chance"
    columns = [f"{column} {estimate.signed()}" for column, estimate in effect.by_column.items()]
    yield (
        f"{effect.task.capitalize()}: models that were trained {TREATMENTS[effect.way]} score"
        f" {effect.overall.signed()} compared with models that were not, mean over {effect.n_cells}"
        f" cells{chance}. By what was tested on: {', '.join(columns)}."
    )
    if effect.n_significant is not None:
        n = effect.n_significant
        yield (
            f"{n or 'None'} of the {effect.n_cells} cells {'differs' if n == 1 else 'differ'}"
            " significantly after Holm's correction."
        )
    for advantage in effect.advantages:
        yield from _advantage_sentences(advantage, effect)


def _advantage_sentences(one: Advantage, effect: LeakEffect) -> Iterator[str]:
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


def _effects(way: str, results: ExperimentResults, tables: Tables) -> Iterator[LeakEffect]:
    tests = dict.fromkeys((table.matrix.task, table.tested_on) for table in results.tables)
    for task, tested_on in tests:
        own = [
            one for one in results.tables if (one.matrix.task, one.tested_on) == (task, tested_on)
        ]
        leaking, dropped = _answers(results, own, way), _answers(results, own, "drop")
        by_column: dict[str, list[tuple[CellAnswers, CellAnswers]]] = {}
        pairs = []
        for place, answers in leaking.items():
            if place in dropped:
                pairs.append((answers, dropped[place]))
                by_column.setdefault(place[-1], []).append(pairs[-1])
        if pairs:
            yield LeakEffect(
                experiment=results.name,
                way=way,
                task=task,
                tested_on=tested_on,
                n_cells=len(pairs),
                overall=difference_of(pairs),
                by_column={column: difference_of(own) for column, own in by_column.items()},
                n_significant=_n_significant(results, way, task, tested_on),
                advantages=tuple(_advantages(results, own, tables, way)),
            )


def _answers(
    results: ExperimentResults, tables: Sequence[ScoreTable], way: str
) -> dict[Place, CellAnswers]:
    """The answers with leaks treated in one way, by what else they share."""
    found: dict[Place, CellAnswers] = {}
    is_row = results.experiment.settings.rows == LEAKS
    for table in tables:
        others = {path: value for path, value in table.values.items() if path != LEAKS}
        for (row, column), answers in table.answers.items():
            value, rest = (row, "") if is_row else (str(table.values[LEAKS]), row)
            if value == way:
                found[label_values(others), rest, column] = answers
    return found


def _n_significant(results: ExperimentResults, way: str, task: str, tested_on: str) -> int | None:
    if results.experiment.settings.compare != LEAKS:
        return None
    n = 0
    for one in results.comparisons:
        if (one.task, one.tested_on, one.elsewhere) == (task, tested_on, None):
            n += one.is_significant and one.system.startswith((label_value(LEAKS, way), way))
    return n


def _advantages(
    results: ExperimentResults, own: Sequence[ScoreTable], tables: Tables, way: str
) -> Iterator[Advantage]:
    """Over the first table of the same task and test of each experiment it is compared with."""
    by_treatment = {table.values.get(LEAKS): table for table in own}
    if not {"drop", way} <= by_treatment.keys():
        return
    first = own[0]
    for name in results.experiment.settings.against:
        other = find_table(tables[name], first.matrix.task, first.tested_on)
        if other is None:
            continue
        dropped, leaking = _over(by_treatment["drop"], other), _over(by_treatment[way], other)
        if dropped is not None and leaking is not None:
            published = _published_advantage(by_treatment["drop"], other)
            yield Advantage(other.name_within(name), dropped, leaking, published)


def _over(table: ScoreTable, other: ScoreTable) -> Estimate | None:
    shared = [place for place in table.answers if place in other.answers]
    pairs = [(table.answers[place], other.answers[place]) for place in shared]
    return difference_of(pairs) if pairs else None


def _published_advantage(table: ScoreTable, other: ScoreTable) -> float | None:
    shared = [place for place in table.published if place in other.published]
    differences = [table.published[place] - other.published[place] for place in shared]
    return float(np.mean(differences)) if differences else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, metavar="FILE", help="the study that was run")
    parser.add_argument("--out", type=Path, required=True, help="the folder it was run into")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as it was")
    options = parser.parse_args()
    study = read_study(options.file, changes=options.set)
    jobs = plan_jobs(study, options.out.resolve())
    effects = leak_effects(read_results(study, StudyRuns(jobs, {}, len(jobs))))
    write_json(options.out / "leak.json", [effect.as_json() for effect in effects])
    print(*leak_summary(effects), sep="\n")
    for effect in effects:
        title = f"{effect.experiment}, {effect.task}: {label_value(LEAKS, effect.way)}"
        print(f"\n{title}\n{' '.join(effect_sentences(effect))}")


if __name__ == "__main__":
    main()
