"""What all phases of a pruning share: the dense model, its answers as a teacher, and the texts."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import torch

from litotes.core.progress import Watch
from litotes.core.values import Example
from litotes.encoder.packing import TextSet, make_text_set
from litotes.model.checkpoint import Model
from litotes.pruning.plan import PrunePlan, judged_texts
from litotes.pruning.result import PruneSettings
from litotes.training.inputs import PieceInputs, all_logits
from litotes.training.recipe import Recipe
from litotes.training.teacher import Teacher
from litotes.training.training_data import TrainingData, unlabelled_texts

NOT_IN_KEY = {
    "loss",
    "sure",
    "targets",
    "settle_epochs",
    "folds",
    "unlabelled",
    "held_out",
    "control",
}
"""Settings that the phases themselves do not depend on."""


@dataclass(frozen=True)
class PruneContext:
    """All that the phases share."""

    settings: PruneSettings
    recipe: Recipe
    data: TrainingData
    dense: Model
    dense_texts: frozenset[str] | None  # hashes of the texts it was trained on
    train: TextSet
    held_out: TextSet  # chooses epochs
    judged: TextSet  # chooses the pruning
    teacher: Teacher
    device: torch.device
    folder: Path
    watch: Watch
    notes: tuple[str, ...]
    unlabelled: TextSet | None = None  # only agreement counts
    reporting: TextSet | None = None  # labelled, and no part of the choice

    @property
    def phases(self) -> Path:
        """Where what the phases found is kept until a model is chosen."""
        return self.folder / "phases"

    def key(self, *more: object) -> str:
        """A name for what a phase depends on: a phase found under it need not be done again."""
        given = vars(self.settings)
        settings = {name: given[name] for name in given if name not in NOT_IN_KEY}
        dense_key = self.dense.facts["key"]
        parts = (self.recipe.key(), self.data.fingerprint(), dense_key, settings, more)
        return sha256(repr(parts).encode()).hexdigest()[:12]


def make_context(plan: PrunePlan, *, device: torch.device, watch: Watch) -> PruneContext:
    """Tokenizes the texts and asks the dense model about those to learn from."""
    settings, recipe, data, dense = plan.settings, plan.recipe, plan.data, plan.dense
    assert data.held_out is not None  # a pruning's recipe always holds texts out
    classifier = dense.classifier.to(device)
    tasks = list(classifier.tasks.values())

    def shuffle_and_tokenize(examples: Sequence[Example]) -> TextSet:
        # files are sorted by cell, but the first texts have to stand for all
        order = random.Random(recipe.seed).sample(examples, len(examples))
        return make_text_set(order, tasks, dense.tokenizer, group_by=recipe.training.group_by)

    train = shuffle_and_tokenize([*data.train.examples, *unlabelled_texts(data)])
    held_out = shuffle_and_tokenize(data.held_out.examples)
    judged = shuffle_and_tokenize(judged_texts(data).examples)
    inputs = PieceInputs(train, device)
    answers = all_logits(inputs, classifier, watch=watch, what="teacher")
    return PruneContext(
        settings,
        recipe,
        data,
        dense,
        plan.dense_texts,
        train,
        held_out,
        judged,
        teacher=Teacher(answers, settings.teacher),
        device=device,
        folder=plan.out,
        watch=watch,
        notes=plan.notes,
        unlabelled=make_text_set(plan.unlabelled, tasks, dense.tokenizer)
        if plan.unlabelled
        else None,
        reporting=None if plan.reporting is None else shuffle_and_tokenize(plan.reporting.examples),
    )
