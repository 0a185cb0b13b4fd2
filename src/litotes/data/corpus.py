"""Cells: a variety as one source writes it, which is what scores are compared between."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal
from unicodedata import normalize

from litotes.core.errors import UserError
from litotes.core.numbers import counted
from litotes.core.pages import render
from litotes.core.registry import pick, unknown_name
from litotes.core.text import one_line
from litotes.core.values import Example, Label, Task

Axis = Literal["variety", "source", "cell"]
"""The key that examples are grouped by."""


ALL = "all"
"""The name of all texts together."""
NAMELESS = "without a name"
"""The name of texts without a variety or source among others that have one."""


@dataclass(frozen=True)
class Cell:
    """A variety as one source writes it."""

    variety: str | None
    source: str | None

    def __str__(self) -> str:
        return " ".join(part for part in (self.variety, self.source) if part is not None) or ALL


def cell_of(example: Example) -> Cell:
    """The cell an example belongs to."""
    return Cell(example.variety, example.source)


def cell_order(cell: Cell) -> tuple[str, str]:
    """Sorts cells by variety, then by source."""
    return cell.variety or "", cell.source or ""


def name_along(example: Example, axis: Axis) -> str:
    """The name of an example's variety, source or cell; "all" where it has none."""
    cell = cell_of(example)
    return str(cell) if axis == "cell" else getattr(cell, axis) or ALL


class ColumnNames:
    """The names of columns of a table over these examples: as `name_along`, but that texts
    without a name among others are not called all of them.
    """

    def __init__(self, examples: Iterable[Example], axis: Axis) -> None:
        self.axis = axis
        self._is_mixed = len({name_along(example, axis) for example in examples}) > 1

    def name(self, example: Example) -> str:
        name = name_along(example, self.axis)
        return NAMELESS if self._is_mixed and name == ALL else name


# When two texts or two examples count as the same.


def text_key(text: str) -> str:
    """Normalizes a text to compare it: compatibility forms, case and white space do not count."""
    folded = normalize("NFKC", text).casefold()
    return " ".join(normalize("NFKC", folded).split())  # folding case can undo the normal form


def example_key(example: Example) -> str:
    """The key of everything an example is judged by: its text, and the second text of a pair."""
    key = text_key(example.text)
    return key if example.pair is None else f"{key}\n{text_key(example.pair)}"


def leak_key(example: Example) -> str:
    """Returns what must not be on both sides of a split: as `example_key`, but that a pair is the
    same the other way round. Paraphrases and questions that ask the same come in either order.
    """
    return "\n".join(sorted(example_key(example).split("\n")))


def plain_words(example: Example) -> str:
    """Words in lower case, nothing else: `it 's` and `It’s` are the same."""
    return " ".join(re.findall(r"[^\W_]+", example_key(example)))


def digest(example: Example) -> bytes:
    """The SHA-256 of all that an example says."""
    labels = sorted(example.labels.items())
    fields = (example.text, labels, example.pair, example.variety, example.source)
    return sha256(json.dumps((*fields, example.split, example.group)).encode()).digest()


# Which example goes where: stable hashing, what belongs together, and an even choice among it.

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
        strata = Counter(map(_stratum, own))
        most_common = min(strata, key=lambda stratum: (-strata[stratum], stratum))
        blocks.append(Block(most_common, order, tuple(places)))
    return blocks


def ties_of(example: Example) -> Iterator[tuple[str, str]]:
    """Yields what an example shares with all that must be on its side."""
    # stricter than `leak_key`: of a pair, even the first text alone stays on one side
    yield "text", text_key(example.text)
    if example.pair is not None:
        yield "pair", leak_key(example)
    if example.group is not None:
        yield "group", example.group


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
    """Returns what blocks are sorted by before some are chosen, or all are dealt."""
    return block.stratum, len(block.members), block.order


# A corpus: examples, the tasks they are labelled for, and ways to select and to divide them.

SPLITS = ("train", "valid", "test")

Words = str | Collection[str] | None
"""A selection: everything, one word, or several."""


@dataclass(frozen=True)
class Count:
    """The count of examples of a cell and split with a label; None: a task answered by a number."""

    cell: Cell
    split: str
    task: str
    label: str | None
    n: int


@dataclass(frozen=True)
class Corpus:
    """Examples in the order they were read, and the tasks they may be labelled for.

    notes: what a user should know about how it was read, such as rows that were left out.
    """

    name: str
    examples: tuple[Example, ...]
    tasks: Mapping[str, Task]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return one_line(self, name=self.name, n_examples=len(self), tasks=list(self.tasks))

    def __len__(self) -> int:
        return len(self.examples)

    def __iter__(self) -> Iterator[Example]:
        return iter(self.examples)

    def where(
        self,
        *,
        variety: Words = None,
        source: Words = None,
        task: Words = None,
        split: Words = None,
    ) -> Corpus:
        """The examples that fit every selection.

        A selection of tasks also removes the labels of other tasks, and the examples that are left
        without a label.
        """
        asked = {"variety": variety, "source": source, "split": split, "task": task}
        given = {kind: words for kind, words in asked.items() if words is not None}
        wanted = {kind: self._selection(kind, words) for kind, words in given.items()}
        names = wanted.pop("task", None)
        kept = [
            example
            for example in self
            if all(getattr(example, kind) in words for kind, words in wanted.items())
        ]
        tasks = self.tasks
        if names is not None:
            tasks = {name: entry for name, entry in tasks.items() if name in names}
            kept = [_with_tasks(example, names) for example in kept]
            kept = [example for example in kept if example.labels]
        if not kept:
            raise UserError(self._nothing_fits(given))
        return replace(self, examples=tuple(kept), tasks=tasks)

    def cells(self) -> tuple[Cell, ...]:
        """The cells that occur, in alphabetical order."""
        return tuple(sorted({cell_of(example) for example in self}, key=cell_order))

    def splits(self) -> tuple[str, ...]:
        """The splits that occur, in the order of `SPLITS`."""
        return tuple(sorted({example.split for example in self}, key=SPLITS.index))

    def test_split(self) -> str:
        """The split to score on: test where it has labels, otherwise valid."""
        labelled = {example.split for example in self if example.labels}
        for split in ("test", "valid"):
            if split in labelled:
                return split
        raise UserError(
            f"{self.name} has no labelled test or valid split to score on: add one, or set a part"
            " of it aside with Corpus.hold_out (a table: with test=0.2 in its source)."
        )

    def hold_out(self, share: float, *, seed: int) -> tuple[Corpus, Corpus]:
        """The rest, and about `share` of the examples.

        No text, no pair and no group is on both sides (of pairs, a second text may be), and cells
        and labels are spread evenly. The same seed divides the same examples in the same way, in
        whatever order they come.
        """
        held = self._choose(share, seed)
        return self._take(set(range(len(self))) - held), self._take(held)

    def with_test_part(self, share: float, *, seed: int) -> Corpus:
        """The corpus with about `share` of its examples as the test split, chosen as by `hold_out`;
        the order stays.
        """
        examples = list(self)
        for place in self._choose(share, seed):
            examples[place] = replace(examples[place], split="test")
        return replace(self, examples=tuple(examples))

    def with_notes(self, *notes: str) -> Corpus:
        """The corpus with more notes after those it has."""
        return replace(self, notes=(*self.notes, *notes))

    def _choose(self, share: float, seed: int) -> set[int]:
        """The places of about `share` of the examples, in whole blocks."""
        if not 0 < share < 1:
            raise UserError(
                f"The share to hold out is {share}: give a number between 0 and 1, such as 0.1."
            )
        blocks = blocks_of(self.examples, seed=seed)
        if len(blocks) < 2:
            raise UserError(
                f"{self.name} cannot be divided: its {len(self)} examples share one text or one"
                " group. Give it more texts, or fewer groups."
            )
        held: set[int] = set()
        for block in choose(blocks, share=share, start=fraction(f"start {seed}")):
            held.update(block.members)
        return held

    def without_leaks(self) -> tuple[Corpus, int]:
        """The corpus without training examples that leak, and how many those were.

        An example leaks when its text, or its pair in either order, or its group is also in another
        split.
        """
        held_out = [example for example in self if example.split != "train"]
        texts = set(map(leak_key, held_out))
        groups = {example.group for example in held_out} - {None}
        kept = [
            example
            for example in self
            if example.split != "train"
            or (leak_key(example) not in texts and example.group not in groups)
        ]
        return replace(self, examples=tuple(kept)), len(self) - len(kept)

    def map_labels(self, words: Mapping[str, Mapping[str, str]]) -> Corpus:
        """The corpus with label words replaced, {task: {word: other word}}; "" removes a label.

        >>> corpus.map_labels({"sentiment": {"neutral": ""}})  # doctest: +SKIP
        """
        tasks = dict(self.tasks)
        for name, mapping in words.items():
            task = pick(self.tasks, name, "task")
            for word in mapping:
                if word not in task.labels:
                    raise UserError(
                        f"{self.name}, labels of {name}: {unknown_name(word, task.labels, 'label')}"
                    )
            labels = dict.fromkeys(mapping.get(label, label) for label in task.labels)
            labels.pop("", None)
            if task.labels and not labels:
                raise UserError(
                    f"{self.name}: no label of {name} is left. Map at least two of them to a word,"
                    " or leave the task out."
                )
            tasks[name] = replace(task, labels=tuple(labels))
        examples = tuple(_relabel(example, words) for example in self)
        return replace(self, examples=examples, tasks=tasks)

    def join_labels(self) -> tuple[Corpus, int]:
        """Training examples gain the labels that other splits give the same text, and how many did.

        This is what happens when a file for several tasks is made by joining files that were split
        task by task. It leaks answers.
        """
        elsewhere: dict[str, dict[str, Label]] = defaultdict(dict)
        for example in self:
            if example.split != "train":
                elsewhere[example_key(example)].update(example.labels)
        examples, n_gains = [], 0
        for example in self:
            labels = {**elsewhere[example_key(example)], **example.labels}
            if example.split == "train" and len(labels) > len(example.labels):
                example = replace(example, labels=labels)
                n_gains += 1
            examples.append(example)
        return replace(self, examples=tuple(examples)), n_gains

    def counts(self) -> tuple[Count, ...]:
        """Counts each label, by cell, split and task."""
        found: Counter[tuple[Cell, str, str, str | None]] = Counter()
        for example in self:
            for task, label in example.labels.items():
                for word in _counted_words(label):
                    found[cell_of(example), example.split, task, word] += 1
        return tuple(sorted((Count(*place, n) for place, n in found.items()), key=_count_order))

    def fingerprint(self) -> str:
        """The SHA-256 of the examples, the same in whatever order they come."""
        return sha256(b"".join(sorted(map(digest, self)))).hexdigest()

    def _repr_html_(self) -> str:
        """Renders how often each label occurs, for notebooks."""
        rows = [
            ((str(one.cell), one.split, one.task, one.label or "a number"), [f"{one.n:,}"])
            for one in self.counts()
        ]
        caption = f"{self.name}: {counted(len(self), 'text')}"
        head = ("cell", "split", "task", "label", "texts")
        return render("core/notebook_table.html", head=head, rows=rows, caption=caption)

    def _selection(self, kind: str, words: str | Collection[str]) -> Set[str]:
        present = {getattr(one, kind) for one in self} if kind != "task" else self.tasks
        known = {word for word in present if word is not None}
        wanted = {words} if isinstance(words, str) else set(words)
        for word in sorted(wanted - known):
            if known:
                raise UserError(f"{self.name}: {unknown_name(word, known, kind)}")
            raise UserError(
                f"{self.name} names no {kind} for its examples, so {kind}={word!r} selects nothing:"
                " leave it out."
            )
        return wanted

    def _nothing_fits(self, given: Mapping[str, str | Collection[str]]) -> str:
        asked = (
            f"{kind}={words if isinstance(words, str) else ','.join(words)}"
            for kind, words in given.items()
        )
        splits: dict[Cell, set[str]] = defaultdict(set)
        for example in self:
            splits[cell_of(example)].add(example.split)
        cells = (
            f"{cell} ({', '.join(sorted(splits[cell], key=SPLITS.index))})" for cell in self.cells()
        )
        return (
            f"No example of {self.name} fits {' '.join(asked)}. There are:"
            f" {'; '.join(cells) or 'no examples at all'}."
        )

    def _take(self, places: set[int]) -> Corpus:
        examples = [example for place, example in enumerate(self) if place in places]
        return replace(self, examples=tuple(examples))


def join_corpora(corpora: Sequence[Corpus]) -> Corpus:
    """All their examples as one corpus; a task that several have must have the same labels."""
    if len(corpora) == 1:
        return corpora[0]
    tasks: dict[str, Task] = {}
    examples: list[Example] = []
    notes: list[str] = []
    for corpus in corpora:
        notes += corpus.notes
        for name, task in corpus.tasks.items():
            earlier = tasks.setdefault(name, task)
            if earlier != task:
                words = [", ".join(one.labels) or "a number" for one in (earlier, task)]
                raise UserError(
                    f"{corpus.name} cannot be joined to the sources before it: {name} is answered"
                    f" with {' and '.join(words)}."
                )
        examples += corpus
    name = " + ".join(corpus.name for corpus in corpora)
    return Corpus(name, tuple(examples), tasks, tuple(notes))


def _with_tasks(example: Example, names: Set[str]) -> Example:
    labels = {name: label for name, label in example.labels.items() if name in names}
    return replace(example, labels=labels)


def _relabel(example: Example, words: Mapping[str, Mapping[str, str]]) -> Example:
    labels: dict[str, Label] = {}
    for task, label in example.labels.items():
        own = words.get(task, {})
        if isinstance(label, tuple):
            labels[task] = tuple(sorted({own.get(word, word) for word in label} - {""}))
        elif (new := own.get(str(label), label)) != "":
            labels[task] = new
    return replace(example, labels=labels)


def _counted_words(label: Label) -> tuple[str | None, ...]:
    """Lists what a label counts as: a number as None, several labels as each of them."""
    if isinstance(label, tuple):
        return label
    return (label if isinstance(label, str) else None,)


def _count_order(count: Count) -> tuple[tuple[str, str], int, str, str]:
    return cell_order(count.cell), SPLITS.index(count.split), count.task, count.label or ""


# The two questions litotes asks of a text, and the ways files spell the answers.

SENTIMENT = Task("sentiment", ("negative", "positive"))
SENTIMENT_3 = Task("sentiment", ("negative", "neutral", "positive"))
SARCASM = Task("sarcasm", ("literal", "sarcastic"))

# 0 and 1 also come as 0.0 and 1.0: a table with a missing label somewhere stores the others as
# floats
_NO = ("0", "0.0", "false", "no")
_YES = ("1", "1.0", "true", "yes")

SPELLINGS = {
    "sentiment": {
        **dict.fromkeys((*_NO, "neg", "negative"), "negative"),
        **dict.fromkeys(("neu", "neutral"), "neutral"),
        **dict.fromkeys((*_YES, "pos", "positive"), "positive"),
    },
    "sarcasm": {
        **dict.fromkeys((*_NO, "literal", "notsarc", "not_sarcastic", "non-sarcastic"), "literal"),
        **dict.fromkeys((*_YES, "sarc", "sarcastic"), "sarcastic"),
    },
}
"""For each task the spellings read, in lower case, and the word each stands for."""


def unknown_labels(task: Task) -> tuple[str, ...]:
    """The labels of sentiment or sarcasm that stand next to known ones and are not known.

    A task that has none of the known labels has words of its own, which is no mistake.
    """
    known = set(SPELLINGS.get(task.name, {}).values())
    unknown = tuple(label for label in task.labels if label not in known)
    return unknown if len(unknown) < len(task.labels) else ()
