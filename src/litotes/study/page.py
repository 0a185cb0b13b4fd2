"""The report as one HTML page that needs nothing else: on a screen of any width, and on A4."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape

from litotes.report.html import figure, folded, items, words
from litotes.report.page import Article, Part, page
from litotes.study.html_tables import (
    comparison_table,
    confidence_table,
    overall_table,
    panel_table,
    timing_table,
    vocabulary_table,
)
from litotes.study.leak import LEAKS, leak_words
from litotes.study.plan import named
from litotes.study.report import Report, Section
from litotes.study.setup import corpora, shareable
from litotes.study.timing import Timing
from litotes.study.vocabulary import vocabulary_words


@dataclass(frozen=True)
class Pictures:
    """SVGs to stand in the page, by the names of experiments and coverage entries, and by
    (experiment, task).
    """

    tables: Mapping[str, str] = field(default_factory=dict)
    vocabularies: Mapping[str, str] = field(default_factory=dict)
    confidences: Mapping[tuple[str, str], str] = field(default_factory=dict)


READING = (
    "Every score is macro-F1 with its 95 % interval in brackets or below it. The interval covers"
    " other texts (bootstrap) and, with several seeds, other seeds (Student’s t, so three seeds"
    " give wide intervals); with one seed it says nothing about other seeds. The majority line is"
    " the score of always answering the commonest label. Differences were tested text by text with"
    " a paired permutation test; <em>p corrected</em> is Holm’s, over all comparisons of an"
    " experiment. What is not significant is grey and says so. A permutation test takes the trained"
    " models as given: where its p is small but the interval holds 0, other seeds might disagree."
)


def html(report: Report, timing: Timing, pictures: Pictures) -> str:
    """The whole page."""
    settings = report.study.settings
    parts = (Part("How to read the tables", f"<p>{READING}</p>"), *_parts(report, timing, pictures))
    sources = "All numbers are in report.json, all times in timing.json."
    return page(Article(settings.name, settings.about, tuple(report.abstract), parts, sources))


def _parts(report: Report, timing: Timing, pictures: Pictures) -> Iterator[Part]:
    if report.failures:
        yield Part("What failed", _failures(report))
    for section in report.sections:
        yield Part(section.name, _experiment(section, pictures.tables.get(section.name)))
    if report.leaks:
        yield Part("What the leak is worth", _leaks(report))
    for vocabulary in report.vocabularies:
        name = vocabulary.settings.name
        beside = vocabulary_table(vocabulary) if vocabulary.paper else ""
        yield Part(
            name,
            figure(pictures.vocabularies.get(name), name)
            + words(vocabulary_words(vocabulary))
            + beside,
        )
    if confidences := [one for section in report.sections for one in section.confidences]:
        diagrams = "".join(
            figure(picture, f"{name}, {task}")
            for (name, task), picture in pictures.confidences.items()
        )
        about = (
            "<p>Confidence is the probability of the label that was given; ECE is how far it lies"
            " from the share that is right, on average. All cells and seeds of an experiment are"
            " taken together. A diagram’s bars are the share that is right, with its 95 % interval;"
            " hatched is what is missing or too much.</p>"
        )
        yield Part(
            "Calibration",
            f'{about}{confidence_table(confidences)}<div class="diagrams">{diagrams}</div>',
        )
    if timing.rows:
        yield Part("Time", _time(timing))
    yield Part("How it was done", _setup(report))


def _experiment(section: Section, picture: str | None) -> str:
    found, settings = section.findings, section.findings.experiment.settings
    beside = f" Beside figure {settings.figure} of the paper." if settings.figure else ""
    parts = [
        f'<p class="about">{escape(settings.about + beside)}</p>',
        figure(picture, f"{settings.name}: macro-F1 with 95 % intervals, one colour scale"),
    ]
    parts += ["<h3>What the tables say</h3>", words(section.words.tables)]
    if section.words.paper:
        parts += ["<h3>Beside the paper</h3>", words(section.words.paper), words(section.setup)]
    parts += [panel_table(panel, title=panel.title_among(found.panels)) for panel in found.panels]
    if found.comparisons:
        parts += ["<h3>Is the difference real?</h3>", words(section.words.comparisons)]
        parts += [overall_table(section.overall), comparison_table(found.comparisons)]
    if found.notes:
        parts.append(f'<h4>Notes of the runs</h4><ul class="notes">{items(found.notes)}</ul>')
    return "\n".join(parts)


def _leaks(report: Report) -> str:
    """A paragraph per task."""
    return "\n".join(
        f"<h3>{escape(f'{one.experiment}, {one.task}: {named(LEAKS, one.way)}')}</h3><p>{escape(' '.join(leak_words(one)))}</p>"
        for one in report.leaks
    )


def _failures(report: Report) -> str:
    lines = "".join(
        f"<li><b>{escape(name)}</b>: {escape(reason)}</li>"
        for name, reason in report.failures.items()
    )
    return (
        f"<p>{len(report.failures)} of {report.n_runs} runs have no result; their rows are marked"
        f' below.</p><ul class="failed">{lines}</ul>'
    )


def _time(timing: Timing) -> str:
    machines = "; ".join(
        ", ".join(f"{key} {value}" for key, value in machine.items()) for machine in timing.machines
    )
    batches = ", ".join(sorted({str(row.batch_texts) for row in timing.rows}))
    return (
        f"<p>Ours: {escape(machines or 'the runs did not note their machine')}; {batches} texts a"
        f" step. The paper’s tables I and II: {escape(timing.paper_machine)}. Seconds of two"
        " machines, encoders and batches cannot be compared; how much longer a head takes than the"
        f" first one on the same machine can.</p>{timing_table(timing.rows)}"
    )


def _setup(report: Report) -> str:
    study = report.study
    rows = "".join(
        f"<li>{escape(name)}: {one['n_texts']:,} texts, sha256 {one['sha256'][:16]}…</li>"
        for name, one in corpora(study).items()
    )
    recipes = "".join(
        folded(
            f"The recipe of {experiment.settings.name}",
            f"<p>Its grid: {escape(json.dumps(experiment.settings.grid))}. Written out for the"
            " first combination:</p>"
            f"<pre>{escape(shareable(experiment.grid[0].recipe, study).model_dump_json(indent=2))}</pre>",
        )
        for experiment in study.experiments
    )
    seeds = f"{len(study.seeds)} seed{'s' if len(study.seeds) > 1 else ''} per run."
    return (
        f'<p>{seeds}</p><ul>{rows}</ul>{recipes}<p class="print">The recipes are in'
        " report.json.</p>"
    )
