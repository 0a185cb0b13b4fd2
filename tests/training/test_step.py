"""A step in parts, or with activations computed again, is the step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_models import KINDS, TEXTS
from torch import Tensor

from litotes.core.errors import UserError
from litotes.core.values import MISSING, Task
from litotes.encoder import pretrained
from litotes.encoder.packing import TextSet
from litotes.model.classifier import Classifier
from litotes.training.balancing import BALANCINGS
from litotes.training.classification import Classification
from litotes.training.inputs import Inputs
from litotes.training.objective import RunContext
from litotes.training.recipe import TrainingSettings
from litotes.training.trainer import Trainer

TASKS = (Task("mood", ("bad", "good")), Task("stars", ()))


def objective_of(
    encoder: Path,
    *,
    choices: dict[str, Any] | None = None,
    head: str = "mean",
    **settings: Any,
) -> Classification:
    """Of four texts, one without a label of each task, in one batch."""
    choices = {"dropout": 0.0, "attention_dropout": 0.0} | (choices or {})
    loaded = pretrained.load(str(encoder), **choices)
    torch.manual_seed(1)
    classifier = Classifier(loaded.encoder, TASKS, head=head, dropout=0.0)
    targets = {
        "mood": torch.tensor([0, 1, MISSING, 1]),
        "stars": torch.tensor([1.0, float("nan"), 3.0, 0.5]),
    }
    groups = torch.tensor([0, 1, 0, 1])
    texts = TextSet(loaded.tokenizer.encode(TEXTS), targets, groups, ("here", "there"))
    chosen = TrainingSettings(**({"epochs": 1, "max_gradient_norm": 0.0} | settings))
    context = RunContext(torch.device("cpu"), Path())
    return Classification(classifier, Inputs(texts, context.device), chosen, context, seed=0)


def gradients_of(objective: Classification) -> tuple[float, dict[str, Tensor]]:
    """The loss and the gradients of one step."""
    objective.model.train()
    torch.manual_seed(0)
    loss = objective.take_step(range(len(TEXTS)), 0)
    gradients = {
        name: parameter.grad
        for name, parameter in objective.tensors.parameters.items()
        if parameter.grad is not None
    }
    return float(loss), gradients


def assert_same_step(found: Classification, expected: Classification, *, tolerance: float) -> None:
    loss, gradients = gradients_of(found)
    expected_loss, expected_gradients = gradients_of(expected)
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    assert set(gradients) == set(expected_gradients)
    for name, gradient in expected_gradients.items():
        torch.testing.assert_close(
            gradients[name], gradient, atol=tolerance, rtol=1e-4, msg=lambda m, name=name: name + m
        )


@pytest.mark.parametrize("balancing", sorted(BALANCINGS))
@pytest.mark.parametrize("limit", [1, 40])
def test_a_step_in_parts_is_the_whole_step(
    balancing: str, limit: int, tiny_folder: Path, tmp_path: Path
) -> None:
    """limit 1: each text alone; 40: two and two."""
    whole = objective_of(tiny_folder, balancing=balancing)
    divided = objective_of(tiny_folder, balancing=balancing, pieces_at_once=limit)
    n_parts = {1: 4, 40: 2}[limit]
    assert len(divided.divide(range(len(TEXTS)), divided.lengths)) == n_parts
    assert_same_step(divided, whole, tolerance=1e-6)


def test_parts_hold_at_most_so_many_pieces(tiny_folder: Path, tmp_path: Path) -> None:
    objective = objective_of(tiny_folder, pieces_at_once=40)
    lengths = objective.inputs.texts.lengths
    parts = objective.divide([3, 0, 1, 2], lengths)
    assert [place for part in parts for place in part] == [3, 0, 1, 2]
    for part in parts:
        assert len(part) == 1 or sum(lengths[place] for place in part) <= 40


def test_groups_that_need_the_whole_batch_refuse_parts(tiny_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"pieces_at_once.*group_dro"):
        objective_of(tiny_folder, groups="group_dro", pieces_at_once=40)


@pytest.mark.parametrize("dropout", [0.0, 0.2])
@pytest.mark.parametrize("kind", ["dense", "sparse", "cascade", "fused", "restored"])
def test_activations_computed_again_give_the_same_gradients(
    kind: str, dropout: float, tiny_folder: Path, tmp_path: Path
) -> None:
    choices = KINDS[kind] | {"dropout": dropout, "attention_dropout": dropout}
    kept = objective_of(tiny_folder, choices=choices)
    again = objective_of(tiny_folder, choices=choices, recompute_activations=True)
    assert_same_step(again, kept, tolerance=1e-6)


def test_recomputing_keeps_less_and_ends_with_the_run(tiny_folder: Path, tmp_path: Path) -> None:
    n_kept = {}
    for again in (False, True):
        objective = objective_of(tiny_folder, recompute_activations=again)
        kept: list[int] = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t, k=kept: keep(t, k), lambda t: t):
            objective.take_step(range(len(TEXTS)), 0)
        n_kept[again] = len(kept)
        Trainer(objective, RunContext(objective.device, tmp_path)).run()
        assert not objective.classifier.encoder.recomputes
    assert n_kept[True] < n_kept[False] / 2


def keep(tensor: Tensor, kept: list[int]) -> Tensor:
    kept.append(tensor.numel())
    return tensor


@pytest.mark.parametrize("was_enabled", [True, False])
def test_a_run_leaves_onednn_as_it_was(
    was_enabled: bool, tmp_path: Path, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As torch does after a bfloat16 product that the processor does not have, a step switches it
    off; here another step switches it on.
    """
    objective = objective_of(tiny_folder)
    take_step = objective.take_step

    def switch_and_step(places: Any, step: int) -> Tensor:
        torch.backends.mkldnn.enabled = not was_enabled
        return take_step(places, step)

    monkeypatch.setattr(objective, "take_step", switch_and_step)
    torch.backends.mkldnn.enabled = was_enabled
    Trainer(objective, RunContext(objective.device, tmp_path)).run()
    assert torch.backends.mkldnn.enabled == was_enabled
