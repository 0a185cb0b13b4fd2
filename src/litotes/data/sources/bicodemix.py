"""Bicodemix: sentiment and sarcasm in 10,000 Malaysian social-media comments, of which the English
ones are read by default.

Md Suhaimin et al. 2024, "Annotated dataset for sentiment analysis and sarcasm detection: Bilingual
code-mixed English-Malay social media data in the public security domain", Data in Brief 55.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.values import Example
from litotes.data.corpus import (
    SARCASM,
    SENTIMENT,
    SENTIMENT_3,
    SPELLINGS,
    Corpus,
    split_by_hash,
    text_key,
)
from litotes.data.sources.options import choice, require_path
from litotes.data.tables import read_rows
from litotes.data.tables.files import find_file
from litotes.data.tables.rows import Row

OPTIONS = {
    "lang": "en (default), my, cm (code-mixed) or all",
    "kind": "all (default), comment or reply",
    "classes": "3 (default); 2 takes the sentiment label from neutral texts",
}

_FILE = "annotated_bicodemix_publicsa_v2.csv"
_TEXT, _REPLY, _LANGUAGE = "comment/tweet", "2nd level comment/ reply", "lang_id"
_SENTIMENT, _SARCASM = "majority_sent", "majority_sarc"
_LANGUAGES = {language: language for language in ("en", "my", "cm")}


def read(path: Path | None, options: Mapping[str, str]) -> Corpus:
    """The comments of one language, or of all."""
    language = choice(options, "lang", ("en", "my", "cm", "all"))
    kind = choice(options, "kind", ("all", "comment", "reply"))
    sentiment = SENTIMENT if choice(options, "classes", ("3", "2")) == "2" else SENTIMENT_3
    file = find_file(require_path(path), _FILE)
    examples = []
    for row in read_rows(file, needs=(_TEXT, _REPLY, _SENTIMENT, _SARCASM, _LANGUAGE)):
        own_language = row.translate(_LANGUAGE, _LANGUAGES, "language")
        if language in ("all", own_language) and kind in ("all", _kind(row)):
            examples.append(_example(row, sentiment.labels))
    if not examples:
        raise UserError(f"{file} has no text with lang={language} and kind={kind}: choose others.")
    tasks = {SENTIMENT.name: sentiment, SARCASM.name: SARCASM}
    return Corpus("bicodemix", tuple(examples), tasks)


def _kind(row: Row) -> str:
    # In spite of its name the column holds a flag, and where that is not set, numbers that a
    # spreadsheet has spoilt.
    return "reply" if row.word(_REPLY) == "Yes" else "comment"


def _example(row: Row, words: tuple[str, ...]) -> Example:
    labels = {SARCASM.name: row.translate(_SARCASM, SPELLINGS[SARCASM.name])}
    if row.word(_SENTIMENT) is not None:
        word = row.translate(_SENTIMENT, SPELLINGS[SENTIMENT.name])
        if word in words:
            labels[SENTIMENT.name] = word
    text = row.text(_TEXT)
    split = split_by_hash(text_key(text), test_share=0.2)
    return Example(text, labels, source="Bicodemix", split=split)
