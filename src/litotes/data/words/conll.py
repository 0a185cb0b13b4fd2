"""conll: a word and its tag a line, a blank line between texts, as in the CoNLL shared tasks.

Tjong Kim Sang and De Meulder 2003, arXiv cs/0306050. The word is the first column and the tag the
last; columns are set apart by tabs or blanks. A folder with train and test files, or one file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from litotes.core.errors import UserError
from litotes.data.tables.files import read_lines
from litotes.data.words.corpus import WordCorpus, WordExample, check_tags, check_words, labels_of
from litotes.data.words.files import OPTIONS, cutting_of, find_parts, set_test_apart, task_of

_DOCUMENT = "-DOCSTART-"

__all__ = ["OPTIONS", "read"]


def read(path: Path, options: Mapping[str, str]) -> WordCorpus:
    task, cutting = task_of(options), cutting_of(options)
    examples: list[WordExample] = []
    for split, file in find_parts(path, (".conll", ".txt", ".tsv", ".bio", ".iob")).items():
        for words, tags in _texts(file):
            examples.append(WordExample(words, tags, split=split))
    examples = set_test_apart(examples, options)
    return WordCorpus(path.name, task, labels_of(examples), tuple(examples), cutting)


def _texts(file: Path) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    words: list[str] = []
    tags: list[str] = []
    place = str(file)
    for number, line in read_lines(file):
        place, columns = f"{file}, line {number}", line.split()
        if columns and columns[0] != _DOCUMENT:
            if len(columns) < 2:
                raise UserError(f"{place}: a word and its tag are expected, not {line.strip()!r}.")
            words.append(columns[0])
            tags.append(columns[-1])
        elif words:
            yield check_words(words, place), check_tags(tags, place)
            words, tags = [], []
    if words:
        yield check_words(words, place), check_tags(tags, place)
