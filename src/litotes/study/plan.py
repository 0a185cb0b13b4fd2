"""The study file: what is trained, what it is tested on, what is compared.

    name = "Two heads"                           # a study
    seeds = 3
    published = "paper.json"                     # published scores to compare with (published.py)
    [sources]                                    # names for corpora: a path is written once
    besstie = "besstie:data/besstie"
    [recipe.data]                                # what all runs share: a recipe
    source = "besstie"
    [[experiment]]                               # one table or several: what differs
    name = "Reddit sentiment"
    figure = "3"                                 # of the published file
    set = { "data.tasks" = ["sentiment"] }
    grid = { "model.head" = ["linear", "mean"], "data.where.variety" = ["en-AU", "en-UK"] }
    rows = "data.where.variety"                  # one table per head, one row per variety
    compare = "model.head"                       # every head with the first one, text by text
    test = [{ by = "variety" }]                  # the columns

Every combination of the grid is one run per seed. A run is identified by the hash of its resolved
recipe and of the texts it reads. So a run that two experiments need is made once, and a changed
line of the file reruns only what it changes.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field

from litotes.core.errors import UserError
from litotes.core.registry import unknown_name
from litotes.data.corpus import Axis
from litotes.study.published import Published, read_published
from litotes.training.recipe import (
    Recipe,
    Table,
    Where,
    put,
    read_settings,
    recipe_of,
)


class TestedOn(Table):
    """A `test` entry: which texts the models are tested on, and what the columns are."""

    data: str | None = Field(None, description="None: what the model was trained on")
    where: Where = Where()
    by: Axis = "variety"
    by_name: str = Field("", description="what the columns are called; none: as `by`")
    name: str = Field("", description="shown in titles; none: the selected source")

    def label(self) -> str:
        selected = (self.where.source, self.where.variety)
        return self.name or ", ".join(words for words in selected if isinstance(words, str))


class CoverageSettings(Table):
    """A `[[coverage]]` entry: corpora whose frequent vocabulary is compared."""

    name: str
    data: list[str]
    figure: str | None = None


class ExperimentSettings(Table):
    """An `[[experiment]]` entry."""

    name: str
    about: str = Field("", description="a sentence for the report")
    figure: str | None = Field(None, description="of the published file, to compare with")
    set: dict[str, Any] = Field({})
    grid: dict[str, list[Any]] = Field({})
    rows: str = Field("data.where.variety", description="the path of the grid that makes the rows")
    compare: str | None = Field(
        None, description="a path of the grid: every value against the first, on the same texts"
    )
    against: list[str] = Field(
        [],
        description=(
            "other experiments with the same columns and the same rows, or with a single row: their"
            " first table of the same task"
        ),
    )
    test: list[TestedOn] = Field([TestedOn()])


class StudySettings(Table):
    """The whole file."""

    name: str
    about: str = ""
    seeds: int = Field(1, ge=1)
    keep_models: bool = Field(
        False, description="keep the trained models, 90 MB each, after they were tested"
    )
    published: str | None = Field(
        None, description="a JSON file of published numbers; relative to the study file"
    )
    sources: dict[str, str] = Field({})
    recipe: dict[str, Any] = Field({})
    coverage: list[CoverageSettings] = Field([])
    experiment: list[ExperimentSettings] = Field([])


@dataclass(frozen=True)
class Setting:
    """One combination of an experiment's grid: its values by path, and the recipe they make.

    The recipe is that of the first seed. row: the name of its row. shared: the values that all
    models of its table have in common. model_name: its models are kept as OUT/models/NAME-SEED;
    None: in the folders of their runs.
    """

    values: Mapping[str, Any]
    recipe: Recipe
    row: str
    shared: Mapping[str, Any] = field(default_factory=dict)
    model_name: str | None = None

    @property
    def name(self) -> str:
        """Its values in words."""
        return label_values(self.values)

    @property
    def kind(self) -> str:
        """Head and tasks: what the time of a step depends on."""
        return f"{self.recipe.model.head}, {', '.join(self.recipe.data.tasks or ['all tasks'])}"


@dataclass(frozen=True)
class Experiment:
    """An experiment with its grid written out, and its tests with their sources resolved.

    tasks: those its tables are about; None: all that its models learn.
    """

    settings: ExperimentSettings
    grid: tuple[Setting, ...]
    tests: tuple[TestedOn, ...]
    tasks: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Study:
    """A study file, checked and resolved. Seeds are counted from each recipe's own.

    bootstrap_seed: of the resampling behind every cell's interval.
    """

    settings: StudySettings
    experiments: tuple[Experiment, ...]
    published: Published | None = None
    bootstrap_seed: int = 0

    @property
    def seeds(self) -> range:
        return range(self.settings.seeds)

    def recipes(self, setting: Setting) -> list[Recipe]:
        """The recipes of a setting's runs, one a seed."""
        recipe = setting.recipe
        return [recipe.changed(seed=recipe.seed + seed) for seed in self.seeds]

    def settings_of_runs(self) -> Iterator[Setting]:
        """The combinations of all experiments."""
        for experiment in self.experiments:
            yield from experiment.grid


def read_study(file: Path, *, changes: Sequence[str] = ()) -> Study:
    """Reads a study file, applies `a.b=c` changes, and checks every recipe in it."""
    settings = StudySettings.of(read_settings(file, changes, kind="study"), str(file))
    if not settings.experiment and not settings.coverage:
        raise UserError(f"{file}: nothing to do; add an [[experiment]].")
    experiments = tuple(_experiment(one, settings, file) for one in settings.experiment)
    _check_comparisons(experiments, file)
    return Study(settings, experiments, _published(settings, file))


def base_recipe(study: Study) -> Recipe:
    """Makes the recipe that all runs share."""
    return recipe_of(dict(study.settings.recipe), study.settings.name)


def _published(settings: StudySettings, file: Path) -> Published | None:
    if settings.published is not None:
        return read_published(file.parent / settings.published)
    entries: list[ExperimentSettings | CoverageSettings]
    entries = [*settings.experiment, *settings.coverage]
    for entry in entries:
        if entry.figure is not None:
            raise UserError(
                f"{file}: {entry.name!r} names figure {entry.figure}, but the study has no"
                ' published numbers. Add published = "FILE.json", or leave the figure out.'
            )
    return None


def _experiment(one: ExperimentSettings, study: StudySettings, file: Path) -> Experiment:
    where = f"{file}, experiment {one.name!r}"
    _check_grid(one, where)
    settings = []
    for chosen in itertools.product(*one.grid.values()):
        values = dict(zip(one.grid, chosen, strict=True))
        recipe = _recipe(study, {**one.set, **values}, where)
        shared = {path: value for path, value in values.items() if path != one.rows}
        settings.append(Setting(values, recipe, format_value(values[one.rows]), shared))
    tests = [
        test.model_copy(update={"data": study.sources.get(test.data or "", test.data)})
        for test in one.test
    ]
    return Experiment(one, tuple(settings), tuple(tests))


def _recipe(study: StudySettings, changes: Mapping[str, Any], where: str) -> Recipe:
    """The recipe that all runs share, changed, with its corpus resolved."""
    content = deepcopy(study.recipe)  # every setting changes its own
    for path, value in changes.items():
        put(content, path.split("."), value, where=where)
    recipe = recipe_of(content, where)
    source = study.sources.get(recipe.data.source, recipe.data.source)
    return recipe.changed(data__source=source)


def _check_grid(one: ExperimentSettings, where: str) -> None:
    for path in filter(None, (one.rows, one.compare)):
        if path not in one.grid:
            known = ", ".join(one.grid) or "which is empty"
            raise UserError(f"{where}: {path!r} is not in its grid ({known}).")
    for path, choices in one.grid.items():
        if not choices:
            raise UserError(f"{where}: the grid gives no value for {path!r}; name at least one.")
    labels = [test.label() for test in one.test]
    if len(set(labels)) < len(labels):
        raise UserError(
            f"{where}: two of its tests would be called {max(labels, key=labels.count)!r}; give"
            " each a name."
        )


def _check_comparisons(experiments: Sequence[Experiment], file: Path) -> None:
    """Checks that names differ; that what is compared with is there, and has the rows or one."""
    rows = {one.settings.name: {setting.row for setting in one.grid} for one in experiments}
    names = [experiment.settings.name for experiment in experiments]
    for experiment, own in zip(experiments, rows.values(), strict=False):
        name = experiment.settings.name
        if names.count(name) > 1:
            raise UserError(
                f"{file}: two experiments are called {name!r}; give each a name of its own."
            )
        for other in experiment.settings.against:
            if other not in rows:
                raise UserError(
                    f"{file}: {name!r} is compared with another."
                    f" {unknown_name(other, rows, 'experiment')}"
                )
            if len(rows[other]) > 1 and not own & rows[other]:
                raise UserError(
                    f"{file}: {name!r} is compared with {other!r}, but has no"
                    f" row of it ({', '.join(sorted(rows[other]))}). Give both the same rows, or"
                    " the other a single one."
                )


def short_hash(*parts: str) -> str:
    """A short name for what the parts say together."""
    # the name of a file need not be UTF-8
    return hashlib.sha256("\n".join(parts).encode(errors="surrogatepass")).hexdigest()[:16]


def format_value(value: Any) -> str:
    """A grid's value for people."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def label_value(path: str, value: Any) -> str:
    """A grid's value without its path: a word says enough, a number or a yes needs its key."""
    if path == "data.leaks":
        leaks = {"drop": "leaks dropped", "keep": "leaks kept", "join": "leaks joined"}
        return leaks.get(value, str(value))
    if isinstance(value, str | list):
        return format_value(value)
    return f"{path.rpartition('.')[2]} {value}"


def label_values(values: Mapping[str, Any]) -> str:
    """Words several values of a grid."""
    return ", ".join(label_value(path, value) for path, value in values.items())
