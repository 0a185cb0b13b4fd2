"""All a study found as one value, and that value as `report.json`: the same runs give the same
bytes, whenever and wherever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from litotes.study.abstract import confidence_summary, leak_summary, study_words, vocabulary_summary
from litotes.study.confidence import Confidence, confidences
from litotes.study.leak import LeakEffect, leak_effects
from litotes.study.overall import OverallDifference, mean_of, overall_differences
from litotes.study.plan import Study
from litotes.study.results import Comparison, Findings, Panel
from litotes.study.sentences import Words, in_words, is_inside
from litotes.study.setup import base_recipe, corpora, setup_words, shareable
from litotes.study.vocabulary import Vocabulary


@dataclass(frozen=True)
class Section:
    """One experiment of the report; `setup`: why its numbers may differ from the paper's."""

    findings: Findings
    overall: tuple[OverallDifference, ...]
    words: Words
    setup: tuple[str, ...]
    confidences: tuple[Confidence, ...]

    @property
    def name(self) -> str:
        return self.findings.experiment.settings.name


@dataclass(frozen=True)
class Report:
    """A study's findings in words and numbers; failures: {run's name: sentence}."""

    study: Study
    abstract: tuple[str, ...]
    sections: tuple[Section, ...]
    leaks: tuple[LeakEffect, ...]
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
            "corpora": corpora(self.study),
            "abstract": list(self.abstract),
            "experiments": [_section(section, self.study) for section in self.sections],
            "leaks": [effect.as_json() for effect in self.leaks],
            "coverage": [vocabulary.as_json() for vocabulary in self.vocabularies],
            "failures": dict(self.failures),
        }


def make_report(
    study: Study,
    all_findings: Sequence[Findings],
    vocabularies: Sequence[Vocabulary],
    *,
    n_runs: int,
    failures: Mapping[str, str],
) -> Report:
    """Puts tables, comparisons and coverage into words."""
    panels = {found.experiment.settings.name: found.panels for found in all_findings}
    sections = tuple(_made(found, panels, study) for found in all_findings)
    leaks = leak_effects(all_findings)
    return Report(
        study=study,
        abstract=(
            *study_words(study, all_findings, n_runs=n_runs, n_failed=len(failures)),
            *leak_summary(leaks),
            *vocabulary_summary(vocabularies),
            *confidence_summary([one for section in sections for one in section.confidences]),
        ),
        sections=sections,
        leaks=leaks,
        vocabularies=tuple(vocabularies),
        n_runs=n_runs,
        failures=failures,
    )


def _made(found: Findings, panels: Mapping[str, Sequence[Panel]], study: Study) -> Section:
    overall = overall_differences(found.experiment, panels)
    return Section(
        found,
        overall,
        in_words(found, overall),
        tuple(setup_words(found.experiment, study)),
        confidences(found),
    )


def _section(section: Section, study: Study) -> dict[str, Any]:
    found, settings = section.findings, section.findings.experiment.settings
    return {
        "name": settings.name,
        "about": settings.about,
        "figure": settings.figure,
        "tables": [panel_json(panel) for panel in found.panels],
        "comparisons": [_comparison(one) for one in found.comparisons],
        "overall": [one.as_json() for one in section.overall],
        "words": section.words.as_json(),
        "setup": list(section.setup),
        "calibration": [one.as_json() for one in section.confidences],
        "notes": list(found.notes),
        "recipes": [
            {
                "values": dict(setting.values),
                "recipe": shareable(setting.recipe, study).model_dump(mode="json"),
            }
            for setting in found.experiment.grid
        ],
    }


def panel_json(panel: Panel) -> dict[str, Any]:
    """A table with its intervals and seeds, and the paper's numbers beside."""
    cells = {(cell.trained_on, cell.tested_on): cell for cell in panel.table.cells}
    return {
        "title": panel.title,
        "values": dict(panel.values),
        "tested_on": panel.tested_on,
        **panel.table.as_json(),
        "mean_interval": mean_of(panel).interval,
        "paper": [
            {
                "trained_on": row,
                "tested_on": column,
                "macro_f1": value,
                "inside": is_inside(cells[row, column], value),
            }
            for (row, column), value in panel.paper.items()
            if (row, column) in cells
        ],
        "failed": dict(panel.failed),
    }


def _comparison(one: Comparison) -> dict[str, Any]:
    return asdict(one) | {"significant": one.is_significant}
