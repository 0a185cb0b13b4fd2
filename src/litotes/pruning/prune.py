"""From a dense model to the fastest pruned one within a loss: fewer attention heads, budgets
learned, searched, settled, measured.

dense model → heads that its answers hang on least leave for good → training with budgets drawn at
every step (length drop), the dense model as teacher → for each target a search for the best shares
per layer → a few epochs with just those → the same with each fold of the training texts left out,
if asked → the loss on texts kept apart and out of fold, and from both the loss to be expected → the
fastest one expected to be within the budget → model folder, frontier.json

The dense model's epoch was chosen by its held-out texts, so it looks better on them than it is, and
every loss on them too large. Texts that its training never saw (`training.reserved`) judge fairly;
they do where there are any.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from litotes.core.machine import choose_device
from litotes.core.progress import Watch, ignore_progress
from litotes.core.storage import clear_staged, locked
from litotes.pruning.candidates import train_candidates
from litotes.pruning.choice import choose
from litotes.pruning.context import make_context
from litotes.pruning.cross_fitting import cross_fit
from litotes.pruning.plan import PrunePlan, plan_pruning
from litotes.pruning.result import PruneResult, PruneSettings


def prune(
    run: str | Path,
    source: str,
    out: Path,
    *,
    settings: PruneSettings | None = None,
    avoid: Sequence[str] | None = None,
    device: str | None = None,
    watch: Watch = ignore_progress,
) -> PruneResult:
    """Prunes the model of the folder `run`, or a built-in one by its name, for the texts of
    `source` into `out`; a stopped one goes on where it was. avoid: as in `plan_pruning`.
    """
    plan = plan_pruning(run, source, out, settings=settings or PruneSettings(), avoid=avoid)
    return carry_out(plan, device=device, watch=watch)


def carry_out(
    plan: PrunePlan, *, device: str | None = None, watch: Watch = ignore_progress
) -> PruneResult:
    with locked(plan.out):
        context = make_context(plan, device=choose_device(device), watch=watch)
        clear_staged(context.phases, below=True)
        candidates = train_candidates(context)
        folds = cross_fit(context, plan, candidates)
        return choose(context, candidates, folds)
