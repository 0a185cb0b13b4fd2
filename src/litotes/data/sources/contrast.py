"""Contrast: invented texts in six varieties of English, built in; on the same topic and in nearly
the same words, what is said is once meant and once not.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.registry import unknown_name
from litotes.core.values import Example
from litotes.data.corpus import Corpus
from litotes.data.sources.builtin_rows import builtin_rows
from litotes.data.sources.options import choice
from litotes.data.splitting import split_by_hash
from litotes.data.tables.row import Row
from litotes.data.tasks import SARCASM, SENTIMENT, SENTIMENT_3

VARIETIES = ("en-AU", "en-IE", "en-IN", "en-NG", "en-UK", "en-US")

KINDS = (
    "advice",
    "complaint",
    "deadpan",
    "hyperbole",
    "idiom",
    "joke",
    "litotes",
    "negation",
    "plain",
    "politeness",
    "praise",
    "question",
    "quoted",
    "thanks",
    "understatement",
)
"""What a text looks like, sarcastic or not."""

OPTIONS = {
    "classes": "2 (default) takes the sentiment label from texts without sentiment; 3 calls them"
    " neutral",
    "kind": f"all (default), or some, with + between: {', '.join(KINDS)}",
}

TEST_SHARE = 0.3

_NEEDS = ("text", "topic", "form", "kind", "sentiment", "sarcasm")


def read(path: Path | None, options: Mapping[str, str]) -> Corpus:
    """All texts, or those of some kinds. A topic is either trained on or tested on."""
    sentiment = SENTIMENT if choice(options, "classes", ("2", "3")) == "2" else SENTIMENT_3
    kinds = _kinds(options)
    examples = [
        _example(row, variety, sentiment.labels)
        for variety in VARIETIES
        for row in builtin_rows("contrast", variety, _NEEDS)
        if row.require_word("kind") in kinds
    ]
    return Corpus("contrast", tuple(examples), {"sentiment": sentiment, "sarcasm": SARCASM})


def _kinds(options: Mapping[str, str]) -> tuple[str, ...]:
    value = options.get("kind", "all")
    if value == "all":
        return KINDS
    chosen = tuple(value.split("+"))
    for kind in chosen:
        if kind not in KINDS:
            raise UserError(f"kind={value}: {unknown_name(kind, KINDS, 'kind of text')}")
    return chosen


def _example(row: Row, variety: str, sentiments: tuple[str, ...]) -> Example:
    topic = row.require_word("topic")
    meant = row.require_word("sentiment")
    labels = {"sarcasm": row.translate("sarcasm", {word: word for word in SARCASM.labels})}
    if meant in sentiments:
        labels["sentiment"] = meant
    return Example(
        row.text("text"),
        labels,
        variety=variety,
        source=row.require_word("form"),
        split=split_by_hash(topic, test_share=TEST_SHARE),
        group=topic,
    )
