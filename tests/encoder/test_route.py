"""Boundaries and tiles on the device against what the lengths say, in Triton's interpreter."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton", reason="Triton is not installed: pip install -e .[kernels]")

from litotes.encoder.attention.pruning import Plan
from litotes.kernels.route import Route, RouteOptions, RoutePlan, Sizes
from litotes.kernels.tiles import Numbers, Tiles, tile_numbers

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
PLAN = Plan((1.0, 0.8, 0.8, 0.25), (1.0,) * 4)
LENGTHS = np.array([5, 1, 70, 0, 130, 9], dtype=np.int32)
KINDS = {
    "dense": RouteOptions(Plan((1.0, 1.0), (1.0, 1.0))),
    "pruned": RouteOptions(PLAN),
    "fuse": RouteOptions(PLAN, fuse=True),
    "firsts": RouteOptions(PLAN, firsts_only=True),
    "blocks": RouteOptions(PLAN, rule="block_top_k", shift=3, firsts_only=True),
    "trains": RouteOptions(PLAN, trains=True),
}


def make_route(plan: RoutePlan, lengths: Numbers) -> Route:
    numbers = np.full(plan.n_numbers, 7, dtype=np.int32)  # what was in memory before
    plan.write(np.arange(lengths.sum(), dtype=np.int32), None, lengths, numbers)
    route = plan.read(torch.from_numpy(numbers).to(DEVICE))
    route.lay_out()
    return route


def real_tiles(tiles: Tiles) -> list[list[int]]:
    """The tiles that stand for something, which come first."""
    numbers = tiles.numbers.tolist()
    real = [tile for tile in numbers if tile[0] >= 0]
    assert numbers[: len(real)] == real
    return real


@pytest.mark.parametrize("in_bucket", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_device_lays_out_what_the_lengths_say(kind: str, in_bucket: bool) -> None:
    options = KINDS[kind]
    if in_bucket:
        plan = RoutePlan.for_bucket(options, Sizes(320, 8, 200))
        assert plan.n_fitting(LENGTHS) == len(LENGTHS)
    else:
        plan = RoutePlan.for_texts(options, LENGTHS.tolist())
    route = make_route(plan, LENGTHS)
    n_pieces, places = int(LENGTHS.sum()), [place for n in LENGTHS for place in range(n)]
    assert route.pieces[:n_pieces].tolist() == list(range(n_pieces))
    assert not route.pieces[n_pieces:].any()
    assert route.positions[:n_pieces].tolist() == places
    texts = np.zeros(route.n_texts, dtype=np.int32)
    texts[: len(LENGTHS)] = LENGTHS
    before = texts
    for share, stage in zip(options.shares, route.stages, strict=True):
        real = np.where(texts > 0, np.maximum(1, np.floor(share * texts + 1e-9)), 0).astype(int)
        left = real + (before > real) if options.fuse else real
        assert stage.kept.tolist() == real.tolist()
        assert stage.bounds.tolist() == [0, *np.cumsum(left).tolist()]
        assert left.sum() <= stage.n_pieces
        shapes = tuple(tiles.shape for tiles in stage.tiles)
        expected = tile_numbers(left, left, shapes, shift=options.shift)
        for tiles, numbers in zip(stage.tiles, expected, strict=True):
            assert real_tiles(tiles) == numbers.tolist()
        for text in np.flatnonzero(left):
            own = [t for tiles in stage.tiles for t in real_tiles(tiles) if t[0] == text]
            assert len(own) == int(stage.n_tiles[text]) <= stage.n_slots
        before = left
    if options.firsts_only:
        asking = sorted(tile for tiles in route.first_tiles for tile in real_tiles(tiles))
        assert asking == [[text, 0] for text in np.flatnonzero(texts)]


@pytest.mark.parametrize("kind", ["dense", "pruned", "fuse"])
def test_as_many_texts_fit_as_every_stage_has_room_for(kind: str) -> None:
    draw = np.random.default_rng(0)
    plan = RoutePlan.for_bucket(KINDS[kind], Sizes(512, 40, 200))
    for _ in range(20):
        lengths = draw.integers(1, 60, 60).astype(np.int32)
        n_texts = plan.n_fitting(lengths)

        def fits(n: int, lengths: Numbers = lengths) -> bool:
            left = KINDS[kind].n_left(lengths[:n]).sum(axis=1)
            room = [stage.n_pieces for stage in plan.stages]
            return n <= plan.sizes.n_texts and bool((left <= room).all())

        assert fits(n_texts)
        assert not fits(n_texts + 1)
