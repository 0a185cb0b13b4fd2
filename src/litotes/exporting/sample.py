"""Which texts an export learns from and is measured on."""

from __future__ import annotations

import random
from dataclasses import dataclass

from litotes.core.errors import UserError
from litotes.core.values import Example
from litotes.data.sources import load_with_test_part
from litotes.model.checkpoint import Model
from litotes.training.recipe import recipe_of
from litotes.training.training_data import prepare


@dataclass(frozen=True)
class Sample:
    """Training texts, from which int8 learns the range of activations, other texts to measure the
    loss on, and where those come from.
    """

    training: list[Example]
    measured: list[Example]
    name: str

    def shuffle(self) -> Sample:
        """The same in an order drawn at random, the same one every time."""
        training = random.Random(0).sample(self.training, len(self.training))
        measured = random.Random(0).sample(self.measured, len(self.measured))
        return Sample(training, measured, self.name)


def choose_sample(model: Model, source: str | None) -> Sample:
    """source: where texts come from; None: those of the model's own recipe."""
    if source is not None:
        sample = _from_source(model, source)
    elif "recipe" in model.facts:
        sample = _from_recipe(model)
    else:
        raise UserError(
            "The model does not say what it was trained on: give texts to measure the export on"
            " with --data SOURCE."
        )
    if not sample.training or not sample.measured:
        raise UserError(
            "An export needs training texts to look at and other texts to be measured on: choose"
            " another --data."
        )
    return sample.shuffle()


def _from_source(model: Model, source: str) -> Sample:
    corpus = load_with_test_part(source)
    name = f"the test split of {corpus.name}"
    if not any(task in corpus.tasks for task in model.classifier.tasks):
        name += ", which has no gold labels for this model"
    training = list(corpus.where(split="train"))
    return Sample(training, list(corpus.where(split=corpus.test_split())), name)


def _from_recipe(model: Model) -> Sample:
    try:
        data = prepare(recipe_of(dict(model.facts["recipe"]), "the model's recipe"))
    except UserError as error:
        raise UserError(
            f"The texts the model was trained on are not available to measure the export on"
            f" ({error}) Give others: --data SOURCE."
        ) from error
    training = list(data.train)
    # the first of these that there is: none of them was learned from
    parts = {"reserved": data.reserved, "held-out": data.held_out, "test": data.test}
    for kind, corpus in parts.items():
        if corpus is not None:
            return Sample(training, list(corpus), f"{kind} texts of {data.whole.name}")
    return Sample(training, [], "")
