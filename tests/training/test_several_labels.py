"""Several labels for one text: from a column to a trained model folder, its scores and its file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from several_model import TEXTS, train_several, write_table

from litotes.core.errors import UserError
from litotes.core.values import Task
from litotes.data.labels import BETWEEN, split_labels
from litotes.data.sources import load
from litotes.exporting.export import export_models
from litotes.model.calibration import Calibration, TaskAnswers, apply_to_each, fit_each
from litotes.model.folder import open_model, write_description
from litotes.prediction.answers import Answers, make_columns
from litotes.prediction.predictor import Predictor
from litotes.training.recipe import Recipe

LABELS = ("angry", "fond", "glad")
MOODS = Task("moods", LABELS, multi_label=True)


@pytest.fixture(scope="module")
def folder(tiny_recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_several(tiny_recipe, tmp_path_factory.mktemp("several"))


@pytest.fixture(scope="module")
def predictor(folder: Path) -> Predictor:
    return Predictor.load(folder, device="cpu", runtime="torch")


def test_a_column_of_several_labels(tmp_path: Path) -> None:
    table = write_table(tmp_path, n=16)
    corpus = load(f"table:{table}?label=moods&several=|&split=split")
    assert corpus.tasks == {"moods": MOODS}
    labels = [example.labels["moods"] for example in corpus]
    assert labels[0] == ()
    assert labels[7] == LABELS
    assert {count.label: count.n for count in corpus.counts()} == dict.fromkeys(LABELS, 8)
    mapped = corpus.map_labels({"moods": {"fond": "glad", "angry": ""}})
    assert mapped.tasks["moods"] == Task("moods", ("glad",), multi_label=True)
    assert mapped.examples[7].labels["moods"] == ("glad",)
    rest, held = corpus.hold_out(0.25, seed=0)
    assert len(rest) + len(held) == 16


@pytest.mark.parametrize(
    ("cells", "options", "problem"),
    [
        (["a;b", "a", "none;b"], "several=;", "next to other labels"),
        (["a|b;c", "a", "b"], "several=;", "none can have it in its name"),
        (["a", "a", "a"], "several=;", "needs two labels or more"),
        (["none", "none", "none"], "several=;", "no label at all"),
        (["1", "2", "3"], "several=;&numbers=yes", "give one of them"),
    ],
)
def test_what_is_no_such_column(
    tmp_path: Path, cells: list[str], options: str, problem: str
) -> None:
    table = tmp_path / "table.csv"
    table.write_text("text,moods\n" + "".join(f"tea {cell},{cell}\n" for cell in cells))
    with pytest.raises(UserError, match=problem):
        load(f"table:{table}?label=moods&bad=stop&{options}")


def test_thresholds_and_temperature_are_learned_label_by_label() -> None:
    chance = np.random.default_rng(0)
    gold = chance.random((400, 2)) < (0.5, 0.5)
    logits = np.where(gold, 2.0, -2.0) + 3 * chance.standard_normal((400, 2))
    logits[:, 1] -= 6  # one half is far too much to ask of this label
    fitted = fit_each(logits, gold.astype(float))
    assert fitted.thresholds is not None
    assert fitted.thresholds[0] == pytest.approx(0.5, abs=0.1)
    assert fitted.thresholds[1] < 0.3
    given, probabilities = apply_to_each(fitted, logits)
    assert (given == (probabilities >= np.array(fitted.thresholds))).all()
    assert (given[:, 1] == gold[:, 1]).mean() > ((logits[:, 1] > 0) == gold[:, 1]).mean() + 0.1
    assert Calibration.from_json(fitted.as_json()) == fitted
    assert fit_each(logits, gold, with_threshold=False).thresholds is None
    sure = fit_each(np.array([[5.0, -5.0]] * 8), np.array([[1, 0]] * 8))
    assert sure.temperature == 1.0


def test_a_model_learns_several_labels_and_says_how_well(folder: Path) -> None:
    (row,) = json.loads((folder / "scores.json").read_text())
    assert row["macro_f1"] > row["majority"] + 0.5
    assert {"micro_f1", "micro_interval", "subset_accuracy"} <= row.keys()
    assert "several of them, or none" in (folder / "README.md").read_text()
    opened = open_model(folder)
    assert opened.tasks == {"moods": MOODS}
    assert opened.calibration["moods"].thresholds is not None


def test_answers_have_every_label_that_reaches_its_threshold(predictor: Predictor) -> None:
    thresholds = predictor.runtimes[0].calibration["moods"].thresholds or ()
    seen = set()
    for prediction in predictor.predict(TEXTS):
        answer = prediction.answers["moods"]
        shares = list(answer.probabilities.values())
        expected = [
            label
            for label, share, least in zip(LABELS, shares, thresholds, strict=True)
            if share >= least
        ]
        assert answer.label == tuple(expected)
        assert answer.probability is None
        assert answer.as_json()["label"] == expected
        seen.add(len(expected))
    assert len(seen) > 1


def test_what_a_table_says_is_read_again_as_it_was_meant() -> None:
    given = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0]], np.bool_)
    no = np.zeros(3, np.bool_)
    tasks = {"moods": TaskAnswers(MOODS, given, np.full((3, 3), 0.5))}
    answers = Answers(["tea"] * 4, [None] * 4, {3: "it is empty"}, tasks, no, no)
    *written, bad = answers.cells(make_columns({"moods": MOODS})[0])
    assert bad is None
    read = [split_labels(cell, BETWEEN, "here") for cell in written]
    assert read == [(), LABELS[:1], LABELS[:2]]


def test_the_exported_file_gives_the_same_labels(folder: Path, predictor: Predictor) -> None:
    import onnxruntime

    (result,) = export_models(str(folder), n_texts=8)
    assert result.losses[0].n_changed == 0
    exported = Predictor.load(folder, runtime="onnx")
    for one, other in zip(exported.predict(TEXTS), predictor.predict(TEXTS), strict=True):
        assert one.answers["moods"].label == other.answers["moods"].label
        shares = other.answers["moods"].probabilities
        assert one.answers["moods"].probabilities == pytest.approx(shares, abs=1e-4)
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    for text in TEXTS:
        (pieces,) = predictor.runtimes[0].tokenizer.encode([text])
        inputs = {"pieces": np.array([pieces.ids]), "segments": np.array([pieces.segments])}
        (flags,) = session.run(["moods.labels"], inputs)
        answer = predictor.predict(text).answers["moods"].label
        assert tuple(label for label, one in zip(LABELS, flags[0], strict=True) if one) == answer


def test_an_explanation_is_about_one_of_the_labels(predictor: Predictor) -> None:
    explanation = predictor.explain("i love great tea", methods=["integrated_gradients"])
    answer = explanation.answers["moods"]
    label = explanation.as_json(maps=False)["explained_label"]
    assert label == max(answer.label, key=answer.probabilities.__getitem__)
    assert explanation.answer.label == label
    assert explanation.probabilities == pytest.approx(answer.probabilities, abs=1e-5)
    texts = ["i love great tea", "love great tea", "i great tea", "i love tea", "i love great"]
    shares = [one.answers["moods"].probabilities[label] for one in predictor.predict(texts)]
    odds = np.log(shares) - np.log1p(-np.array(shares))
    found = explanation.shadings["occlusion"].weights
    assert found == pytest.approx((odds[0] - odds[1:]).tolist(), abs=1e-3)


def test_a_description_that_cannot_be_is_refused(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    good = dict(open_model(folder).description)
    own = good["calibration"]["moods"]
    for change in (
        {"multi_label": ["x"]},
        {"multi_label": "moods"},
        {"multi_label": []},
        {"calibration": {"moods": {**own, "thresholds": [0.5]}}},
        {"calibration": {"moods": {**own, "thresholds": [0.5, 0.5, 2]}}},
    ):
        write_description(copy, {**good, **change})
        with pytest.raises(UserError, match=r"multi_label|threshold"):
            open_model(copy)


def test_what_needs_one_label_says_so(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from litotes.cli.main import main

    table = write_table(tmp_path)
    plain = f"table:{table}?label=moods&split=split"
    source = f"table:{table}?label=moods&several=|&split=split"
    assert main(["evaluate", "--model", str(folder), "--data", source, "--device", "cpu"]) == 0
    for command in (
        ["evaluate", "--model", str(folder), "--data", plain],
        ["evaluate", "--model", str(folder), "--data", source, "--slices"],
        ["evaluate", "--model", str(folder), "--data", source, "--against", str(folder)],
        ["stress", "--model", str(folder), "--data", source, "--out", str(tmp_path / "s")],
        ["calibrate", "--model", str(folder), "--data", source, "--out", str(tmp_path / "c")],
        ["prune", "--model", str(folder), "--data", source, "--out", str(tmp_path / "p")],
        ["exits", "--model", str(folder), "--data", source, "--out", str(tmp_path / "e")],
    ):
        assert main([*command, "--device", "cpu"]) == 2, command
    capsys.readouterr()
    by = ["evaluate", "--model", str(folder), "--data", source, "--by", "variety"]
    assert main([*by, "--device", "cpu"]) == 2
    assert "moods is answered with several labels" in capsys.readouterr().err
