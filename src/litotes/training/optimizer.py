"""Adam and AdamW with a warm-up; biases and norms are not decayed."""

from __future__ import annotations

from torch.optim import Adam, AdamW, Optimizer

from litotes.classifier import Classifier
from litotes.training.settings import TrainingSettings

OPTIMIZERS: dict[str, type[Adam] | type[AdamW]] = {"adamw": AdamW, "adam": Adam}


def make_optimizer(classifier: Classifier, settings: TrainingSettings) -> Optimizer:
    """Parameters in four groups: encoder or heads, decayed or not. `base_rate` is a group's rate at the top of the schedule."""
    rates = {"encoder": settings.learning_rate, "heads": settings.head_learning_rate or settings.learning_rate}
    groups = []
    for part, rate in rates.items():
        parameters = [p for name, p in classifier.named_parameters() if name.startswith(f"{part}.") and p.requires_grad]
        for decayed in (True, False):
            chosen = [p for p in parameters if (p.ndim > 1) == decayed]
            if chosen:
                groups.append({"params": chosen, "lr": rate, "base_rate": rate, "weight_decay": settings.weight_decay if decayed else 0.0})
    return OPTIMIZERS[settings.optimizer](groups, lr=settings.learning_rate)


def set_rate(optimizer: Optimizer, settings: TrainingSettings, *, step: int, n_steps: int) -> None:
    """Sets the learning rate of step `step` (from 0) of `n_steps`; a pure function of the step, so resuming needs no state."""
    factor = rate_factor(settings, step=step, n_steps=n_steps)
    for group in optimizer.param_groups:
        group["lr"] = group["base_rate"] * factor


def rate_factor(settings: TrainingSettings, *, step: int, n_steps: int) -> float:
    n_warmup = int(settings.warmup_share * n_steps)
    if step < n_warmup:
        return (step + 1) / n_warmup
    if settings.schedule == "constant":
        return 1.0
    return (n_steps - step) / (n_steps - n_warmup)
