"""A person's own table: any words or numbers as labels, rows that cannot be used, a test part."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from litotes.core.errors import UserError
from litotes.data.corpus import Corpus
from litotes.data.sources import load, load_with_test_part


def read(folder: Path, labels: list[str], query: str, *, column: str = "mood") -> Corpus:
    rows = [f"the tea {number};{label}" for number, label in enumerate(labels)]
    (folder / "t.csv").write_text("\n".join([f"text;{column}", *rows, ""]))
    return load(f"table:{folder / 't.csv'}?{query}")


def test_a_task_is_called_as_its_column(tmp_path: Path) -> None:
    corpus = read(tmp_path, ["happy", " sad ", "angry", "sad"], "label=mood")
    assert corpus.tasks["mood"].labels == ("angry", "happy", "sad")
    assert [example.labels["mood"] for example in corpus] == ["happy", "sad", "angry", "sad"]


@pytest.mark.parametrize(
    ("column", "proposed"),
    [
        ("truncated", "task=truncated_label"),
        ("problem", "task=problem_label"),
        ("mood_probability", "task=mood_probability_label"),
        ("Customer mood?", "task=Customer_mood"),
        ("2nd", "task=label_2nd"),
        ("Ärger", "task=rger"),
    ],
)
def test_a_column_that_cannot_name_a_task_is_answered_with_one(
    tmp_path: Path, column: str, proposed: str
) -> None:
    with pytest.raises(UserError, match=f"column {column[:3]}.*: add {proposed}"):
        read(tmp_path, ["a", "b"], f"label={column}", column=column)
    corpus = read(tmp_path, ["a", "b"], f"label={column}&{proposed}", column=column)
    assert list(corpus.tasks) == [proposed.removeprefix("task=")]


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        (["10", "9", "2"], ("2", "9", "10")),
        (["1.0", "1", "5.0"], ("1", "5")),
        (["0.5", "-1", "1.0"], ("-1", "0.5", "1.0")),
        (["02", "1"], ("1", "02")),
        (["10", "9", "many"], ("10", "9", "many")),
    ],
)
def test_numbers_are_classes_in_the_order_of_numbers(
    tmp_path: Path, words: list[str], labels: tuple[str, ...]
) -> None:
    assert read(tmp_path, words, "label=mood").tasks["mood"].labels == labels


def test_stars_may_be_a_number_to_predict(tmp_path: Path) -> None:
    corpus = read(tmp_path, ["5", "3.5", "1"], "label=mood&numbers=yes")
    assert corpus.tasks["mood"].is_regression
    assert corpus.examples[1].labels == {"mood": 3.5}


@pytest.mark.parametrize("task", ["sentiment", "sarcasm"])
def test_a_known_task_takes_words_of_its_own(tmp_path: Path, task: str) -> None:
    corpus = read(tmp_path, ["happy", "sad", "angry"], f"label.{task}=mood")
    assert corpus.tasks[task].labels == ("angry", "happy", "sad")
    stars = read(tmp_path, ["1", "5", "2", "1"], f"label.{task}=mood")
    assert stars.tasks[task].labels == ("1", "2", "5"), "1 is no spelling of anything among stars"


def test_words_unknown_among_known_ones_are_kept_with_a_note(tmp_path: Path) -> None:
    corpus = read(tmp_path, ["pos", "NEG", "meh", "so so", "meh"], "label.sentiment=mood")
    assert corpus.tasks["sentiment"].labels == ("negative", "positive", "meh", "so so")
    (note,) = corpus.notes
    assert "'meh', 'so so'" in note
    assert "data.labels" in note
    mapped = corpus.map_labels({"sentiment": {"meh": "neutral", "so so": ""}})
    assert mapped.tasks["sentiment"].labels == ("negative", "positive", "neutral")
    assert mapped.notes == corpus.notes


def test_labels_that_differ_in_case_are_one(tmp_path: Path) -> None:
    corpus = read(tmp_path, ["Good", "good", "bad", "good", "GOOD"], "label=mood")
    assert corpus.tasks["mood"].labels == ("bad", "good")
    assert Counter(example.labels["mood"] for example in corpus) == {"good": 4, "bad": 1}
    (note,) = corpus.notes
    assert "GOOD, Good → good" in note


def test_a_column_of_ids_is_no_label(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"column 'mood' holds 40 different labels in 40 rows: "):
        read(tmp_path, [f"id {number}" for number in range(40)], "label=mood")


def test_rows_without_text_or_label_are_left_out_and_named(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("text,mood\ngood,a\n ,b\nbad,\nfine,b\n,a\n")
    corpus = load(f"table:{file}?label=mood")
    assert [example.text for example in corpus] == ["good", "fine"]
    (note,) = corpus.notes
    assert note.startswith(
        "t.csv: 3 of 5 rows were left out: 'text' is empty in 2 (lines 3, 6),"
        " 'mood' is empty in 1 (line 4)."
    )
    assert corpus.where(split="train").notes == corpus.notes
    with pytest.raises(UserError, match=r"t.csv, line 3, column 'text' is empty"):
        load(f"table:{file}?label=mood&bad=stop")


def test_only_the_first_of_many_lines_are_named(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("text,mood\ngood,a\n" + ",b\n" * 9)
    assert "(lines 3, 4, 5, 6, 7 and 4 more)" in load(f"table:{file}?label=mood").notes[0]


def test_a_cell_that_cannot_be_read_is_quoted(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("text,stars\ngood,5\nbad,many\n")
    (note,) = load(f"table:{file}?label=stars&numbers=yes").notes
    assert "line 3, column 'stars': 'many' is not a number" in note


def table_of(folder: Path, n: int = 100) -> Path:
    file = folder / "reviews.csv"
    rows = [
        f"the tea number {number},{('good', 'bad', 'odd')[number % 3]},{number // 4}"
        for number in range(n)
    ]
    file.write_text("\n".join(["text,mood,author", *rows, ""]))
    return file


def test_a_table_is_divided_by_an_option(tmp_path: Path) -> None:
    source = f"table:{table_of(tmp_path)}?label=mood&test=0.2"
    corpus = load(source)
    tested = corpus.where(split="test")
    assert len(tested) == 20
    by_label = Counter(example.labels["mood"] for example in tested)
    assert set(by_label.values()) <= {6, 7}, "every label is as frequent as in the whole"
    assert load(source) == corpus
    assert load(f"{source}&seed=1") != corpus
    assert [example.text for example in load(f"{source}&seed=1")] == [
        example.text for example in corpus
    ]


def test_a_group_is_in_one_part(tmp_path: Path) -> None:
    corpus = load(f"table:{table_of(tmp_path)}?label=mood&group=author&test=0.25")
    groups = [
        {example.group for example in corpus.where(split=split)} for split in ("train", "test")
    ]
    assert groups[0] & groups[1] == set()
    assert groups[1]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("test=1", "test=1 is not a share"),
        ("test=x", "test=x is not a number"),
        ("test=0.2&split=mood", "test=0.2 and split=mood"),
        ("seed=3", "seed=3 needs a share"),
    ],
)
def test_an_impossible_test_part_is_explained(tmp_path: Path, options: str, problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        load(f"table:{table_of(tmp_path)}?label=mood&{options}")


def test_a_table_without_a_split_gets_one_for_training(tmp_path: Path) -> None:
    source = f"table:{table_of(tmp_path)}?label=mood"
    corpus = load_with_test_part(source)
    assert len(corpus.where(split="test")) == 20
    assert corpus == load_with_test_part(source)
    assert "20 of its 100 texts were set aside" in corpus.notes[-1]
    assert load(source).splits() == ("train",)
    assert load_with_test_part(f"{source}&test=0").splits() == ("train",)
    assert load_with_test_part("sampler") == load("sampler")
