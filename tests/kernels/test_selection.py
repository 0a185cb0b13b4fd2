"""Selection on the device keeps exactly the pieces and heads that the plain path keeps."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

pytest.importorskip("triton", reason="Triton is not installed: its kernels are not tried")

from litotes.encoder.layout import Layout
from litotes.encoder.operations import Leaving
from litotes.encoder.walk import State
from litotes.kernels.selection import Staying, add_received, keep_heads, select, take

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

N_HEADS, WIDTH = 3, 40
N_EMPTY, SPARE = 2, 37
"""Empty texts at the end, and rows of nobody that the tensors have besides."""


def bounds_of(lengths: list[int]) -> Tensor:
    """Boundaries of texts, some empty ones after them. (text + 1,)"""
    counts = torch.tensor([0, *lengths, *[0] * N_EMPTY])
    return counts.cumsum(0).to(torch.int32).to(DEVICE)


def counts_of(numbers: list[int]) -> Tensor:
    """One number for each text, the empty ones included. (text,)"""
    return torch.tensor([*numbers, *[0] * N_EMPTY], dtype=torch.int32).to(DEVICE)


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
    return Received(by_slot, counts_of(n_tiles.tolist()), total)


def origins(lengths: list[int]) -> Tensor:
    return torch.cat([torch.arange(n) for n in lengths]).to(torch.int32)


def kept_by_plain_path(importance: Tensor, lengths: list[int], counts: list[int]) -> list[int]:
    layout = Layout.of(lengths)
    state = State(importance, layout, layout, layout.positions, importance)
    return Leaving.of(state, counts).kept_places.tolist()


def select_few(
    importance: Tensor,
    lengths: list[int],
    after: list[int],
    received: Received | None = None,
    *,
    factor: Tensor | None = None,
    kept: list[int] | None = None,
) -> Staying:
    given = received or receive(lengths, 1, most=1)
    return select(
        with_spare(importance),
        given.by_slot,
        given.n_tiles,
        with_spare(origins(lengths), 5),
        bounds_of(lengths),
        bounds_of(after),
        n_after=sum(after) + SPARE,
        factor=None if factor is None else with_spare(factor),
        kept=None if kept is None else counts_of(kept),
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
    importance = torch.tensor([0.0, torch.nan, torch.nan, 1.0])
    staying = select_few(importance, [4], [3], kept=[2])
    assert staying.places[:3].tolist() == [0, 1, -1]
    taken = take(with_spare(torch.ones(4, WIDTH)), staying)
    assert taken[:3].isnan().any(-1).tolist() == [False, False, True]


def test_the_factor_counts_in_the_choice() -> None:
    lengths, received = [40, 50], receive([40, 50], 2)
    importance, factor = torch.rand(90), torch.randn(90).exp()
    staying = select_few(importance, lengths, [10, 20], received, factor=factor)
    total = (importance + received.total.sum(-1)) * factor
    assert staying.places[:30].tolist() == kept_by_plain_path(total, lengths, [10, 20])


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


def heads_of(alive: Tensor, n_heads: int) -> list[list[int]]:
    return [[head for head in range(n_heads) if bits >> head & 1] for bits in alive.tolist()]


@pytest.mark.parametrize("n_heads", [1, 12, 32])
def test_the_best_heads_stay_layer_after_layer(n_heads: int) -> None:
    torch.manual_seed(n_heads)
    n_tiles = torch.tensor([1, 4, 2, 0], dtype=torch.int32).to(DEVICE)
    total, expected = torch.zeros(4, n_heads).to(DEVICE), torch.zeros(4, n_heads)
    alive, live = None, torch.ones(4, n_heads, dtype=torch.bool)
    for layer, n_kept in enumerate((n_heads, max(1, n_heads * 3 // 4), max(1, n_heads // 3))):
        # many are equal, and one that left would have a chance to come back
        sizes = torch.randint(0, 2, (4, 4, n_heads)) * 10.0**layer
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
