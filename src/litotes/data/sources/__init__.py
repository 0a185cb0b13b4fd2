"""Where corpora come from: the table of sources, and `load`, which reads one by its name.

NAME[/SUB][:PATH][?key=value&key=value][ + …]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.registry import pick, unknown_name
from litotes.data.corpus import Corpus, join_corpora
from litotes.data.sources import (
    asides,
    besstie,
    bicodemix,
    contrast,
    glue,
    hub,
    irony,
    isarcasm,
    sampler,
    table,
    twitter,
    vader,
)
from litotes.data.sources.query import parse_query

TEST_SHARE = 0.2
"""What a table without a split is tested on."""


@dataclass(frozen=True)
class Source:
    """A way to read a corpus: from a path or without one, with options that have a line each."""

    read: Callable[[Path | None, Mapping[str, str]], Corpus]
    about: str
    options: Mapping[str, str] = field(default_factory=dict)
    needs_path: bool = True
    example: str = ""


SOURCES: dict[str, Source] = {
    "sampler": Source(
        sampler.read,
        "invented reviews and posts in three varieties, built in",
        needs_path=False,
        example="sampler",
    ),
    "contrast": Source(
        contrast.read,
        "invented texts in six varieties, once meant and once not, built in",
        contrast.OPTIONS,
        needs_path=False,
        example="contrast?classes=3",
    ),
    "asides": Source(
        asides.read,
        "invented remarks in seven varieties, sarcastic or not, built in",
        asides.OPTIONS,
        needs_path=False,
        example="asides?classes=3",
    ),
    "besstie": Source(
        besstie.read,
        "reviews and comments in en-AU, en-IN and en-UK, sentiment and sarcasm",
        besstie.OPTIONS,
        example="besstie:data/besstie",
    ),
    "twitter": Source(
        twitter.read,
        "tweets about brands and games, sentiment",
        twitter.OPTIONS,
        example="twitter:data/twitter_training.csv?min_words=40",
    ),
    "bicodemix": Source(
        bicodemix.read,
        "Malaysian comments, sentiment and sarcasm",
        bicodemix.OPTIONS,
        example="bicodemix:data/bicodemix?classes=2",
    ),
    "vader": Source(
        vader.read,
        "tweets, reviews and editorials rated by twenty people, sentiment",
        vader.OPTIONS,
        example="vader:data/vader",
    ),
    "isarcasm": Source(
        isarcasm.read,
        "tweets whose authors say which are sarcastic",
        isarcasm.OPTIONS,
        example="isarcasm:data/isarcasmeval2022?rephrased=yes",
    ),
    "irony": Source(
        irony.read, "TweetEval's ironic tweets, as sarcasm", example="irony:data/tweeteval-irony"
    ),
    "glue/sst2": Source(
        partial(glue.read, glue.SST2), "film reviews, sentiment", example="glue/sst2:data/glue"
    ),
    "glue/rte": Source(
        partial(glue.read, glue.RTE),
        "does the first text entail the second",
        example="glue/rte:data/glue",
    ),
    "glue/qnli": Source(
        partial(glue.read, glue.QNLI),
        "does the sentence answer the question",
        example="glue/qnli:data/glue",
    ),
    "glue/mrpc": Source(
        partial(glue.read, glue.MRPC),
        "are the two sentences paraphrases",
        example="glue/mrpc:data/glue",
    ),
    "glue/stsb": Source(
        partial(glue.read, glue.STSB),
        "how similar two sentences are, 0 to 5",
        example="glue/stsb:data/glue",
    ),
    "table": Source(
        table.read,
        "any CSV, TSV, JSONL or Parquet file",
        table.OPTIONS,
        example="table:reviews.csv?text=review&label=mood",
    ),
    "hub": Source(
        hub.read,
        "a data set of the Hugging Face Hub",
        hub.OPTIONS,
        example="hub:OWNER/NAME@REVISION?label.sentiment=label",
    ),
}


def load(spec: str) -> Corpus:
    """The corpus a user names, such as `besstie:data/besstie` or `vader:data/vader + sampler`."""
    return join_corpora([_load(part) for part in _parts(spec)])


def load_with_test_part(spec: str) -> Corpus:
    """The corpus to train and test on: a table that does not say which of its texts are for
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
    """Whether nobody has said which texts are for testing, but could have."""
    if corpus.splits() != ("train",):
        return False
    for part in _parts(spec):
        name = re.split("[:?]", part, maxsplit=1)[0]
        if "test" not in SOURCES[name].options or "test" in options_of(part):
            return False
    return True


def source_names(spec: str) -> set[str]:
    """The kinds of sources a corpus is made of, such as besstie and sampler."""
    return {re.split("[:?]", part, maxsplit=1)[0] for part in _parts(spec)}


def _parts(spec: str) -> list[str]:
    """The sources of one corpus; a plus that no source follows belongs to a path or a column."""
    names = "|".join(map(re.escape, SOURCES))
    return re.split(rf" \+ (?=(?:{names})(?:[:? ]|$))", spec)


def _load(spec: str) -> Corpus:
    address, _, query = spec.partition("?")
    name, _, path = address.partition(":")
    if name not in SOURCES and Path(name).suffix:
        raise UserError(
            f"{name} looks like a file: write table:{address}, and the columns it has,"
            " table:FILE?text=COLUMN&label=COLUMN."
        )
    source = pick(SOURCES, name, "source")
    options = parse_query(query)
    check_source_options(options, name, source.options)
    if source.needs_path and not path:
        raise UserError(f"{name} needs a path: write for example {source.example}.")
    if path and not source.needs_path:
        raise UserError(f"{name} is built in and reads no path: write {source.example}.")
    try:
        return source.read(expand_path(path) if path else None, options)
    except OSError as error:  # a folder without permission, a name longer than the system allows
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from error


def expand_path(path: str) -> Path:
    """The path with a leading ~ or ~USER replaced by that user's folder."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:  # no such user
        raise UserError(
            f"{path} cannot be found: there is no home folder for {Path(path).parts[0]}. Write the"
            " path in full."
        ) from error


def options_of(spec: str) -> dict[str, str]:
    """The options in a source as a user writes it."""
    options: dict[str, str] = {}
    for part in _parts(spec):
        _, _, query = part.partition("?")
        options |= parse_query(query)
    return options


def has_option(spec: str, option: str) -> bool:
    """Whether it is a single source that has this option."""
    name = re.split("[:?]", spec, maxsplit=1)[0]
    return len(_parts(spec)) == 1 and option in SOURCES[name].options


def with_option(spec: str, option: str, value: str) -> str:
    """A single source with an option added, or with another value of it."""
    address, _, _ = spec.partition("?")
    return make_source(address, options_of(spec) | {option: value})


def make_source(address: str, options: Mapping[str, str]) -> str:
    """A source as a user would write it."""
    written = []
    for key, value in options.items():
        written.append(f"{key}={value.replace('%', '%25').replace('&', '%26')}")
    return f"{address}?{'&'.join(written)}" if written else address


def has_prefix(spec: str) -> bool:
    """Whether texts of this source begin with their source and variety (`prefix=variety`)."""
    options = options_of(spec)
    # how the recipes of models that were trained with earlier versions spell it
    return options.get("prefix") == "variety" or options.get("told") == "yes"


def check_source_options(options: Mapping[str, str], name: str, known: Mapping[str, str]) -> None:
    for key in options:
        names_task = "label.TASK" in known and key.startswith("label.") and key != "label."
        if key in known or names_task:
            continue
        if known:
            raise UserError(unknown_name(key, known, f"option of {name}"))
        raise UserError(f"{name} has no options, so leave {key!r} out.")
