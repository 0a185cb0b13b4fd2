"""Tables of a model with exits say after how many layers each text was answered."""

from __future__ import annotations

import csv
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from made_exits import with_exits
from tiny_models import TEXTS, model_of

from litotes.cli.main import main
from litotes.core.values import Answer, Prediction, Task
from litotes.encoder import pretrained
from litotes.model.checkpoint import save_model
from litotes.prediction.frames import FrameRequest, add_predictions
from litotes.prediction.predictor import Predictor
from litotes.prediction.tables import CSV, FORMATS, AnsweredRow, Layout

MOOD = Task("mood", ("bad", "good"), has_exits=True)
ANSWER = {"mood": Answer("good", 0.75, {"bad": 0.25, "good": 0.75})}
PREDICTIONS = [
    Prediction("tea", ANSWER, False, answered_at_layer=0),
    Prediction("queue", ANSWER, False, answered_at_layer=2),
    Prediction("", {}, False, problem="it is empty"),
]
LAYER = "answered_at_layer"


def predict(texts: object) -> list[Prediction]:
    return PREDICTIONS


def test_csv_and_parquet_have_the_column() -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [AnsweredRow({"text": one.text}, one) for one in PREDICTIONS]
    layout = Layout(("text",), {"mood": MOOD})
    read = list(csv.DictReader(StringIO(CSV.encode(layout, rows).decode(), newline="")))
    assert [row[LAYER] for row in read] == ["0", "2", ""]
    table = pq.read_table(pa.BufferReader(FORMATS["parquet"](layout, rows)))
    assert table.column(LAYER).to_pylist() == [0, 2, None]
    assert table.schema.field(LAYER).type == pa.int64()
    without = Layout(("text",), {"mood": replace(MOOD, has_exits=False)})
    assert LAYER not in without.names


def test_frames_have_the_column() -> None:
    pd = pytest.importorskip("pandas")
    texts = [one.text for one in PREDICTIONS]
    frame = add_predictions(
        pd.DataFrame({"text": texts}), predict, {"mood": MOOD}, FrameRequest(bad_rows="empty")
    )
    assert frame[LAYER].dtype == "Int64"
    assert frame[LAYER].tolist()[:2] == [0, 2]
    assert frame[LAYER].isna().tolist() == [False, False, True]
    arrays = add_predictions(
        {"text": np.array(texts, dtype=object)}, predict, {"mood": MOOD}, FrameRequest()
    )
    assert arrays[LAYER].tolist() == [0, 2, None]


def test_the_command_writes_what_the_predictor_says(
    tiny: pretrained.Pretrained, tmp_path: Path
) -> None:
    save_model(with_exits(model_of(tiny), (1,), threshold=0.6), tmp_path / "early", card="")
    with (tmp_path / "in.csv").open("w", newline="") as table:
        csv.writer(table).writerows([["text"], *([text] for text in TEXTS)])
    out = tmp_path / "out.csv"
    asked = ["--file", str(tmp_path / "in.csv"), "--model", str(tmp_path / "early")]
    assert main(["predict", *asked, "--format", "csv", "--out", str(out)]) == 0
    with out.open(newline="") as table:
        layers = [int(row[LAYER]) for row in csv.DictReader(table)]
    predictions = Predictor.load(tmp_path / "early").predict(TEXTS)
    assert layers == [one.answered_at_layer for one in predictions]
    assert set(layers) == {1, 2}
