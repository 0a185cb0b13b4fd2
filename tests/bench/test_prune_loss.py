"""The script that asks whether prunings can be trusted: what it counts."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from bench.prune_loss import CASES, as_row, covers, other_texts, summarize, write_tables
from bench.prune_loss_page import BEGIN, END
from bench.prune_loss_page import main as write_page
from litotes.core.json_text import load_json
from litotes.core.storage import write_json
from litotes.core.values import Example
from litotes.data.corpus import Corpus
from litotes.data.sources import load
from litotes.data.tasks import SENTIMENT
from litotes.pruning import PruneResult, PruneSettings
from litotes.pruning.frontier import Loss, Point
from litotes.pruning.result import TextCounts


def made(expected: float, true: float, *, chosen: bool = False) -> Point:
    """± 0.6 around what was expected, ± 0.8 around the truth."""
    guess = Loss(expected, (expected - 0.6, expected + 0.6), 0.7)
    truth = Loss(true, (true - 0.8, true + 0.8), 0.5)
    return Point(2.0, (0.5,), 8, 2.1, 1.7, truth, truth, 0.01, chosen, expected=guess)


@pytest.mark.parametrize(("true", "covered"), [(0.1, True), (1.0, True), (1.2, False)])
def test_the_error_of_the_truth_is_allowed_for(true: float, covered: bool) -> None:
    assert covers(made(0.1, true)) is covered


def row(case: str, *points: Point) -> dict[str, Any]:
    result = PruneResult(PruneSettings(), points, None, (), texts=TextCounts(300))
    return {"case": case, "seed": 0, **as_row(result, 1.0)}


def test_a_summary_counts_what_was_accepted_and_what_came_true() -> None:
    rows = [
        row("google", made(0.2, 0.0, chosen=True)),
        row("google", made(0.4, 1.8, chosen=True), made(2.0, 2.1)),
        row("reddit", made(0.9, 0.8)),
    ]
    found = summarize(rows)
    assert (found["google"]["runs"], found["google"]["accepted"]) == (2, 2)
    assert found["google"]["expected_loss"] == pytest.approx(0.3)
    assert found["google"]["true_loss"] == pytest.approx(0.9)
    assert found["google"]["true_within_budget"] == pytest.approx(0.5)
    assert found["google"]["coverage"] == pytest.approx(2 / 3)
    assert (found["reddit"]["accepted"], found["reddit"]["true_loss"]) == (0, None)
    assert "--loss" in rows[2]["refusal"]
    assert found["all"]["runs"] == 3


def test_the_page_has_every_case_and_what_came_true(tmp_path: Path) -> None:
    points = [made(0.4, 1.8, chosen=True), made(2.0, 2.1)]
    for case, own in {"google": points, "reddit": [made(0.9, 0.8), made(1.5, 1.9)]}.items():
        found = row(case, *own)
        found["texts"] = TextCounts(300, in_folds=1700, n_folds=3, test=600).as_json()
        write_json(tmp_path / f"{case}-0.json", found)
    page = tmp_path / "page.md"
    page.write_text(f"# Before\n{BEGIN}\nyesterday\n{END}\nafter", encoding="utf-8")
    write_page([str(tmp_path), "--page", str(page), "--machine", "one toaster"])
    text = page.read_text("utf-8")
    assert "yesterday" not in text
    assert "on one toaster" in text
    assert "| Google sentiment | 2,000, 600 | 1 of 1 | 2.10 | +0.40, +1.80 | 0 %, 70 % |" in text
    assert "| Reddit sentiment | 2,000, 600 | 0 of 1 | – | –, – |" in text
    assert "loses more than 0.5 points on the reporting texts in 1." in text
    kept = load_json(tmp_path / "page" / "trusted.json")
    assert [one["chosen"] for one in kept["runs"][0]["settings"]] == [True, False]
    assert (tmp_path / "page" / "trusted.svg").is_file()


def test_tables_keep_the_test_texts_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = ("negative", "positive")
    examples = []
    for number in range(700):
        split = "valid" if number % 7 == 0 else "train"
        words = f'tea, "cup" {number}'
        examples.append(Example(words, {"sentiment": labels[number % 2]}, split=split))
    corpus = Corpus("made", tuple(examples), {"sentiment": SENTIMENT})
    monkeypatch.setattr("bench.prune_loss.load", lambda _: corpus)
    tables = write_tables(CASES["sst2"], tmp_path, tmp_path / "tables", quick=True)
    data, fresh = load(tables["data"]), load(tables["held_out"])
    assert len(data.where(split="train")) == len(fresh) == 240
    assert len(data.where(split="valid")) == 100
    assert not {one.text for one in data} & {one.text for one in fresh}
    with (tmp_path / "tables" / "texts.csv").open(encoding="utf-8", newline="") as stream:
        assert len(list(csv.reader(stream))) == 341


def test_other_texts_are_neither_the_case_nor_tested_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def comment(text: str, source: str, split: str) -> Example:
        return Example(text, {"sentiment": "negative"}, source=source, split=split)

    examples = (
        comment("Of the case.", "Google", "train"),
        comment("of the case.", "Reddit", "train"),  # again, elsewhere
        comment("Tested on.", "Reddit", "train"),
        comment("Tested on.", "Google", "valid"),
        comment("Another.", "Reddit", "train"),
        comment("another.", "Reddit", "train"),
    )
    corpus = Corpus("made", examples, {"sentiment": SENTIMENT})
    monkeypatch.setattr("bench.prune_loss.load", lambda _: corpus)
    (other,) = other_texts(CASES["google"], tmp_path)
    assert (other.text.lower(), other.labels) == ("another.", {})
    tables = write_tables(CASES["google"], tmp_path, tmp_path / "tables", [other], quick=True)
    kept = {one.text.lower(): one.labels for one in load(tables["data"])}
    assert kept == {
        "of the case.": {"sentiment": "negative"},
        "tested on.": {"sentiment": "negative"},
        "another.": {},
    }
