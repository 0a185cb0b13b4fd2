"""Rows that go on, fuse and come back are those of the plain path, and so are their gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from selection_cases import (
    DEVICE,
    N_HEADS,
    SPARE,
    WIDTH,
    Received,
    bounds_of,
    counts_of,
    origins,
    receive,
    with_spare,
)
from torch import Tensor

from litotes.encoder.attention.pruning import Cascade
from litotes.encoder.layout import Layout
from litotes.encoder.operations import FUSED, TORCH, Seen
from litotes.encoder.walk import State
from litotes.kernels.selection import put_back, select, take_both


def blend(hidden: Tensor, mixed: Tensor) -> Tensor:
    """What a layer does with its rows, row by row."""
    whole = torch.nn.functional.pad(mixed, (0, hidden.shape[1] - mixed.shape[1]))
    return torch.tanh(hidden * 1.25 + whole * 0.5)


@dataclass(frozen=True)
class Walked:
    hidden: Tensor
    restored: Tensor
    origin: Tensor
    importance: Tensor


SHARES = [0.9, 0.55, 0.5, 0.12]


class Walk:
    """Four layers of removal, once by the plain path and once on the device.

    mixed_width: what is gathered of a row; less where attention heads are gone for good.
    """

    def __init__(self, lengths: list[int], *, fuse: bool, mixed_width: int = WIDTH) -> None:
        self.lengths, self.fuse, self.mixed_width = lengths, fuse, mixed_width
        self.pruning = Cascade(4, N_HEADS, WIDTH, schedule=SHARES, restore=True, fuse=fuse)
        self.plan = self.pruning.plan()
        self.received: list[Received] = []

    def mix(self, hidden: Tensor) -> Tensor:
        return hidden.sin()[:, : self.mixed_width]

    def plain(self, hidden: Tensor) -> Walked:
        layout = Layout.of(self.lengths)
        state = State(hidden, layout, layout, layout.positions)
        for layer in range(4):
            received = receive(list(state.texts.lengths), 2)
            self.received.append(received)
            seen = Seen(self.mix(state.hidden), received.total)
            importance = TORCH.add_received(state.importance, seen, None, by_value=False)
            state = replace(state, importance=importance)
            choice = TORCH.select(state, self.plan, layer, fuse=self.fuse)
            mixed, removed = seen.mixed, state.removed
            if choice is not None:
                removed = TORCH.remember(state, choice)
                hidden, mixed = TORCH.keep(choice, state.hidden, mixed)
                state = State(
                    hidden, choice.texts, layout, choice.origin, choice.importance, removed=removed
                )
            state = replace(state, hidden=blend(state.hidden, mixed))
        restored = TORCH.restore(state).hidden
        return Walked(state.hidden, restored, state.origin, state.importance)

    def on_device(self, hidden: Tensor) -> Walked:
        lengths, whole = self.lengths, bounds_of(self.lengths)
        hidden, restored = with_spare(hidden, 1.0), hidden.new_zeros(sum(lengths) + 3, WIDTH)
        restored = restored.to(DEVICE)
        origin, importance = with_spare(origins(lengths), 0), with_spare(torch.zeros(sum(lengths)))
        for layer, received in enumerate(self.received):
            counts = self.plan.counts(layer, self.lengths)
            leaving = [n - count for n, count in zip(lengths, counts, strict=True)]
            n_fused = [min(n, 1) if self.fuse else 0 for n in leaving]
            after = [n + fused for n, fused in zip(counts, n_fused, strict=True)]
            before = bounds_of(lengths)
            staying = select(
                importance,
                received.by_slot,
                received.n_tiles,
                origin,
                before,
                bounds_of(after),
                n_after=sum(after) + SPARE,
                kept=counts_of(counts) if self.fuse else None,
            )
            restored = put_back(restored, hidden, origin, before, whole, staying=staying)
            hidden = blend(*take_both(hidden, self.mix(hidden), staying))
            lengths, origin, importance = after, staying.origin, staying.importance
        restored = put_back(restored, hidden, origin, bounds_of(lengths), whole)
        end = sum(lengths)
        assert not hidden[end:].any()
        assert not restored[sum(self.lengths) :].any()
        return Walked(hidden[:end], restored[: sum(self.lengths)], origin[:end], importance[:end])


@pytest.mark.slow
@pytest.mark.parametrize("fuse", [False, True], ids=["", "fuse"])
@pytest.mark.parametrize(
    ("lengths", "mixed_width"), [([25, 1, 9, 64], WIDTH), ([140, 2], WIDTH), ([30, 7], WIDTH - 8)]
)
def test_layers_in_a_row_with_gradients(lengths: list[int], mixed_width: int, fuse: bool) -> None:
    torch.manual_seed(1)
    walk = Walk(lengths, fuse=fuse, mixed_width=mixed_width)
    double = torch.randn(sum(lengths), WIDTH, dtype=torch.float64, requires_grad=True)
    single = double.detach().float().requires_grad_()
    plain, fast = walk.plain(double), walk.on_device(single)
    assert fast.origin.tolist() == plain.origin.tolist()
    assert (FUSED in fast.origin.tolist()) == fuse
    assert fast.importance.tolist() == plain.importance.tolist()
    torch.testing.assert_close(fast.hidden.cpu().double(), plain.hidden, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(fast.restored.cpu().double(), plain.restored, atol=1e-5, rtol=1e-5)
    seen, pooled = torch.randn_like(plain.restored), torch.randn_like(plain.hidden)
    ((plain.restored * seen).sum() + (plain.hidden * pooled).sum()).backward()
    loss = (fast.restored.cpu() * seen.float()).sum() + (fast.hidden.cpu() * pooled.float()).sum()
    loss.backward()
    assert single.grad is not None
    assert double.grad is not None
    assert double.grad.abs().sum(-1).min() > 0
    torch.testing.assert_close(single.grad.double(), double.grad, atol=1e-5, rtol=1e-4)
