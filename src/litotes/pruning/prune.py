"""From a dense model to the fastest pruned one within a loss: fewer attention heads, budgets
learned, searched, settled, measured.

dense model → heads that its answers hang on least leave for good → training with budgets drawn at
every step (length drop), the dense model as teacher → for each target a search for the best shares
per layer → a few epochs with just those → loss on held-out texts, with its interval, and time
against the dense model → the fastest one within the loss → model folder, frontier.json

The dense model's epoch was chosen by its held-out texts, so it looks better on them than it is, and
every loss on them too large. Texts that its training never saw (`training.reserved`) judge fairly;
they do where there are any.
"""

from __future__ import annotations

from pathlib import Path

from litotes.core.device import choose_device
from litotes.core.progress import Watch, ignore_progress
from litotes.core.staging import clear_staged
from litotes.core.storage import locked
from litotes.pruning.choice import Setting, choose
from litotes.pruning.context import PruneContext, make_context
from litotes.pruning.phases import explore, search, settle
from litotes.pruning.plan import PrunePlan, plan_pruning
from litotes.pruning.result import PruneResult, PruneSettings


def prune(
    run: Path,
    source: str,
    out: Path,
    *,
    settings: PruneSettings | None = None,
    device: str | None = None,
    watch: Watch = ignore_progress,
) -> PruneResult:
    """Prunes the model of the folder `run` for the texts of `source` into `out`; a stopped one goes
    on where it was.
    """
    plan = plan_pruning(run, source, out, settings=settings or PruneSettings())
    return carry_out(plan, device=device, watch=watch)


def carry_out(
    plan: PrunePlan, *, device: str | None = None, watch: Watch = ignore_progress
) -> PruneResult:
    with locked(plan.out):
        context = make_context(plan, device=choose_device(device), watch=watch)
        clear_staged(context.phases, below=True)
        return choose(context, _train_settings(context))


def _train_settings(context: PruneContext) -> list[Setting]:
    """A trained setting for each target that can be told from the others."""
    start = explore(context)
    targets = sorted(set(context.settings.targets))
    found = {target: search(context, start, target) for target in targets}
    # targets out of reach end in the same shares; the lowest stands for them
    different = {shares.shares: target for target, shares in reversed(found.items())}
    settings = []
    for target in sorted(different.values()):
        classifier = settle(context, start, target, found[target])
        settings.append(Setting(target, found[target], classifier))
    return settings
