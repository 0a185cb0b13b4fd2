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


@pytest.mark.slow
def test_besstie_has_a_label_for_every_row_and_its_leak_is_found(shared_data: Path) -> None:
    words = {"Sentiment": ("negative", "positive"), "Sarcasm": ("literal", "sarcastic")}
    rows = {split: rows_of(shared_data / f"besstie/{split}.csv.gz") for split in ("train", "valid")}
    wanted = Counter(
        (
            split,
            row["variety"],
            row["source"],
            row["task"].lower(),
            words[row["task"]][int(row["label"])],
        )
        for split, own in rows.items()
        for row in own
    )
    corpus = load(f"besstie:{shared_data / 'besstie'}")
    counts = corpus.counts()
    assert {
        (c.split, c.cell.variety, c.cell.source, c.task, c.label): c.n for c in counts
    } == wanted
    assert wanted.total() == 13_049 + 2_428
    flagged = sum(row["text_in_valid_any_task"] == "True" for row in rows["train"])
    texts = {row["text"] for row in rows["valid"]}
    keys = set(map(text_key, texts))
    # the flag compares texts byte by byte, the audit by key: rows that differ in case or white
    # space alone come on top
    by_key = [row["text"] for row in rows["train"] if text_key(row["text"]) in keys]
    assert (flagged, sum(text not in texts for text in by_key)) == (868, 2)
    found = {finding.kind: finding for finding in audit(corpus).findings}
    assert (found["leak"].n, found["cross_task_leak"].n) == (14, 856)
    clean, n_dropped = corpus.without_leaks()
    assert n_dropped == 858, "examples, of which twelve carry two of the 870 labels"
    assert not {"leak", "cross_task_leak"} & {finding.kind for finding in audit(clean).findings}


@pytest.mark.slow
def test_twitter_keeps_the_long_texts(shared_data: Path) -> None:
    rows = rows_of(shared_data / "twitter" / "twitter_training.csv.gz")
    wanted = Counter(row["sentiment"].lower() for row in rows if len(row["text"].split()) >= 40)
    loaded = load(f"twitter:{shared_data / 'twitter'}")
    found = Counter(str(example.labels["sentiment"]) for example in loaded)
    assert found == {label: wanted[label] for label in ("negative", "positive")}
    assert len(loaded) == 4_982
    assert len(loaded.where(split="test")) / len(loaded) == pytest.approx(0.1, abs=0.02)
    assert loaded.without_leaks()[1] == 0


@pytest.mark.parametrize(
    ("source", "n", "n_test"),
    [
        ("bicodemix:{data}/bicodemix", 1_009, 200),
        ("bicodemix:{data}/bicodemix?lang=all", 10_000, 2_000),
        ("glue/rte:{data}/glue", 2_490 + 277, 0),
        ("glue/mrpc:{data}/glue", 3_667 + 408, 0),
        ("glue/qnli:{data}/glue", 5_463, 0),
        ("glue/stsb:{data}/glue", 5_749 + 1_500, 0),
        ("irony:{data}/tweeteval-irony", 2_862 + 955 + 784, 784),
        ("table:{data}/tweeteval-irony/train.csv.gz?label.sarcasm=label", 2_862, 0),
    ],
)
def test_sizes(shared_data: Path, source: str, n: int, n_test: int) -> None:
    loaded = load(source.format(data=shared_data))
    assert len(loaded) == n
    assert sum(one.split == "test" for one in loaded) == pytest.approx(n_test, rel=0.2)
