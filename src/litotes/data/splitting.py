"""Which example goes where: stable hashing, what belongs together, and an even choice among it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

SPLIT_WORDS = {
    "train": "train",
    "training": "train",
    "valid": "valid",
    "validation": "valid",
    "val": "valid",
    "dev": "valid",
    "test": "test",
}
"""The names under which files and data sets keep the three splits."""


@dataclass(frozen=True)
class Block:
    """Examples that must stay together: their places in the corpus, their stratum and their place
    in the shuffle.
    """

    stratum: str
    order: float
    members: tuple[int, ...]


def fraction(key: str) -> float:
    """A number in [0, 1) that depends on the key alone, on every machine and in every run."""
    return int.from_bytes(sha256(key.encode()).digest()[:6]) / 2**48


def hashed_split(key: str, *, test_share: float) -> str:
    """The split of whatever is called `key`, for data sets that come without one."""
    return "test" if fraction(key) < test_share else "train"


def components(keys: Iterable[Iterable[Hashable]]) -> list[int]:
    """For each item the place of the first item it hangs together with; items that share a key do,
    directly or through others.
    """
    parent: list[int] = []
    first: dict[Hashable, int] = {}
    for place, own in enumerate(keys):
        parent.append(place)
        for key in own:
            _join(parent, place, first.setdefault(key, place))
    return [_root(parent, place) for place in range(len(parent))]


def _join(parent: list[int], one: int, other: int) -> None:
    low, high = sorted((_root(parent, one), _root(parent, other)))
    parent[high] = low


def _root(parent: list[int], place: int) -> int:
    while parent[place] != place:
        parent[place] = parent[parent[place]]  # halving the path keeps later walks short
        place = parent[place]
    return place


def choose(blocks: Sequence[Block], *, share: float, start: float) -> list[Block]:
    """About `share` of the examples in whole blocks: never none of the blocks, never all
    (systematic sampling over the strata).

    `start` in [0, 1) is where the counting begins, so that small strata take turns over different
    starts.
    """
    owed, chosen = start - 0.5, []
    # equal sizes stand side by side: otherwise small blocks would always pay what is owed and large
    # ones never be chosen
    for block in sorted(blocks, key=lambda block: (block.stratum, len(block.members), block.order)):
        owed += share * len(block.members)
        if owed >= len(block.members) / 2:
            owed -= len(block.members)
            chosen.append(block)
    smallest = min(blocks, key=lambda block: (len(block.members), block.order))
    if not chosen:
        return [smallest]
    return (
        chosen
        if len(chosen) < len(blocks)
        else [block for block in chosen if block is not smallest]
    )
