"""Calibrating writes bounds that the folder answers with, everywhere the same; without them nothing
changes.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.core.storage import sha256_of
from litotes.core.values import Example
from litotes.data.corpus import Corpus
from litotes.data.sources import load
from litotes.evaluation.evaluate import predict_corpus
from litotes.evaluation.unsure import (
    UnsureResult,
    calibrate_folder,
    folder_to_calibrate,
    set_coverages,
)
from litotes.model.builtin import LIGHT_VARIABLE
from litotes.model.folder import open_model, whole_copy
from litotes.prediction.onnx_file import FILE, MADE_FROM, NOTE, has_export
from litotes.prediction.predictor import Predictor


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load("sampler").where(split="test")


@pytest.fixture(scope="module")
def plain(trained_folder: Path) -> Predictor:
    return Predictor.load(trained_folder, device="cpu")


@pytest.fixture(scope="module")
def made(
    trained_folder: Path,
    plain: Predictor,
    corpus: Corpus,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, UnsureResult]:
    """A calibrated copy of the tiny model, and what calibrating found."""
    out = tmp_path_factory.mktemp("unsure") / "calibrated"
    with whole_copy(trained_folder, out) as folder:
        return out, calibrate_folder(folder, plain, corpus, coverage=0.8, by_variety=True)


@pytest.fixture(scope="module")
def calibrated(made: tuple[Path, UnsureResult]) -> Predictor:
    return Predictor.load(made[0], device="cpu")


def test_the_texts_calibrated_on_are_covered(calibrated: Predictor, corpus: Corpus) -> None:
    """In all of them, and in each variety, as often as promised or a little more."""
    predictions = predict_corpus(calibrated, corpus)
    for variety in sorted({example.variety or "" for example in corpus}):
        for result in predictions.values():
            part = result.only([example.variety == variety for example in result.examples])
            row, *_ = set_coverages({"": part}, corpus)
            assert row.coverage.value is not None
            assert 0.8 <= row.coverage.value <= 0.8 + 2 / row.coverage.n
            n_sure = row.accuracy.n
            assert n_sure + row.n_several + row.n_none == row.unsure.n == row.coverage.n
            assert sum(one.n_hits for one in row.by_label.values()) == row.coverage.n_hits


def test_a_variety_decides_by_its_own_bound(
    made: tuple[Path, UnsureResult], calibrated: Predictor, corpus: Corpus
) -> None:
    texts = [example.text for example in corpus][:40]
    for variety in (None, "en-IN", "en-UK"):
        own = calibrated.for_variety(variety)
        for prediction in own.predict(texts):
            for task, answer in prediction.answers.items():
                sets = made[1].label_sets[task]
                (threshold,) = {runtime.calibration[task].threshold for runtime in own.runtimes}
                if threshold is None:
                    expected = {
                        label
                        for label, share in answer.probabilities.items()
                        if share >= sets.bound(variety).least
                    }
                    assert set(answer.labels or ()) == expected
    with pytest.raises(UserError, match=r"'en-UX'.*en-UK"):
        calibrated.for_variety("en-UX")


def test_small_varieties_are_named_with_what_they_can_support(
    trained_folder: Path, plain: Predictor, corpus: Corpus, tmp_path: Path
) -> None:
    few = [example for example in corpus if example.variety == "en-IN"][:7]
    many = [example for example in corpus if example.variety == "en-AU"][:30]
    small = replace(corpus, examples=(*few, *many))
    with whole_copy(trained_folder, tmp_path / "out") as folder:
        result = calibrate_folder(folder, plain, small, coverage=0.9, by_variety=True)
        assert all("en-AU" in sets.varieties for sets in result.label_sets.values())
        assert not any("en-IN" in sets.varieties for sets in result.label_sets.values())
        assert any("en-IN: 7 texts support a coverage of at most 0.875" in n for n in result.notes)
        before = folder.path.joinpath("litotes.json").read_bytes()
        with pytest.raises(UserError, match="needs 19"):
            calibrate_folder(folder, plain, replace(corpus, examples=tuple(few)), coverage=0.95)
        assert folder.path.joinpath("litotes.json").read_bytes() == before
        unnamed = replace(corpus, examples=tuple(replace(one, variety=None) for one in corpus))
        bare = replace(corpus, examples=(Example("the tea", {}),))
        with pytest.raises(UserError, match="nothing to score"):
            calibrate_folder(folder, plain, bare, coverage=0.9)
        with pytest.raises(UserError, match="between 0 and 1"):
            calibrate_folder(folder, plain, corpus, coverage=1.0)
        with pytest.raises(UserError, match="name no variety"):
            calibrate_folder(folder, plain, unnamed, coverage=0.5, by_variety=True)


@pytest.mark.slow
def test_the_command_gives_what_python_gives(
    trained_folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    made: tuple[Path, UnsureResult],
) -> None:
    out = tmp_path / "out"
    options = ["--model", str(trained_folder), "--data", "sampler", "--device", "cpu", "--json"]
    calibrating = ["calibrate", *options, "--coverage", "0.8", "--out", str(out)]
    assert main([*calibrating, "--by", "variety"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["unsure"].keys() == made[1].label_sets.keys()
    for task, sets in made[1].label_sets.items():
        found = content["unsure"][task]
        assert found["overall"]["n"] == sets.overall.n
        assert found["overall"]["least"] == pytest.approx(sets.overall.least, abs=1e-5)
    assert main(calibrating) == 2  # the folder is there
    assert main(["calibrate", *options[2:], "--model", "builtin"]) == 2
    assert "copy it by --out" in capsys.readouterr().err
    options[1] = str(out)
    assert main(["calibrate", *options, "--coverage", "0.8", "--check", "0.4"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert {row["task"] for row in content["check"]} == {"sentiment", "sarcasm"}
    n_used = content["unsure"]["sarcasm"]["overall"]["n"]
    assert n_used + content["check"][0]["coverage"]["n"] > n_used
    assert main(["evaluate", *options, "--out", str(tmp_path / "scores")]) == 0
    written = json.loads((tmp_path / "scores" / "scores.json").read_text())
    assert written.keys() == {"scores", "unsure"}
    curves = json.loads((tmp_path / "scores" / "risk_coverage.json").read_text())
    (row,) = (row for row in written["scores"] if (row["task"], row["cell"]) == ("sarcasm", "all"))
    assert row["risk_area"] == pytest.approx(curves["sarcasm"]["area"])


def test_a_copy_of_the_built_in_model_keeps_its_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    light, stated = tmp_path / "light", open_model("builtin").stated_hashes
    light.mkdir()
    (light / FILE).write_bytes(b"export")
    (light / NOTE).write_text(json.dumps({MADE_FROM: stated}))
    monkeypatch.setenv(LIGHT_VARIABLE, str(light))
    with folder_to_calibrate("builtin", tmp_path / "copy") as copy:
        assert has_export(copy)
        assert copy.manifest is not None
        for name in (FILE, NOTE):
            copy.manifest.check(copy.path / name, sha256_of(copy.path / name))
    with pytest.raises(UserError, match="not yours"), folder_to_calibrate("builtin", None):
        pass
