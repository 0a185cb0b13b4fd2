"""All that a study found as one value, and that value as `report.json`.

The same runs give the same bytes, whenever and wherever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from litotes.core.html import words
from litotes.core.text import markup
from litotes.study.abstract import confidence_summary, study_summary, vocabulary_summary
from litotes.study.confidence import Confidence, RiskArea, check_confidence, find_risks
from litotes.study.gap_words import gap_summary, risk_summary
from litotes.study.group_gaps import RowGaps, find_group_gaps
from litotes.study.plan import Setting, Study
from litotes.study.sentences import Sentences, describe, is_inside
from litotes.study.setup import base_recipe, describe_corpora, setup_sentences, shareable
from litotes.study.tables import (
    Comparison,
    ExperimentResults,
    OverallDifference,
    ScoreTable,
    Tables,
    mean_of,
    overall_differences,
)
from litotes.study.vocabulary import Vocabulary


@dataclass(frozen=True)
class Section:
    """One experiment of the report; `setup`: why its numbers may differ from published ones."""

    results: ExperimentResults
    overall: tuple[OverallDifference, ...]
    sentences: Sentences
    setup: tuple[str, ...]
    confidences: tuple[Confidence, ...]
    gaps: tuple[RowGaps, ...] = ()
    risks: tuple[RiskArea, ...] = ()

    @property
    def name(self) -> str:
        return self.results.name


@dataclass(frozen=True)
class Report:
    """A study's results in words and numbers; failures: {run's name: sentence}."""

    study: Study
    abstract: tuple[str, ...]
    sections: tuple[Section, ...]
    vocabularies: tuple[Vocabulary, ...]
    n_runs: int
    failures: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """Everything that follows from the runs' answers; no times, dates, versions or paths."""
        settings = self.study.settings
        return {
            "name": settings.name,
            "about": settings.about,
            "seeds": [base_recipe(self.study).seed + seed for seed in self.study.seeds],
            "n_runs": self.n_runs,
            "corpora": describe_corpora(self.study),
            "abstract": list(self.abstract),
            "experiments": [_section_json(section, self.study) for section in self.sections],
            "leaks": [],  # of earlier versions; reproduction/leak.py says what leaks are worth
            "coverage": [vocabulary.as_json() for vocabulary in self.vocabularies],
            "failures": dict(self.failures),
        }

    def _repr_html_(self) -> str:
        """In a notebook: the abstract and every table."""
        parts = f"<h3>{markup(self.study.settings.name)}</h3>{words(self.abstract)}"
        for section in self.sections:
            parts += f"<h4>{markup(section.name)}</h4>"
            for table in section.results.tables:
                parts += f"<p>{markup(table.title)}</p>{table.matrix._repr_html_()}"
        return parts


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
    confidences: list[Confidence] = []
    risks: list[RiskArea] = []
    for section in sections:
        confidences += section.confidences
        risks += section.risks
    abstract = (
        *study_summary(study, results, n_runs=n_runs, n_failed=len(failures)),
        *vocabulary_summary(vocabularies),
        *confidence_summary(confidences),
        *gap_summary({section.name: section.gaps for section in sections}),
        *risk_summary(risks),
    )
    return Report(study, abstract, sections, tuple(vocabularies), n_runs, failures)


def _section(results: ExperimentResults, tables: Tables, study: Study) -> Section:
    overall = overall_differences(results.experiment, tables)
    return Section(
        results,
        overall,
        describe(results, overall),
        tuple(setup_sentences(results.experiment, study)),
        check_confidence(results),
        find_group_gaps(results.tables),
        find_risks(results.tables),
    )


def _section_json(section: Section, study: Study) -> dict[str, Any]:
    results, settings = section.results, section.results.experiment.settings
    return {
        "name": settings.name,
        "about": settings.about,
        "figure": settings.figure,
        "tables": [table_json(table) for table in results.tables],
        "comparisons": [_comparison_json(one) for one in results.comparisons],
        "overall": [one.as_json() for one in section.overall],
        "words": section.sentences.as_json(),
        "setup": list(section.setup),
        "calibration": [one.as_json() for one in section.confidences],
        "gaps": [one.as_json() for one in section.gaps],
        "risks": [one.as_json() for one in section.risks],
        "notes": list(results.notes),
        "recipes": [_setting_json(setting, results, study) for setting in results.experiment.grid],
    }


def _setting_json(setting: Setting, results: ExperimentResults, study: Study) -> dict[str, Any]:
    """With the scores on held-out texts of training, by which settings may be chosen."""
    recipe = shareable(setting.recipe, study).model_dump(mode="json")
    held_out = list(results.held_out.get(setting.name, ()))
    return {"values": dict(setting.values), "recipe": recipe, "held_out": held_out}


def table_json(table: ScoreTable) -> dict[str, Any]:
    """A table with its intervals and seeds, and the published scores for it."""
    return {
        "title": table.title,
        "values": dict(table.values),
        "tested_on": table.tested_on,
        **table.matrix.as_json(),
        "mean_interval": mean_of(table).interval,
        "paper": list(_published_json(table)),
        "failed": dict(table.failed),
    }


def _published_json(table: ScoreTable) -> Iterator[dict[str, Any]]:
    cells = {cell.place: cell for cell in table.matrix.cells}
    for place, value in table.published.items():
        if place in cells:
            names = {"trained_on": place[0], "tested_on": place[1]}
            yield {**names, "macro_f1": value, "inside": is_inside(cells[place], value)}


def _comparison_json(one: Comparison) -> dict[str, Any]:
    return asdict(one) | {"significant": one.is_significant}
