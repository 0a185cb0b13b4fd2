"""Every public value is printed on one line, however much it holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tiny_models import model_of

from litotes import BatchPredictor, Corpus, Predictor, Recipe, load_corpus
from litotes.core.values import Example, Task
from litotes.encoder import pretrained
from litotes.evaluation.cross_matrix import CrossMatrix, MatrixCell
from litotes.evaluation.evaluate import CellScores, predict_corpus
from litotes.evaluation.scores import score, score_regression
from litotes.exporting.export import ExportLoss, ExportResult
from litotes.model.folder import Manifest, ModelFolder
from litotes.pruning import PruneResult, PruneSettings
from litotes.training.course import Run

MOST = 200
MOOD = Task("mood", ("angry", "content", "calm"))


@pytest.fixture(scope="module")
def values(tiny_folder: Path) -> dict[str, object]:
    tiny = pretrained.load(str(tiny_folder))
    model = model_of(tiny, MOOD)
    examples = [Example("the tea is bad " * 50, {"mood": "angry"}) for _ in range(20)]
    corpus = Corpus("reviews", tuple(examples), {"mood": MOOD})
    predictor = Predictor(model, device="cpu")
    explanation = predictor.explain(
        "the tea is bad, the queue great", methods=[], faithfulness=False
    )
    cell = CellScores("en-GB/google", score([0, 1, 2] * 9, [0, 1, 1] * 9, MOOD))
    number = score_regression([0.1, 0.2, 0.4], [0.1, 0.3, 0.3], Task("warmth", ()))
    matrix_cell = MatrixCell("a", "b", 100, 1 / 3, (0.3, 0.4), 0.2, (1 / 3, 1 / 7), 0)
    cells = tuple(replace(matrix_cell, tested_on=str(n)) for n in range(50))
    loss = ExportLoss("mood", 100, 3, 1 / 3, 1 / 7, 1 / 9)
    return {
        "Corpus": corpus,
        "built-in Corpus": load_corpus("sampler"),
        "Recipe": Recipe(),
        "changed Recipe": Recipe().changed(training__epochs=7, data__where__variety="en-AU"),
        "Pretrained": tiny,
        "Model": model,
        "Predictor": predictor,
        "BatchPredictor": BatchPredictor(str(tiny_folder)),
        "Prediction": predictor.predict(["the tea " * 1000])[0],
        "Explanation": explanation,
        "LayerMaps": explanation.layers[0],
        "Scores": cell.scores,
        "RegressionScores": number,
        "CellScores": cell,
        "MatrixCell": matrix_cell,
        "CrossMatrix": CrossMatrix("mood", "variety", ("a",), tuple("bcd"), cells),
        "TaskPredictions": predict_corpus(predictor, corpus)["mood"],
        "Run": Run(tiny_folder, (model,), (cell,) * 20, ("a note " * 30,)),
        "PruneResult": PruneResult(PruneSettings(), (), model, (cell,) * 20),
        "ExportResult": ExportResult(tiny_folder / "model.onnx", "int8", 12, "made", (loss,) * 9),
        "ModelFolder": ModelFolder(
            tiny_folder, {"tasks": {"mood": list(MOOD.labels)}, "a": "b" * 999}, Manifest({})
        ),
    }


def test_it_fits_a_line(values: dict[str, object]) -> None:
    too_long = {}
    for name, value in values.items():
        shown = repr(value)
        assert shown.startswith(name.split()[-1] + "("), shown[:MOST]
        if len(shown) > MOST or "\n" in shown:
            too_long[name] = f"{len(shown)}: {shown[:MOST]}"
    assert not too_long
    assert repr(values["Corpus"]) == "Corpus(name='reviews', n_examples=20, tasks=['mood'])"
    assert repr(values["Recipe"]) == "Recipe()"
    assert "'epochs': 7" in repr(values["changed Recipe"])
