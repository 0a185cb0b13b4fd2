"""The phases of a pruning: heads leave for good, budgets are learned, searched for and settled; the
same once more for each fold of the training texts.

Every phase is known by a hash of all it depends on; one that was done before is read back, one that
was stopped goes on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from safetensors.torch import save as to_bytes

from litotes.core.json_text import read_as
from litotes.core.progress import prefix_watch
from litotes.core.storage import make_folder, remove_folder, write_bytes, write_json
from litotes.data.near_duplicates import Folds, assign_folds
from litotes.encoder.attention.pruning import Learned
from litotes.encoder.packing import TextSet, make_text_set
from litotes.encoder.pretrained import read_tensors
from litotes.encoder.reshaping import keep_heads, rebuild_encoder
from litotes.model.calibration import Calibration
from litotes.model.classifier import Classifier
from litotes.pruning.cost import flops
from litotes.pruning.frontier import Kind
from litotes.pruning.losses import Answers
from litotes.pruning.plan import PrunePlan
from litotes.training.checkpoints import Checkpoints
from litotes.training.classification import Classification
from litotes.training.held_out import fit_calibrations
from litotes.training.inputs import Inputs, all_logits, freeze
from litotes.training.losses import Teacher, has_label
from litotes.training.objective import RunContext
from litotes.training.recipe import Recipe
from litotes.training.run import train
from litotes.training.sensitivity import head_sensitivity, heads_to_keep
from litotes.training.trainer import Trainer
from litotes.training.training_data import prepare, unlabelled_texts

Result = TypeVar("Result")

LOWEST = 0.03
"""Share of the pieces that the boldest budgets of the exploring phase leave after the last layer.
"""
POWERS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
"""Shapes to begin a search with: what has left after layer l of L grows as (l / L)^p, so small p
lets pieces leave early.
"""
N_CHANGES = 14
SMALLEST = 0.02


@dataclass(frozen=True)
class FoundShares:
    """Shares for a target, and how far they move the answers."""

    shares: tuple[float, ...]
    divergence: float


@dataclass(frozen=True)
class Candidate:
    """A model to compare: the dense one, the control, or the classifier trained with the shares
    found for a target; with its calibration.
    """

    kind: Kind
    target: float
    found: FoundShares
    classifier: Classifier
    calibration: Mapping[str, Calibration]


def train_candidates(
    plan: PrunePlan, found: Mapping[float, FoundShares] | None = None
) -> list[Candidate]:
    """Trains what is compared with the dense model, which comes first: the control, and a setting
    for each target that can be told from the others.

    found: the shares of the targets where they need not be searched for.
    """
    dense, settings = plan.dense.classifier, plan.settings
    everything = FoundShares((1.0,) * len(dense.encoder.spec.walk), 0.0)
    candidates = [Candidate("dense", 1.0, everything, dense, plan.dense.calibration)]

    def add(kind: Kind, target: float, shares: FoundShares, classifier: Classifier) -> None:
        fitted = fit_calibrations(classifier, plan.inputs("held_out"), plan.recipe.training)
        candidates.append(Candidate(kind, target, shares, classifier.eval(), fitted))

    if settings.control:
        # trained on as long as the pruned ones, in the same two parts and with the same teacher:
        # what they gain by that is not due to pruning
        control = _train_phase(plan, deepcopy(dense), "control", settings.epochs)
        control = _train_phase(plan, control, "control-settle", settings.settle_epochs, judged=True)
        add("control", 1.0, everything, control)
    start = _explore(plan)
    if found is None:
        targets = sorted(set(settings.targets))
        searched = {target: _search(plan, start, target) for target in targets}
        # targets out of reach end in the same shares; the lowest stands for them
        different = {shares.shares: target for target, shares in reversed(searched.items())}
        found = {target: searched[target] for target in sorted(different.values())}
    for target, shares in found.items():
        classifier, options = deepcopy(start), {**settings.options, "shares": list(shares.shares)}
        classifier.encoder = rebuild_encoder(classifier.encoder, pruning_options=options)
        phase = f"settle-{target:g}"
        classifier = _train_phase(plan, classifier, phase, settings.settle_epochs, judged=True)
        add("pruned", target, shares, classifier)
    return candidates


def _explore(plan: PrunePlan) -> Classifier:
    """The dense classifier without the heads it needs least, trained to bear budgets of all kinds.

    For layer l of L the boldest budget leaves 1 − (1 − LOWEST) · l / L of the pieces.
    """
    classifier, settings = deepcopy(plan.dense.classifier), plan.settings
    if settings.heads < 1:

        def choose_heads() -> list[list[int]]:
            return heads_to_keep(head_sensitivity(classifier, plan.inputs("train")), settings.heads)

        # once chosen they stay chosen: another machine may decide near ties in another way
        kept = _read_or_compute(plan, f"heads-{plan.key()}", list[list[int]], choose_heads)
        classifier.encoder = keep_heads(classifier.encoder, kept)
    n_layers = len(classifier.encoder.spec.walk)
    lowest = [max(1 - (1 - LOWEST) * (layer + 1) / n_layers, LOWEST) for layer in range(n_layers)]
    options = {**settings.options, "shares": lowest, "explore": 1.0}
    classifier.encoder = rebuild_encoder(
        classifier.encoder, pruning="learned", pruning_options=options
    )
    return _train_phase(plan, classifier, "explore", settings.epochs)


def _search(plan: PrunePlan, start: Classifier, target: float) -> FoundShares:
    def search_now() -> FoundShares:
        settings, dense = plan.settings, plan.dense.classifier
        inputs = Inputs(first_texts(plan.texts["train"], settings.n_searched), plan.device)
        tries = Search(deepcopy(start), inputs, plan.teacher, dense=dense, seed=settings.seed)
        n_tries, what = len(POWERS) + N_CHANGES, f"search {target:g}x"
        return tries.for_target(target, watch=lambda done: plan.watch(what, done, n_tries, ""))

    name = f"search-{target:g}-{plan.key(target)}"
    return _read_or_compute(plan, name, FoundShares, search_now)


def _train_phase(
    plan: PrunePlan, classifier: Classifier, phase: str, epochs: int, *, judged: bool = False
) -> Classifier:
    """Trains with the teacher; the weights of a phase that was done before are read back.

    judged: whether held-out texts choose the epoch.
    """
    spec = classifier.encoder.spec
    shares = None if spec.pruning == "none" else _learned_pruning(classifier).shares
    key = plan.key(phase, epochs, shares, spec.heads_kept)
    folder = plan.phases / f"{phase}-{key}"
    weights = folder / "weights.safetensors"
    if weights.is_file():
        classifier.load_state_dict(read_tensors(weights))
        return classifier.eval()
    make_folder(folder)
    run = RunContext(plan.device, folder, key, watch=prefix_watch(plan.watch, phase))
    # what the dense run left as it was stays so: a small difference stays small
    freeze(classifier, plan.recipe.training.freeze_below)
    settings = plan.recipe.training.model_copy(update={"epochs": epochs, "patience": epochs})
    objective = Classification(
        classifier,
        plan.inputs("train"),
        settings,
        run,
        seed=plan.settings.seed,
        held_out=plan.inputs("held_out") if judged else None,
        teacher=plan.teacher,
    )
    Trainer(objective, run).run(resume=True)
    state = classifier.state_dict()
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}
    write_bytes(weights, to_bytes(tensors))
    Checkpoints(folder / "checkpoints", key=key).clear()
    return classifier.eval()


def _read_or_compute(
    plan: PrunePlan, name: str, kind: type[Result], compute: Callable[[], Result]
) -> Result:
    """Returns what `compute` gives, of this kind; reads it back if it was computed before."""
    file = plan.phases / f"{name}.json"
    if not file.is_file():
        result = compute()
        write_json(file, asdict(result) if isinstance(result, FoundShares) else result)
    return read_as(file, kind, advice="Delete it to compute it again.")


class Search:
    """Tries which shares of the pieces should go on after each layer, for a given saving, on a
    classifier whose pruning is `learned` and which was trained to bear many of them.

    For a target (so many times fewer operations than `dense`) every candidate is a shape, how early
    pieces leave, scaled until the operations counted on real lengths meet the target. The best of a
    few plain shapes is then changed layer by layer. What counts is how far the answers move from
    the teacher's, mean KL over training texts: that needs no labels, and leaves the held-out ones
    for the choice between targets.
    """

    def __init__(
        self,
        classifier: Classifier,
        inputs: Inputs,
        teacher: Teacher,
        *,
        dense: Classifier,
        seed: int,
    ) -> None:
        self.classifier, self.inputs, self.teacher = classifier, inputs, teacher
        self.random = random.Random(seed)
        self.pruning = _learned_pruning(classifier)
        self.dense = count_operations(dense, inputs.texts)

    def for_target(self, ratio: float, *, watch: Callable[[int], None]) -> FoundShares:
        """Finds the best shares that save `ratio` times the operations."""
        n_layers = self.pruning.n_layers
        tried = []
        for number, power in enumerate(POWERS, start=1):
            shape = [((layer + 1) / n_layers) ** power for layer in range(n_layers)]
            tried.append((self._try(shape, ratio), shape))
            watch(number)
        best, shape = min(tried, key=lambda pair: pair[0].divergence)
        for number in range(N_CHANGES):
            other = self._change(shape)
            found = self._try(other, ratio)
            if found.divergence < best.divergence:
                best, shape = found, other
            watch(len(POWERS) + number + 1)
        return best

    def _change(self, shape: Sequence[float]) -> list[float]:
        """Lets more or fewer pieces leave at one layer and after it."""
        layer = self.random.randrange(len(shape))
        gone = list(shape)
        gone[layer] *= self.random.choice((0.5, 0.75, 1.33, 2.0))
        return [max(gone[: place + 1]) for place in range(len(gone))]

    def _try(self, shape: Sequence[float], ratio: float) -> FoundShares:
        shares = self._scale(shape, ratio)
        self.pruning.shares = shares
        distances = []
        for task, logits in all_logits(self.inputs, self.classifier).items():
            wanted = self.teacher.logits[task][: len(logits)]
            distances.append(self.teacher.differences(logits, wanted).mean())
        return FoundShares(shares, float(torch.stack(distances).mean()))

    def _scale(self, shape: Sequence[float], ratio: float) -> tuple[float, ...]:
        """The shares of this shape that just reach the target; as few as possible where it cannot
        be reached.
        """

        def shares(scale: float) -> tuple[float, ...]:
            return tuple(round(max(1 - scale * value, SMALLEST), 3) for value in shape)

        low, high = 0.0, 1.0 / max(min(value for value in shape if value), 1e-3)
        for _ in range(18):
            middle = (low + high) / 2
            self.pruning.shares = shares(middle)
            if self.dense / count_operations(self.classifier, self.inputs.texts) < ratio:
                low = middle
            else:
                high = middle
        return shares(high)


def _learned_pruning(classifier: Classifier) -> Learned:
    pruning = classifier.encoder.pruning
    assert isinstance(pruning, Learned)
    return pruning


def first_texts(texts: TextSet, n: int) -> TextSet:
    """The first texts of a set."""
    targets = {task: values[:n] for task, values in texts.targets.items()}
    return TextSet(texts.pieces[:n], targets, texts.groups[:n], texts.group_names)


def count_operations(classifier: Classifier, texts: TextSet) -> int:
    return flops(classifier.encoder, texts.lengths, firsts_only=classifier.firsts_only).total


def answer_texts(
    plan: PrunePlan, candidates: Sequence[Candidate], part: TextSet, *, labelled: bool = True
) -> dict[str, Answers]:
    """The answers of every candidate, under its own temperature and threshold, to the texts that
    have a label for a task, or to all; {task: answers}, numbers left out.
    """
    inputs, answers = Inputs(part, plan.device), {}
    logits = [all_logits(inputs, one.classifier) for one in candidates]
    for name, task in plan.dense.classifier.tasks.items():
        if task.is_regression:
            continue
        gold = part.targets[name]
        chosen = has_label(gold) if labelled else slice(None)
        given = [
            one.calibration.get(name, Calibration()).apply(values[name][chosen].numpy())
            for one, values in zip(candidates, logits, strict=True)
        ]
        labels, probabilities = map(np.array, zip(*given, strict=True))
        answers[name] = Answers(gold[chosen].numpy() if labelled else None, labels, probabilities)
    return answers


@dataclass(frozen=True)
class FoldAnswers:
    """The answers of a fold's dense model and its candidates, {task: answers}; unlabelled: empty
    where there are no such texts.
    """

    labelled: Mapping[str, Answers]
    unlabelled: Mapping[str, Answers]

    def tensors(self) -> dict[str, torch.Tensor]:
        """{part/task/what: answers}"""
        return {
            f"{part}/{task}/{name}": torch.from_numpy(array).contiguous()
            for part, by_task in vars(self).items()
            for task, given in by_task.items()
            for name, array in vars(given).items()
            if array is not None
        }

    @classmethod
    def of(cls, tensors: Mapping[str, torch.Tensor]) -> FoldAnswers:
        found: dict[str, dict[str, dict[str, Any]]] = {"labelled": {}, "unlabelled": {}}
        for place, tensor in tensors.items():
            part, task, name = place.split("/")
            found[part].setdefault(task, {"gold": None})[name] = tensor.numpy()
        parts = {
            part: {task: Answers(**arrays) for task, arrays in by_task.items()}
            for part, by_task in found.items()
        }
        return cls(**parts)


def cross_fit(plan: PrunePlan, candidates: Sequence[Candidate]) -> list[FoldAnswers]:
    """Answers of models to texts that none of them has seen: the whole pruning, once more for each
    fold of the training texts, without that fold; one that was done before is read back.

    A fold's models choose their epochs and thresholds by texts of the other folds. They start from
    other seeds, so that what one training owes to luck shows. Only the shares per layer are those
    of the model to be chosen, which were found without labels.
    """
    n_folds, settings = plan.settings.folds, plan.settings
    if not n_folds:
        return []
    others = unlabelled_texts(plan.data)
    folds = assign_folds(plan.fold_texts, others, n_folds=n_folds, seed=plan.recipe.seed)
    found = {one.target: one.found for one in candidates if one.kind == "pruned"}
    key = plan.key("folds", n_folds, settings.settle_epochs, tuple(found.items()))
    extra = plan.key(settings.control, plan.unlabelled)
    answers = []
    for fold in range(n_folds):
        file = plan.phases / f"fold-{fold}-{key}-{extra}.safetensors"
        if not file.is_file():
            write_bytes(file, to_bytes(_answer_fold(plan, fold, folds, found).tensors()))
        answers.append(FoldAnswers.of(read_tensors(file)))
    return answers


def _answer_fold(
    plan: PrunePlan, fold: int, folds: Folds, found: Mapping[float, FoundShares]
) -> FoldAnswers:
    """Trains the models of one fold and asks them."""
    folder, settings = plan.phases / f"fold-{fold}", plan.settings
    watch = prefix_watch(plan.watch, f"fold {fold + 1}")
    dealt = list(zip(plan.fold_texts, folds.train, strict=True))
    others = unlabelled_texts(plan.data)
    kept = [example for example, own in dealt if own != fold]
    kept += [others[place] for place, nearest in folds.others.items() if nearest != fold]
    recipe = fold_recipe(plan.recipe, fold)
    corpus = replace(plan.data.train, examples=tuple(kept))
    run = train(
        recipe,
        folder / "dense",
        corpus=corpus,
        device=str(plan.device),
        resume=True,
        watch=watch,
    )
    run.model.classifier.to(plan.device)
    fold_plan = replace(
        plan,
        settings=replace(settings, seed=settings.seed + 1 + fold),
        recipe=recipe,
        data=prepare(recipe, corpus),
        dense=run.model,
        out=folder / "pruned",
        reporting=None,
        watch=watch,
    )
    candidates = train_candidates(fold_plan, found)
    tasks, tokenizer = list(run.model.classifier.tasks.values()), run.model.tokenizer
    own_texts = make_text_set([one for one, own in dealt if own == fold], tasks, tokenizer)
    labelled, unlabelled = answer_texts(fold_plan, candidates, own_texts), {}
    if plan.unlabelled:
        more = fold_plan.texts["unlabelled"]
        unlabelled = answer_texts(fold_plan, candidates, more, labelled=False)
    remove_folder(folder)
    return FoldAnswers(labelled, unlabelled)


def fold_recipe(recipe: Recipe, fold: int) -> Recipe:
    """The dense run's recipe for texts that were already selected, cleaned and rewritten."""
    return recipe.changed(
        seed=(recipe.seed + 1 + fold) % 2**32,
        training__reserved=0.0,
        data__labels={},
        data__avoid=[],
        data__rewrites=[],
        data__where={},
    )
