"""A corpus to distil on, and a recipe that takes seconds."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import torch

from litotes.training.distillation import DistillRecipe
from litotes.training.recipe import Recipe

WORDS = (
    "kettle",
    "platform",
    "umbrella",
    "station",
    "biscuit",
    "weather",
    "neighbour",
    "garden",
    "harbour",
    "lantern",
)


def write_corpus(file: Path) -> str:
    """Texts of two moods in two varieties; some carry the label of another task alone, and some
    are near-copies of others.
    """
    rows = ["text,mood,tone,variety,split"]
    for number in range(120):
        mood = ("positive", "negative")[number % 3 == 0]
        variety = ("en-AU", "en-UK")[number % 2]
        own = " ".join(WORDS[(number * step + step) % 10] + str(number) for step in (1, 3, 7))
        word = "great and i love it" if mood == "positive" else "bad and i hate it"
        split = "test" if number % 5 == 0 else "train"
        labels = f",{'dry' if number % 16 == 1 else 'warm'}" if number % 8 == 1 else f"{mood},"
        rows.append(f"{own} is {word},{labels},{variety},{split}")
        if number % 7 == 3:
            rows.append(f"{own} is {word} so,{labels},{variety},{split}")
    file.write_text("\n".join(rows) + "\n")
    return f"table:{file}?label.sentiment=mood&label.tone=tone&variety=variety&split=split"


@pytest.fixture(scope="session")
def tea(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_corpus(tmp_path_factory.mktemp("corpus") / "tea.csv")


@pytest.fixture(scope="session")
def recipe(tea: str, tiny_recipe: Recipe) -> DistillRecipe:
    student = tiny_recipe.changed(
        data__source=tea,
        data__tasks=["sentiment"],
        data__where={},
        model__max_pieces=24,
        training__epochs=1,
    )
    content = {"folds": 2, "unlabelled": "selection", "baseline": False}
    return DistillRecipe.of({**student.model_dump(), "distill": content}, "test")


TAGGED = ("the", "tea", "is", "great", "queue", "not", "bad", "love", "and", "hate")
MARKED = {"great", "bad", "love", "hate"}


@pytest.fixture(scope="session")
def word_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts whose answers a tiny encoder learns by heart: words of feeling are marked, the
    span is the queue.
    """
    file = tmp_path_factory.mktemp("words") / "words.jsonl"
    rows = []
    generator = torch.Generator().manual_seed(0)
    for number in range(72):
        size = 3 + number % 6
        chosen = torch.randperm(len(TAGGED), generator=generator).tolist()[:size]
        words = [TAGGED[place] for place in chosen]
        tags = ["B-F" if word in MARKED else "O" for word in words]
        span = None
        if "queue" in words:
            span = [words.index("queue"), words.index("queue") + 1]
        split = "test" if number % 4 == 0 else "train"
        rows.append({"words": words, "tags": tags, "span": span, "split": split})
    file.write_text("\n".join(map(json.dumps, rows)))
    return file


SUBJECTS = ("the cat", "my mother", "a king", "our neighbour")
VERBS = ("drinks", "brews", "spills", "praises")
OBJECTS = ("black tea", "cold coffee", "warm milk", "old wine")


@pytest.fixture(scope="session")
def prose(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences in which words predict one another, in small documents."""
    chance = random.Random(0)
    file = tmp_path_factory.mktemp("prose") / "prose.txt"
    lines = []
    for number in range(400):
        which = chance.randrange(4)
        day = chance.randrange(28) + 1
        lines.append(f"{SUBJECTS[which]} {VERBS[which]} {OBJECTS[which]} on day {day}.")
        if number % 8 == 7:
            lines.append("")
    file.write_text("\n".join(lines) + "\n")
    return file
