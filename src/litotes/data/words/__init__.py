"""Sources of words: the table of those that give a label for every word, or a stretch to find.

NAME:PATH[?key=value&key=value], as `litotes list sources` shows them.
"""

from __future__ import annotations

from litotes.core.errors import UserError
from litotes.data.sources import expand_path
from litotes.data.sources.file_source import FileSource, find_source
from litotes.data.words import conll, conllu, json_lines, sarcasm_sign
from litotes.data.words.corpus import WordCorpus, WordExample

WORD_SOURCES: dict[str, FileSource[WordCorpus]] = {
    "ud-ewt": FileSource(
        conllu.read, "words and universal parts of speech, CoNLL-U", "ud-ewt:data/ud-ewt"
    ),
    "conll": FileSource(
        conll.read,
        "a word and its tag a line, entities as BIO",
        "conll:data/ner?test=0.2",
        conll.OPTIONS,
    ),
    "words": FileSource(
        json_lines.read,
        "JSON lines with words and tags, or words and a span",
        "words:mine.jsonl?test=0.2",
        json_lines.OPTIONS,
    ),
    "sarcasm-sign": FileSource(
        sarcasm_sign.read,
        "the words of sarcastic tweets that people changed to say it plainly",
        "sarcasm-sign:data/sarcasm-sign",
    ),
}


def load_words(spec: str) -> WordCorpus:
    """The texts a user names, such as `ud-ewt:data/ud-ewt`."""
    source, path, options = find_source(spec, WORD_SOURCES, "source of words called")
    try:
        corpus = source.read(expand_path(path), options)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from error
    if not corpus.examples:
        raise UserError(f"{path} holds no texts.")
    return corpus


__all__ = ["WORD_SOURCES", "WordCorpus", "WordExample", "load_words"]
