"""Which texts teach the exits, which make them say how sure they are, which test the threshold, and
which are only measured.

Texts that the model was trained on teach: of them it is surer than of others, so they tell nothing
about how often an exit will disagree. All others are drawn into parts. The test split of a source
is only measured, unless there are too few texts without it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.values import Example
from litotes.data.keys import example_key
from litotes.data.sources import load_with_test_part, source_names
from litotes.data.splitting import components, ties_of
from litotes.data.tables.rows import read_rows
from litotes.model.folder import ModelFolder, read_trained_texts, text_hash

COLUMN = "text"
"""Of a file of texts without labels."""
MOST_TAUGHT = 20_000
"""Texts; more teach linear heads nothing new."""
_PARTS = {"taught": 0.3, "fitted": 0.2, "tested": 0.5}
_MEASURED = 0.25
"""The share of new texts that is only measured where there is no test split to measure."""


@dataclass(frozen=True)
class ExitTexts:
    """No text is in two parts, nor is a group of texts where they are drawn into parts.

    taught: exits learn from them. fitted: they show how sure exits are. tested: the threshold is
    chosen by them. measured: nothing is chosen by them.
    """

    taught: tuple[Example, ...]
    fitted: tuple[Example, ...]
    tested: tuple[Example, ...]
    measured: tuple[Example, ...]
    name: str
    notes: tuple[str, ...]


def choose_texts(
    model: ModelFolder, source: str, unlabelled: Sequence[str], *, n_tested: int, seed: int
) -> ExitTexts:
    """n_tested: the fewest to test a threshold on."""
    corpus = load_with_test_part(source)
    trained, notes = read_trained_texts(model), list(corpus.notes)
    if trained is None and _is_of_other_sources(model, source):
        trained = frozenset()
    if trained is None:
        notes.append(
            "The model does not say which texts it was trained on: those of the train split are"
            " taken for them."
        )
    split = corpus.test_split() if len(corpus.splits()) > 1 else None
    more = [example for path in unlabelled for example in _read_texts(Path(path))]
    parts: dict[str, list[Example]] = {"old": [], "new": [], "test": []}
    # of texts alike the one of the test split is kept
    in_order = sorted([*corpus, *more], key=lambda example: example.split != split)
    for example in _different(in_order):
        if trained is None:
            is_old = example.split == "train" and bool(example.labels)
        else:
            is_old = text_hash(example) in trained
        is_test = split is not None and example.split == split
        parts["old" if is_old else "test" if is_test else "new"].append(example)
    generator = random.Random(seed)
    for part in parts.values():
        generator.shuffle(part)
    return _divide(parts, tuple(notes), corpus.name, n_tested)


def _divide(
    parts: dict[str, list[Example]], notes: tuple[str, ...], name: str, n_tested: int
) -> ExitTexts:
    old, new, test = parts["old"], parts["new"], parts["test"]
    n_enough = n_tested / _PARTS["tested"]
    if len(new) < n_enough or not test:
        if test:
            notes += (
                "There are too few new texts besides the test split, so most of it was used to"
                " choose the threshold: do not score the model on it.",
            )
        new = [*new, *test]
        test, new = _take(new, int(_MEASURED * len(new)))
    n_taught, n_fitted = (int(_PARTS[part] * len(new)) for part in ("taught", "fitted"))
    n_new = len(new) + len(test)
    taught, new = _take(new, n_taught)
    fitted, tested = _take(new, n_fitted)
    if len(tested) < n_tested or not test or not fitted:
        raise UserError(
            f"{name} has {n_new} texts that the model was not trained on;"
            f" {round(n_enough / (1 - _MEASURED))} are needed for this promise. Give more with"
            " --unlabelled FILE, or allow more with --differ."
        )
    taught = [*taught, *old][:MOST_TAUGHT]
    return ExitTexts(tuple(taught), tuple(fitted), tuple(tested), tuple(test), name, notes)


def _take(examples: Sequence[Example], n: int) -> tuple[list[Example], list[Example]]:
    """The first n or a few more, and the rest: what a split keeps together stays together."""
    blocks: dict[int, list[Example]] = {}
    ties = components(tuple(ties_of(example)) for example in examples)
    for block, example in zip(ties, examples, strict=True):
        blocks.setdefault(block, []).append(example)
    taken: list[Example] = []
    rest: list[Example] = []
    for own in blocks.values():
        (taken if len(taken) < n else rest).extend(own)
    return taken, rest


def _is_of_other_sources(model: ModelFolder, source: str) -> bool:
    """Whether the recipe of a model that lists no texts names none of these sources."""
    recipe = model.description.get("facts", {}).get("recipe")
    if recipe is None:
        return False
    return not source_names(source) & source_names(recipe["data"]["source"])


def _different(examples: Iterable[Example]) -> list[Example]:
    """Each text once, the first of those alike."""
    by_key: dict[str, Example] = {}
    for example in examples:
        by_key.setdefault(example_key(example), example)
    return list(by_key.values())


def _read_texts(path: Path) -> list[Example]:
    rows = read_rows(path, needs=(COLUMN,))
    return [Example(row.text(COLUMN), {}) for row in rows]
