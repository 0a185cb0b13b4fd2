"""The article: title, what was found, a section for each analysis, how it was measured, what it
cannot say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from litotes.core.article import Article, Part, page
from litotes.core.html import figure, folded, inline, row, table, words
from litotes.core.numbers import counted
from litotes.core.text import markup
from litotes.core.version import __version__
from litotes.explanation.analyses import ANALYSES
from litotes.explanation.analyses.analyze import CorpusAnalysis
from litotes.explanation.analyses.section import Section

FACTS = {
    "base": "tuned from",
    "family": "family",
    "head": "head",
    "tasks": "tasks",
    "n_layers": "layers",
    "n_attention_heads": "attention heads a layer",
    "head_width": "numbers an attention head passes on",
    "weighting": "weighting",
    "pruning": "pruning",
}
"""The facts about a model that the report gives, and what it calls them."""

CANNOT = (
    (
        "Where a model looks is not why it answers. Attention shows what could have been used; only"
        " taking something away shows what was."
    ),
    (
        "Everything here is about one trained model. Another seed, or another encoder, may do the"
        " same task in another way."
    ),
    (
        "Intervals are over texts and take them to be independent draws of what the corpus stands"
        " for. They do not cover other corpora, other varieties of English, or texts of other"
        " lengths."
    ),
    (
        "A figure compares many attention heads at once, and among many the most extreme is partly"
        " extreme by chance. A head that stands out is a question, not an answer."
    ),
    (
        "Special pieces, punctuation and position are parts of every text and say little about what"
        " it means, however much weight they get."
    ),
)


def report_html(analysed: CorpusAnalysis, pictures: Mapping[str, str]) -> str:
    """The whole page. pictures: the SVG of each analysis that has one, as a file would hold it."""
    abstract: list[str] = []
    parts: list[Part] = []
    for name, analysis in ANALYSES.items():
        if name in analysed.results:
            section = analysis.write_section(analysed.results[name])
            abstract += section.first
            parts.append(Part(section.title, _body(name, section, analysed, pictures.get(name))))
    parts.append(Part("How it was measured", _measured(analysed)))
    parts.append(Part("What this cannot say", words(CANNOT)))
    n_texts = counted(analysed.n_texts, "text")
    article = Article(
        title=f"What {analysed.model} looks at",
        lead=f"Its attention over {n_texts} of {analysed.data}, measured.",
        abstract=tuple(abstract) or _left_out(analysed),
        parts=tuple(parts),
        sources="All numbers are in analysis.json, those of a figure in the file beside it.",
    )
    return page(article)


def _body(name: str, section: Section, analysed: CorpusAnalysis, picture: str | None) -> str:
    svg = None if picture is None else inline(picture, f"figure-{name}")
    asked = [f'<p class="asked">{markup(paragraph)}</p>' for paragraph in section.asked]
    body = (
        "".join(asked),
        f'<p class="notes">{markup(section.paper)}.</p>',
        figure(svg, section.caption, says=section.shows, kind="natural"),
        "<h3>What it says</h3>",
        words(analysed.results[name].findings()),
        "<h3>How far to believe it</h3>",
        words(section.believed),
        folded("The numbers", section.tables),
        f'<p class="print notes">The numbers are in {markup(name)}.json.</p>',
    )
    return "\n".join(body)


def _measured(analysed: CorpusAnalysis) -> str:
    said = [
        (
            f"{counted(analysed.n_texts, 'text')} of {analysed.data}, in an order drawn with seed"
            f" {analysed.seed}. An analysis of fewer says so."
        ),
        "Intervals cover 95 % and are over texts. Layers and attention heads are counted from 1.",
        f"Measured with litotes {__version__}.",
    ]
    if analysed.n_truncated:
        said.append(
            f"{_are(analysed.n_truncated)} longer than the model reads; what it did not read was"
            " not looked at."
        )
    if analysed.n_unreadable:
        said.append(
            f"{_are(analysed.n_unreadable)} unreadable: the model knows none of the pieces."
        )
    said += _left_out(analysed)
    rows = [row(["model"], [analysed.model])]
    for key, name in FACTS.items():
        value = analysed.facts.get(key)
        if value not in (None, "", {}):
            rows.append(row([name], [_fact(value)]))
    return words(said) + table(["of the model", ""], rows)


def _left_out(analysed: CorpusAnalysis) -> tuple[str, ...]:
    return tuple(f"{name} was left out: it {why}." for name, why in analysed.left_out.items())


def _are(n_texts: int) -> str:
    return f"{counted(n_texts, 'text')} {'is' if n_texts == 1 else 'are'}"


def _fact(value: Any) -> str:
    """Tasks with their labels are written out; all else is a word or a number."""
    if not isinstance(value, Mapping):
        return str(value)
    tasks = [f"{name} ({', '.join(labels) or 'a number'})" for name, labels in value.items()]
    return "; ".join(tasks)
