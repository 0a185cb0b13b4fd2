"""Texts labelled by what is meant, and by what they look like: the corpora `contrast` and `asides`,
which come with the package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from litotes.core.errors import UserError
from litotes.core.registry import unknown_name
from litotes.core.values import Example
from litotes.data.corpus import SARCASM, SENTIMENT, SENTIMENT_3, Corpus, split_by_hash
from litotes.data.sources.builtin_rows import builtin_rows
from litotes.data.sources.options import choice
from litotes.data.tables.rows import Row

_NEEDS = ("text", "topic", "form", "kind", "sentiment", "sarcasm")


@dataclass(frozen=True)
class MeantTexts:
    """A corpus with one file a variety. kinds: what a text looks like, sarcastic or not.

    test_share: of the topics; a topic is either trained on or tested on.
    """

    name: str
    varieties: Sequence[str]
    kinds: Sequence[str]
    test_share: float

    @property
    def options(self) -> dict[str, str]:
        return {
            "classes": "2 (default) takes the sentiment label from texts without sentiment; 3 calls"
            " them neutral",
            "kind": f"all (default), or some, with + between: {', '.join(self.kinds)}",
        }

    def read(self, options: Mapping[str, str]) -> Corpus:
        """All texts, or those of some kinds."""
        sentiment = SENTIMENT if choice(options, "classes", ("2", "3")) == "2" else SENTIMENT_3
        kinds = self._chosen_kinds(options)
        examples = [
            self._example(row, variety, sentiment.labels)
            for variety in self.varieties
            for row in builtin_rows(self.name, variety, _NEEDS)
            if row.require_word("kind") in kinds
        ]
        return Corpus(self.name, tuple(examples), {"sentiment": sentiment, "sarcasm": SARCASM})

    def _chosen_kinds(self, options: Mapping[str, str]) -> Sequence[str]:
        value = options.get("kind", "all")
        if value == "all":
            return self.kinds
        chosen = value.split("+")
        for kind in chosen:
            if kind not in self.kinds:
                raise UserError(f"kind={value}: {unknown_name(kind, self.kinds, 'kind of text')}")
        return chosen

    def _example(self, row: Row, variety: str, sentiments: Sequence[str]) -> Example:
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
            split=split_by_hash(topic, test_share=self.test_share),
            group=topic,
        )
