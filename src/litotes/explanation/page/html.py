"""The page of one explanation: the answer, the words it rests on, those that left, and the
attention behind them.

One file for any browser, with no network: the page's policy allows its own script and style, known
by their hashes, and nothing else.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from string import Template

from litotes.core.text import markup
from litotes.core.values import WordPrediction
from litotes.core.version import __version__
from litotes.explanation.explanation import Explanation
from litotes.explanation.marked_words import marked_paragraph, title_of
from litotes.explanation.page.answer import answer_html
from litotes.explanation.page.data import data_html, layer_options, mapless_note
from litotes.explanation.page.departures import departures_html
from litotes.explanation.page.methods import methods_html
from litotes.explanation.page.words import shade_classes, text_html, words_table
from litotes.explanation.shaded_text import answer_in_words

SCRIPTS = ("maps.js", "why.js")


def why_html(explanation: Explanation, locus: WordPrediction | None = None) -> str:
    """The whole page. locus: what a model of words marks in the same text.

    Layers and attention heads are counted from 1 in it, and in the links it makes; in `why.json`
    from 0.
    """
    style, script = _file("why.css"), "\n".join(map(_file, SCRIPTS))
    shading = explanation.shadings[explanation.method]
    return Template(_file("why.html")).substitute(
        policy=_policy(style, script),
        title=markup(f"{explanation.task}: {answer_in_words(explanation.answer)}"),
        task=markup(explanation.task),
        style=style,
        script=script,
        answer=answer_html(explanation),
        methods=methods_html(explanation),
        locus="" if locus is None else _locus_html(locus),
        text=text_html(explanation.read, shade_classes(shading), name="text"),
        signs="signed" if shading.is_signed else "unsigned",
        table=words_table(explanation),
        fading=departures_html(explanation),
        layers=layer_options(explanation),
        mapless=mapless_note(explanation),
        facts=data_html(explanation),
        model=markup(explanation.model),
        version=markup(__version__),
    )


def _locus_html(locus: WordPrediction) -> str:
    return (
        f'<section aria-labelledby="locus-title"><h2 id="locus-title">{markup(title_of(locus))}'
        f" <small>by a model of words</small></h2>{marked_paragraph(locus)}</section>"
    )


def _file(name: str) -> str:
    return files("litotes.explanation.page").joinpath(name).read_text("utf-8")


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri"
        " 'none'; form-action 'none'"
    )


def _hash(content: str) -> str:
    return f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}"
