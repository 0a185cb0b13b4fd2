"""Sharing an encoder's step among tasks: their losses become one gradient per parameter.

A new balancing is a class and a line in `BALANCINGS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import torch
from torch import Tensor, nn
from torch.nn import Parameter

from litotes.training.processes import Processes


class Balancing(nn.Module):
    """Several tasks' losses → one gradient per parameter.

    A balancing may learn parameters of its own. repeats: whether every step does the same with its
    losses, whatever its number, and nothing that the host decides: such a step can be recorded.
    """

    def __init__(self, n_tasks: int) -> None:
        super().__init__()
        self.n_tasks, self.repeats = n_tasks, True

    def backward(
        self,
        parts: Iterable[Sequence[Tensor]],
        parameters: Sequence[Parameter],
        *,
        processes: Processes,
        step: int,
    ) -> None:
        """Fills every parameter's `.grad` with the step's direction, added up over the processes.

        parts: of the step's texts, computed as they are asked for: this process's share of each
        task's loss, which adds up over the parts. step: its number, for what is drawn at random.
        """
        for number, losses in enumerate(parts):
            n_sharing = 0 if number else processes.n
            self.total(torch.stack(list(losses)), n_sharing).backward()
        processes.add_up(parameter.grad for parameter in parameters)

    def total(self, losses: Tensor, n_sharing: int) -> Tensor:
        """One loss of all tasks' (task,).

        n_sharing: processes that share what is added once a step; 0 where it was added already.
        """
        return losses.sum()


class Total(Balancing):
    """L = Σ_k L_k: every task counts alike."""


class Uncertainty(Balancing):
    """L = Σ_k exp(−s_k) L_k + s_k / 2 with s_k = log σ_k², a task's noise, learned beside the model
    from s_k = 0.

    Noisy tasks count less. Kendall, Gal and Cipolla 2018, arXiv 1705.07115, §3.2.
    """

    def __init__(self, n_tasks: int) -> None:
        super().__init__(n_tasks)
        self.log_variances = nn.Parameter(torch.zeros(n_tasks))

    def total(self, losses: Tensor, n_sharing: int) -> Tensor:
        total = torch.exp(-self.log_variances) * losses
        if n_sharing:
            total = total + self.log_variances / (2 * n_sharing)
        return total.sum()


# pcgrad: gradient surgery. Yu et al. 2020, arXiv 2001.06782, algorithm 1.
#
# Where two tasks' gradients point against each other, g_i·g_j < 0, each loses the part that works
# against the other:
#
#     g_i ← g_i − (g_i·g_j / ‖g_j‖²) g_j
#
# Every projected gradient is a weighted sum of the tasks' gradients, and the weights follow from
# their inner products alone. So a step costs one backward pass per task, the products, and one
# weighted sum in place; nothing is flattened or copied.

Gradients = Sequence[Tensor | None]


class PCGrad(Balancing):
    """Each task's gradient without the part that conflicts with another's, then their sum.

    Only parameters that several tasks reach are operated on; a parameter of one task alone (its
    output layer, say) keeps its gradient.
    """

    def __init__(self, n_tasks: int) -> None:
        super().__init__(n_tasks)
        self.repeats = n_tasks <= 2  # there is no order to draw between two

    def backward(
        self,
        parts: Iterable[Sequence[Tensor]],
        parameters: Sequence[Parameter],
        *,
        processes: Processes,
        step: int,
    ) -> None:
        tasks: list[Gradients] = []
        for losses in parts:
            found = _task_gradients(losses, parameters)
            tasks = [*map(_add, tasks, found)] if tasks else found
        for gradients in tasks:
            processes.add_up(gradients)
        by_parameter = list(zip(*tasks, strict=True))
        shared = [row for row in by_parameter if sum(gradient is not None for gradient in row) > 1]
        weights = _weights(shared, len(tasks), step)
        for parameter, row in zip(parameters, by_parameter, strict=True):
            pairs = zip(row, weights, strict=True)
            reached = [(gradient, weight) for gradient, weight in pairs if gradient is not None]
            if len(reached) > 1:
                parameter.grad = weighted_sum(reached)
            else:
                parameter.grad = reached[0][0] if reached else None


def _task_gradients(losses: Sequence[Tensor], parameters: Sequence[Parameter]) -> list[Gradients]:
    """Each task's gradient of every parameter; None where the task does not reach it."""
    tasks: list[Gradients] = []
    for number, loss in enumerate(losses):
        again = number + 1 < len(losses)
        tasks.append(torch.autograd.grad(loss, parameters, retain_graph=again, allow_unused=True))
    return tasks


def _add(one: Gradients, other: Gradients) -> Gradients:
    pairs = zip(one, other, strict=True)
    return [b if a is None else a if b is None else a + b for a, b in pairs]


def _weights(shared: Sequence[Gradients], n_tasks: int, step: int) -> Sequence[float | Tensor]:
    """A number for each task; one on the device stays there, so that the host need not wait."""
    device = next((row[0].device for row in shared if row[0] is not None), torch.device("cpu"))
    product = torch.zeros(n_tasks, n_tasks, dtype=torch.float64, device=device)
    for i, j in combinations(range(n_tasks), 2):
        product[i, j] = product[j, i] = inner_product(shared, i, j)
    on_cpu = device.type == "cpu"
    if on_cpu and (product >= 0).all():  # no conflict: the sum, and no need for the norms
        return [1.0] * n_tasks
    for i in range(n_tasks):
        product[i, i] = inner_product(shared, i, i)
    weights = surgery(product, seed=step)
    return weights.tolist() if on_cpu else weights.unbind()


def inner_product(rows: Sequence[Gradients], i: int, j: int) -> float | Tensor:
    """Returns the inner product of the gradients of tasks i and j over all given parameters."""
    pairs = ((row[i], row[j]) for row in rows)
    parts = [
        torch.dot(a.flatten(), b.flatten()) for a, b in pairs if a is not None and b is not None
    ]
    return torch.stack(parts).double().sum() if parts else 0.0


def surgery(product: Tensor, *, seed: int) -> Tensor:
    """Weighs each task's gradient for the step, from their inner products (task, task) → (task,).

    With three tasks or more the order in which a gradient meets the others is drawn at random, as
    in the paper.
    """
    n_tasks = len(product)
    generator = torch.Generator().manual_seed(seed)
    # row i: the i-th projected gradient in terms of all
    weights = torch.eye(n_tasks, dtype=product.dtype, device=product.device)
    for i in range(n_tasks):
        for j in torch.randperm(n_tasks, generator=generator).tolist():
            if i == j:
                continue
            conflict = weights[i] @ product[:, j]
            weights[i, j] -= torch.where(conflict < 0, conflict / product[j, j], 0.0)
    return weights.sum(0)


def weighted_sum(parts: Sequence[tuple[Tensor, float | Tensor]]) -> Tensor:
    """Σ w g, in the first gradient's place."""
    (total, first), *rest = parts
    if isinstance(first, Tensor) or first != 1.0:
        total.mul_(first)
    for gradient, weight in rest:
        if isinstance(weight, Tensor):
            total.addcmul_(gradient, weight.to(gradient.dtype))
        else:
            total.add_(gradient, alpha=weight)
    return total


BALANCINGS: dict[str, type[Balancing]] = {
    "sum": Total,
    "pcgrad": PCGrad,
    "uncertainty": Uncertainty,
}
