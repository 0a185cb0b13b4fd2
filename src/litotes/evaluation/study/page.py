"""The report as one HTML page that needs nothing else: on a screen of any width, and on A4."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from string import Template

from litotes import __version__
from litotes.evaluation.study.html_tables import (
    comparison_table,
    confidence_table,
    overall_table,
    panel_table,
    timing_table,
    vocabulary_table,
)
from litotes.evaluation.study.leak import LEAKS, leak_words
from litotes.evaluation.study.plan import named
from litotes.evaluation.study.report import Report, Section
from litotes.evaluation.study.setup import corpora, shareable
from litotes.evaluation.study.timing import Timing
from litotes.evaluation.study.vocabulary import vocabulary_words


@dataclass(frozen=True)
class Pictures:
    """SVGs to stand in the page, by the names of experiments and coverage entries, and by (experiment, task)."""

    tables: Mapping[str, str] = field(default_factory=dict)
    vocabularies: Mapping[str, str] = field(default_factory=dict)
    confidences: Mapping[tuple[str, str], str] = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """A part of the page with its entry in the table of contents."""

    title: str
    body: str


def html(report: Report, timing: Timing, pictures: Pictures) -> str:
    """The whole page."""
    template = Template(files("litotes.evaluation.study").joinpath("report.html").read_text("utf-8"))
    parts = [*_parts(report, timing, pictures)]
    places = slugs([part.title for part in parts])
    settings = report.study.settings
    return template.substitute(
        name=escape(settings.name),
        about=escape(settings.about),
        abstract=_items(report.abstract),
        contents="".join(f'<li><a href="#part-{places[part.title]}">{escape(part.title)}</a></li>' for part in parts),
        sections="\n".join(f'<h2 id="part-{places[part.title]}">{escape(part.title)}</h2>\n{part.body}' for part in parts),
        closing=f'<p class="notes">Written by litotes {escape(__version__)}. All numbers are in report.json, all times in timing.json.</p>',
    )


def slugs(names: Sequence[str]) -> dict[str, str]:
    """Names as files and anchors may be called; where two come out the same, a number tells them apart."""
    found: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")[:60] or "part"
        n_same = sum(re.fullmatch(rf"{plain}(-\d+)?", other) is not None for other in found.values())
        found[name] = f"{plain}-{n_same + 1}" if n_same else plain
    return found


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
        yield Part(name, _figure(pictures.vocabularies.get(name), name) + _words(vocabulary_words(vocabulary)) + beside)
    if confidences := [one for section in report.sections for one in section.confidences]:
        diagrams = "".join(_figure(picture, f"{name}, {task}") for (name, task), picture in pictures.confidences.items())
        about = (
            "<p>Confidence is the probability of the label that was given; ECE is how far it lies from the share that is right, on "
            "average. All cells and seeds of an experiment are taken together. A diagram’s bars are the share that is right, with its "
            "95 % interval; hatched is what is missing or too much.</p>"
        )
        yield Part("Calibration", f'{about}{confidence_table(confidences)}<div class="diagrams">{diagrams}</div>')
    if timing.rows:
        yield Part("Time", _time(timing))
    yield Part("How it was done", _setup(report))


def _experiment(section: Section, picture: str | None) -> str:
    found, settings = section.findings, section.findings.experiment.settings
    figure = f" Beside figure {settings.figure} of the paper." if settings.figure else ""
    parts = [
        f'<p class="about">{escape(settings.about + figure)}</p>',
        _figure(picture, f"{settings.name}: macro-F1 with 95 % intervals, one colour scale"),
    ]
    parts += ["<h3>What the tables say</h3>", _words(section.words.tables)]
    if section.words.paper:
        parts += ["<h3>Beside the paper</h3>", _words(section.words.paper), _words(section.setup)]
    parts += [panel_table(panel, title=panel.title_among(found.panels)) for panel in found.panels]
    if found.comparisons:
        parts += ["<h3>Is the difference real?</h3>", _words(section.words.comparisons)]
        parts += [overall_table(section.overall), comparison_table(found.comparisons)]
    if found.notes:
        parts.append(f'<h4>Notes of the runs</h4><ul class="notes">{_items(found.notes)}</ul>')
    return "\n".join(parts)


def _leaks(report: Report) -> str:
    """A paragraph per task."""
    return "\n".join(
        f"<h3>{escape(f'{one.experiment}, {one.task}: {named(LEAKS, one.way)}')}</h3><p>{escape(' '.join(leak_words(one)))}</p>"
        for one in report.leaks
    )


def _failures(report: Report) -> str:
    lines = "".join(f"<li><b>{escape(name)}</b>: {escape(reason)}</li>" for name, reason in report.failures.items())
    return (
        f'<p>{len(report.failures)} of {report.n_runs} runs have no result; their rows are marked below.</p><ul class="failed">{lines}</ul>'
    )


def _time(timing: Timing) -> str:
    machines = "; ".join(", ".join(f"{key} {value}" for key, value in machine.items()) for machine in timing.machines)
    batches = ", ".join(sorted({str(row.batch_texts) for row in timing.rows}))
    return (
        f"<p>Ours: {escape(machines or 'the runs did not note their machine')}; {batches} texts a step. The paper’s tables I and II: "
        f"{escape(timing.paper_machine)}. Seconds of two machines, encoders and batches cannot be compared; how much longer a head takes "
        f"than the first one on the same machine can.</p>{timing_table(timing.rows)}"
    )


def _setup(report: Report) -> str:
    study = report.study
    rows = "".join(
        f"<li>{escape(name)}: {one['n_texts']:,} texts, sha256 {one['sha256'][:16]}…</li>" for name, one in corpora(study).items()
    )
    recipes = "".join(
        f"<details><summary>The recipe of {escape(experiment.settings.name)}</summary><p>Its grid: "
        f"{escape(json.dumps(experiment.settings.grid))}. Written out for the first combination:</p>"
        f"<pre>{escape(shareable(experiment.grid[0].recipe, study).model_dump_json(indent=2))}</pre></details>"
        for experiment in study.experiments
    )
    seeds = f"{len(study.seeds)} seed{'s' if len(study.seeds) > 1 else ''} per run."
    return f'<p>{seeds}</p><ul>{rows}</ul>{recipes}<p class="print">The recipes are in report.json.</p>'


def _figure(svg: str | None, caption: str) -> str:
    if svg is None:
        return ""
    return f'<figure><div class="wide">{svg}</div><figcaption>{escape(caption)}</figcaption></figure>'


def _words(sentences: Iterable[str]) -> str:
    items = _items(sentences)
    return f'<ul class="words">{items}</ul>' if items else ""


def _items(sentences: Iterable[str]) -> str:
    return "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
