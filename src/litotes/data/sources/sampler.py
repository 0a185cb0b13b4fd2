"""The sampler: invented texts in three varieties of English, built in, for trying things out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from litotes.core.values import Example
from litotes.data.corpus import SARCASM, SENTIMENT, Corpus, split_by_hash, text_key
from litotes.data.sources.builtin_rows import builtin_rows
from litotes.data.tables.rows import Row

VARIETIES = ("en-AU", "en-IN", "en-UK")

_TASKS = {task.name: task for task in (SENTIMENT, SARCASM)}


def read(path: Path | None, options: Mapping[str, str]) -> Corpus:
    """All texts of the sampler."""
    examples: list[Example] = []
    for variety in VARIETIES:
        rows = builtin_rows("sampler", variety, ("text", "source", *_TASKS))
        examples += [_example(row, variety) for row in rows]
    return Corpus("sampler", tuple(examples), _TASKS)


def _example(row: Row, variety: str) -> Example:
    text = row.text("text")
    labels = {}
    for name, task in _TASKS.items():
        labels[name] = row.translate(name, {word: word for word in task.labels})
    split = split_by_hash(text_key(text), test_share=0.3)
    return Example(text, labels, variety=variety, source=row.require_word("source"), split=split)
