"""The phases of pruning: heads leave for good, budgets are learned, searched for and settled.

Every phase is known by a hash of all it depends on; one that was done before is read back, one that
was stopped goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict
from functools import partial
from typing import TypeVar

from safetensors.torch import save as to_bytes

from litotes.core.json_text import read_as
from litotes.core.progress import Watch, prefix_watch
from litotes.core.storage import make_folder, write_bytes, write_json
from litotes.encoder.reshaping import keep_heads, rebuild_encoder
from litotes.encoder.weights import read_tensors
from litotes.model.classifier import Classifier
from litotes.pruning.context import PruneContext
from litotes.pruning.search import (
    N_CHANGES,
    POWERS,
    FoundShares,
    Search,
    first_texts,
    learned_pruning,
)
from litotes.training.checkpoints import Checkpoints
from litotes.training.classification import train_classifier
from litotes.training.held_out import held_out_score
from litotes.training.inputs import PieceInputs, freeze
from litotes.training.processes import Processes
from litotes.training.sensitivity import head_sensitivity, heads_to_keep
from litotes.training.trainer import RunContext

Result = TypeVar("Result")

LOWEST = 0.03
"""Share of the pieces that the boldest budgets of the exploring phase leave after the last layer.
"""


def explore(context: PruneContext) -> Classifier:
    """The dense classifier without the heads it needs least, trained to bear budgets of all kinds.

    For layer l of L the boldest budget leaves 1 − (1 − LOWEST) · l / L of the pieces.
    """
    classifier = deepcopy(context.dense.classifier)
    if context.settings.heads < 1:
        classifier.encoder = keep_heads(classifier.encoder, _choose_heads(context, classifier))
    n_layers = len(classifier.encoder.spec.walk)
    lowest = [max(1 - (1 - LOWEST) * (layer + 1) / n_layers, LOWEST) for layer in range(n_layers)]
    options = {**context.settings.options, "shares": lowest, "explore": 1.0}
    classifier.encoder = rebuild_encoder(
        classifier.encoder, pruning="learned", pruning_options=options
    )
    return _train_phase(context, classifier, "explore", context.settings.epochs, validated=False)


def _choose_heads(context: PruneContext, classifier: Classifier) -> list[list[int]]:
    """The attention heads to keep.

    Once chosen they stay chosen: another machine may decide near ties in another way.
    """

    def choose() -> list[list[int]]:
        sensitivity = head_sensitivity(classifier, PieceInputs(context.train, context.device))
        return heads_to_keep(sensitivity, context.settings.heads)

    return _read_or_compute(context, f"heads-{context.key()}", list[list[int]], choose)


def search(context: PruneContext, start: Classifier, target: float) -> FoundShares:
    """The best shares for a target."""

    def search_now() -> FoundShares:
        classifier, settings = deepcopy(start), context.settings
        inputs = PieceInputs(first_texts(context.train, settings.n_searched), context.device)
        dense = context.dense.classifier
        tries = Search(classifier, inputs, context.teacher, dense=dense, seed=settings.seed)
        watch = partial(_watch_search, context.watch, target)
        return tries.for_target(target, watch=watch)

    name = f"search-{target:g}-{context.key(target)}"
    return _read_or_compute(context, name, FoundShares, search_now)


def _watch_search(watch: Watch, target: float, n_tried: int) -> None:
    watch(f"search {target:g}x", n_tried, len(POWERS) + N_CHANGES, "")


def _read_or_compute(
    context: PruneContext, name: str, kind: type[Result], compute: Callable[[], Result]
) -> Result:
    """What `compute` gives, of this kind; read back if it was computed before."""
    file = context.phases / f"{name}.json"
    if not file.is_file():
        result = compute()
        write_json(file, asdict(result) if isinstance(result, FoundShares) else result)
    return read_as(file, kind, advice="Delete it to compute it again.")


def settle(
    context: PruneContext, start: Classifier, target: float, found: FoundShares
) -> Classifier:
    """The classifier trained with just the shares found for a target."""
    classifier = deepcopy(start)
    options = {**context.settings.options, "shares": list(found.shares)}
    classifier.encoder = rebuild_encoder(classifier.encoder, pruning_options=options)
    epochs = context.settings.settle_epochs
    return _train_phase(context, classifier, f"settle-{target:g}", epochs, validated=True)


def train_control(context: PruneContext) -> Classifier:
    """The dense classifier trained on as long as the pruned ones, in the same two parts and with
    the same teacher: what they gain by that is not due to pruning.
    """
    classifier, settings = deepcopy(context.dense.classifier), context.settings
    classifier = _train_phase(context, classifier, "control", settings.epochs, validated=False)
    epochs = settings.settle_epochs
    return _train_phase(context, classifier, "control-settle", epochs, validated=True)


def _train_phase(
    context: PruneContext, classifier: Classifier, phase: str, epochs: int, *, validated: bool
) -> Classifier:
    """Trains with the teacher; the weights of a phase that was done before are read back."""
    spec = classifier.encoder.spec
    shares = None if spec.pruning == "none" else learned_pruning(classifier).shares
    key = context.key(phase, epochs, shares, spec.heads_kept)
    folder = context.phases / f"{phase}-{key}"
    weights = folder / "weights.safetensors"
    if weights.is_file():
        classifier.load_state_dict(read_tensors(weights))
        return classifier.eval()
    make_folder(folder)
    run = RunContext(context.device, folder, key, Processes(), prefix_watch(context.watch, phase))
    # what the dense run left as it was stays so: a small difference stays small
    freeze(classifier, context.recipe.training.freeze_below)
    settings = context.recipe.training.model_copy(update={"epochs": epochs, "patience": epochs})
    validate = None
    if validated:
        held_out = PieceInputs(context.held_out, context.device)
        by_worst_group = settings.selection == "worst_group"
        validate = partial(held_out_score, classifier, held_out, worst_group=by_worst_group)
    train_classifier(
        classifier,
        PieceInputs(context.train, context.device),
        settings,
        seed=context.settings.seed,
        context=run,
        validate=validate,
        teacher=context.teacher,
        resume=True,
    )
    write_bytes(weights, _weights_of(classifier))
    Checkpoints(folder / "checkpoints", key=key).clear()
    return classifier.eval()


def _weights_of(classifier: Classifier) -> bytes:
    tensors = {}
    for name, tensor in classifier.state_dict().items():
        tensors[name] = tensor.detach().cpu().contiguous()
    return to_bytes(tensors)
