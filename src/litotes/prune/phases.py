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
from litotes.prune.search import N_CHANGES, POWERS, Found, Search, first_texts, pruning_of
from litotes.text.packing import TextSet
from litotes.training.feeding import Feeder, feeder, freeze
from litotes.training.held_out import held_out_score
from litotes.training.loop import Loop, Surroundings
from litotes.training.preparing import Prepared
from litotes.training.processes import Processes
from litotes.training.recipe import Recipe
from litotes.training.sensitivity import head_sensitivity, heads_to_keep
from litotes.training.teacher import Teacher

LOWEST = 0.03
"""Share of the pieces that the boldest budgets of the exploring phase leave after the last layer.
"""


@dataclass(frozen=True)
class Work:
    """All that the phases share."""

    settings: PruneSettings
    recipe: Recipe
    prepared: Prepared
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


def explored(work: Work) -> Classifier:
    """The dense classifier without the heads it needs least, trained to bear budgets of all kinds."""
    classifier = deepcopy(work.dense.classifier)
    if work.settings.heads < 1:
        source = feeder(work.train, classifier, work.device, freeze_below=0)
        classifier.encoder = keep_heads(classifier.encoder, _heads(work, classifier, source))
    n_layers = len(classifier.encoder.spec.walk)
    lowest = [max(1 - (1 - LOWEST) * (layer + 1) / n_layers, LOWEST) for layer in range(n_layers)]
    options = {**work.settings.options, "shares": lowest, "explore": 1.0}
    classifier.encoder = rebuild_encoder(classifier.encoder, pruning="learned", pruning_options=options)
    return _trained(work, classifier, "explore", work.settings.epochs, validated=False)


def _heads(work: Work, classifier: Classifier, source: Feeder) -> list[list[int]]:
    """The attention heads to keep; once chosen they stay chosen, for other machines may tell near
    ties apart in another way.
    """
    file = work.folder / "phases" / f"heads-{work.key()}.json"
    if file.is_file():
        return list(json.loads(file.read_text("utf-8")))
    kept = heads_to_keep(head_sensitivity(classifier, source), work.settings.heads)
    write_json(file, kept)
    return kept


def settle(work: Work, start: Classifier, target: float, found: Found) -> Classifier:
    """The classifier trained with just the shares found for a target."""
    classifier = deepcopy(start)
    options = {**work.settings.options, "shares": list(found.shares)}
    classifier.encoder = rebuild_encoder(classifier.encoder, pruning_options=options)
    return _trained(
        work, classifier, f"settle-{target:g}", work.settings.settle_epochs, validated=True
    )


def search(work: Work, start: Classifier, target: float) -> Found:
    """The best shares for a target; those of a search that was done before are read back."""
    file = work.folder / "phases" / f"search-{target:g}-{work.key(target)}.json"
    if file.is_file():
        content = json.loads(file.read_text("utf-8"))
        return Found(tuple(content["shares"]), content["divergence"])
    classifier = deepcopy(start)
    some = feeder(
        first_texts(work.train, work.settings.n_searched), classifier, work.device, freeze_below=0
    )
    tries = Search(
        classifier, some, work.teacher, dense=work.dense.classifier, seed=work.settings.seed
    )
    found = tries.for_target(target, watch=partial(_searching, work.watch, target))
    write_json(file, asdict(found))
    return found


def _searching(watch: Watch, target: float, n_tried: int) -> None:
    watch(f"search {target:g}x", n_tried, len(POWERS) + N_CHANGES, "")


def _trained(
    work: Work, classifier: Classifier, phase: str, epochs: int, *, validated: bool
) -> Classifier:
    """Trains with the teacher; a phase that was done before is read back."""
    key = work.key(phase, epochs, pruning_of(classifier).shares, classifier.encoder.spec.heads_kept)
    folder = work.folder / "phases" / f"{phase}-{key}"
    weights = folder / "weights.safetensors"
    if weights.is_file():
        classifier.load_state_dict(read_tensors(weights))
        return classifier.eval()
    # what the dense run left as it was stays so: a small difference stays small
    freeze(classifier, work.recipe.training.freeze_below)
    training = work.recipe.training.model_copy(update={"epochs": epochs, "patience": epochs})
    held = feeder(work.held_out, classifier, work.device, freeze_below=0)
    validate = (
        partial(held_out_score, classifier, held, worst_group=training.selection == "worst_group")
        if validated
        else None
    )
    around = Surroundings(work.device, folder, key, Processes(), prefixed(work.watch, phase))
    folder.mkdir(parents=True, exist_ok=True)
    texts = feeder(work.train, classifier, work.device, freeze_below=0)
    loop = Loop(
        classifier,
        texts,
        training,
        seed=work.settings.seed,
        surroundings=around,
        validate=validate,
        teacher=work.teacher,
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
