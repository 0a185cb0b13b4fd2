"""How tasks share a step: every balancing in the table, PCGrad against torchjd and against the
paper's algorithm.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from litotes.training.balancing import BALANCINGS, PCGrad, surgery
from litotes.training.processes import Processes


class TwoTasks(nn.Module):
    """A shared layer and an output per task; the two targets pull in different directions."""

    def __init__(self, seed: int = 0, n_tasks: int = 2) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.shared = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 5))
        self.outputs = nn.ModuleList(nn.Linear(5, 1) for _ in range(n_tasks))
        self.unused = nn.Linear(2, 2)
        self.inputs = torch.randn(8, 6)
        self.targets = torch.randn(n_tasks, 8)

    def features(self) -> Tensor:
        return self.shared(self.inputs)

    def losses(self, features: Tensor) -> list[Tensor]:
        return [
            (output(features).squeeze(-1) - target).square().mean()
            for output, target in zip(self.outputs, self.targets, strict=True)
        ]

    def gradients(self) -> dict[str, Tensor | None]:
        return {
            name: None if p.grad is None else p.grad.clone() for name, p in self.named_parameters()
        }


def step(model: TwoTasks, name: str, number: int = 0) -> dict[str, Tensor | None]:
    balancing = BALANCINGS[name](len(model.outputs))
    parts, parameters = [model.losses(model.features())], list(model.parameters())
    balancing.backward(parts, parameters, processes=Processes(), step=number)
    return model.gradients()


@pytest.mark.parametrize("name", sorted(BALANCINGS))
def test_every_parameter_that_a_task_reaches_gets_a_gradient(name: str) -> None:
    for parameter, gradient in step(TwoTasks(), name).items():
        assert (gradient is None) == parameter.startswith("unused")
        assert gradient is None or gradient.abs().sum() > 0


@pytest.mark.parametrize("seed", range(12))
def test_pcgrad_is_the_papers_where_tasks_conflict_and_the_sum_elsewhere(seed: int) -> None:
    """g_i ← g_i − (g_i·g_j / ‖g_j‖²) g_j, over all parameters that both tasks reach."""
    model = TwoTasks(seed)
    shared = list(model.shared.parameters())
    one, two = (
        torch.cat([part.flatten() for part in torch.autograd.grad(loss, shared, retain_graph=True)])
        for loss in model.losses(model.features())
    )
    expected, product = one + two, one @ two
    if product < 0:
        expected = expected - product / (two @ two) * two - product / (one @ one) * one
    found = step(TwoTasks(seed), "pcgrad")
    own = torch.cat(
        [found[f"shared.{name}"].flatten() for name, _ in model.shared.named_parameters()]
    )
    torch.testing.assert_close(own, expected, atol=1e-6, rtol=1e-5)
    # what one task alone reaches keeps its gradient
    summed = step(TwoTasks(seed), "sum")
    torch.testing.assert_close(found["outputs.0.weight"], summed["outputs.0.weight"])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_pcgrad_equals_torchjd(seed: int) -> None:
    from torchjd.aggregation import PCGrad as Theirs
    from torchjd.autojac import jac_to_grad, mtl_backward

    reference = TwoTasks(seed)
    features = reference.features()
    mtl_backward(reference.losses(features), features=features)
    jac_to_grad(reference.shared.parameters(), Theirs())
    torch.testing.assert_close(
        step(TwoTasks(seed), "pcgrad"), reference.gradients(), atol=1e-6, rtol=0
    )


def test_surgery_follows_the_papers_algorithm_with_three_tasks() -> None:
    """Algorithm 1 on whole vectors, in the order drawn for the step."""
    generator = torch.Generator().manual_seed(3)
    gradients = torch.randn(3, 7, dtype=torch.float64, generator=generator)
    assert ((gradients @ gradients.T) < 0).any()
    order = torch.Generator().manual_seed(11)
    total = torch.zeros(7, dtype=torch.float64)
    for i in range(3):
        own = gradients[i].clone()
        for j in torch.randperm(3, generator=order).tolist():
            if j != i and own @ gradients[j] < 0:
                own -= own @ gradients[j] / (gradients[j] @ gradients[j]) * gradients[j]
        total += own
    torch.testing.assert_close(surgery(gradients @ gradients.T, seed=11) @ gradients, total)


def test_a_batch_without_labels_of_one_task_is_no_conflict() -> None:
    model, alone = TwoTasks(), TwoTasks()
    first, second = model.losses(model.features())
    parts, parameters = [[first, second * 0.0]], list(model.parameters())
    PCGrad(2).backward(parts, parameters, processes=Processes(), step=0)
    alone.losses(alone.features())[0].backward()
    name = "shared.0.weight"
    torch.testing.assert_close(model.gradients()[name], alone.gradients()[name])


def test_uncertainty_learns_to_trust_the_quieter_task() -> None:
    """At its best s_k = log 2 L_k: the weight of a task falls with its loss."""
    balancing = BALANCINGS["uncertainty"](2)
    optimizer = torch.optim.Adam(balancing.parameters(), lr=0.05)
    losses = torch.tensor([0.1, 2.0])
    for _ in range(400):
        optimizer.zero_grad()
        balancing.backward(
            [list(losses)], list(balancing.parameters()), processes=Processes(), step=0
        )
        optimizer.step()
    torch.testing.assert_close(
        balancing.log_variances.detach(), torch.log(2 * losses), atol=0.02, rtol=0
    )
