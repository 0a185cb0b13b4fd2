"""The phases of pruning: heads leave for good, budgets are learned, searched for and settled.

Every phase is known by a hash of all it depends on; one that was done before is read back, one that
was stopped goes on.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path

import torch

from litotes.core.progress import Watch, prefixed
from litotes.core.storage import write_bytes, write_json
from litotes.encoders.reshaping import keep_heads, rebuild_encoder
from litotes.encoders.weights import read_tensors
from litotes.model.checkpoint import Model
from litotes.model.classifier import Classifier
from litotes.prune.result import PruneSettings
from litotes.prune.search import (
    N_CHANGES,
    POWERS,
    FoundShares,
    Search,
    first_texts,
    learned_pruning,
)
from litotes.text.packing import TextSet
from litotes.training.held_out import held_out_score
from litotes.training.inputs import Inputs, freeze, make_inputs
from litotes.training.loop import Loop, RunContext
from litotes.training.processes import Processes
from litotes.training.recipe import Recipe
from litotes.training.sensitivity import head_sensitivity, heads_to_keep
from litotes.training.teacher import Teacher
from litotes.training.training_data import TrainingData

LOWEST = 0.03
"""Share of the pieces that the boldest budgets of the exploring phase leave after the last layer.
"""


@dataclass(frozen=True)
class PruneContext:
    """All that the phases share."""

    settings: PruneSettings
    recipe: Recipe
    prepared: TrainingData
    dense: Model
    train: TextSet
    held_out: TextSet  # chooses epochs
    judged: TextSet  # chooses the pruning
    teacher: Teacher
    device: torch.device
    folder: Path
    watch: Watch

    def key(self, *more: object) -> str:
        """A name for what a phase depends on: a phase found under it need not be done again."""
        # what the phases themselves do not depend on
        chosen_by = {"loss", "sure", "targets", "settle_epochs"}
        settings = {
            name: value for name, value in vars(self.settings).items() if name not in chosen_by
        }
        parts = (
            self.recipe.key(),
            self.prepared.fingerprint(),
            self.dense.facts["key"],
            settings,
            more,
        )
        return sha256(repr(parts).encode()).hexdigest()[:12]


def explore(context: PruneContext) -> Classifier:
    """The dense classifier without the heads it needs least, trained to bear budgets of all kinds."""
    classifier = deepcopy(context.dense.classifier)
    if context.settings.heads < 1:
        source = make_inputs(context.train, classifier, context.device, freeze_below=0)
        classifier.encoder = keep_heads(classifier.encoder, _heads(context, classifier, source))
    n_layers = len(classifier.encoder.spec.walk)
    lowest = [max(1 - (1 - LOWEST) * (layer + 1) / n_layers, LOWEST) for layer in range(n_layers)]
    options = {**context.settings.options, "shares": lowest, "explore": 1.0}
    classifier.encoder = rebuild_encoder(
        classifier.encoder, pruning="learned", pruning_options=options
    )
    return _trained(context, classifier, "explore", context.settings.epochs, validated=False)


def _heads(context: PruneContext, classifier: Classifier, source: Inputs) -> list[list[int]]:
    """The attention heads to keep; once chosen they stay chosen, for other machines may tell near
    ties apart in another way.
    """
    file = context.folder / "phases" / f"heads-{context.key()}.json"
    if file.is_file():
        return list(json.loads(file.read_text("utf-8")))
    kept = heads_to_keep(head_sensitivity(classifier, source), context.settings.heads)
    write_json(file, kept)
    return kept


def settle(
    context: PruneContext, start: Classifier, target: float, found: FoundShares
) -> Classifier:
    """The classifier trained with just the shares found for a target."""
    classifier = deepcopy(start)
    options = {**context.settings.options, "shares": list(found.shares)}
    classifier.encoder = rebuild_encoder(classifier.encoder, pruning_options=options)
    return _trained(
        context, classifier, f"settle-{target:g}", context.settings.settle_epochs, validated=True
    )


def search(context: PruneContext, start: Classifier, target: float) -> FoundShares:
    """The best shares for a target; those of a search that was done before are read back."""
    file = context.folder / "phases" / f"search-{target:g}-{context.key(target)}.json"
    if file.is_file():
        content = json.loads(file.read_text("utf-8"))
        return FoundShares(tuple(content["shares"]), content["divergence"])
    classifier = deepcopy(start)
    some = make_inputs(
        first_texts(context.train, context.settings.n_searched),
        classifier,
        context.device,
        freeze_below=0,
    )
    tries = Search(
        classifier,
        some,
        context.teacher,
        dense=context.dense.classifier,
        seed=context.settings.seed,
    )
    found = tries.for_target(target, watch=partial(_searching, context.watch, target))
    write_json(file, asdict(found))
    return found


def _searching(watch: Watch, target: float, n_tried: int) -> None:
    watch(f"search {target:g}x", n_tried, len(POWERS) + N_CHANGES, "")


def _trained(
    context: PruneContext, classifier: Classifier, phase: str, epochs: int, *, validated: bool
) -> Classifier:
    """Trains with the teacher; a phase that was done before is read back."""
    key = context.key(
        phase, epochs, learned_pruning(classifier).shares, classifier.encoder.spec.heads_kept
    )
    folder = context.folder / "phases" / f"{phase}-{key}"
    weights = folder / "weights.safetensors"
    if weights.is_file():
        classifier.load_state_dict(read_tensors(weights))
        return classifier.eval()
    # what the dense run left as it was stays so: a small difference stays small
    freeze(classifier, context.recipe.training.freeze_below)
    training = context.recipe.training.model_copy(update={"epochs": epochs, "patience": epochs})
    held = make_inputs(context.held_out, classifier, context.device, freeze_below=0)
    validate = (
        partial(held_out_score, classifier, held, worst_group=training.selection == "worst_group")
        if validated
        else None
    )
    run = RunContext(context.device, folder, key, Processes(), prefixed(context.watch, phase))
    folder.mkdir(parents=True, exist_ok=True)
    texts = make_inputs(context.train, classifier, context.device, freeze_below=0)
    loop = Loop(
        classifier,
        texts,
        training,
        seed=context.settings.seed,
        context=run,
        validate=validate,
        teacher=context.teacher,
    )
    loop.resume()
    loop.run()
    write_bytes(weights, _as_bytes(classifier))
    loop.checkpoints.clear()
    return classifier.eval()


def _as_bytes(classifier: Classifier) -> bytes:
    from safetensors.torch import save

    return save(
        {
            name: tensor.detach().cpu().contiguous()
            for name, tensor in classifier.state_dict().items()
        }
    )
