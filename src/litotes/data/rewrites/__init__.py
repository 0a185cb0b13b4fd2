"""Rewrites of texts by single features of varieties of English: one table, one rule each.

A new rule is one entry in the table of its topic, or a file with a table of its own and a line
here; contract tests, `litotes list rewrites` and `litotes stress` follow.
"""

from litotes.data.rewrites.agreement import AGREEMENT
from litotes.data.rewrites.articles import ARTICLES
from litotes.data.rewrites.aspect import ASPECT
from litotes.data.rewrites.clauses import CLAUSES
from litotes.data.rewrites.comparison import COMPARISON
from litotes.data.rewrites.discourse import DISCOURSE
from litotes.data.rewrites.lexicon import LEXICON
from litotes.data.rewrites.negation import NEGATION
from litotes.data.rewrites.perturbations import PERTURBATIONS
from litotes.data.rewrites.plurals import PLURALS
from litotes.data.rewrites.pronouns import PRONOUNS
from litotes.data.rewrites.rewrite import Rewrite
from litotes.data.rewrites.spelling import SPELLING
from litotes.data.rewrites.tense import TENSE
from litotes.data.rewrites.verb_forms import VERB_FORMS
from litotes.data.rewrites.word_order import WORD_ORDER

TOPICS: dict[str, dict[str, Rewrite]] = {
    "articles": ARTICLES,
    "pronouns": PRONOUNS,
    "plurals": PLURALS,
    "comparison": COMPARISON,
    "aspect": ASPECT,
    "tense": TENSE,
    "verb forms": VERB_FORMS,
    "negation": NEGATION,
    "agreement": AGREEMENT,
    "clauses": CLAUSES,
    "word order": WORD_ORDER,
    "discourse": DISCOURSE,
    "spelling": SPELLING,
    "lexicon": LEXICON,
    "perturbations": PERTURBATIONS,
}

REWRITES: dict[str, Rewrite] = {
    name: rewrite for table in TOPICS.values() for name, rewrite in table.items()
}
"""Every rule by its name."""
