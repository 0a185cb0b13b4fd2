"""Rows of small tables, as they are taken where gradients must be summed in a fixed order."""

from __future__ import annotations

import torch
from torch.nn import functional

from litotes.encoder.torch_operations import weighted_rows


def test_weighted_rows_are_the_rows_and_have_their_gradient() -> None:
    table = torch.randn(3, 5, requires_grad=True)
    numbers = torch.tensor([2, 0, 0, 1, 2, 2])
    some = torch.randn(6, 5)
    rows = weighted_rows(table, numbers)
    assert torch.equal(rows, functional.embedding(numbers, table))
    (ours,) = torch.autograd.grad((rows * some).sum(), table)
    (theirs,) = torch.autograd.grad((functional.embedding(numbers, table) * some).sum(), table)
    torch.testing.assert_close(ours, theirs)
