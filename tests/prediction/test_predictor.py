from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_models import model_of
from tokenizers import Tokenizer, models

from litotes.core.errors import UserError
from litotes.core.values import Task
from litotes.encoder import pretrained
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.model.calibration import Calibration
from litotes.model.classifier import is_task_name
from litotes.prediction.predictor import Predictor

TEXTS = ["The tea is great.", "Hate it, hate it, hate it: the queue! " * 2, "ok", "x " * 300]


@pytest.fixture
def predictor(trained_folder: Path) -> Predictor:
    return Predictor.load(trained_folder, device="cpu")


def test_a_text_alone_gets_the_answer_it_gets_in_a_batch(predictor: Predictor) -> None:
    together = predictor.predict(TEXTS)
    assert [one.truncated for one in together] == [False, False, False, True]
    for text, expected in zip(TEXTS, together, strict=True):
        (alone,) = predictor.predict([text])
        assert alone.text == text
        for task, answer in alone.answers.items():
            assert answer.label == expected.answers[task].label
            assert answer.probability == pytest.approx(expected.answers[task].probability, abs=1e-5)
            assert answer.probability is not None
            assert 0.5 <= answer.probability <= 1


@pytest.mark.parametrize("wrong", [None, 5, {"text": ["tea"]}, {"tea"}, iter(["tea"])], ids=type)
def test_what_is_no_list_of_texts_is_told(predictor: Predictor, wrong: Any) -> None:
    """The keys of a mapping were answered as if they were the texts, the letters of a text too."""
    with pytest.raises(UserError, match=f"this is a {type(wrong).__name__}"):
        predictor.predict(wrong)
    for several in ("tea", {"text": ["tea"]}):
        with pytest.raises(UserError, match=f"this is a {type(several).__name__}"):
            list(predictor.stream(several))  # type: ignore[arg-type]
    for other in (None, ["tea"]):
        with pytest.raises(UserError, match="not a string"):
            predictor.explain(other)  # type: ignore[arg-type]


def test_one_text_is_one_prediction(predictor: Predictor) -> None:
    alone = predictor.predict("Great tea, mate")
    assert alone.answers.keys() == predictor.tasks.keys()
    assert alone.text == predictor.predict(["Great tea, mate"])[0].text
    for texts, pairs in (("tea", ["queue"]), (["tea"], "queue")):
        with pytest.raises(UserError, match="pair"):
            predictor.predict(texts, pairs=pairs)  # type: ignore[call-overload]


@pytest.mark.parametrize("pairs", [[], ["queue"], ["queue"] * 3])
def test_pairs_are_as_many_as_texts(predictor: Predictor, pairs: list[str]) -> None:
    """Without any, the texts were answered as if no pair had been given."""
    with pytest.raises(UserError, match=f"There are 2 texts and {len(pairs)} pairs"):
        predictor.predict(["tea", "bad tea"], pairs=pairs)
    texts, seconds = ["tea", "bad tea"], ["queue", "not a queue"]
    array: Any = np.array(seconds)
    assert [one.pair for one in predictor.predict(texts, pairs=array)] == seconds


@pytest.mark.parametrize("wrong", [None, float("nan"), 5, b"tea", ["tea"]], ids=repr)
def test_what_is_not_a_string_is_told_with_its_place(predictor: Predictor, wrong: object) -> None:
    with pytest.raises(UserError, match=rf"Text 2 is .*\({type(wrong).__name__}\), not a string"):
        predictor.predict(["tea", wrong])  # type: ignore[list-item]
    with pytest.raises(UserError, match="Text 21 is"):
        list(predictor.stream(["tea"] * 20 + [wrong]))  # type: ignore[list-item]
    with pytest.raises(UserError, match="Text 2 is empty"):
        predictor.predict(["fine", "  \n"])
    with pytest.raises(UserError, match="Text 1 has an empty pair"):
        predictor.predict(["fine"], pairs=[" "])
    kept = predictor.predict(["tea", wrong, "ok"], bad_texts="empty")  # type: ignore[list-item]
    assert [bool(one.answers) for one in kept] == [True, False, True]
    assert [one.problem is None for one in kept] == [True, False, True]


@pytest.mark.parametrize("text", ["\u200b", "😀", "\ue000", "ტკბილი ჩაი"])
def test_an_unreadable_text_is_answered_and_reported(predictor: Predictor, text: str) -> None:
    predictions = predictor.predict([text, "tea", f"{text} tea"])
    assert [prediction.unreadable for prediction in predictions] == [True, False, False]
    assert predictions[0].answers.keys() == predictor.tasks.keys()
    pairs = predictor.predict([text, text], pairs=["😀", "tea"])
    assert [prediction.unreadable for prediction in pairs] == [True, False]


def test_a_text_is_unreadable_if_one_of_the_models_cannot_read_it(
    predictor: Predictor, tmp_path: Path, tiny: pretrained.Pretrained
) -> None:
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "😀": 1}, unk_token="[UNK]"))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    emoji = PieceTokenizer(tmp_path / "tokenizer.json", max_pieces=96)
    other = replace(model_of(tiny, Task("mood", ("bad", "good"))), tokenizer=emoji)
    both = Predictor(predictor.runtimes[0], other, device="cpu")
    assert [one.unreadable for one in both.predict(["😀", "tea"])] == [True, True]
    alone = Predictor(other, device="cpu")
    assert [one.unreadable for one in alone.predict(["😀", "tea"])] == [False, True]


def test_a_stream_equals_a_list(predictor: Predictor) -> None:
    many = [f"{text} {n}" for n in range(200) for text in TEXTS[:3]]
    streamed = list(predictor.stream(iter(many)))
    assert [prediction.text for prediction in streamed] == many
    for one, expected in zip(streamed[::100], predictor.predict(many)[::100], strict=True):
        for task, answer in expected.answers.items():
            assert one.answers[task].label == answer.label
            assert one.answers[task].probability == pytest.approx(answer.probability, abs=1e-5)
    assert list(predictor.stream([])) == []


def test_a_stream_reads_no_further_than_it_must(predictor: Predictor) -> None:
    read: list[int] = []

    def source() -> Iterator[str]:
        for n in range(100_000):
            read.append(n)
            yield f"tea {n}"

    stream = predictor.stream(source())
    first = [next(stream).text for _ in range(10)]
    assert first == [f"tea {n}" for n in range(10)]
    assert len(read) < 100
    stream.close()


def test_texts_before_one_that_cannot_be_read_are_answered(predictor: Predictor) -> None:
    def source() -> Iterator[str]:
        yield from TEXTS * 5
        raise OSError("the disk is gone")

    seen: list[str] = []
    with pytest.raises(OSError, match="gone"):
        seen.extend(prediction.text for prediction in predictor.stream(source()))
    assert seen == TEXTS * 5


def test_what_decides_answers_is_in_the_identity(predictor: Predictor) -> None:
    runtime = predictor.runtimes[0].to_torch()
    before = runtime.identity()
    assert Predictor(runtime.model(), device="cpu").runtimes[0].identity() == before
    runtime.tokenizer.max_pieces -= 1
    assert runtime.identity() != before
    runtime.tokenizer.max_pieces += 1
    runtime.calibration = {"sarcasm": Calibration(temperature=2.0)}
    assert runtime.identity() != before


@pytest.mark.parametrize(
    "name",
    ["text", "truncated", "unreadable", "sarcasm_probability", "keys", "a b", "\x1b[31m", ""],
)
def test_names_that_would_hide_another_answer_are_no_names_of_tasks(name: str) -> None:
    assert not is_task_name(name)
    assert is_task_name("sarcasm")
