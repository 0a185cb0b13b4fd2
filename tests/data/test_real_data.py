"""The sources on the real files, where those are at hand: everything in them is read, and the known
leak is found.
"""

import csv
import gzip
from collections import Counter
from pathlib import Path

import pytest

from litotes.data.audit import audit
from litotes.data.corpus import text_key
from litotes.data.sources import load


def rows_of(file: Path) -> list[dict[str, str]]:
    with gzip.open(file, "rt", encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_besstie_has_a_label_for_every_row(shared_data: Path) -> None:
    words = {"Sentiment": ("negative", "positive"), "Sarcasm": ("literal", "sarcastic")}
    wanted = Counter(
        (
            split,
            row["variety"],
            row["source"],
            row["task"].lower(),
            words[row["task"]][int(row["label"])],
        )
        for split in ("train", "valid")
        for row in rows_of(shared_data / "besstie" / f"{split}.csv.gz")
    )
    loaded = load(f"besstie:{shared_data / 'besstie'}")
    found = {
        (count.split, count.cell.variety, count.cell.source, count.task, count.label): count.n
        for count in loaded.counts()
    }
    assert found == dict(wanted)
    assert sum(found.values()) == 13_049 + 2_428


@pytest.mark.slow
def test_the_besstie_leak_is_found(shared_data: Path) -> None:
    train, valid = (
        rows_of(shared_data / "besstie" / f"{split}.csv.gz") for split in ("train", "valid")
    )
    flagged = sum(row["text_in_valid_any_task"] == "True" for row in train)
    texts, keys = {row["text"] for row in valid}, {text_key(row["text"]) for row in valid}
    # the flag compares texts byte by byte, the audit by key: rows that differ in case or white
    # space alone come on top
    only_by_key = sum(row["text"] not in texts and text_key(row["text"]) in keys for row in train)
    corpus = load(f"besstie:{shared_data / 'besstie'}")
    found = {finding.kind: finding for finding in audit(corpus).findings}
    assert (flagged, only_by_key) == (868, 2)
    assert found["leak"].n + found["cross_task_leak"].n == flagged + only_by_key
    assert found["leak"].n == 14
    clean, n_dropped = corpus.without_leaks()
    assert n_dropped == 858, "examples, of which twelve carry two of the 870 labels"
    assert not {"leak", "cross_task_leak"} & {finding.kind for finding in audit(clean).findings}


@pytest.mark.slow
def test_twitter_keeps_the_long_texts(shared_data: Path) -> None:
    rows = rows_of(shared_data / "twitter" / "twitter_training.csv.gz")
    wanted = Counter(
        row["sentiment"].lower()
        for row in rows
        if row["sentiment"] in ("Positive", "Negative") and len(row["text"].split()) >= 40
    )
    loaded = load(f"twitter:{shared_data / 'twitter'}")
    assert Counter(example.labels["sentiment"] for example in loaded) == wanted
    assert len(loaded) == 4_982
    assert len(loaded.where(split="test")) / len(loaded) == pytest.approx(0.1, abs=0.02)
    assert loaded.without_leaks()[1] == 0


def test_bicodemix_counts(shared_data: Path) -> None:
    folder = shared_data / "bicodemix"
    assert len(load(f"bicodemix:{folder}")) == 1_009
    assert len(load(f"bicodemix:{folder}?lang=all")) == 10_000
    loaded = load(f"bicodemix:{folder}?classes=2")
    assert Counter(example.labels.get("sentiment") for example in loaded) == {
        "negative": 336,
        "positive": 347,
        None: 326,
    }
    assert len(loaded.where(split="test")) / len(loaded) == pytest.approx(0.2, abs=0.04)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "train", "valid"),
    [
        ("sst2", 67_349, 872),
        ("rte", 2_490, 277),
        ("mrpc", 3_667, 408),
        ("qnli", 0, 5_463),
        ("stsb", 5_749, 1_500),
    ],
)
def test_glue_sizes(shared_data: Path, name: str, train: int, valid: int) -> None:
    splits = Counter(example.split for example in load(f"glue/{name}:{shared_data / 'glue'}"))
    assert (splits["train"], splits["valid"]) == (train, valid)


def test_other_data_sets_are_read_as_tables(shared_data: Path) -> None:
    headlines = (
        "news-headlines/Sarcasm_Headlines_Dataset.json.gz?text=headline&label.sarcasm=is_sarcastic"
    )
    assert len(load(f"table:{shared_data}/{headlines}").where(task="sarcasm")) == 26_709
    assert (
        len(load(f"table:{shared_data}/tweeteval-irony/train.csv.gz?label.sarcasm=label")) == 2_862
    )
