"""All that a study found as one value: as `report.json`, in words, and as a page.

The same runs give the same `report.json`, whenever and wherever. Times are never the same twice, so
they have a file of their own. The sentences are in words.txt, the page is report.html.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from litotes.core.figures import Heatmap, render_figure, save_figure, stacked_figure
from litotes.core.pages import render, render_paragraphs, slugs
from litotes.core.progress import Watch, ignore_progress
from litotes.core.registry import grouped
from litotes.core.storage import write_json, write_text
from litotes.data import coverage
from litotes.data.corpus import Corpus
from litotes.evaluation.gaps import VISIBLE
from litotes.evaluation.reliability import draw_reliability, draw_risk_coverage
from litotes.evaluation.scores import Json, plain
from litotes.study.confidence import (
    ALL_COLUMNS,
    Confidence,
    RiskArea,
    check_confidence,
    find_risks,
    pooled_curves,
)
from litotes.study.figures import bands_of, draw_bands
from litotes.study.group_gaps import RowGaps, find_group_gaps, leading_rows
from litotes.study.plan import Experiment, Study, base_recipe, label_values
from litotes.study.published import PublishedTimes
from litotes.study.runs import StudyRuns, load_once
from litotes.study.tables import (
    Comparison,
    ExperimentResults,
    OverallDifference,
    ScoreTable,
    Tables,
    home_less_elsewhere,
    less_published,
    mean_of,
    overall_differences,
    read_results,
)
from litotes.study.vocabulary import Vocabulary
from litotes.training.recipe import Recipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Pictures = Mapping[tuple[str, ...], bytes]
"""SVGs for the page: by ("tables", EXPERIMENT), ("narrow", EXPERIMENT) for a phone, ("coverage",
ENTRY), ("calibration", EXPERIMENT, TASK) and ("risk", EXPERIMENT, TASK).
"""

_COMPARED = {
    "model.head": "heads",
    "model.encoder": "encoders",
    "model.weighting": "weightings",
    "model.pruning": "prunings",
    "model.separate": "one model and a model per task",
    "training.balancing": "ways of balancing tasks",
    "training.groups": "ways of weighing groups",
    "data.leaks": "ways to treat leaks",
}


@dataclass(frozen=True)
class Section:
    """One experiment of the report.

    words: sentences about its tables, the paper, the comparisons by cell and overall, its gaps.
    setup: why its numbers may differ from published ones.
    """

    results: ExperimentResults
    overall: tuple[OverallDifference, ...]
    words: Mapping[str, tuple[str, ...]]
    setup: tuple[str, ...]
    confidences: tuple[Confidence, ...]
    gaps: tuple[RowGaps, ...] = ()
    risks: tuple[RiskArea, ...] = ()

    @property
    def name(self) -> str:
        return self.results.name

    @property
    def row_label(self) -> str:
        """The meaning of its tables' rows: where a model was trained, or how."""
        path = self.results.experiment.settings.rows
        return "trained on" if path.startswith("data.") else path.rpartition(".")[2]

    def bands(self) -> list[list[Heatmap]]:
        """Its tables as rows of heatmaps."""
        return list(bands_of(self.results.tables, row_label=self.row_label))

    def leading_gaps(self) -> list[RowGaps]:
        return leading_rows(self.gaps)

    def single_gaps(self) -> list[RowGaps]:
        leading = leading_rows(self.gaps)
        return [row for row in self.gaps if row not in leading]

    def as_json(self, study: Study) -> Json:
        results, settings = self.results, self.results.experiment.settings
        content: Json = plain(
            {
                "name": settings.name,
                "about": settings.about,
                "figure": settings.figure,
                "tables": [table_json(table) for table in results.tables],
                "comparisons": results.comparisons,
                "overall": self.overall,
                "words": self.words,
                "setup": self.setup,
                "calibration": self.confidences,
                "gaps": self.gaps,
                "risks": self.risks,
                "notes": results.notes,
            }
        )
        recipes = [
            {
                "values": dict(setting.values),
                "recipe": shareable(setting.recipe, study).model_dump(mode="json"),
                # by which settings may be chosen
                "held_out": list(results.held_out.get(setting.name, ())),
            }
            for setting in results.experiment.grid
        ]
        return content | {"recipes": recipes}


@dataclass(frozen=True)
class Report:
    """A study's results in words and numbers; failures: {run's name: sentence}."""

    study: Study
    abstract: tuple[str, ...]
    sections: tuple[Section, ...]
    vocabularies: tuple[Vocabulary, ...]
    n_runs: int
    failures: Mapping[str, str]

    @property
    def confidences(self) -> list[Confidence]:
        return [one for section in self.sections for one in section.confidences]

    def as_json(self) -> Json:
        """Everything that follows from the runs' answers; no times, dates, versions or paths."""
        settings = self.study.settings
        return {
            "name": settings.name,
            "about": settings.about,
            "seeds": [base_recipe(self.study).seed + seed for seed in self.study.seeds],
            "n_runs": self.n_runs,
            "corpora": {
                name: {"n_texts": len(corpus), "sha256": corpus.fingerprint()}
                for name, corpus in corpora_of(self.study).items()
            },
            "abstract": list(self.abstract),
            "experiments": [section.as_json(self.study) for section in self.sections],
            "coverage": [one.as_json() for one in self.vocabularies],
            "failures": dict(self.failures),
        }

    def _repr_html_(self) -> str:
        """Renders the abstract and every table for a notebook."""
        return render("study/notebook.html", report=self)


def make_report(
    study: Study,
    results: Sequence[ExperimentResults],
    vocabularies: Sequence[Vocabulary],
    *,
    n_runs: int,
    failures: Mapping[str, str],
) -> Report:
    """Puts tables, comparisons and coverage into words."""
    tables = {one.name: one.tables for one in results}
    sections = tuple(_section(one, tables, study) for one in results)
    abstract = _abstract(study, sections, vocabularies, n_runs=n_runs, n_failed=len(failures))
    return Report(study, abstract, sections, tuple(vocabularies), n_runs, failures)


def report_study(
    study: Study,
    runs: StudyRuns,
    vocabularies: Sequence[Vocabulary],
    out: Path,
    *,
    watch: Watch = ignore_progress,
) -> Report:
    """Makes the report of a study's runs and writes all its files."""
    results = read_results(study, runs)
    failures = runs.failures_by_name()
    report = make_report(study, results, vocabularies, n_runs=len(runs.jobs), failures=failures)
    pictures = draw_pictures(report, out / "figures", watch)
    write_report(report, time_steps(study, results), pictures, out)
    return report


def draw_pictures(report: Report, folder: Path, watch: Watch) -> Pictures:
    """Draws all figures, and writes each as SVG and PNG with its numbers as JSON."""
    drawn = list(_figures(report))
    titles = {key: " ".join(key[1:] if key[0] == "tables" else key) for key, _, _ in drawn}
    names = slugs(titles.values())
    pictures = {}
    for n_drawn, (key, draw, content) in enumerate(drawn, 1):
        pictures[key] = save_figure(folder / names[titles[key]], draw(), plain(content))
        watch("drawing", n_drawn, len(drawn), titles[key])
    for section in report.sections:
        if section.results.tables:  # for the page alone: their numbers are those of the tables
            narrow = stacked_figure([one for band in section.bands() for one in band])
            pictures["narrow", section.name] = render_figure(narrow, "svg")
    return pictures


def _figures(report: Report) -> Iterator[tuple[tuple[str, ...], Callable[[], Figure], Any]]:
    """The key, the figure and the numbers of each; a figure is drawn when its turn comes."""
    key: tuple[str, ...]
    for section in report.sections:
        tables = section.results.tables
        if not tables:
            continue
        key = "tables", section.name
        yield key, partial(draw_bands, section.bands()), list(map(table_json, tables))
        for one in section.confidences:
            key = "calibration", one.experiment, one.task
            both = {"before": one.before.reliability, "after": one.after.reliability}
            yield key, partial(draw_reliability, both), one
        for task, curves in pooled_curves(tables).items():
            yield ("risk", section.name, task), partial(draw_risk_coverage, curves), curves
    for entry in report.vocabularies:
        key = "coverage", entry.settings.name
        yield key, partial(coverage.figure, entry.coverage), entry.as_json()


def write_report(report: Report, timing: Timing, pictures: Pictures, out: Path) -> None:
    """Writes report.json, timing.json and report.html."""
    write_json(out / "report.json", report.as_json())
    write_json(out / "timing.json", timing.as_json())
    write_text(out / "report.html", report_html(report, timing, pictures))


def report_html(report: Report, timing: Timing, pictures: Pictures) -> str:
    """The report as one page that needs nothing else."""
    titles = {key: " ".join(key) for key in pictures}
    places = slugs(titles.values())
    return render(
        "study/report.html",
        report=report,
        study=report.study,
        timing=timing,
        pictures=pictures,
        names={key: places[title] for key, title in titles.items()},
        corpora=corpora_of(report.study),
        visible=VISIBLE,
        all_columns=ALL_COLUMNS,
        shareable=shareable,
    )


def table_json(table: ScoreTable) -> Json:
    """A table with its intervals and seeds, and the published scores for it."""
    keys = "trained_on", "tested_on", "macro_f1", "inside"
    cells = [(*cell.place, score, inside) for cell, score, inside in table.published_cells()]
    return {
        "title": table.title,
        "values": dict(table.values),
        "tested_on": table.tested_on,
        **table.matrix.as_json(),
        "mean_interval": mean_of(table).interval,
        "paper": [dict(zip(keys, cell, strict=True)) for cell in cells],
        "failed": dict(table.failed),
    }


# In words


def _words(block: str, **values: Any) -> tuple[str, ...]:
    return render_paragraphs("study/words.txt", block, **values)


def _section(results: ExperimentResults, tables: Tables, study: Study) -> Section:
    differences = overall_differences(results.experiment, tables)
    gaps = find_group_gaps(results.tables)
    leading = leading_rows(gaps)
    # those within the experiment come first
    comparisons = sorted(results.comparisons, key=lambda one: one.elsewhere is not None)
    given: dict[str, Json] = {
        "tables": {"mean_of": mean_of, "home_less_elsewhere": home_less_elsewhere},
        "paper": {"less_published": less_published},
        "comparisons": {
            "comparisons": grouped(comparisons, partial(_kind, results, elsewhere="from {!r}")),
            "n_all": len(comparisons),
        },
        "overall": {"overall": differences},
        "gaps": {"leading": leading, "single": [one for one in gaps if one not in leading]},
    }
    return Section(
        results,
        differences,
        {block: _words(block, results=results, **values) for block, values in given.items()},
        setup_sentences(results.experiment, study),
        check_confidence(results),
        gaps,
        find_risks(results.tables),
    )


def _kind(results: ExperimentResults, one: Comparison, *, elsewhere: str) -> str:
    """Says what a comparison is between. elsewhere: the words for one with another experiment."""
    path = results.experiment.settings.compare
    within = f"between {_COMPARED.get(str(path), f'values of {path}')}"
    return elsewhere.format(one.elsewhere) if one.elsewhere else within


def _abstract(
    study: Study,
    sections: Sequence[Section],
    vocabularies: Sequence[Vocabulary],
    *,
    n_runs: int,
    n_failed: int,
) -> tuple[str, ...]:
    """Sums up a whole study: the first thing a reader sees."""
    encoders = [encoder_name(one.recipe.model.encoder) for one in study.settings_of_runs()]
    results = [section.results for section in sections]
    tables = [table for one in results for table in one.tables]
    by_task = grouped(tables, lambda table: table.matrix.task)
    return _words(
        "abstract",
        study=study,
        n_runs=n_runs,
        n_failed=n_failed,
        encoders=list(dict.fromkeys(encoders)),
        corpora=list(corpora_of(study)) if n_runs else [],
        vocabularies=vocabularies,
        published=less_published(*tables),
        inside=[held for table in tables for _, _, held in table.published_cells()],
        apart=[(one.name, less_published(*one.tables)) for one in results],
        travel=[(task, home_less_elsewhere(*own)) for task, own in by_task.items()],
        cells=[cell for table in tables for cell in table.matrix.cells],
        visible=VISIBLE,
        **_tests(sections),
    )


def _tests(sections: Sequence[Section]) -> Json:
    """Collects the comparisons, calibration, gaps and risks of all experiments."""
    kind = partial(_kind, elsewhere="with another experiment")
    pairs = [
        (kind(one.results, pair), pair) for one in sections for pair in one.results.comparisons
    ]
    by_kind = grouped(pairs, itemgetter(0))
    gaps = [
        (f"{section.name} ({row.table})", gap)
        for section in sections
        for row in section.leading_gaps()
        for gap in row.gaps
        if gap.measure == "macro_f1"
    ]
    confidences = [one for section in sections for one in section.confidences]
    risks = [one for section in sections for one in section.risks if one.column == ALL_COLUMNS]
    return {
        "comparisons": {kind: [pair for _, pair in own] for kind, own in by_kind.items()},
        "errors": _mean_by_task(confidences, "before.reliability.ece", "after.reliability.ece"),
        "risks": _mean_by_task(risks, "area.value", "error", "best"),
        "gaps": sorted(gaps, key=lambda one: (not one[1].is_significant, -abs(one[1].difference))),
    }


def _mean_by_task(things: Sequence[Any], *names: str) -> dict[str, list[float]]:
    """names: of the numbers."""
    by_task = grouped(things, attrgetter("task"))
    numbers_of = attrgetter(*names)
    return {
        task: np.mean([numbers_of(one) for one in own], axis=0).tolist()
        for task, own in by_task.items()
    }


# How the runs were made, as others may read it: corpora and encoders by name and hash, no paths


def setup_sentences(experiment: Experiment, study: Study) -> tuple[str, ...]:
    """Explains why our numbers may differ from the published ones: what is known about the figure,
    and what we did differently, in all settings or only in some.
    """
    figure, published = experiment.settings.figure, study.published
    if figure is None or published is None:
        return ()
    pairs = [
        (difference, label_values(setting.shared or setting.values))
        for setting in experiment.grid
        for difference in published.differences_in_setup(shareable(setting.recipe, study))
    ]
    where = {
        difference: tuple(dict.fromkeys(name for _, name in own))
        for difference, own in grouped(pairs, itemgetter(0)).items()
    }
    n_settings = len({label_values(one.shared or one.values) for one in experiment.grid})
    everywhere_first = sorted(where, key=lambda one: len(where[one]) < n_settings)
    return _words(
        "setup",
        notes=published.notes_about(figure),
        differences=grouped(everywhere_first, where.__getitem__),
        n_settings=n_settings,
    )


def shareable(recipe: Recipe, study: Study) -> Recipe:
    """The recipe with its corpus under the study's name for it, and an encoder without its path."""
    return recipe.changed(
        data__source=source_name(recipe.data.source, study),
        model__encoder=encoder_name(recipe.model.encoder),
    )


def source_name(source: str, study: Study) -> str:
    """The study's name for a corpus; without one, its kind and the last name of its path."""
    names = {address: name for name, address in study.settings.sources.items()}
    kind, _, path = source.partition("?")[0].partition(":")
    return names.get(source, f"{kind}:{Path(path).name}" if path else kind)


def encoder_name(encoder: str) -> str:
    return Path(encoder).name if Path(encoder).is_dir() else encoder


def corpora_of(study: Study) -> dict[str, Corpus]:
    """All corpora that the experiments read, by name: first those trained on."""
    trained_on = [
        one.recipe.data.source for experiment in study.experiments for one in experiment.grid
    ]
    tested_on = [test.data for experiment in study.experiments for test in experiment.tests]
    sources = dict.fromkeys([*trained_on, *filter(None, tested_on)])
    return {source_name(source, study): load_once(source) for source in sources}


# How long a training step took. Seconds depend on the machine, the encoder and the batch; what can
# be compared between two machines is how much slower one head is than another on the same one. So
# every time is also given as a ratio to the first setting of its experiment, and so are published
# times where there are some.


@dataclass(frozen=True)
class StepTime:
    """One kind of run: mean seconds per step over n_runs runs and their range.

    paper_seconds: published seconds per batch, where there are some.
    """

    experiment: str
    setting: str
    head: str
    n_runs: int
    batch_texts: int
    seconds: float
    fastest: float
    slowest: float
    ratio: float
    paper_seconds: float | None
    paper_ratio: float | None


@dataclass(frozen=True)
class Timing:
    """All kinds of runs, the machines they ran on, and the published times."""

    rows: tuple[StepTime, ...]
    machines: tuple[Json, ...]
    published: PublishedTimes | None = None

    def as_json(self) -> Json:
        published = self.published
        return {
            "rows": plain(self.rows),
            "machines": list(self.machines),
            "paper_machine": published and published.hardware,
            "paper": published and published.model_dump(mode="json"),
        }


def time_steps(study: Study, results: Sequence[ExperimentResults]) -> Timing:
    """The times of all runs that were done."""
    machines = {repr(machine): dict(machine) for one in results for machine in one.machines}
    published = None if study.published is None else study.published.seconds_per_batch
    rows = tuple(row for one in results for row in _step_times(one, study))
    return Timing(rows, tuple(machines.values()), published)


def _step_times(results: ExperimentResults, study: Study) -> Iterator[StepTime]:
    first = first_published = None
    published = study.published if results.experiment.settings.figure is not None else None
    for kind, times in results.seconds_per_step.items():
        recipe = next(one.recipe for one in results.experiment.grid if one.kind == kind)
        seconds = float(np.mean(times))
        theirs = None if published is None else published.seconds_for(recipe)
        first = first or seconds
        first_published = first_published or theirs
        yield StepTime(
            experiment=results.name,
            setting=kind,
            head=recipe.model.head,
            n_runs=len(times),
            batch_texts=recipe.training.batch_texts,
            seconds=seconds,
            fastest=min(times),
            slowest=max(times),
            ratio=seconds / first,
            paper_seconds=theirs,
            paper_ratio=theirs / first_published if theirs and first_published else None,
        )
