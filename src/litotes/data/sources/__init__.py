"""The loading of corpora: the table of sources, and `load_corpus`, which reads one by its name.

NAME[/SUB][:PATH][?key=value&key=value][ + …]
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from litotes.core.errors import UserError
from litotes.data.corpus import Corpus, join_corpora
from litotes.data.sources.columns import read_hub, read_table
from litotes.data.sources.corpora import CORPORA
from litotes.data.sources.source import parse_query, read_source, sources_of

TEST_SHARE = 0.2
"""The share of a table without a split to test on."""

SOURCES = sources_of("texts", {**CORPORA, "table": read_table, "hub": read_hub})


def load_corpus(source: str) -> Corpus:
    """Reads a corpus: `NAME[:PATH][?option=value]`; `litotes list sources` names them all.

    Several are joined by a plus, `vader:data/vader + sampler`.

    >>> corpus = load_corpus("sampler")
    >>> corpus.where(variety="en-IN", task="sarcasm", split="test").splits()
    ('test',)
    """
    return join_corpora([_load(part) for part in _parts(source)])


load = load_corpus  # inside the package, where `corpus = load(…)` says it already


def load_with_test_part(spec: str) -> Corpus:
    """Reads the corpus to train and test on: a table that does not say which of its texts are for
    testing gets a test part, the same every time.
    """
    corpus = load(spec)
    if not _lacks_split(spec, corpus):
        return corpus
    divided = corpus.with_test_part(TEST_SHARE, seed=0)
    n_test = sum(example.split == "test" for example in divided)
    return divided.with_notes(
        f"{corpus.name} has no test split: {n_test} of its {len(corpus)} texts were set aside to"
        " test on, the same ones every time. Another share: test=0.1 in the source (test=0: none)."
    )


def _lacks_split(spec: str, corpus: Corpus) -> bool:
    """Tells whether test texts could have been named, but were not."""
    return corpus.splits() == ("train",) and all(
        "test" in SOURCES[_name(part)].options and "test" not in options_of(part)
        for part in _parts(spec)
    )


def source_names(spec: str) -> set[str]:
    """Returns the kinds of sources a corpus is made of, such as besstie and sampler."""
    return set(map(_name, _parts(spec)))


def _name(part: str) -> str:
    return re.split("[:?]", part, maxsplit=1)[0]


def _parts(spec: str) -> list[str]:
    """The sources of one corpus; a plus that no source follows belongs to a path or a column."""
    names = "|".join(map(re.escape, SOURCES))
    return re.split(rf" \+ (?=(?:{names})(?:[:? ]|$))", spec)


def _load(spec: str) -> Corpus:
    name = _name(spec)
    if name not in SOURCES and Path(name).suffix:
        raise UserError(
            f"{name} looks like a file: write table:{spec.partition('?')[0]}, and the columns it"
            " has, table:FILE?text=COLUMN&label=COLUMN."
        )
    return read_source(spec, SOURCES, "source")


def options_of(spec: str) -> dict[str, str]:
    """Returns the options in a source as a user writes it."""
    options: dict[str, str] = {}
    for part in _parts(spec):
        options |= parse_query(part.partition("?")[2])
    return options


def has_option(spec: str, option: str) -> bool:
    """Tells whether it is a single source that has this option."""
    return len(_parts(spec)) == 1 and option in SOURCES[_name(spec)].options


def with_option(spec: str, option: str, value: str) -> str:
    """Writes a single source with an option added, or with another value of it."""
    address, _, _ = spec.partition("?")
    return make_source(address, options_of(spec) | {option: value})


def make_source(address: str, options: Mapping[str, str]) -> str:
    """Writes a source as a user would."""
    written = "&".join(
        f"{key}={value.replace('%', '%25').replace('&', '%26')}" for key, value in options.items()
    )
    return f"{address}?{written}" if written else address


def has_prefix(spec: str) -> bool:
    """Tells whether texts of this source begin with their source and variety (`prefix=variety`)."""
    return options_of(spec).get("prefix") == "variety"
