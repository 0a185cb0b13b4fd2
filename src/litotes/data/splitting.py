"""Which example goes where: stable hashing, what belongs together, and an even choice among it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from litotes.core.values import Example, Label
from litotes.data.cells import cell_of
from litotes.data.keys import digest, leak_key, text_key

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
    """Examples that must stay together.

    stratum: what blocks are spread evenly over; order: the place in the shuffle; members: the
    places of the examples in the corpus.
    """

    stratum: str
    order: float
    members: tuple[int, ...]


def fraction(key: str) -> float:
    """A number in [0, 1) that depends on the key alone, on every machine and in every run."""
    return int.from_bytes(sha256(key.encode()).digest()[:6]) / 2**48


def split_by_hash(key: str, *, test_share: float) -> str:
    """The split of whatever is called `key`, for data sets that come without one."""
    return "test" if fraction(key) < test_share else "train"


def blocks_of(
    examples: Sequence[Example], *, seed: int, pairs: Iterable[tuple[int, int]] = ()
) -> list[Block]:
    """The examples in blocks that must stay together: no text and no group is in two of them.

    The second text of a pair may be, as a question asked of many texts is; the pair may not, in
    either order.

    pairs: places of examples that must stay together as well.
    """
    keys: list[list[Hashable]] = [list(ties_of(example)) for example in examples]
    for pair in pairs:
        for place in pair:
            keys[place].append(pair)
    members: dict[int, list[int]] = defaultdict(list)
    for place, root in enumerate(components(keys)):
        members[root].append(place)
    blocks = []
    for places in members.values():
        own = [examples[place] for place in places]
        order = fraction(f"{seed} {min(map(digest, own)).hex()}")
        blocks.append(Block(_most_common_stratum(own), order, tuple(places)))
    return blocks


def ties_of(example: Example) -> Iterator[tuple[str, str]]:
    """What an example shares with all that must be on its side."""
    # stricter than `leak_key`: of a pair, even the first text alone stays on one side
    yield "text", text_key(example.text)
    if example.pair is not None:
        yield "pair", leak_key(example)
    if example.group is not None:
        yield "group", example.group


def _most_common_stratum(examples: Sequence[Example]) -> str:
    strata = Counter(map(_stratum, examples))
    return min(strata, key=lambda stratum: (-strata[stratum], stratum))


def _stratum(example: Example) -> str:
    labels = sorted((task, _coarse(label)) for task, label in example.labels.items())
    return f"{cell_of(example)} {labels}"


def _coarse(label: Label) -> str:
    # numbers are spread by their whole part
    if isinstance(label, tuple):
        return "|".join(label)
    return label if isinstance(label, str) else str(round(label))


def components(keys: Iterable[Iterable[Hashable]]) -> list[int]:
    """For each item the place of the first item it is connected to.

    Items that share a key are connected, directly or through others.
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
    """About `share` of the examples in whole blocks (systematic sampling over the strata).

    At least one block is chosen and at least one is not. `start` in [0, 1) is where the counting
    begins, so that small strata take turns over different starts.
    """
    owed, chosen = start - 0.5, []
    # blocks of equal size follow each other: otherwise small blocks would always pay what is owed
    # and large ones never be chosen
    for block in sorted(blocks, key=block_order):
        owed += share * len(block.members)
        if owed >= len(block.members) / 2:
            owed -= len(block.members)
            chosen.append(block)
    smallest = min(blocks, key=lambda block: (len(block.members), block.order))
    if not chosen:
        return [smallest]
    if len(chosen) == len(blocks):
        chosen.remove(smallest)
    return chosen


def block_order(block: Block) -> tuple[str, int, float]:
    """What blocks are sorted by before some are chosen, or all are dealt."""
    return block.stratum, len(block.members), block.order
