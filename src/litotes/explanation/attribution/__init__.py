"""How much each word counts for an answer. A new method is one file and one line in `METHODS`."""

from __future__ import annotations

from typing import cast

from litotes.core.errors import has_extra
from litotes.core.registry import LazyTable
from litotes.explanation.attribution.method import Method, WordWeights, by_weight
from litotes.explanation.attribution.question import Question, TextQuestion

METHODS: LazyTable[type[Method]] = LazyTable(
    "litotes.explanation.attribution",
    {
        "occlusion": "removal.Occlusion",
        "integrated_gradients": "gradients.IntegratedGradients",
        "gradient_input": "gradients.GradientInput",
        "effective": "attention.Effective",
        "standard": "attention.Standard",
        "value_norm": "attention.ValueNorm",
        "rollout": "rollout.Rollout",
        "random": "removal.Random",
    },
)

CONTROL = "random"
"""What every other method has to beat."""
ASKING = ("occlusion", "random")
"""Those that only ask for answers, never how they come about: any runtime will do."""

__all__ = [
    "ASKING",
    "CONTROL",
    "METHODS",
    "Method",
    "Question",
    "TextQuestion",
    "WordWeights",
    "available_methods",
    "by_weight",
    "weigh_words",
]


def available_methods() -> tuple[str, ...]:
    """What this installation can run, in the table's order: looking inside needs torch."""
    return tuple(METHODS) if has_extra("train") else ASKING


def weigh_words(name: str, question: Question) -> WordWeights:
    """What the method called `name` says with its own defaults; computed once for all analyses that
    ask about the same answer.
    """
    cache, key = question.observation.cache, (name, question.task.name, question.label)
    if key not in cache:
        cache[key] = METHODS[name]().weigh(question)
    return cast(WordWeights, cache[key])
