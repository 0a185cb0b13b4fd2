"""A batch comes back with its answers beside it, of the kind it was; a predictor can be sent to
workers that make such batches.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litotes.core.errors import UserError
from litotes.prediction.predictor import BatchPredictor, Predictor

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

TEXTS = ["the tea is great", "the queue, not bad", "it is a " + "love " * 60]
TASKS = ["sentiment", "sentiment_probability", "sarcasm", "sarcasm_probability"]
ADDED = [*TASKS, "truncated", "unreadable", "problem"]


def frame(columns: dict[str, list[Any]]) -> Any:
    return pd.DataFrame(columns, index=[f"row{n}" for n in range(len(columns["text"]))])


def arrays(columns: dict[str, list[Any]]) -> Any:
    return {name: np.array(values, dtype=object) for name, values in columns.items()}


KINDS = {
    "pandas": frame,
    "table": pa.table,
    "record batch": pa.RecordBatch.from_pydict,
    "arrays": arrays,
    "lists": dict,
}


@pytest.fixture(scope="module")
def predictor(trained_folder: Path) -> Predictor:
    return Predictor.load(trained_folder, device="cpu")


def as_lists(batch: Any) -> dict[str, list[Any]]:
    if isinstance(batch, pa.Table | pa.RecordBatch):
        return dict(batch.to_pydict())
    return {name: list(batch[name]) for name in batch}


@pytest.mark.parametrize("kind", KINDS)
def test_answers_stand_beside_their_texts(predictor: Predictor, kind: str) -> None:
    given = KINDS[kind]({"id": [7, 8, 9], "text": TEXTS})
    batch = predictor.map_batches(given)
    assert type(batch) is type(given)
    assert list(as_lists(given)) == ["id", "text"]  # left as it was
    columns = as_lists(batch)
    assert list(columns) == ["id", "text", *ADDED]
    assert columns["id"] == [7, 8, 9]
    for place, alone in enumerate(predictor.predict(TEXTS)):
        for task, answer in alone.answers.items():
            assert columns[task][place] == answer.label
            assert columns[f"{task}_probability"][place] == pytest.approx(
                answer.probability, abs=1e-5
            )
    assert columns["truncated"] == [False, False, True]
    unread = as_lists(predictor.map_batches(KINDS[kind]({"text": ["😀", "tea"]})))
    assert unread["unreadable"] == [True, False]


@pytest.mark.parametrize("kind", KINDS)
def test_no_rows_give_no_rows_with_the_same_types(predictor: Predictor, kind: str) -> None:
    empty, full = (predictor.map_batches(KINDS[kind]({"text": texts})) for texts in ([], TEXTS))
    assert list(as_lists(empty)) == ["text", *ADDED]
    assert all(values == [] for values in as_lists(empty).values())
    for name in ADDED:
        if kind in ("pandas", "arrays"):
            assert empty[name].dtype == full[name].dtype
        elif kind != "lists":
            assert empty.schema.field(name) == full.schema.field(name)


@pytest.mark.parametrize("kind", KINDS)
def test_bad_rows_are_kept_without_answers_or_left_out(predictor: Predictor, kind: str) -> None:
    given = KINDS[kind]({"id": [1, 2, 3], "text": ["tea", None, "queue"]})
    kept = as_lists(predictor.map_batches(given))
    assert kept["id"] == [1, 2, 3]
    assert [pd.isna(label) for label in kept["sarcasm"]] == [False, True, False]
    assert [pd.isna(share) for share in kept["sarcasm_probability"]] == [False, True, False]
    assert [pd.isna(problem) for problem in kept["problem"]] == [True, False, True]
    assert "row 2, column 'text' is empty" in kept["problem"][1]
    left = predictor.map_batches(given, bad_rows="skip")
    assert type(left) is type(given)
    assert as_lists(left)["id"] == [1, 3]
    assert as_lists(left)["sarcasm"] == [kept["sarcasm"][0], kept["sarcasm"][2]]
    with pytest.raises(UserError, match="There is no treatment of bad rows 'drop'"):
        predictor.map_batches(given, bad_rows="drop")
    with pytest.raises(UserError, match=r"The batch, row 2, column 'text' is empty"):
        predictor.map_batches(given, bad_rows="stop")


def test_every_label_has_its_probability_and_texts_may_be_pairs(predictor: Predictor) -> None:
    columns: dict[str, Any] = {"body": TEXTS[:2], "reply": ["a tea", "bad"]}
    batch = predictor.map_batches(columns, column="body", pair="reply")
    for place, alone in enumerate(predictor.predict(TEXTS[:2], pairs=["a tea", "bad"])):
        share = alone.answers["sarcasm"].probability
        assert batch["sarcasm_probability"][place] == pytest.approx(share, abs=1e-5)
    with pytest.raises(UserError, match="2 values in 'body' and 1 in 'reply'"):
        predictor.map_batches(columns | {"reply": ["a"]}, column="body", pair="reply")
    skipped = predictor.map_batches(columns | {"reply": ["a", None]}, column="body", pair="reply")
    assert "column 'reply' is empty" in skipped["problem"][1]
    batch = predictor.map_batches({"text": TEXTS}, all_probabilities=True, prefix="our_")
    for place, alone in enumerate(predictor.predict(TEXTS)):
        shares = alone.answers["sarcasm"].probabilities
        assert list(shares) == list(predictor.tasks["sarcasm"].labels)
        assert sum(shares.values()) == pytest.approx(1)
        for label, share in shares.items():
            found = batch[f"our_sarcasm_probability_{label}"][place]
            assert found == pytest.approx(share, abs=1e-5)


@pytest.mark.parametrize(
    ("batch", "sentence"),
    [
        ({"body": TEXTS}, r"The batch: There is no column 'text'.*Known: body"),
        ({"text": TEXTS, "truncated": [1, 2, 3]}, "has a column 'truncated' already.*rename"),
        ({"text": TEXTS, "unreadable": [1, 2, 3]}, "has a column 'unreadable' already.*rename"),
        ({"text": ["tea", 5]}, "row 2, column 'text' holds a int: make it a text"),
        ({"text": np.array([1.5, 2.5])}, "row 1, column 'text' holds a float64"),
        ({"text": ["tea", float("nan")]}, "row 2, column 'text' is empty"),
        ({"text": ["tea", b"tea"]}, "row 2, column 'text' holds a bytes"),
        ({"text": ["tea", " "]}, "row 2, column 'text' is empty"),
        ({"text": ["tea", "\ud800"]}, "row 2, column 'text' holds a NUL or half a surrogate pair"),
        (pd.DataFrame([["tea", "tea"]], columns=["text", "text"]), "'text' 2 times"),
        (
            pd.DataFrame({"text": pd.Series(["tea", pd.NA], dtype="string")}),
            "row 2, column 'text' is empty",
        ),
        (pa.table({"text": pa.array([1, 2])}), "row 1, column 'text' holds a int"),
        (pd.DataFrame(TEXTS), r"The batch: There is no column 'text'.*Known: 0"),
        ({"text": "tea"}, "'text' is one string"),
        (["tea"], "this is a list.*there is `predict`"),
    ],
)
def test_what_cannot_be_answered_is_told(predictor: Predictor, batch: Any, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        predictor.map_batches(batch, bad_rows="stop")


def test_what_travels_is_small_and_loads_once(
    trained_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trained_folder.parent)
    asked = BatchPredictor(trained_folder.name, device="cpu")
    monkeypatch.chdir("/")
    sent = pickle.dumps(asked)
    assert len(sent) < 500
    arrived = pickle.loads(sent)
    assert arrived(pa.table({"text": TEXTS})).column_names == ["text", *ADDED]
    assert arrived.predictor() is asked.predictor()
    assert (
        arrived.map_batches({"body": TEXTS}, column="body")["sarcasm"]
        == asked({"text": TEXTS})["sarcasm"]
    )


def test_a_forked_worker_loads_its_own(trained_folder: Path) -> None:
    asked = BatchPredictor(str(trained_folder), device="cpu")
    before = id(asked.predictor())
    read, write = os.pipe()
    child = multiprocessing.get_context("fork").Process(
        target=lambda: os.write(write, str(id(asked.predictor()) != before).encode())
    )
    child.start()
    child.join(60)
    assert os.read(read, 10) == b"True"


def test_in_dask(trained_folder: Path) -> None:
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(pd.DataFrame({"id": range(6), "text": TEXTS * 2}), npartitions=3)
    asked = BatchPredictor(str(trained_folder), device="cpu")
    result = frame.map_partitions(asked, meta=asked(frame._meta)).compute(scheduler="threads")
    assert list(result["id"]) == list(range(6))
    assert list(result["sarcasm"]) == [
        one.answers["sarcasm"].label for one in asked.predictor().predict(TEXTS * 2)
    ]
