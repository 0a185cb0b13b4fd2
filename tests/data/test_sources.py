"""What is particular to each source of the table."""

from collections.abc import Callable
from pathlib import Path

import pytest
from made_files import write_table

from litotes.core.errors import UserError
from litotes.data.sources import (
    has_option,
    has_prefix,
    load,
    make_source,
    options_of,
    source_names,
    with_option,
)

LONG = {"text": "Ace", "label": "1", "variety": "en-AU", "source": "Reddit", "task": "Sentiment"}
WIDE = {"source": "google", "variety": "en-UK", "text": "Ta", "sentiment": "1", "sarcasm": "0"}


def test_besstie_merges_the_tasks_of_a_text_and_loses_no_row(tmp_path: Path) -> None:
    sarcasm = {**LONG, "task": "Sarcasm", "label": "0"}
    others = [{**sarcasm, "variety": "en-IN"}, {**sarcasm, "source": "Google"}]
    write_table(tmp_path / "train.csv", [LONG, sarcasm, {**LONG, "label": "0"}, *others])
    write_table(tmp_path / "test.csv", [{**LONG, "label": ""}])
    assert [(one.variety, one.source, dict(one.labels)) for one in load(f"besstie:{tmp_path}")] == [
        ("en-AU", "Reddit", {"sentiment": "positive", "sarcasm": "literal"}),
        ("en-AU", "Reddit", {"sentiment": "negative"}),
        ("en-IN", "Reddit", {"sarcasm": "literal"}),
        ("en-AU", "Google", {"sarcasm": "literal"}),
        ("en-AU", "Reddit", {}),  # a test file may hide its labels
    ]


def test_besstie_reads_the_wide_form_and_its_empty_cells(tmp_path: Path) -> None:
    spreadsheet = {**WIDE, "sentiment": "0.0", "sarcasm": "1.0"}
    write_table(tmp_path / "train.csv", [WIDE, {**WIDE, "sarcasm": ""}, spreadsheet])
    write_table(tmp_path / "test.csv", [{key: WIDE[key] for key in ("source", "variety", "text")}])
    loaded = load(f"besstie:{tmp_path}?prefix=variety")
    assert [dict(example.labels) for example in loaded] == [
        {"sentiment": "positive", "sarcasm": "literal"},
        {"sentiment": "positive"},
        {"sentiment": "negative", "sarcasm": "sarcastic"},
        {},
    ]
    assert {example.text for example in loaded} == {"google british: Ta"}
    assert {example.text for example in load(f"besstie:{tmp_path}?prefix=none")} == {"Ta"}
    assert loaded.splits() == ("train", "test")
    with pytest.raises(UserError, match="prefix=yes: There is no choice 'yes'"):
        load(f"besstie:{tmp_path}?prefix=yes")
    write_table(tmp_path / "train.csv", [{"text": "Ace", "variety": "en-AU", "source": "Reddit"}])
    with pytest.raises(UserError, match="There is no column 'sentiment'"):
        load(f"besstie:{tmp_path}")


@pytest.mark.parametrize(
    ("file", "split"),
    [
        ("train.csv", "train"),
        ("alta_validation.csv", "valid"),
        ("dev-2.csv", "valid"),
        ("my.test.csv", "test"),
        ("attest.csv", None),  # ends in "test", which is not the word
    ],
)
def test_besstie_reads_the_split_off_a_file_name(
    tmp_path: Path, file: str, split: str | None
) -> None:
    write_table(tmp_path / file, [LONG])
    assert load(f"besstie:{tmp_path / file}?split=valid").splits() == ("valid",)
    if split is None:
        with pytest.raises(UserError, match=r"does not say its split: add \?split=train"):
            load(f"besstie:{tmp_path / file}")
    else:
        assert load(f"besstie:{tmp_path / file}").splits() == (split,)
    with pytest.raises(UserError, match=r"split=vald: .*'vald'.*'valid'"):
        load(f"besstie:{tmp_path / file}?split=vald")
    with pytest.raises(UserError, match="is for a single file"):
        load(f"besstie:{tmp_path}?split=train")


TWEET = {"id": "1", "entity": "Kettle", "sentiment": "Negative", "text": "it boils no more"}


@pytest.mark.parametrize("header", [True, False])
def test_twitter_reads_files_with_and_without_a_header(tmp_path: Path, header: bool) -> None:
    file = tmp_path / "tweets.csv"
    changes = ({}, {"id": "2", "text": " "}, {"sentiment": "Irrelevant"}, {"text": "too short"})
    write_table(file, [{**TWEET, **change} for change in changes])
    if not header:
        file.write_text(file.read_text().partition("\n")[2])
    (example,) = load(f"twitter:{file}?min_words=4").examples
    assert (example.text, example.group, example.source) == ("it boils no more", "1", "Twitter")
    assert example.labels == {"sentiment": "negative"}
    with pytest.raises(UserError, match="choose a smaller min_words"):
        load(f"twitter:{file}")
    with pytest.raises(UserError, match="min_words=few is not a whole number"):
        load(f"twitter:{file}?min_words=few")
    write_table(file, [{**TWEET, "text": "so " * n} for n in (39, 40, 41)])
    assert [len(example.text.split()) for example in load(f"twitter:{file}")] == [40, 41]


def test_twitter_keeps_the_versions_of_a_tweet_in_one_split(tmp_path: Path) -> None:
    rows = [{**TWEET, "id": str(n // 4), "text": f"version {n} of it"} for n in range(400)]
    write_table(tmp_path / "t.csv", rows)
    splits: dict[str | None, set[str]] = {}
    for example in load(f"twitter:{tmp_path / 't.csv'}?min_words=1"):
        splits.setdefault(example.group, set()).add(example.split)
    assert sorted(map(len, splits.values())) == [1] * 100
    assert 3 <= sum(found == {"test"} for found in splits.values()) <= 20  # about a tenth


def test_bicodemix_options_choose_kind_and_classes(make: Callable[..., str]) -> None:
    spec = make("bicodemix")
    three, two = load(spec), load(f"{spec}?classes=2")
    replies, comments = load(f"{spec}?kind=reply"), load(f"{spec}?kind=comment")
    assert len(three) == len(replies) + len(comments) == 160
    assert {example.labels["sarcasm"] for example in replies} == {"sarcastic"}, "made so"
    assert three.tasks["sentiment"].labels == ("negative", "neutral", "positive")
    assert two.tasks["sentiment"].labels == ("negative", "positive")
    counts = [sum("sentiment" in one.labels for one in loaded) for loaded in (three, two)]
    assert counts == [120, 80]
    assert all("sarcasm" in example.labels for example in two)
    with pytest.raises(UserError, match="no text with lang=my and kind=all"):
        load(f"{spec}?lang=my")


def test_glue_reads_its_own_folder_and_the_one_above(make: Callable[..., str]) -> None:
    for below in ("", "/RTE"):
        loaded = load(make("glue/rte") + below)
        assert loaded.splits() == ("train", "valid")
        first = loaded.examples[0]
        assert (first.text, first.pair) == ('He said "no 0', "He declined 0")


def test_glue_scores_are_numbers_from_0_to_5(make: Callable[..., str], tmp_path: Path) -> None:
    spec = make("glue/stsb")
    (tmp_path / "STS-B" / "train.tsv").unlink()
    loaded = load(spec)
    assert loaded.splits() == ("valid",), "the training file may be missing"
    assert loaded.examples[0].labels == {"similarity": 3.8}
    for score in ("5.1", "-0.1"):
        (tmp_path / "STS-B" / "dev.tsv").write_text(f"sentence1\tsentence2\tscore\na\tb\t{score}\n")
        with pytest.raises(UserError, match=rf"line 2, column 'score': a similarity of {score}"):
            load(spec)


def test_vader_leaves_the_undecided_out_and_keeps_documents_together(
    make: Callable[..., str],
) -> None:
    loaded = load(make("vader"))
    assert len(loaded) == 80 + 79
    reviews = [example for example in loaded if example.source == "product reviews"]
    assert {example.labels["sentiment"] for example in reviews} == {"negative"}
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
    assert [(one.labels["sarcasm"], one.split) for one in meant] == [("literal", "train")] * 3
    for example in meant:
        assert sum(other.group == example.group for other in loaded) == 2


def test_several_sources_are_one_corpus(make: Callable[..., str]) -> None:
    parts = make("vader"), make("isarcasm"), "sampler"
    loaded = load(" + ".join(parts))
    assert len(loaded) == sum(len(load(part)) for part in parts)
    assert list(loaded.tasks) == ["sentiment", "sarcasm"]
    assert loaded.name == "vader + isarcasm + sampler"
    with pytest.raises(UserError, match="negative, positive and negative, neutral, positive"):
        load(f"sampler + {make('bicodemix')}")


def test_a_source_is_taken_apart_and_put_together() -> None:
    both = "sampler + besstie:a + b.csv?split=train&prefix=variety"
    assert source_names(both) == {"sampler", "besstie"}
    assert options_of(both) == {"split": "train", "prefix": "variety"}
    assert has_prefix(both)
    assert not has_prefix("besstie:a.csv?prefix=none + sampler")
    assert has_option("besstie:a.csv", "prefix")
    assert not has_option("sampler", "prefix")
    assert not has_option(both, "prefix")
    assert with_option("table:a?text=b", "label", "50% & c") == "table:a?text=b&label=50%25 %26 c"
    assert options_of(with_option("table:a?text=b", "text", "50% & c")) == {"text": "50% & c"}
    assert make_source("sampler", {}) == "sampler"
