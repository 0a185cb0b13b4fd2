"""Answers of models to texts that none of them has seen: the whole pruning, once more for each fold
of the training texts, without that fold.

A fold's models choose their epochs and thresholds by texts of the other folds. They start from
other seeds, so that what one training owes to luck shows. Only the shares per layer are those of
the model to be chosen, which were found without labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from safetensors.torch import save as to_bytes

from litotes.core.progress import prefix_watch
from litotes.core.storage import remove_folder, write_bytes
from litotes.core.values import Example
from litotes.data.corpus import Corpus
from litotes.data.folds import Folds, assign_folds
from litotes.encoder.packing import make_text_set
from litotes.encoder.weights import read_tensors
from litotes.pruning.candidates import Candidate, answer_texts, train_candidates
from litotes.pruning.context import PruneContext, make_context
from litotes.pruning.loss import Answers
from litotes.pruning.plan import PrunePlan, fold_texts
from litotes.pruning.search import FoundShares
from litotes.training.recipe import Recipe
from litotes.training.run import train
from litotes.training.training_data import prepare, unlabelled_texts


@dataclass(frozen=True)
class FoldAnswers:
    """What a fold's dense model and its candidates answer, {task: answers}; unlabelled: empty where
    there are no such texts.
    """

    labelled: Mapping[str, Answers]
    unlabelled: Mapping[str, Answers]


def cross_fit(
    context: PruneContext, plan: PrunePlan, candidates: Sequence[Candidate]
) -> list[FoldAnswers]:
    """The answers of every fold's models; a fold that was done before is read back."""
    n_folds = context.settings.folds
    if not n_folds:
        return []
    texts = fold_texts(context.dense, context.data)
    others = unlabelled_texts(context.data)
    seed = context.recipe.seed
    folds = assign_folds(texts, others, n_folds=n_folds, seed=seed)
    found = {one.target: one.found for one in candidates if one.kind == "pruned"}
    key = context.key("folds", n_folds, context.settings.settle_epochs, tuple(found.items()))
    extra = context.key(context.settings.control, plan.unlabelled)
    answers = []
    for fold in range(n_folds):
        file = context.phases / f"fold-{fold}-{key}-{extra}.safetensors"
        if not file.is_file():
            part = _FoldJob(context, plan, fold, texts, others, folds)
            write_bytes(file, _to_bytes(part.run(found)))
        answers.append(_from_tensors(read_tensors(file), list(context.dense.classifier.tasks)))
    return answers


@dataclass(frozen=True)
class _FoldJob:
    """One fold. texts: those in folds; others: without labels, for the teacher."""

    context: PruneContext
    plan: PrunePlan
    fold: int
    texts: Sequence[Example]
    others: Sequence[Example]
    folds: Folds

    def run(self, found: Mapping[float, FoundShares]) -> FoldAnswers:
        context = self.context
        folder = context.phases / f"fold-{self.fold}"
        watch = prefix_watch(context.watch, f"fold {self.fold + 1}")
        recipe, corpus = self._recipe(), self._corpus()
        device = str(context.device)
        run = train(
            recipe, folder / "dense", corpus=corpus, device=device, resume=True, watch=watch
        )
        data = prepare(recipe, corpus)
        settings = replace(context.settings, seed=context.settings.seed + 1 + self.fold)
        plan = replace(
            self.plan,
            settings=settings,
            recipe=recipe,
            data=data,
            dense=run.model,
            out=folder / "pruned",
            reporting=None,
        )
        fold_context = make_context(plan, device=context.device, watch=watch)
        candidates = train_candidates(fold_context, found)
        answers = self._answers(fold_context, candidates)
        remove_folder(folder)
        return answers

    def _recipe(self) -> Recipe:
        """The dense run's on texts that were already selected, cleaned and rewritten."""
        recipe = self.context.recipe
        return recipe.changed(
            seed=(recipe.seed + 1 + self.fold) % 2**32,
            training__reserved=0.0,
            data__labels={},
            data__avoid=[],
            data__rewrites=[],
            data__where={},
        )

    def _corpus(self) -> Corpus:
        train_texts = self.context.data.train
        kept = []
        for example, fold in zip(self.texts, self.folds.train, strict=True):
            if fold != self.fold:
                kept.append(example)
        for place, nearest in self.folds.others.items():
            if nearest != self.fold:
                kept.append(self.others[place])
        return replace(train_texts, examples=tuple(kept))

    def _answers(self, context: PruneContext, candidates: Sequence[Candidate]) -> FoldAnswers:
        pairs = zip(self.texts, self.folds.train, strict=True)
        own = [example for example, fold in pairs if fold == self.fold]
        tasks = list(context.dense.classifier.tasks.values())
        texts = make_text_set(own, tasks, context.dense.tokenizer)
        labelled = answer_texts(context, candidates, texts, labelled=True)
        if context.unlabelled is None:
            return FoldAnswers(labelled, {})
        more = answer_texts(context, candidates, context.unlabelled, labelled=False)
        return FoldAnswers(labelled, more)


def _to_bytes(answers: FoldAnswers) -> bytes:
    tensors = {}
    for part, by_task in (("labelled", answers.labelled), ("unlabelled", answers.unlabelled)):
        for task, given in by_task.items():
            values = {"labels": given.labels, "probabilities": given.probabilities}
            if given.gold is not None:
                values["gold"] = given.gold
            for name, array in values.items():
                tensors[f"{part}/{task}/{name}"] = torch.from_numpy(array).contiguous()
    return to_bytes(tensors)


def _from_tensors(tensors: Mapping[str, torch.Tensor], tasks: Sequence[str]) -> FoldAnswers:
    parts: dict[str, dict[str, Answers]] = {"labelled": {}, "unlabelled": {}}
    for part, by_task in parts.items():
        for task in tasks:
            start = f"{part}/{task}/"
            if f"{start}labels" not in tensors:
                continue
            gold = tensors.get(f"{start}gold")
            by_task[task] = Answers(
                None if gold is None else gold.numpy(),
                tensors[f"{start}labels"].numpy(),
                tensors[f"{start}probabilities"].numpy(),
            )
    return FoldAnswers(**parts)
