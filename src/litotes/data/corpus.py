"""A corpus: examples, the tasks they are labelled for, and ways to select and to divide them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from hashlib import sha256

from litotes.core.errors import UserError
from litotes.core.html import row, table
from litotes.core.numbers import counted
from litotes.core.registry import pick, unknown_name
from litotes.core.text import harmless, one_line
from litotes.core.values import Example, Label, Task
from litotes.data.cells import Cell, cell_of, cell_order
from litotes.data.keys import digest, example_key, leak_key
from litotes.data.splitting import blocks_of, choose, fraction

SPLITS = ("train", "valid", "test")

Words = str | Collection[str] | None
"""A selection: everything, one word, or several."""


@dataclass(frozen=True)
class Count:
    """How many examples of a cell and split have a label; None for a task answered by a number."""

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
        wanted = {}
        for field, words in (("variety", variety), ("source", source), ("split", split)):
            present = {getattr(example, field) for example in self}
            wanted[field] = self._selection(field, words, present)
        names = self._selection("task", task, set(self.tasks))
        tasks = {name: entry for name, entry in self.tasks.items() if name in names}
        kept = [example for example in self if _matches(example, wanted)]
        if task is not None:
            kept = [_with_tasks(example, names) for example in kept]
            kept = [example for example in kept if example.labels]
        if not kept:
            raise UserError(self._nothing_fits(variety, source, task, split))
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
        kept = []
        for example in self:
            if example.split == "train" and (leak_key(example) in texts or example.group in groups):
                continue
            kept.append(example)
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
        """How often each label occurs, by cell, split and task."""
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
        """How often each label occurs, as notebooks show it."""
        rows = []
        for count in self.counts():
            names = (str(count.cell), count.split, count.task, count.label or "a number")
            rows.append(row([harmless(name) for name in names], [f"{count.n:,}"]))
        caption = f"{harmless(self.name)}: {counted(len(self), 'text')}"
        return table(("cell", "split", "task", "label", "texts"), rows, caption=caption)

    def _selection(self, kind: str, words: Words, present: Set[str | None]) -> Set[str | None]:
        if words is None:
            return present
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

    def _nothing_fits(self, variety: Words, source: Words, task: Words, split: Words) -> str:
        asked = []
        selections = {"variety": variety, "source": source, "task": task, "split": split}
        for kind, words in selections.items():
            if words is not None:
                asked.append(f"{kind}={words if isinstance(words, str) else ','.join(words)}")
        present = {(cell_of(example), example.split) for example in self}
        cells = []
        for cell in self.cells():
            splits = [split for split in SPLITS if (cell, split) in present]
            cells.append(f"{cell} ({', '.join(splits)})")
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


def _matches(example: Example, wanted: Mapping[str, Set[str | None]]) -> bool:
    return all(getattr(example, field) in words for field, words in wanted.items())


def _with_tasks(example: Example, names: Set[str | None]) -> Example:
    labels = {name: label for name, label in example.labels.items() if name in names}
    return replace(example, labels=labels)


def _relabel(example: Example, words: Mapping[str, Mapping[str, str]]) -> Example:
    labels: dict[str, Label] = {}
    for task, label in example.labels.items():
        own = words.get(task, {})
        if isinstance(label, tuple):
            labels[task] = tuple(sorted({own.get(word, word) for word in label} - {""}))
            continue
        new = own.get(str(label), label)
        if new != "":
            labels[task] = new
    return replace(example, labels=labels)


def _counted_words(label: Label) -> tuple[str | None, ...]:
    """What a label counts as: a number as None, several labels as each of them."""
    if isinstance(label, tuple):
        return label
    return (label if isinstance(label, str) else None,)


def _count_order(count: Count) -> tuple[tuple[str, str], int, str, str]:
    return cell_order(count.cell), SPLITS.index(count.split), count.task, count.label or ""
