"""What is particular to each source."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from made_files import write_table

from litotes.core.errors import UserError
from litotes.data.sources import has_prefix, load

LONG = {"text": "Ace", "label": "1", "variety": "en-AU", "source": "Reddit", "task": "Sentiment"}
WIDE = {
    "source": "google",
    "variety": "en-UK",
    "text": "Ta very much",
    "sentiment": "1",
    "sarcasm": "0",
}


def test_besstie_merges_the_tasks_of_a_text_and_loses_no_row(tmp_path: Path) -> None:
    sarcasm = {**LONG, "task": "Sarcasm", "label": "0"}
    write_table(
        tmp_path / "train.csv",
        [
            LONG,
            sarcasm,
            {**LONG, "label": "0"},
            {**sarcasm, "variety": "en-IN"},
            {**sarcasm, "source": "Google"},
        ],
    )
    labels = [
        (example.variety, example.source, dict(example.labels))
        for example in load(f"besstie:{tmp_path}")
    ]
    assert labels == [
        ("en-AU", "Reddit", {"sentiment": "positive", "sarcasm": "literal"}),
        ("en-AU", "Reddit", {"sentiment": "negative"}),
        ("en-IN", "Reddit", {"sarcasm": "literal"}),
        ("en-AU", "Google", {"sarcasm": "literal"}),
    ]


def test_besstie_reads_the_wide_form_and_its_empty_cells(tmp_path: Path) -> None:
    write_table(tmp_path / "train.csv", [WIDE, {**WIDE, "sarcasm": ""}, WIDE])
    write_table(tmp_path / "test.csv", [{key: WIDE[key] for key in ("source", "variety", "text")}])
    loaded = load(f"besstie:{tmp_path}")
    assert [dict(example.labels) for example in loaded] == [
        {"sentiment": "positive", "sarcasm": "literal"},
        {"sentiment": "positive"},
        {"sentiment": "positive", "sarcasm": "literal"},
        {},
    ]
    assert {example.source for example in loaded} == {"Google"}
    assert loaded.splits() == ("train", "test")


def test_besstie_puts_source_and_variety_before_the_text(tmp_path: Path) -> None:
    write_table(tmp_path / "train.csv", [WIDE])
    (example,) = load(f"besstie:{tmp_path}?prefix=variety")
    assert example.text == "google british: Ta very much"
    (plain,) = load(f"besstie:{tmp_path}?prefix=none")
    assert plain.text == "Ta very much"
    with pytest.raises(UserError, match="prefix=yes: There is no choice 'yes'"):
        load(f"besstie:{tmp_path}?prefix=yes")


def test_a_prefix_is_known_by_the_source_of_a_recipe() -> None:
    assert has_prefix("besstie:a.csv?prefix=variety")
    assert not has_prefix("besstie:a.csv?prefix=none + sampler")


def test_besstie_takes_float_labels_as_spreadsheets_leave_them(tmp_path: Path) -> None:
    write_table(tmp_path / "valid.csv", [{**WIDE, "sentiment": "0.0", "sarcasm": "1.0"}])
    assert dict(load(f"besstie:{tmp_path}").examples[0].labels) == {
        "sentiment": "negative",
        "sarcasm": "sarcastic",
    }


@pytest.mark.parametrize(
    ("file", "split"),
    [
        ("train.csv", "train"),
        ("alta_validation.csv", "valid"),
        ("dev-2.csv", "valid"),
        ("my.test.csv", "test"),
    ],
)
def test_besstie_reads_the_split_off_a_file_name(tmp_path: Path, file: str, split: str) -> None:
    write_table(tmp_path / file, [LONG])
    assert load(f"besstie:{tmp_path / file}").splits() == (split,)


def test_besstie_asks_for_the_split_where_the_name_is_silent(tmp_path: Path) -> None:
    write_table(tmp_path / "attest.csv", [LONG])  # ends in "test", which is not the word
    with pytest.raises(UserError, match=r"attest.csv does not say its split: add \?split=train"):
        load(f"besstie:{tmp_path / 'attest.csv'}")
    assert load(f"besstie:{tmp_path / 'attest.csv'}?split=valid").splits() == ("valid",)
    with pytest.raises(
        UserError, match=r"split=vald: There is no choice 'vald'. Did you mean 'valid'"
    ):
        load(f"besstie:{tmp_path / 'attest.csv'}?split=vald")


def test_besstie_refuses_a_split_for_a_folder(tmp_path: Path) -> None:
    write_table(tmp_path / "train.csv", [LONG])
    with pytest.raises(UserError, match="is for a single file"):
        load(f"besstie:{tmp_path}?split=train")


def test_besstie_needs_labels_in_training_but_not_in_test(tmp_path: Path) -> None:
    write_table(tmp_path / "test.csv", [{**LONG, "label": ""}])
    assert dict(load(f"besstie:{tmp_path}").examples[0].labels) == {}
    write_table(tmp_path / "train.csv", [{"text": "Ace", "variety": "en-AU", "source": "Reddit"}])
    with pytest.raises(UserError, match="There is no column 'sentiment'"):
        load(f"besstie:{tmp_path}")


TWEET = {"id": "1", "entity": "Kettle", "sentiment": "Negative", "text": "it boils no more"}


@pytest.mark.parametrize("header", [True, False])
def test_twitter_reads_files_with_and_without_a_header(tmp_path: Path, header: bool) -> None:
    file = tmp_path / "tweets.csv"
    write_table(
        file,
        [
            TWEET,
            {**TWEET, "id": "2", "text": " "},
            {**TWEET, "sentiment": "Irrelevant"},
            {**TWEET, "text": "too short"},
        ],
    )
    if not header:
        file.write_text(file.read_text().partition("\n")[2])
    (example,) = load(f"twitter:{file}?min_words=4").examples
    assert (example.text, example.group, example.source, dict(example.labels)) == (
        "it boils no more",
        "1",
        "Twitter",
        {"sentiment": "negative"},
    )


def test_twitter_keeps_forty_words_by_default(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", [{**TWEET, "text": "so " * n} for n in (39, 40, 41)])
    assert [len(example.text.split()) for example in load(f"twitter:{tmp_path / 't.csv'}")] == [
        40,
        41,
    ]


def test_twitter_keeps_the_versions_of_a_tweet_in_one_split(tmp_path: Path) -> None:
    write_table(
        tmp_path / "t.csv",
        [{**TWEET, "id": str(n // 4), "text": f"version {n} of it"} for n in range(400)],
    )
    splits: dict[str, set[str]] = {}
    for example in load(f"twitter:{tmp_path / 't.csv'}?min_words=1"):
        splits.setdefault(str(example.group), set()).add(example.split)
    assert all(len(found) == 1 for found in splits.values())
    assert {split for found in splits.values() for split in found} == {"train", "test"}


def test_twitter_says_when_nothing_is_long_enough(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", [TWEET])
    with pytest.raises(UserError, match="choose a smaller min_words"):
        load(f"twitter:{tmp_path / 't.csv'}")
    with pytest.raises(UserError, match="min_words=few is not a whole number"):
        load(f"twitter:{tmp_path / 't.csv'}?min_words=few")


@pytest.mark.slow
def test_bicodemix_options_choose_kind_and_classes(make: Callable[..., str]) -> None:
    spec = make("bicodemix")
    assert (
        len(load(spec))
        == len(load(f"{spec}?kind=reply")) + len(load(f"{spec}?kind=comment"))
        == 160
    )
    assert all(
        example.labels["sarcasm"] == "sarcastic" for example in load(f"{spec}?kind=reply")
    ), "made so"
    three, two = load(spec), load(f"{spec}?classes=2")
    assert three.tasks["sentiment"].labels == ("negative", "neutral", "positive")
    assert two.tasks["sentiment"].labels == ("negative", "positive")
    assert [
        sum("sentiment" in example.labels for example in loaded) for loaded in (three, two)
    ] == [120, 80]
    assert all("sarcasm" in example.labels for example in two)
    with pytest.raises(UserError, match="no text with lang=my and kind=all"):
        load(f"{spec}?lang=my")


@pytest.mark.parametrize("below", ["", "/RTE"])
def test_glue_reads_its_own_folder_and_the_one_above(make: Callable[..., str], below: str) -> None:
    loaded = load(make("glue/rte") + below)
    assert loaded.splits() == ("train", "valid")
    assert (loaded.examples[0].text, loaded.examples[0].pair) == ('He said "no 0', "He declined 0")


def test_glue_does_without_a_training_file(make: Callable[..., str], tmp_path: Path) -> None:
    spec = make("glue/qnli")
    (tmp_path / "QNLI" / "train.tsv").unlink()
    assert load(spec).splits() == ("valid",)


def test_glue_scores_are_numbers_from_0_to_5(make: Callable[..., str], tmp_path: Path) -> None:
    spec = make("glue/stsb")
    assert load(spec).examples[0].labels == {"similarity": 3.8}
    (tmp_path / "STS-B" / "dev.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t5.1\n")
    with pytest.raises(UserError, match=r"dev.tsv, line 2, column 'score': a similarity of 5.1"):
        load(spec)


ROWS = [
    {"body": 'First, and "best"', "mood": "pos", "irony": "false", "part": "train", "who": "a"},
    {"body": "Second\nline", "mood": "Neutral", "irony": "", "part": "dev", "who": "b"},
    {"body": "Drïtte", "mood": "", "irony": "1", "part": "TEST", "who": "a"},
]
QUERY = "text=body&label.sentiment=mood&label.sarcasm=irony&split=part&group=who"


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "jsonl", "jsonl.gz", "parquet", "tsv"])
def test_table_reads_the_same_from_every_kind_of_file(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"reviews.{kind}"
    write_as(kind, file)
    loaded = load(f"table:{file}?{QUERY}")
    assert [
        (example.text, dict(example.labels), example.split, example.group) for example in loaded
    ] == [
        ('First, and "best"', {"sentiment": "positive", "sarcasm": "literal"}, "train", "a"),
        ("Second\nline", {"sentiment": "neutral"}, "valid", "b"),
        ("Drïtte", {"sarcasm": "sarcastic"}, "test", "a"),
    ]
    assert loaded.tasks["sentiment"].labels == ("negative", "neutral", "positive")
    assert loaded.name == file.name


def write_as(kind: str, file: Path) -> None:
    if kind == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        values = [{key: value or None for key, value in row.items()} for row in ROWS]
        pq.write_table(pa.Table.from_pylist(values), file)
        return
    plain = file.with_name(file.name.removesuffix(".gz"))
    (
        write_table(plain, ROWS)
        if kind != "tsv"
        else plain.write_text(
            "body\tmood\tirony\tpart\twho\n"
            '"First, and ""best"""\tpos\tfalse\ttrain\ta\n'
            '"Second\nline"\tNeutral\t\tdev\tb\n'
            "Drïtte\t\t1\tTEST\ta\n",
            encoding="utf-8",
        )
    )
    if file != plain:
        file.write_bytes(gzip.compress(plain.read_bytes()))


def test_table_takes_label_words_from_the_file(tmp_path: Path) -> None:
    write_table(
        tmp_path / "t.csv", [{"text": "x", "topic": topic} for topic in ("tea", "coffee", "tea")]
    )
    loaded = load(f"table:{tmp_path / 't.csv'}?label=topic&task=drink")
    assert loaded.tasks["drink"].labels == ("coffee", "tea")
    assert list(load(f"table:{tmp_path / 't.csv'}?label=topic").tasks) == ["topic"]
    assert load(f"table:{tmp_path / 't.csv'}").tasks == {}, "texts alone will do"


def test_table_reads_numbers(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(
        "".join(json.dumps({"text": "x", "warmth": n}) + "\n" for n in (1, 2.5))
    )
    loaded = load(f"table:{tmp_path / 't.jsonl'}?label=warmth&task=warmth&numbers=yes")
    assert loaded.tasks["warmth"].is_regression
    assert [example.labels["warmth"] for example in loaded] == [1.0, 2.5]


def test_table_reads_the_truth_values_of_json(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(
        '{"text": "x", "irony": true}\n{"text": "y", "irony": false}\n'
    )
    loaded = load(f"table:{tmp_path / 't.jsonl'}?label.sarcasm=irony")
    assert [example.labels["sarcasm"] for example in loaded] == ["sarcastic", "literal"]


def test_table_reads_unquoted_files_when_told(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text('text\tmood\n"Nice" he said\tpos\n')
    with pytest.raises(UserError, match=r"line 2: .* quotes=no"):
        load(f"table:{tmp_path / 't.tsv'}?label.sentiment=mood")
    assert (
        load(f"table:{tmp_path / 't.tsv'}?label.sentiment=mood&quotes=no").examples[0].text
        == '"Nice" he said'
    )


def test_table_columns_may_be_percent_encoded(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", [{"Q&A": "x", "good + bad?": "1"}])
    assert load(f"table:{tmp_path / 't.csv'}?text=Q%26A&label.sentiment=good + bad?").examples[
        0
    ].labels == {"sentiment": "positive"}


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("task=mood", "needs the column of its labels"),
        ("label=a&task=mood&label.mood=b", "has two columns"),
        ("numbers=si", "numbers=si: There is no choice"),
    ],
)
def test_table_refuses_contradicting_options(query: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        load(f"table:reviews.csv?{query}")


def test_vader_leaves_the_undecided_out_and_keeps_documents_together(
    make: Callable[..., str],
) -> None:
    loaded = load(make("vader"))
    assert len(loaded) == 80 + 79
    assert {
        dict(example.labels)["sentiment"]
        for example in loaded
        if example.source == "product reviews"
    } == {"negative"}
    splits: dict[str | None, set[str]] = {}
    for example in loaded:
        splits.setdefault(example.group, set()).add(example.split)
    assert all(len(one) == 1 for one in splits.values())
    assert len(load(make("vader") + "?least=0.1")) == 160
    with pytest.raises(UserError, match="least=near is not a number"):
        load(make("vader") + "?least=near")
    with pytest.raises(UserError, match="has no text rated 4"):
        load(make("vader") + "?least=4")


def test_isarcasm_takes_what_was_meant_as_literal_where_it_is_told(
    make: Callable[..., str],
) -> None:
    spec = make("isarcasm")
    assert len(load(spec)) == 8
    loaded = load(f"{spec}?rephrased=yes")
    meant = [example for example in loaded if example.text == "It rains."]
    assert len(loaded) == 11
    assert [(dict(example.labels), example.split) for example in meant] == [
        ({"sarcasm": "literal"}, "train")
    ] * 3
    for example in meant:
        assert sum(other.group == example.group for other in loaded) == 2


def test_several_sources_are_one_corpus(make: Callable[..., str]) -> None:
    parts = make("vader"), make("isarcasm"), "sampler"
    loaded = load(" + ".join(parts))
    assert len(loaded) == sum(len(load(part)) for part in parts)
    assert list(loaded.tasks) == ["sentiment", "sarcasm"]
    assert loaded.name == "vader + isarcasm + sampler"


def test_sources_with_other_label_words_are_not_joined(make: Callable[..., str]) -> None:
    with pytest.raises(
        UserError,
        match="sentiment is answered with negative, positive and negative, neutral, positive",
    ):
        load(f"sampler + {make('bicodemix')}")
