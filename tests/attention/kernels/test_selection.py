"""Selection on the device keeps exactly the pieces, rows and heads that the plain path keeps."""

# ruff: noqa: E402 - Triton asks for its interpreter when a kernel is declared

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton", reason="the kernels are written in Triton")

from litotes.attention.cascade import Cascade
from litotes.attention.kernels.selection import (
    Staying,
    add_received,
    keep_heads,
    put_back,
    select,
    take,
    take_both,
)
from litotes.attention.pruning import AttentionOutput
from litotes.attention.survivors import FUSED, Survivors
from litotes.text.layout import Layout

N_HEADS, WIDTH, SPARE = 3, 40, 37
"""SPARE: rows of nobody that the tensors have besides."""


def bounds_of(lengths: list[int], n_empty: int = 2) -> Tensor:
    """Boundaries of texts, some empty ones after them. (text + 1,)"""
    counts = torch.tensor([0, *lengths, *[0] * n_empty])
    return counts.cumsum(0).to(torch.int32).to(DEVICE)


def with_spare(rows: Tensor, value: float = torch.nan) -> Tensor:
    """More rows than the texts need, which nobody may read."""
    spare = rows.new_full(
        (SPARE, *rows.shape[1:]), int(value) if not rows.is_floating_point() else value
    )
    return torch.cat([rows, spare]).to(DEVICE)


@dataclass(frozen=True)
class Received:
    """by_slot: as the kernel writes it, NaN where it writes nothing. total: by piece and head."""

    by_slot: Tensor
    n_tiles: Tensor
    total: Tensor


def receive(lengths: list[int], n_slots: int, *, most: int = 3) -> Received:
    """Whole numbers: sums are exact in any order, and many are equal."""
    n_pieces = sum(lengths)
    n_tiles = torch.randint(1, n_slots + 1, (len(lengths),))
    written = torch.arange(n_slots)[:, None] < n_tiles.repeat_interleave(torch.tensor(lengths))
    numbers = torch.randint(0, most, (n_slots, N_HEADS, n_pieces)).float()
    total = (numbers * written[:, None]).sum(0).T  # (piece, attention_head)
    numbers = numbers.masked_fill(~written[:, None], torch.nan)
    by_slot = with_spare(numbers.movedim(2, 0)).movedim(0, 2).contiguous()
    empty = torch.zeros(2, dtype=torch.int64)
    return Received(by_slot, torch.cat([n_tiles, empty]).to(torch.int32).to(DEVICE), total)


def origins(lengths: list[int]) -> Tensor:
    return torch.cat([torch.arange(n) for n in lengths]).to(torch.int32)


def kept_by_plain_path(importance: Tensor, lengths: list[int], counts: list[int]) -> list[int]:
    survivors = Survivors.all_of(Layout.of(lengths), N_HEADS)
    return replace(survivors, importance=importance).choose(counts).kept_places.tolist()


def select_few(
    importance: Tensor, lengths: list[int], counts: list[int], received: Received | None = None
) -> Staying:
    given = received or receive(lengths, 1, most=1)
    return select(
        with_spare(importance),
        given.by_slot,
        given.n_tiles,
        with_spare(origins(lengths), 5),
        bounds_of(lengths),
        bounds_of(counts),
        n_after=sum(counts) + SPARE,
    )


LENGTHS = [[1], [2, 1, 31, 32, 33], [1024, 1, 700], [130, 127, 128, 129, 64], [512, 513, 1023, 5]]


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 1.0])
def test_the_same_pieces_stay_of_equals_the_earlier(lengths: list[int], share: float) -> None:
    torch.manual_seed(sum(lengths))
    counts = [max(1, int(share * n)) for n in lengths]
    received = receive(lengths, 3)
    before = torch.randint(-2, 3, (sum(lengths),)).float()
    staying = select_few(before, lengths, counts, received)
    total = before + received.total.sum(-1)
    kept = kept_by_plain_path(total, lengths, counts)
    n_kept, n_pieces = len(kept), sum(lengths)
    assert staying.places.tolist() == [*kept, *[-1] * SPARE]
    assert staying.importance[:n_kept].tolist() == total[kept].tolist()
    assert staying.origin[:n_kept].tolist() == origins(lengths)[kept].tolist()
    destination = torch.full((n_pieces + SPARE,), -1)
    destination[kept] = torch.arange(n_kept)
    assert staying.destination.tolist() == destination.tolist()


@pytest.mark.parametrize("seed", range(12))
def test_any_numbers_in_any_order(seed: int) -> None:
    torch.manual_seed(seed)
    lengths = torch.randint(1, 200, (6,)).tolist()
    counts = [int(torch.randint(1, n + 1, ())) for n in lengths]
    importance = torch.randn(sum(lengths)) * 10.0 ** torch.randint(-40, 38, (sum(lengths),))
    for special in (0.0, -0.0, torch.inf, -torch.inf, 1e-45):
        importance[torch.rand(sum(lengths)) < 0.05] = special
    staying = select_few(importance, lengths, counts)
    kept = kept_by_plain_path(importance, lengths, counts)
    assert staying.places[: len(kept)].tolist() == kept


def test_nan_counts_as_the_largest_number_and_never_drives_out_the_first_piece() -> None:
    importance = torch.tensor([0.0, 1.0, torch.inf, torch.nan, 2.0, -torch.nan, *[torch.nan] * 3])
    staying = select_few(importance, [6, 3], [4, 1])
    assert staying.places[:5].tolist() == [0, 2, 3, 5, 6]


def test_a_fused_piece_shows_that_nan_went_into_it() -> None:
    received = receive([4], 1, most=1)
    importance = torch.tensor([0.0, torch.nan, torch.nan, 1.0])
    kept = torch.tensor([2, 0, 0], dtype=torch.int32).to(DEVICE)
    staying = select(
        with_spare(importance),
        received.by_slot,
        received.n_tiles,
        with_spare(origins([4]), 0),
        bounds_of([4]),
        bounds_of([3]),
        n_after=3,
        kept=kept,
    )
    assert staying.places.tolist() == [0, 1, -1]
    fused = take(with_spare(torch.ones(4, WIDTH)), staying)
    assert fused.isnan().any(-1).tolist() == [False, False, True]


@pytest.mark.parametrize("length", [9, 100, 300])
def test_received_is_added_where_nobody_leaves(length: int) -> None:
    lengths = [length, 1, 33]
    received = receive(lengths, 5)
    importance, factor = torch.rand(sum(lengths)), torch.rand(sum(lengths))
    total = add_received(
        with_spare(importance),
        received.by_slot,
        received.n_tiles,
        bounds_of(lengths),
        factor=with_spare(factor),
    ).cpu()
    expected = (importance + received.total.sum(-1)) * factor
    torch.testing.assert_close(total, torch.cat([expected, torch.zeros(SPARE)]))
    plain = add_received(
        with_spare(importance), received.by_slot, received.n_tiles, bounds_of(lengths)
    ).cpu()
    torch.testing.assert_close(plain[:-SPARE], importance + received.total.sum(-1))


def test_the_factor_counts_in_the_choice() -> None:
    lengths, received = [40, 50], receive([40, 50], 2)
    importance, factor = torch.rand(90), torch.randn(90).exp()
    staying = select(
        with_spare(importance),
        received.by_slot,
        received.n_tiles,
        with_spare(origins(lengths), 0),
        bounds_of(lengths),
        bounds_of([10, 20]),
        n_after=30,
        factor=with_spare(factor),
    )
    total = (importance + received.total.sum(-1)) * factor
    assert staying.places.tolist() == kept_by_plain_path(total, lengths, [10, 20])


def blend(hidden: Tensor, mixed: Tensor) -> Tensor:
    """What a layer does with its rows, row by row."""
    return torch.tanh(hidden * 1.25 + mixed * 0.5)


@dataclass(frozen=True)
class Walked:
    hidden: Tensor
    restored: Tensor
    origin: Tensor
    importance: Tensor


SHARES = [0.9, 0.55, 0.5, 0.12]


class Walk:
    """Four layers of removal, once by the plain path and once on the device."""

    def __init__(self, lengths: list[int], *, fuse: bool) -> None:
        self.lengths, self.fuse = lengths, fuse
        self.pruning = Cascade(4, N_HEADS, WIDTH, schedule=SHARES, restore=True, fuse=fuse)
        self.plan = self.pruning.plan()
        self.received: list[Received] = []

    def plain(self, hidden: Tensor) -> Walked:
        survivors = Survivors.all_of(Layout.of(self.lengths), N_HEADS)
        for layer in range(4):
            received = receive(list(survivors.layout.lengths), 2)
            self.received.append(received)
            heads = hidden.new_ones(len(hidden), N_HEADS, 1)
            attention = AttentionOutput(received.total, heads, heads)
            hidden, mixed, survivors = self.pruning(
                layer, self.plan, hidden, hidden.sin(), survivors, attention
            )
            hidden = blend(hidden, mixed)
        return Walked(hidden, survivors.restore(hidden), survivors.origin, survivors.importance)

    def on_device(self, hidden: Tensor) -> Walked:
        lengths, real = self.lengths, self.lengths
        whole = bounds_of(lengths)
        hidden, restored = with_spare(hidden, 1.0), hidden.new_zeros(sum(lengths) + 3, WIDTH)
        restored = restored.to(DEVICE)
        origin, importance = with_spare(origins(lengths), 0), with_spare(torch.zeros(sum(lengths)))
        for layer, received in enumerate(self.received):
            counts = self.plan.counts(layer, self.lengths)
            leaving = [n - count for n, count in zip(lengths, counts, strict=True)]
            after = [n + min(gone, 1) for n, gone in zip(counts, leaving, strict=True)]
            assert counts != real
            staying = select(
                importance,
                received.by_slot,
                received.n_tiles,
                origin,
                bounds_of(lengths),
                bounds_of(after if self.fuse else counts),
                n_after=sum(after) + SPARE,
                kept=torch.tensor([*counts, 0, 0]).to(torch.int32).to(DEVICE)
                if self.fuse
                else None,
            )
            before = bounds_of(lengths)
            restored = put_back(restored, hidden, origin, before, whole, staying=staying)
            hidden = blend(*take_both(hidden, hidden.sin(), staying))
            origin, importance = staying.origin, staying.importance
            lengths, real = after if self.fuse else counts, counts
        restored = put_back(restored, hidden, origin, bounds_of(lengths), whole)
        end = sum(lengths)
        assert not hidden[end:].any()
        assert not restored[sum(self.lengths) :].any()
        return Walked(hidden[:end], restored[: sum(self.lengths)], origin[:end], importance[:end])


@pytest.mark.parametrize("fuse", [False, True], ids=["", "fuse"])
@pytest.mark.parametrize("lengths", [[25, 1, 9, 64], [140, 2]], ids=str)
def test_layers_in_a_row_with_gradients(lengths: list[int], fuse: bool) -> None:
    torch.manual_seed(1)
    walk = Walk(lengths, fuse=fuse)
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("width", [1, 40, 384, 770])
def test_rows_are_taken_as_they_are(width: int, dtype: torch.dtype) -> None:
    lengths, counts = [20, 3], [11, 2]
    staying = select_few(torch.rand(23), lengths, counts)
    packed = with_spare(torch.randn(23, width).to(dtype)).requires_grad_()
    taken = take(packed, staying)
    kept = staying.places[:13].long()
    assert torch.equal(taken[:13], packed[kept])
    assert not taken[13:].any()
    taken.sum().backward()
    expected = torch.zeros_like(packed)
    expected[kept] = 1
    assert packed.grad is not None
    assert torch.equal(packed.grad, expected)


def test_pieces_worth_nothing_fuse_in_equal_shares() -> None:
    received = receive([5, 2], 1, most=1)
    staying = select(
        with_spare(torch.zeros(7)),
        received.by_slot,
        received.n_tiles,
        with_spare(origins([5, 2]), 0),
        bounds_of([5, 2]),
        bounds_of([2, 2]),
        n_after=4,
        kept=torch.tensor([1, 2, 0, 0], dtype=torch.int32).to(DEVICE),
    )
    assert staying.fusing is not None
    shares = staying.fusing.shares.cpu()
    torch.testing.assert_close(shares, torch.tensor([0.0, *[0.25] * 4, *[0.0] * (2 + SPARE)]))
    assert staying.origin.tolist() == [0, FUSED, 0, 1]


def heads_of(alive: Tensor, n_heads: int) -> list[list[int]]:
    return [[head for head in range(n_heads) if bits >> head & 1] for bits in alive.tolist()]


@pytest.mark.parametrize("n_heads", [1, 12, 32])
def test_the_best_heads_stay_layer_after_layer(n_heads: int) -> None:
    torch.manual_seed(n_heads)
    n_tiles = torch.tensor([1, 4, 2, 0], dtype=torch.int32).to(DEVICE)
    total, expected = torch.zeros(4, n_heads).to(DEVICE), torch.zeros(4, n_heads)
    alive, live = None, torch.ones(4, n_heads, dtype=torch.bool)
    for n_kept in (n_heads, max(1, n_heads * 3 // 4), max(1, n_heads // 3)):
        sizes = torch.randint(0, 2, (4, 4, n_heads)).float()  # many are equal
        written = torch.arange(4)[None, :, None] < n_tiles.cpu()[:, None, None]
        expected = expected + (sizes * written).sum(1)
        total, alive = keep_heads(
            total, sizes.masked_fill(~written, torch.nan).to(DEVICE), n_tiles, alive, n_kept
        )
        assert total.tolist() == expected.tolist()
        order = expected.masked_fill(~live, -1).argsort(dim=1, descending=True, stable=True)
        live = torch.zeros_like(live).scatter(1, order[:, :n_kept], True)
        assert heads_of(alive, n_heads) == [row.nonzero().flatten().tolist() for row in live]


def test_a_head_whose_size_is_not_a_number_stays() -> None:
    sizes = torch.tensor([[[1.0, torch.nan, 3.0, torch.inf]]]).to(DEVICE)
    n_tiles = torch.ones(1, dtype=torch.int32).to(DEVICE)
    _, alive = keep_heads(torch.zeros(1, 4).to(DEVICE), sizes, n_tiles, None, 2)
    assert heads_of(alive, 4) == [[1, 3]]
