"""Fixtures of the data tests: invented files, and a maker of corpora."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from made_files import MADE, write_table

from litotes.core.values import Example, Task
from litotes.data.corpus import Corpus


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., str]:
    """Writes a source's files, `without` one column if told so, and answers with the SOURCE that
    reads them.
    """

    def write(name: str, *, without: str | None = None) -> str:
        if name == "hub":
            pytest.importorskip("datasets", reason="the extra `hub` is not installed")
        for file, rows in MADE[name].files.items():
            write_table(
                tmp_path / file,
                [{key: value for key, value in row.items() if key != without} for row in rows],
            )
        return MADE[name].spec.format(folder=tmp_path)

    return write


@pytest.fixture
def corpus() -> Callable[[Iterable[Example]], Corpus]:
    """Makes a corpus for sentiment and sarcasm out of examples."""
    tasks = {
        "sentiment": Task("sentiment", ("negative", "positive")),
        "sarcasm": Task("sarcasm", ("literal", "sarcastic")),
    }

    def make_corpus(examples: Iterable[Example]) -> Corpus:
        return Corpus("made", tuple(examples), tasks)

    return make_corpus
