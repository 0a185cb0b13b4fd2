"""Exports measured against torch, predictors that choose their runtime, and what is said when it
cannot be.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest

from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.core.values import Prediction, Task
from litotes.exporting import export as exporting
from litotes.exporting.export import ExportLoss, choose_sample, compare, export_models, working_copy
from litotes.model import folder as model_folder
from litotes.model.calibration import Calibration
from litotes.model.checkpoint import load_model
from litotes.model.folder import Manifest, ModelFolder, hash_folder, open_model
from litotes.prediction import runtime_choice
from litotes.prediction.onnx_runtime import OnnxRuntime
from litotes.prediction.predictor import Predictor
from litotes.prediction.torch_runtime import TorchRuntime
from litotes.training.recipe import recipe_of
from litotes.training.training_data import prepare

UNREADABLE = "\u200b😀"
TEXTS = [
    "The tea is great.",
    "Hate it, hate it, hate it: the queue! " * 2,
    "ok",
    "x " * 300,
    "It is not bad",
    UNREADABLE,
]


@pytest.fixture
def folder(trained_folder: Path, tmp_path: Path) -> Path:
    return copytree(trained_folder, tmp_path / "run")


def assert_same(expected: list[Prediction], found: list[Prediction], *, tolerance: float) -> None:
    for ours, theirs in zip(expected, found, strict=True):
        assert (ours.text, ours.truncated) == (theirs.text, theirs.truncated)
        assert ours.unreadable == theirs.unreadable == (ours.text == UNREADABLE)
        assert ours.answers.keys() == theirs.answers.keys()
        for task, answer in ours.answers.items():
            probability = pytest.approx(answer.probability, abs=tolerance)
            assert theirs.answers[task].label == answer.label
            assert theirs.answers[task].probability == probability


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_the_loss_is_measured_and_both_runtimes_agree(folder: Path, precision: str) -> None:
    (exported,) = export_models(folder, precision=precision, n_texts=15, allowed=0.1)
    note = json.loads((folder / "export.json").read_text())
    assert (note["precision"], note["measured_on"]) == (precision, "held-out texts of sampler")
    for loss in exported.losses:
        assert note["loss"][loss.task]["n"] == loss.n == 15
        assert loss.largest_difference <= (1e-4 if precision == "float32" else 0.1)
        assert loss.macro_f1_exported == pytest.approx(loss.macro_f1, abs=0.1)
    if precision == "int8":
        return
    torch, onnx = (Predictor.load(folder, device="cpu", runtime=name) for name in ("torch", "onnx"))
    assert isinstance(torch.runtimes[0], TorchRuntime)
    assert isinstance(onnx.runtimes[0], OnnxRuntime)
    assert_same(torch.predict(TEXTS), onnx.predict(TEXTS), tolerance=1e-4)
    # products of a group of texts may differ in the last bits from those of one
    assert_same(onnx.predict(TEXTS) * 30, list(onnx.stream(TEXTS * 30)), tolerance=1e-5)
    explained = onnx.explain(TEXTS[0], task="sarcasm", methods=["random"], faithfulness=False)
    assert explained.answer == torch.predict(TEXTS[:1])[0].answers["sarcasm"]
    assert onnx.runtimes[0].identity() != torch.runtimes[0].identity()


def test_the_runtime_chooses_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(**options: str) -> type:
        return type(Predictor.load(folder, **options).runtimes[0])  # type: ignore[arg-type]

    monkeypatch.setattr(runtime_choice, "is_cpu", lambda name: name != "cuda")
    assert chosen() is TorchRuntime
    with pytest.raises(UserError, match="litotes export"):
        chosen(runtime="onnx")
    export_models(folder, n_texts=20)
    assert chosen() is OnnxRuntime
    assert chosen(runtime="torch") is TorchRuntime
    with pytest.raises(UserError, match="on the CPU"):
        chosen(runtime="onnx", device="cuda")
    monkeypatch.setattr(
        runtime_choice, "is_cpu", lambda name: name == "cpu"
    )  # a machine with a GPU
    assert chosen(runtime="onnx") is OnnxRuntime
    assert chosen(device="cpu") is OnnxRuntime
    exported, other = open_model(folder), ModelFolder(folder / "none", {}, Manifest({}))
    _, notes = runtime_choice.choose_runtime([exported, other], "cpu", None)
    assert notes[0].startswith("Run by torch")
    with pytest.raises(UserError, match="runtime"):
        chosen(runtime="tensorrt")


def test_a_copy_that_fails_leaves_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where --out is a link to an empty folder."""
    (tmp_path / "far").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "far")

    def fill_up(file: Path, content: bytes) -> None:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content[:10])
        raise UserError("full")

    monkeypatch.setattr(model_folder, "write_bytes", fill_up)
    with pytest.raises(UserError, match="full"), working_copy(folder, str(tmp_path / "out")):
        raise AssertionError
    assert not (tmp_path / "far").exists()


def test_losses_count_what_changed() -> None:
    task = Task("sarcasm", ("no", "yes"))
    ours, theirs = (
        np.array([[1.0, 0], [0, 1], [2, 0], [0, 2]]),
        np.array([[1.0, 0], [1, 0], [2, 0], [0, 2]]),
    )
    loss = compare(task, Calibration(), ours, theirs, ["no", "yes", None, "yes"])
    assert (loss.n, loss.n_changed, loss.changed) == (4, 1, 0.25)
    assert loss.largest_difference == pytest.approx(1 / (1 + np.exp(-1)) - 1 / (1 + np.exp(1)))
    assert (loss.macro_f1, loss.macro_f1_exported) == (1.0, pytest.approx(2 / 3))
    number = compare(Task("grade", ()), Calibration(), ours[:, :1], theirs[:, :1], [1.0] * 4)
    assert (number.n_changed, number.largest_difference) == (1, 1.0)
    with pytest.raises(UserError, match="not numbers"):
        compare(task, Calibration(), ours, theirs * np.nan, ["no"] * 4)


def test_toss_ups_are_forgiven_while_they_are_few() -> None:
    """52 % against 48 % is one; 60 % against 40 % is not. A threshold moves the middle."""
    task = Task("sarcasm", ("no", "yes"))
    before = np.log([[0.52, 0.48], [0.6, 0.4], [0.9, 0.1]])
    after = np.log([[0.48, 0.52], [0.4, 0.6], [0.9, 0.1]])
    loss = compare(task, Calibration(), before, after, ["no"] * 3)
    assert (loss.n_changed, loss.n_toss_ups, loss.lost) == (2, 1, pytest.approx(1 / 3))
    by_threshold = compare(task, Calibration(threshold=0.41), before, after, ["no"] * 3)
    assert (by_threshold.n_changed, by_threshold.n_toss_ups) == (1, 1)
    several = Task("moods", ("calm", "cross"), multi_label=True)
    either = Calibration(thresholds=(0.5, 0.5))
    odds = np.array([[0.04, 3.0], [2.0, -2.0]])  # 51 % and 95 %, 88 % and 12 %
    moved = compare(several, either, odds, -odds, [("calm", "cross"), ("calm",)])
    assert (moved.n_changed, moved.n_toss_ups, moved.macro_f1) == (2, 0, 1.0)
    few = ExportLoss("sarcasm", 100, 5, 0.05, None, None, n_toss_ups=4)
    exporting.check_losses([few], "int8", 0.01)
    many = ExportLoss("sentiment", 100, 6, 0.05, None, None, n_toss_ups=6)
    with pytest.raises(UserError, match=r"5 of 100 .* sarcasm .*6 of 100 .*--allow 1\.2"):
        exporting.check_losses([few, many], "int8", 0.01)
    with pytest.raises(UserError, match="torch runtime"):
        exporting.check_losses([few], "float32", 0.0)


def test_a_refused_export_names_the_command_that_works(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def all_changed(*arguments: Any) -> list[ExportLoss]:
        return [ExportLoss(task, 20, 3, 0.5, None, None) for task in ("sentiment", "sarcasm")]

    monkeypatch.setattr(exporting, "measure_losses", all_changed)
    out = tmp_path / "my copy"
    command = ["export", "--model", str(folder), "--int8", "--texts", "20", "--out", str(out)]
    assert main(command) == 2
    said = capsys.readouterr().err.strip()
    assert "3 of 20 answers of sentiment" in said
    assert "3 of 20 answers of sarcasm" in said
    assert not out.exists()
    advised = shlex.split(said.rsplit(": litotes ", 1)[1])
    assert advised == [*command, "--allow", "15"]
    assert main(advised) == 0


def test_what_is_measured_on_was_not_learned_from(folder: Path) -> None:
    model = load_model(folder)
    learned_from, asked, _ = choose_sample(model, None)
    prepared = prepare(recipe_of(dict(model.facts["recipe"]), "test"))
    learned_from, asked, training = (
        [example.text for example in part] for part in (learned_from, asked, prepared.train)
    )
    assert set(learned_from) == set(training)
    assert not set(asked) & set(training)
    assert learned_from != training  # an order drawn at random
    description = json.loads((folder / "litotes.json").read_text())
    description["facts"]["recipe"]["data"]["source"] = "besstie:nowhere"
    (folder / "litotes.json").write_text(json.dumps(description))
    hash_folder(folder).write(folder)
    with pytest.raises(UserError, match=r"nowhere.*--data SOURCE"):
        export_models(folder)
    (exported,) = export_models(folder, source="sampler", n_texts=20)
    assert exported.measured_on == "the test split of sampler"


@pytest.mark.slow
def test_the_command_and_a_start_without_torch(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "--model", str(folder), "--texts", "20"]) == 0
    assert "labels changed" in capsys.readouterr().out
    assert main(["export", "--model", str(folder), "--out", str(folder)]) == 2
    assert "is not empty" in capsys.readouterr().err
    program = (
        "import sys; from litotes.cli.main import main; main(['predict', 'ok', '--model',"
        f" {str(folder)!r}, '--runtime', 'onnx', '--verbose']); sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "ONNX Runtime" in done.stderr
    assert "sarcasm" in done.stdout
