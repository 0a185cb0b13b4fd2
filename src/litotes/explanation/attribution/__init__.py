"""How much each word counts for an answer. A new method is one file and one line in `METHODS`."""

from typing import cast

from litotes.explanation.attribution.attention import Effective, Standard, ValueNorm
from litotes.explanation.attribution.gradients import GradientInput, IntegratedGradients
from litotes.explanation.attribution.method import Method, WordWeights, by_weight
from litotes.explanation.attribution.question import Question
from litotes.explanation.attribution.removal import Occlusion, Random
from litotes.explanation.attribution.rollout import Rollout

METHODS: dict[str, type[Method]] = {
    "occlusion": Occlusion,
    "integrated_gradients": IntegratedGradients,
    "gradient_input": GradientInput,
    "effective": Effective,
    "standard": Standard,
    "value_norm": ValueNorm,
    "rollout": Rollout,
    "random": Random,
}

CONTROL = "random"
"""What every other method has to beat."""

__all__ = ["CONTROL", "METHODS", "Method", "Question", "WordWeights", "by_weight", "weigh_words"]


def weigh_words(name: str, question: Question) -> WordWeights:
    """What the method called `name` says with its own defaults; computed once for all analyses that
    ask about the same answer.
    """
    cache, key = question.observation.cache, (name, question.task.name, question.label)
    if key not in cache:
        cache[key] = METHODS[name]().weigh(question)
    return cast(WordWeights, cache[key])
