"""Rewrites of texts by single features of varieties of English: one table, one rule each.

A new rule is one table in the file of its topic in `rules/`; contract tests, `litotes list
rewrites` and `litotes stress` follow.
"""

from litotes.data.rewrites.rewrite import Rewrite, rewrites_of

_TOPICS = (
    "articles, pronouns, plurals, comparison, aspect, tense, verb forms, negation, agreement,"
    " clauses, word order, discourse, spelling, lexicon, perturbations"
)
TOPICS: dict[str, dict[str, Rewrite]] = {topic: rewrites_of(topic) for topic in _TOPICS.split(", ")}

REWRITES: dict[str, Rewrite] = {
    name: rewrite for table in TOPICS.values() for name, rewrite in table.items()
}
"""Every rule by its name."""
