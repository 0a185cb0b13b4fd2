"""A person's own table, of any kind of file: any words or numbers as labels, rows that cannot be
used, a test part.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from litotes.core.errors import UserError
from litotes.data.corpus import Corpus
from litotes.data.sources import load, load_with_test_part

ROWS = [
    {"body": 'First, and "best"', "mood": "pos", "irony": "false", "part": "train", "who": "a"},
    {"body": "Second\nline", "mood": "Neutral", "irony": "", "part": "dev", "who": "b"},
    {"body": "Drïtte", "mood": "", "irony": "1", "part": "TEST", "who": "a"},
]


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "jsonl", "jsonl.gz", "parquet", "tsv"])
def test_every_kind_of_file_is_read_the_same(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"reviews.{kind}"
    plain = tmp_path / file.name.removesuffix(".gz")
    if kind == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        values = [{key: value or None for key, value in row.items()} for row in ROWS]
        pq.write_table(pa.Table.from_pylist(values), file)
    elif plain.suffix == ".jsonl":
        plain.write_text("\n".join(map(json.dumps, ROWS)))
    else:
        with plain.open("w", encoding="utf-8", newline="") as stream:
            delimiter = "\t" if kind == "tsv" else ","
            writer = csv.DictWriter(stream, ROWS[0], delimiter=delimiter)
            writer.writeheader()
            writer.writerows(ROWS)
    if file != plain:
        file.write_bytes(gzip.compress(plain.read_bytes()))
    query = "text=body&label.sentiment=mood&label.sarcasm=irony&split=part&group=who"
    loaded = load(f"table:{file}?{query}")
    assert [(one.text, dict(one.labels), one.split, one.group) for one in loaded] == [
        ('First, and "best"', {"sentiment": "positive", "sarcasm": "literal"}, "train", "a"),
        ("Second\nline", {"sentiment": "neutral"}, "valid", "b"),
        ("Drïtte", {"sarcasm": "sarcastic"}, "test", "a"),
    ]
    assert loaded.tasks["sentiment"].labels == ("negative", "neutral", "positive")
    assert loaded.name == file.name


def read(folder: Path, labels: list[str], query: str, *, column: str = "mood") -> Corpus:
    rows = [f"the tea {number};{label}" for number, label in enumerate(labels)]
    (folder / "t.csv").write_text("\n".join([f"text;{column}", *rows, ""]))
    return load(f"table:{folder / 't.csv'}?{query}")


@pytest.mark.parametrize(
    ("words", "query", "labels", "meant"),
    [
        (["happy", " sad ", "angry"], "label=mood", "angry happy sad", ["happy", "sad", "angry"]),
        (["10", "9", "2"], "label=mood", "2 9 10", ["10", "9", "2"]),
        (["1.0", "1", "5.0"], "label=mood", "1 5", ["1", "1", "5"]),
        (["0.5", "-1", "1.0"], "label=mood", "-1 0.5 1.0", ["0.5", "-1", "1.0"]),
        (["02", "1"], "label=mood", "1 02", ["02", "1"]),
        (["10", "9", "many"], "label=mood", "10 9 many", ["10", "9", "many"]),
        (["1", "0", "1.0"], "label.sarcasm=mood", "literal sarcastic", None),
        (["happy", "sad"], "label.sentiment=mood", "happy sad", ["happy", "sad"]),
        # 1 is no spelling of anything among stars
        (["1", "5", "2", "1"], "label.sentiment=mood", "1 2 5", ["1", "5", "2", "1"]),
        (["b|a", "none", "a", ""], "label=mood&several=|", "a b", [("a", "b"), (), ("a",)]),
        (["5", "3.5"], "label=mood&numbers=yes", "", [5.0, 3.5]),
    ],
)
def test_words_and_numbers_become_labels(
    tmp_path: Path, words: list[str], query: str, labels: str, meant: list[object] | None
) -> None:
    corpus = read(tmp_path, words, query)
    (task,) = corpus.tasks.values()
    assert " ".join(task.labels) == labels
    assert task.is_regression is (labels == "")
    if meant is not None:
        assert [example.labels[task.name] for example in corpus if example.labels] == meant


def test_truth_values_of_json_and_columns_with_signs(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"Q&A": "x", "i + j?": true}\n{"Q&A": "y", "i + j?": false}')
    loaded = load(f"table:{tmp_path / 't.jsonl'}?text=Q%26A&label.sarcasm=i + j?")
    assert [example.labels["sarcasm"] for example in loaded] == ["sarcastic", "literal"]
    assert load(f"table:{tmp_path / 't.jsonl'}?text=Q%26A").tasks == {}, "texts alone will do"


def test_unquoted_files_are_read_when_told(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text('text\tmood\n"Nice" he said\tpos\n')
    with pytest.raises(UserError, match=r"line 2: .* quotes=no"):
        load(f"table:{tmp_path / 't.tsv'}?label=mood")
    (example,) = load(f"table:{tmp_path / 't.tsv'}?label=mood&quotes=no")
    assert example.text == '"Nice" he said'


@pytest.mark.parametrize(
    ("column", "proposed"),
    [
        ("truncated", "truncated_label"),
        ("mood_probability", "mood_probability_label"),
        ("Customer mood?", "Customer_mood"),
        ("2nd", "label_2nd"),
        ("Ärger", "rger"),
        ("??", "label"),
    ],
)
def test_a_column_that_cannot_name_a_task_is_answered_with_one(
    tmp_path: Path, column: str, proposed: str
) -> None:
    with pytest.raises(UserError, match=f"A task cannot be called as.*: add task={proposed}"):
        read(tmp_path, ["a", "b"], f"label={column}", column=column)
    corpus = read(tmp_path, ["a", "b"], f"label={column}&task={proposed}", column=column)
    assert list(corpus.tasks) == [proposed]


def test_words_unknown_among_known_ones_are_kept_with_a_note(tmp_path: Path) -> None:
    corpus = read(tmp_path, ["pos", "NEG", "meh", "so so", "meh"], "label.sentiment=mood")
    assert corpus.tasks["sentiment"].labels == ("negative", "positive", "meh", "so so")
    (note,) = corpus.notes
    assert "'meh', 'so so' are not known labels" in note
    assert "data.labels.sentiment" in note
    mapped = corpus.map_labels({"sentiment": {"meh": "neutral", "so so": ""}})
    assert mapped.tasks["sentiment"].labels == ("negative", "positive", "neutral")
    assert mapped.notes == corpus.notes


def test_labels_that_differ_in_case_are_one(tmp_path: Path) -> None:
    corpus = read(tmp_path, ["Good", "good", "bad", "good", "GOOD"], "label=mood")
    assert Counter(example.labels["mood"] for example in corpus) == {"good": 4, "bad": 1}
    (note,) = corpus.notes
    assert "GOOD, Good → good" in note


@pytest.mark.parametrize(
    ("words", "query", "told"),
    [
        ([f"id {n}" for n in range(40)], "label=mood", "holds 40 different labels in 40 rows"),
        (["a", "a"], "label=mood&several=|", "holds only 'a'"),
        (["a|none", "b"], "label=mood&several=|&bad=stop", "'none' next to other labels"),
        (["a|c", "b"], "label=mood&several=,&bad=stop", "the label 'a|c'"),
    ],
)
def test_what_is_no_label_is_told(tmp_path: Path, words: list[str], query: str, told: str) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path, words, query)
    assert told in str(caught.value)


def test_rows_that_cannot_be_used_are_left_out_and_named(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text('text,mood\ngood,a\n ,b\nbad,\nfine,b\n,a\nso"so,a,c\n')
    corpus = load(f"table:{file}?label=mood")
    assert [example.text for example in corpus] == ["good", "fine"]
    (note,) = corpus.notes
    assert note.startswith(
        "t.csv: 4 of 6 rows were left out: 'text' is empty in 2 (lines 3, 6),"
        " 'mood' is empty in 1 (line 4), a cell cannot be read in 1 (line 7)."
    )
    assert corpus.where(split="train").notes == corpus.notes
    with pytest.raises(UserError, match=r"t.csv, line 3, column 'text' is empty"):
        load(f"table:{file}?label=mood&bad=stop")
    file.write_text("text,stars\ngood,5\nbad,many\n" + ",4\n" * 9)
    (note,) = load(f"table:{file}?label=stars&numbers=yes").notes
    assert "line 3, column 'stars': 'many' is not a number" in note
    assert "'text' is empty in 9 (lines 4, 5, 6, 7, 8 and 4 more)" in note


def test_a_table_is_divided_by_an_option_or_for_training(tmp_path: Path) -> None:
    file = tmp_path / "reviews.csv"
    rows = [f"the tea number {n},{('good', 'bad', 'odd')[n % 3]},{n // 4}" for n in range(100)]
    file.write_text("\n".join(["text,mood,author", *rows, ""]))
    plain = f"table:{file}?label=mood"
    corpus = load(f"{plain}&test=0.2")
    by_label = Counter(example.labels["mood"] for example in corpus.where(split="test"))
    assert sorted(by_label.values()) in ([6, 7, 7], [6, 6, 8])  # as frequent as in the whole
    assert load(f"{plain}&test=0.2&seed=0") == corpus
    other = load(f"{plain}&test=0.2&seed=1")
    assert other != corpus
    assert [example.text for example in other] == [example.text for example in corpus]
    grouped = load(f"{plain}&group=author&test=0.25")
    train, test = ({one.group for one in grouped.where(split=part)} for part in ("train", "test"))
    assert test
    assert not train & test
    for_training = load_with_test_part(plain)
    assert for_training.examples == corpus.examples
    assert "20 of its 100 texts were set aside" in for_training.notes[-1]
    assert load(plain).splits() == ("train",)
    assert load_with_test_part(f"{plain}&test=0").splits() == ("train",)
    assert load_with_test_part("sampler") == load("sampler")
