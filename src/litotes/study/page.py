"""The report as one HTML page that needs nothing else: on a screen of any width, and on A4."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from litotes.core.article import Article, Part, page
from litotes.core.html import figure, folded, items, words
from litotes.core.json_text import to_json
from litotes.core.text import markup
from litotes.study import setup
from litotes.study.confidence import Confidence
from litotes.study.gap_html import GAPS_ABOUT, RISKS_ABOUT, gaps_part, risk_table
from litotes.study.html_tables import (
    comparison_table,
    confidence_table,
    count_table,
    overall_table,
    score_table,
    timing_table,
    vocabulary_table,
)
from litotes.study.report import Report, Section
from litotes.study.runs import load_once
from litotes.study.timing import Timing
from litotes.study.vocabulary import Vocabulary, vocabulary_sentences


@dataclass(frozen=True)
class Pictures:
    """SVGs for the page.

    By the name of the experiment, by that of the coverage entry, and by (experiment, task).
    narrow_tables: the tables once more, for a phone. risks: by (experiment, task) again.
    """

    tables: Mapping[str, str] = field(default_factory=dict)
    vocabularies: Mapping[str, str] = field(default_factory=dict)
    confidences: Mapping[tuple[str, str], str] = field(default_factory=dict)
    narrow_tables: Mapping[str, str] = field(default_factory=dict)
    risks: Mapping[tuple[str, str], str] = field(default_factory=dict)


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
    reading = Part("How to read the tables", f"<p>{READING}</p>")
    parts = (reading, *_parts(report, timing, pictures))
    sources = "All numbers are in report.json, all times in timing.json."
    return page(Article(settings.name, settings.about, tuple(report.abstract), parts, sources))


def _parts(report: Report, timing: Timing, pictures: Pictures) -> Iterator[Part]:
    if report.failures:
        yield Part("What failed", _failures(report))
    for section in report.sections:
        yield Part(section.name, _experiment(section, pictures))
    for vocabulary in report.vocabularies:
        name = vocabulary.settings.name
        yield Part(name, _vocabulary(vocabulary, pictures.vocabularies.get(name)))
    if any(section.confidences for section in report.sections):
        yield Part("Calibration", _calibration(report, pictures))
    if any(section.gaps for section in report.sections):
        yield Part("Gaps between groups", _gaps(report))
    if any(section.risks for section in report.sections):
        yield Part("Risk and coverage", _risks(report, pictures))
    if timing.rows:
        yield Part("Time", _time(timing))
    yield Part("How it was done", _setup(report))


def _experiment(section: Section, pictures: Pictures) -> str:
    results, settings = section.results, section.results.experiment.settings
    about = settings.about
    if settings.figure:
        about += f" Compared with figure {settings.figure} of the paper."
    caption = f"{settings.name}: macro-F1 with 95 % intervals, one colour scale"
    picture, narrow = pictures.tables.get(section.name), pictures.narrow_tables.get(section.name)
    parts = [f'<p class="about">{markup(about)}</p>', figure(picture, caption, narrow=narrow)]
    parts += ["<h3>What the tables say</h3>", words(section.sentences.tables)]
    if section.sentences.paper:
        parts += ["<h3>Compared with the paper</h3>", words(section.sentences.paper)]
        parts.append(words(section.setup))
    for table in results.tables:
        parts.append(score_table(table, title=table.title_among(results.tables)))
    if results.comparisons:
        parts += ["<h3>Is the difference real?</h3>", words(section.sentences.comparisons)]
        parts += [overall_table(section.overall), comparison_table(results.comparisons)]
    if results.notes:
        parts.append(f'<h4>Notes of the runs</h4><ul class="notes">{items(results.notes)}</ul>')
    return "\n".join(parts)


def _vocabulary(vocabulary: Vocabulary, picture: str | None) -> str:
    parts = [figure(picture, vocabulary.settings.name), words(vocabulary_sentences(vocabulary))]
    if vocabulary.published:
        parts.append(vocabulary_table(vocabulary))
    return "".join(parts)


def _calibration(report: Report, pictures: Pictures) -> str:
    confidences: list[Confidence] = []
    for section in report.sections:
        confidences += section.confidences
    about = (
        "Confidence is the probability of the label that was given; ECE is how far it lies from the"
        " share that is right, on average. All cells and seeds of an experiment are taken together."
    )
    diagrams = ""
    for (name, task), picture in pictures.confidences.items():
        diagrams += figure(picture, f"{name}, {task}")
    if diagrams:
        about += (
            " A diagram’s bars are the share that is right, with its 95 % interval; hatched is what"
            " is missing or too much."
        )
    table = confidence_table(confidences)
    return f'<p>{about}</p>{table}<div class="diagrams">{diagrams}</div>'


def _gaps(report: Report) -> str:
    parts = [f"<p>{markup(GAPS_ABOUT)}</p>"]
    for section in report.sections:
        if section.gaps:
            parts += [f"<h3>{markup(section.name)}</h3>", gaps_part(section.gaps)]
    return "".join(parts)


def _risks(report: Report, pictures: Pictures) -> str:
    parts = [f"<p>{markup(RISKS_ABOUT)}</p>"]
    for section in report.sections:
        if section.risks:
            parts.append(f"<h3>{markup(section.name)}</h3>")
            for (name, task), picture in pictures.risks.items():
                if name == section.name:
                    parts.append(figure(picture, f"{name}, {task}: all rows and seeds of a table"))
            parts.append(risk_table(section.risks))
    return "".join(parts)


def _failures(report: Report) -> str:
    lines = ""
    for name, reason in report.failures.items():
        lines += f"<li><b>{markup(name)}</b>: {markup(reason)}</li>"
    return (
        f"<p>{len(report.failures)} of {report.n_runs} runs have no result; their rows are marked"
        f' below.</p><ul class="failed">{lines}</ul>'
    )


def _machine(facts: Mapping[str, object]) -> str:
    return ", ".join(f"{key} {value}" for key, value in facts.items())


def _time(timing: Timing) -> str:
    ours = "; ".join(map(_machine, timing.machines)) or "the runs did not note their machine"
    batches = ", ".join(sorted({str(row.batch_texts) for row in timing.rows}))
    about = f"Ours: {markup(ours)}; {batches} texts a step."
    if timing.published is not None:
        about += f" The paper’s times: {markup(timing.published.hardware)}."
    about += (
        " Seconds of two machines, encoders and batches cannot be compared; how much longer a head"
        " takes than the first one on the same machine can."
    )
    return f"<p>{about}</p>{timing_table(timing)}"


def _setup(report: Report) -> str:
    study = report.study
    corpora, counts = "", ""
    for source in setup.sources(study):
        corpus, name = load_once(source), setup.source_name(source, study)
        sha256 = corpus.fingerprint()[:16]
        corpora += f"<li>{markup(name)}: {len(corpus):,} texts, sha256 {sha256}…</li>"
        counts += folded(f"The texts of {name}, counted", count_table(corpus))
    recipes = ""
    for experiment in study.experiments:
        recipe = setup.shareable(experiment.grid[0].recipe, study).model_dump_json(indent=2)
        recipes += folded(
            f"The recipe of {experiment.settings.name}",
            f"<p>Its grid: {markup(to_json(experiment.settings.grid))}. Written out for the"
            f" first combination:</p><pre>{markup(recipe)}</pre>",
        )
    seeds = f"{len(study.seeds)} seed{'s' if len(study.seeds) > 1 else ''} per run."
    return (
        f"<p>{seeds}</p><ul>{corpora}</ul>{counts}{recipes}"
        '<p class="print">The recipes are in report.json.</p>'
    )
