"""CTranslate2 and OpenVINO get a fair chance, and are refused where they answer something else.

What needs the libraries themselves is skipped where they are absent; they are stood in for by a
rival that counts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from bench import ctranslate2_rival, rivals
from bench.agreement import refusal
from bench.batching import Logits
from bench.benchmark import Benchmark
from bench.classify import check_answers, compared_with, make_rivals
from bench.lines import Line
from bench.rivals import RIVALS, Rival, Setting, TunedRival, tune
from litotes.core.values import Task
from litotes.data.tasks import SENTIMENT
from litotes.encoder.tokenizer import Pieces

TEXTS = ["the tea is great", "a queue", "it is not bad and i love the queue for the tea", "hate"]
LENGTHS = [3, 9, 5, 3, 7]
TASKS = {"sentiment": SENTIMENT}
REFERENCE = np.array([[2.0, 0.0], [0.0, 2.0], [1.0, 0.0], [0.0, 1.0]], dtype=np.float32)


def of_length(n: int) -> Pieces:
    return Pieces([n] * n, [0] * n, truncated=False)


class Counting:
    """Answers with a text's length; a batch costs a second, and each padded piece another."""

    def __init__(self, n_streams: int, clock: Clock) -> None:
        self.n_streams, self.clock = n_streams, clock

    def logits(self, batches: Sequence[Sequence[Pieces]]) -> list[Logits]:
        for batch in batches:
            longest = max(len(text.ids) for text in batch)
            self.clock.now += (1 + longest * len(batch)) / self.n_streams
        return [np.array([[len(text.ids)] for text in batch], np.float32) for batch in batches]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_batches_are_sorted_and_hold_every_text_once() -> None:
    for size in (1, 2, 4, None):
        batches = Setting(size, 1).batches(LENGTHS)
        assert sorted(place for batch in batches for place in batch) == [0, 1, 2, 3, 4]
        firsts = [LENGTHS[batch[0]] for batch in batches]
        assert firsts == sorted(firsts, reverse=True)
    assert Setting(2, 1).batches(LENGTHS) == [[1, 4], [2, 0], [3]]
    assert Setting(2, 1).padded(LENGTHS) == [5, 9, 5, 3, 9]
    assert Setting(None, 1).padded(LENGTHS) == LENGTHS, "equal lengths need no padding"


def test_the_fastest_setting_wins_and_answers_in_order() -> None:
    clock = Clock()
    texts = [of_length(n) for n in LENGTHS * 4]

    def tuned(n_cores: int) -> TunedRival:
        return tune(lambda n: Counting(n, clock), texts, n_cores=n_cores, clock=clock)

    # a batch costs a second and a padded piece another: equal lengths together are the cheapest
    assert tuned(1).setting == Setting(None, 1)
    assert tuned(2).setting == Setting(None, 2), "two batches at once take half the time"
    np.testing.assert_array_equal(tuned(2).logits(texts)[:, 0], LENGTHS * 4)


def test_a_rival_in_float32_has_to_give_the_same_probabilities() -> None:
    near, far = REFERENCE + np.float32(1e-5), REFERENCE * np.float32(1.1)
    assert refusal(near, REFERENCE, TASKS, "float32") is None
    assert "away from the model's" in (refusal(far, REFERENCE, TASKS, "float32") or "")
    assert refusal(REFERENCE + 5, REFERENCE, TASKS, "float32") is None, "softmax does not see it"
    number = {"score": Task("score", ())}
    assert refusal(REFERENCE[:, :1] + 5, REFERENCE[:, :1], number, "float32") is not None
    assert "no numbers" in (refusal(REFERENCE * np.nan, REFERENCE, TASKS, "int8") or "")


def test_a_rival_in_int8_has_to_keep_the_labels() -> None:
    assert refusal(REFERENCE * np.float32(1.1), REFERENCE, TASKS, "int8") is None
    flipped = REFERENCE[:, ::-1].copy()
    assert refusal(flipped, REFERENCE, TASKS, "int8") == "it keeps only 0% of the model's labels"


def test_a_line_with_other_answers_is_refused_with_a_reason() -> None:
    names = ("litotes-packed", "ct2-fp32", "ov-int8", "ort-int8-1")
    lines = [Line("classify", name, 1.0, 1.0, (1.0,)) for name in names]
    logits = dict.fromkeys(names, REFERENCE) | {"ct2-fp32": REFERENCE * 2, "ort-int8-1": -REFERENCE}
    kept, refused = check_answers(lines, logits, TASKS)
    # what is no rival is shown with its agreement, as ever
    agreements = {line.name: line.agreement for line in kept}
    assert agreements == {"litotes-packed": 1.0, "ov-int8": 1.0, "ort-int8-1": 0.0}
    assert refused.keys() == {"ct2-fp32"}


def test_ours_are_compared_with_rivals_of_their_precision() -> None:
    assert compared_with("litotes-dense", tuple(RIVALS))[-2:] == ("ct2-fp32", "ov-fp32")
    assert compared_with("litotes-pruned-int8", ("ov-int8", "ct2-fp32"))[-1] == "ov-int8"
    assert not set(compared_with("litotes-dense-int8")) & set(RIVALS)


def test_a_rival_that_cannot_run_the_model_is_refused(
    benchmark: Benchmark, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_rival(_: Benchmark, name: str, n_streams: int) -> Rival:
        if name.startswith("ct2"):
            raise ValueError("No conversion is registered\nfor this one")
        return Counting(n_streams, Clock())

    monkeypatch.setattr(Benchmark, "missing_for", lambda _, name: None)
    monkeypatch.setattr(Benchmark, "rival", open_rival)
    made = make_rivals(benchmark)
    assert made.refused["ct2-int8"] == ("it cannot run this model (No conversion is registered)")
    assert made.candidates.keys() == {"ov-fp32", "ov-int8"}
    assert [note.partition(" ")[0] for note in made.notes] == ["ov-fp32", "ov-int8"]


@pytest.mark.parametrize("name", RIVALS)
def test_rivals_answer_as_the_model_does(
    name: str, benchmark: Benchmark, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, precision = RIVALS[name]
    pytest.importorskip(library)
    monkeypatch.setattr(rivals, "SIZES", (None, 2))
    tuned = tune(lambda n: benchmark.rival(name, n), benchmark.pieces, n_cores=2)
    reference = benchmark.packed()(benchmark.texts)
    found = tuned.logits(benchmark.pieces)
    tasks = benchmark.subject.dense.classifier.tasks
    assert found.shape == reference.shape
    if precision == "float32":
        assert refusal(found, reference, tasks, precision) is None
    else:  # labels of a fresh head may be near a tie
        assert np.abs(found - reference).max() < 0.5


def test_the_converter_finds_what_it_asks_for(tmp_path: Path) -> None:
    for given, kept in (({}, "absolute"), ({"position_embedding_type": "relative"}, "relative")):
        (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"} | given), "utf-8")
        for unknown in (None, "[UNK]"):
            written = json.dumps({"model": {"unk_token": unknown}})
            (tmp_path / "tokenizer.json").write_text(written, "utf-8")
            ctranslate2_rival.prepare(tmp_path)
            config = json.loads((tmp_path / "config.json").read_text("utf-8"))
            assert config == {"model_type": "bert", "position_embedding_type": kept}
            tokenizer = json.loads((tmp_path / "tokenizer_config.json").read_text("utf-8"))
            assert tokenizer.get("unk_token") == unknown
