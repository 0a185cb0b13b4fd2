"""A corpus: examples, the tasks they are labelled for, and the ways to select and to divide them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal
from unicodedata import normalize

from litotes.core.errors import UserError
from litotes.core.registry import pick, unknown
from litotes.core.values import Example, Label, Task
from litotes.data.splitting import Block, choose, components, fraction

SPLITS = ("train", "valid", "test")

Axis = Literal["variety", "source", "cell"]
"""What examples are grouped by."""

Words = str | Collection[str] | None
"""A selection: everything, one word, or several."""


@dataclass(frozen=True)
class Cell:
    """A variety as one source writes it."""

    variety: str | None
    source: str | None

    def __str__(self) -> str:
        return " ".join(part for part in (self.variety, self.source) if part is not None) or "all"


@dataclass(frozen=True)
class Count:
    """How many examples of a cell and split carry a label; the label is None where the task is
    answered with a number.
    """

    cell: Cell
    split: str
    task: str
    label: str | None
    n: int


@dataclass(frozen=True)
class Corpus:
    """Examples in the order they were read, and the tasks they may be labelled for."""

    name: str
    examples: tuple[Example, ...]
    tasks: Mapping[str, Task]

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
        """The examples that fit every selection; a selection of tasks also takes the other tasks'
        labels away.
        """
        varieties = self._selection("variety", variety, {example.variety for example in self})
        sources = self._selection("source", source, {example.source for example in self})
        splits = self._selection("split", split, {example.split for example in self})
        tasks = self._selection("task", task, set(self.tasks))
        fitting = (
            (
                example
                if task is None
                else replace(
                    example,
                    labels={name: label for name, label in example.labels.items() if name in tasks},
                )
            )
            for example in self
            if example.variety in varieties
            and example.source in sources
            and example.split in splits
        )
        kept = tuple(example for example in fitting if task is None or example.labels)
        if not kept:
            raise UserError(self._nothing(variety, source, task, split))
        return Corpus(
            self.name, kept, {name: entry for name, entry in self.tasks.items() if name in tasks}
        )

    def cells(self) -> tuple[Cell, ...]:
        """The cells that occur, in alphabetical order."""
        return tuple(sorted({cell_of(example) for example in self}, key=_in_order))

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
            " of it aside with Corpus.hold_out."
        )

    def hold_out(self, share: float, *, seed: int) -> tuple[Corpus, Corpus]:
        """The rest and about `share` of the examples: no text and no group on both sides, cells and
        labels spread evenly.

        The same seed divides the same examples in the same way, in whatever order they come.
        """
        if not 0 < share < 1:
            raise UserError(
                f"The share to hold out is {share}: give a number between 0 and 1, such as 0.1."
            )
        blocks = self._blocks(seed)
        if len(blocks) < 2:
            raise UserError(
                f"{self.name} cannot be divided: its {len(self)} examples share one text or one"
                " group. Give it more texts, or fewer groups."
            )
        held = {
            place
            for block in choose(blocks, share=share, start=fraction(f"start {seed}"))
            for place in block.members
        }
        return self._take(set(range(len(self))) - held), self._take(held)

    def without_leaks(self) -> tuple[Corpus, int]:
        """The corpus less the training examples whose text or group also sits in another split, and
        how many those were.
        """
        texts = {example_key(example) for example in self if example.split != "train"}
        groups = {example.group for example in self if example.split != "train"} - {None}
        kept = tuple(
            example
            for example in self
            if example.split != "train"
            or (example_key(example) not in texts and example.group not in groups)
        )
        return replace(self, examples=kept), len(self) - len(kept)

    def mapped(self, words: Mapping[str, Mapping[str, str]]) -> Corpus:
        """The corpus with label words replaced, {task: {word: other word}}; a word mapped to "" is
        taken away.

        >>> corpus.mapped({"sentiment": {"neutral": ""}})  # doctest: +SKIP
        """
        tasks = dict(self.tasks)
        for name, mapping in words.items():
            task = pick(self.tasks, name, "task")
            for word in mapping:
                if word not in task.labels:
                    raise UserError(
                        f"{self.name}, labels of {name}: {unknown(word, task.labels, 'label')}"
                    )
            kept = tuple(
                dict.fromkeys(new for label in task.labels if (new := mapping.get(label, label)))
            )
            if task.labels and not kept:
                raise UserError(
                    f"{self.name}: no label of {name} is left. Map at least two of them to a word,"
                    " or leave the task out."
                )
            tasks[name] = Task(name, kept)
        return Corpus(self.name, tuple(_relabelled(example, words) for example in self), tasks)

    def with_joined_labels(self) -> tuple[Corpus, int]:
        """Training examples with the labels that other splits give the same text as well, and how
        many gained one.

        This is what happens when a file for several tasks is made by joining files that were split
        task by task. It leaks answers.
        """
        elsewhere: dict[str, dict[str, Label]] = defaultdict(dict)
        for example in self:
            if example.split != "train":
                elsewhere[example_key(example)].update(example.labels)
        gains = {
            place
            for place, one in enumerate(self)
            if one.split == "train" and elsewhere[example_key(one)].keys() - one.labels.keys()
        }
        examples = tuple(
            (
                replace(one, labels={**elsewhere[example_key(one)], **one.labels})
                if place in gains
                else one
            )
            for place, one in enumerate(self)
        )
        return replace(self, examples=examples), len(gains)

    def counts(self) -> tuple[Count, ...]:
        """How often each label occurs, by cell, split and task."""
        found = Counter(
            (cell_of(example), example.split, task, label if isinstance(label, str) else None)
            for example in self
            for task, label in example.labels.items()
        )
        rows = [
            Count(cell, split, task, label, n) for (cell, split, task, label), n in found.items()
        ]
        return tuple(
            sorted(
                rows,
                key=lambda row: (
                    _in_order(row.cell),
                    SPLITS.index(row.split),
                    row.task,
                    row.label or "",
                ),
            )
        )

    def fingerprint(self) -> str:
        """The SHA-256 of the examples, the same in whatever order they come."""
        return sha256(b"".join(sorted(_digest(example) for example in self))).hexdigest()

    def _selection(self, kind: str, words: Words, present: Set[str | None]) -> Set[str | None]:
        if words is None:
            return present
        known = {word for word in present if word is not None}
        wanted = {words} if isinstance(words, str) else set(words)
        for word in sorted(wanted - known):
            if known:
                raise UserError(f"{self.name}: {unknown(word, known, kind)}")
            raise UserError(
                f"{self.name} names no {kind} for its examples, so {kind}={word!r} selects nothing:"
                " leave it out."
            )
        return wanted

    def _nothing(self, variety: Words, source: Words, task: Words, split: Words) -> str:
        asked = {"variety": variety, "source": source, "task": task, "split": split}
        words = (
            f"{kind}={word if isinstance(word, str) else ','.join(word)}"
            for kind, word in asked.items()
            if word is not None
        )
        there = "; ".join(f"{cell} ({', '.join(splits)})" for cell, splits in self._cell_splits())
        return (
            f"No example of {self.name} fits {' '.join(words)}. There are:"
            f" {there or 'no examples at all'}."
        )

    def _cell_splits(self) -> Iterator[tuple[Cell, tuple[str, ...]]]:
        present = {(cell_of(example), example.split) for example in self}
        for cell in self.cells():
            yield cell, tuple(split for split in SPLITS if (cell, split) in present)

    def _take(self, places: set[int]) -> Corpus:
        return replace(
            self, examples=tuple(example for place, example in enumerate(self) if place in places)
        )

    def _blocks(self, seed: int) -> list[Block]:
        # stricter than `example_key`: of a pair, even the first text alone stays on one side
        members = defaultdict(list)
        for place, root in enumerate(components(_ties(example) for example in self)):
            members[root].append(place)
        return [self._block(tuple(places), seed) for places in members.values()]

    def _block(self, places: tuple[int, ...], seed: int) -> Block:
        examples = [self.examples[place] for place in places]
        strata = Counter(_stratum(example) for example in examples)
        name = min(_digest(example) for example in examples).hex()
        return Block(
            min(strata, key=lambda stratum: (-strata[stratum], stratum)),
            fraction(f"{seed} {name}"),
            places,
        )


def joined(corpora: Sequence[Corpus]) -> Corpus:
    """All their examples as one corpus; a task that several have must be answered in the same
    words.
    """
    if len(corpora) == 1:
        return corpora[0]
    tasks: dict[str, Task] = {}
    for corpus in corpora:
        for name, task in corpus.tasks.items():
            if tasks.setdefault(name, task) != task:
                words = " and ".join(
                    ", ".join(one.labels) or "a number" for one in (tasks[name], task)
                )
                raise UserError(
                    f"{corpus.name} cannot be joined to the sources before it: {name} is answered"
                    f" with {words}."
                )
    return Corpus(
        " + ".join(corpus.name for corpus in corpora),
        tuple(example for corpus in corpora for example in corpus),
        tasks,
    )


def text_key(text: str) -> str:
    """What makes two texts the same: compatibility forms, case and white space do not count."""
    folded = normalize("NFKC", text).casefold()
    return " ".join(normalize("NFKC", folded).split())  # folding case can undo the normal form


def example_key(example: Example) -> str:
    """The key of everything an example is judged by: its text, and the second text of a pair."""
    key = text_key(example.text)
    return key if example.pair is None else f"{key}\n{text_key(example.pair)}"


def cell_of(example: Example) -> Cell:
    """The cell an example belongs to."""
    return Cell(example.variety, example.source)


def name_along(example: Example, axis: Axis) -> str:
    """The group an example falls into; "all" where it says nothing about it."""
    cell = cell_of(example)
    return str(cell) if axis == "cell" else getattr(cell, axis) or "all"


def _relabelled(example: Example, words: Mapping[str, Mapping[str, str]]) -> Example:
    labels = {
        task: words.get(task, {}).get(str(label), label) for task, label in example.labels.items()
    }
    return replace(example, labels={task: label for task, label in labels.items() if label != ""})


def _in_order(cell: Cell) -> tuple[str, str]:
    return cell.variety or "", cell.source or ""


def _ties(example: Example) -> Iterator[tuple[str, str]]:
    yield "text", text_key(example.text)
    if example.group is not None:
        yield "group", example.group


def _stratum(example: Example) -> str:
    return (
        f"{cell_of(example)}"
        f" {sorted((task, _coarse(label)) for task, label in example.labels.items())}"
    )


def _coarse(label: Label) -> str:
    # numbers are spread by their whole part
    return label if isinstance(label, str) else str(round(label))


def _digest(example: Example) -> bytes:
    fields = (
        example.text,
        sorted(example.labels.items()),
        example.pair,
        example.variety,
        example.source,
        example.split,
        example.group,
    )
    return sha256(json.dumps(fields).encode()).digest()
