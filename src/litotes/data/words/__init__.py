"""Sources of words: the table of those that give a label for every word, or a stretch to find.

NAME:PATH[?key=value&key=value], as `litotes list sources` shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.registry import pick
from litotes.data.sources import check_source_options, expand_path
from litotes.data.sources.query import parse_query
from litotes.data.words import conll, conllu, json_lines, sarcasm_sign
from litotes.data.words.corpus import WordCorpus, WordExample


@dataclass(frozen=True)
class WordSource:
    """A way to read words with their answers from a path, with options that have a line each."""

    read: Callable[[Path, Mapping[str, str]], WordCorpus]
    about: str
    example: str
    options: Mapping[str, str] = field(default_factory=dict)


WORD_SOURCES: dict[str, WordSource] = {
    "ud-ewt": WordSource(
        conllu.read, "words and universal parts of speech, CoNLL-U", "ud-ewt:data/ud-ewt"
    ),
    "conll": WordSource(
        conll.read,
        "a word and its tag a line, entities as BIO",
        "conll:data/ner?test=0.2",
        conll.OPTIONS,
    ),
    "words": WordSource(
        json_lines.read,
        "JSON lines with words and tags, or words and a span",
        "words:mine.jsonl?test=0.2",
        json_lines.OPTIONS,
    ),
    "sarcasm-sign": WordSource(
        sarcasm_sign.read,
        "the words of sarcastic tweets that people changed to say it plainly",
        "sarcasm-sign:data/sarcasm-sign",
    ),
}


def load_words(spec: str) -> WordCorpus:
    """The texts a user names, such as `ud-ewt:data/ud-ewt`."""
    address, _, query = spec.partition("?")
    name, _, path = address.partition(":")
    source = pick(WORD_SOURCES, name, "source of words called")
    options = parse_query(query)
    check_source_options(options, name, source.options)
    if not path:
        raise UserError(f"{name} needs a path: write for example {source.example}.")
    try:
        corpus = source.read(expand_path(path), options)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from error
    if not corpus.examples:
        raise UserError(f"{path} holds no texts.")
    return corpus


__all__ = ["WORD_SOURCES", "WordCorpus", "WordExample", "WordSource", "load_words"]
