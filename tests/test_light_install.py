"""What `pip install litotes` alone can do: every command, in a process without torch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from light_commands import ABSENT

from litotes.cli.main import COMMANDS
from litotes.core import errors
from litotes.core.errors import UserError
from litotes.exporting.export import export_models, working_copy
from litotes.model.builtin import BUILTIN, EDITIONS, LIGHT_VARIABLE, is_builtin, resolve_model
from litotes.model.folder import open_model
from litotes.prediction.onnx_file import FILE, NOTE, has_export
from litotes.prediction.predictor import Predictor
from reproduction.light_builtin import write_light

pytestmark = pytest.mark.slow

TEXTS = ("Oh great, another delayed train.", "What a lovely evening that was.")
TRAIN = "pip install 'litotes[train]'"
SUBMIT = ["--submit", "FOLDER/gold.csv"]
LINES: dict[str, list[tuple[list[str], int, str]]] = {
    "predict": [
        ([TEXTS[0]], 0, "sarcastic"),
        ([TEXTS[0], "--model", f"{BUILTIN}@{EDITIONS[-1]}"], 0, "sarcastic"),
        ([TEXTS[0], "--model", "EXPORTED"], 0, "sarcasm"),
        ([TEXTS[0], "--model", "PLAIN"], 2, TRAIN),
        ([TEXTS[0], "--runtime", "torch"], 2, TRAIN),
    ],
    "explain": [
        ([TEXTS[0], "--task", "sarcasm"], 0, "occlusion"),
        ([TEXTS[0], "--model", "EXPORTED", "--out", "FOLDER/why.json"], 0, "why.json"),
        ([TEXTS[0], "--method", "effective"], 2, TRAIN),
        ([TEXTS[0], "--out", "FOLDER/why.html"], 2, TRAIN),
    ],
    "evaluate": [
        (["--model", "EXPORTED", "--data", "sampler"], 0, "macro-F1"),
        (["--model", "EXPORTED", "--data", "sampler", "--slices"], 0, "slices looked at"),
        (
            ["--model", "EXPORTED", "--data", "sampler", "--slices", "--out", "FOLDER/scored"],
            0,
            "litotes[figures]",
        ),
    ],
    "calibrate": [
        (["--model", "EXPORTED", "--data", "sampler", "--out", "FOLDER/one"], 0, "now answers"),
        (["--model", "PLAIN", "--data", "sampler", "--out", "FOLDER/two"], 2, TRAIN),
    ],
    "stress": [(["--data", "sampler", "--out", "x"], 2, TRAIN)],
    "audit": [(["--data", "sampler"], 0, "780 texts")],
    "coverage": [
        (["--data", "sampler", "--out", "FOLDER/shared"], 0, "litotes[figures]"),
        (["--data", "sampler", "--encoder", "minilm"], 2, TRAIN),
    ],
    "score": [
        (["FOLDER/gold.csv", "FOLDER/gold.csv"], 0, "1.0"),
        ([*SUBMIT, "--model", "EXPORTED", "--out", "FOLDER/a.zip"], 0, "a.zip"),
        ([*SUBMIT, "--model", "PLAIN", "--out", "FOLDER/b.zip"], 2, TRAIN),
    ],
    "list": [([], 0, "sampler"), (["methods"], 0, "occlusion"), (["heads"], 2, TRAIN)],
    "serve": [],  # asked below
    "hub push": [(["PLAIN", "nobody"], 2, "OWNER/NAME")],
    "hub pull": [(["nobody", "--out", "FOLDER/pulled"], 2, "OWNER/NAME")],
    "new": [(["FOLDER/gold.csv"], 2, TRAIN)],
    "train": [(["recipe.toml", "--out", "x"], 2, TRAIN)],
    "translate": [(["a text", "--model", "PLAIN"], 2, TRAIN)],
    "interpret": [(["a text", "--model", "PLAIN"], 2, TRAIN)],
    "pretrain": [(["recipe.toml", "--out", "x"], 2, TRAIN)],
    "matrix": [(["recipe.toml", "--out", "x"], 2, TRAIN)],
    "study": [(["study.toml", "--out", "x"], 2, TRAIN)],
    "distill": [(["recipe.toml", "--out", "x"], 2, TRAIN)],
    "prune": [(["--model", "PLAIN", "--data", "sampler", "--out", "x"], 2, TRAIN)],
    "exits": [(["--model", "PLAIN", "--data", "sampler", "--out", "x"], 2, TRAIN)],
    "export": [(["--model", "PLAIN"], 2, TRAIN)],
    "analyze": [(["--model", "PLAIN", "--data", "sampler", "--out", "x"], 2, TRAIN)],
    "bench": [([], 2, TRAIN)],
    "encoders list": [([], 2, TRAIN)],
    "encoders get": [(["minilm"], 2, TRAIN)],
    "encoders check": [([], 2, TRAIN)],
}
"""By command: the words after it, its exit code, and something it says.

EXPORTED and PLAIN are model folders with an export and without.
"""


GOLD = """\
source,variety,text,sentiment,sarcasm
google,en-AU,Lovely spot.,1,0
reddit,en-AU,Great. Another delay.,0,1
google,en-UK,A proper brew.,1,0
reddit,en-UK,"Lovely weather, as ever.",0,1
"""


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make light` makes, wherever that was run or not."""
    folder = tmp_path_factory.mktemp("light")
    write_light(folder, n_texts=2)
    return folder


@pytest.fixture(scope="module")
def done(
    light: Path, trained_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Any]:
    """All lines of the table, run in one process: {"lines": {words: outcome}, "asked": …}"""
    folder = tmp_path_factory.mktemp("lines")
    with working_copy(trained_folder, str(folder / "exported")) as copy:
        export_models(copy, n_texts=4)
    (folder / "gold.csv").write_text(GOLD)
    places = {"EXPORTED": folder / "exported", "PLAIN": trained_folder, "FOLDER": folder}

    def put(word: str) -> str:
        for name, place in places.items():
            word = word.replace(name, str(place))
        return word

    lines = [[*command.split(), "--help"] for command in COMMANDS]
    for command, uses in LINES.items():
        lines += [[*command.split(), *map(put, words)] for words, _, _ in uses]
    runner = Path(__file__).with_name("light_commands.py")
    out = folder / "done.json"
    subprocess.run(
        [sys.executable, str(runner), str(out)],
        input=json.dumps({"lines": lines}),
        env={**os.environ, LIGHT_VARIABLE: str(light)},
        cwd=folder,
        text=True,
        check=True,
    )
    content = json.loads(out.read_text())
    outcomes = iter(content.pop("done"))
    helps = {command: next(outcomes) for command in COMMANDS}
    used = {command: [next(outcomes) for _ in uses] for command, uses in LINES.items()}
    return content | {"helps": helps, "used": used}


def test_every_command_works_or_names_the_extra(done: Mapping[str, Any]) -> None:
    assert set(LINES) == set(COMMANDS)
    for command, shown in done["helps"].items():
        assert (shown["code"], f"litotes {command}" in shown["said"]) == (0, True)
        for (_, code, words), outcome in zip(LINES[command], done["used"][command], strict=True):
            assert (outcome["code"], words in outcome["said"]) == (code, True), outcome
            if words == TRAIN:
                assert outcome["said"].count("\n") == 1, outcome
    assert done["imported"] == []


def test_the_service_answers_and_explains_without_torch(done: Mapping[str, Any]) -> None:
    statuses = {path: status for path, (status, _) in done["asked"].items()}
    assert set(statuses.values()) == {200}, statuses
    (answer,) = json.loads(done["asked"]["/v1/predict"][1])["predictions"]
    assert answer["sarcasm"]["label"] == "sarcastic"
    explanation = json.loads(done["asked"]["/v1/explain"][1])
    assert list(explanation["shadings"]) == ["occlusion"]
    assert explanation["layers"] == []
    served = json.loads(done["asked"]["/v1/models"][1])
    assert served["methods"] == ["occlusion", "random"]
    assert (served["models"][0]["runtime"], served["models"][0]["n_layers"]) == ("onnx", 6)


def test_the_built_in_model_answers_alike_by_both_runtimes(
    light: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIGHT_VARIABLE, str(light))
    by_torch = Predictor.load(BUILTIN, runtime="torch")
    by_onnx = Predictor.load(BUILTIN, device="cpu")
    assert "OnnxRuntime" in repr(by_onnx)
    assert by_onnx.runtimes[0].name == by_torch.runtimes[0].name
    assert by_onnx.runtimes[0].n_layers == by_torch.runtimes[0].n_layers
    for one, other in zip(by_onnx.predict(TEXTS), by_torch.predict(TEXTS), strict=True):
        for task, answer in other.answers.items():
            assert one.answers[task].label == answer.label
            # weights have 11 bits
            assert one.answers[task].probability == pytest.approx(answer.probability, abs=5e-3)


def test_occlusion_says_the_same_whoever_computes(
    light: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from litotes.explanation.explain import explain

    monkeypatch.setenv(LIGHT_VARIABLE, str(light))
    predictor = Predictor.load(BUILTIN, device="cpu")
    inside = predictor.explain(TEXTS[0], methods=["random"])
    (runtime,) = predictor.runtimes
    asked = explain(
        runtime,
        runtime.tokenizer.read([TEXTS[0]], [None])[0],
        inside.answers,
        predictor.tasks[inside.task],
    )
    for name, shading in asked.shadings.items():
        other = inside.shadings[name]
        assert shading.weights == pytest.approx(other.weights, abs=0.05)
        assert shading.faithfulness is not None
        assert other.faithfulness is not None
        assert shading.faithfulness.comprehensiveness == pytest.approx(
            other.faithfulness.comprehensiveness, abs=0.02
        )
    assert asked.probabilities == pytest.approx(inside.probabilities, abs=5e-3)
    assert asked.as_json()["layers_left_out"]


def test_a_file_of_another_model_damaged_or_absent(
    light: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = open_model(BUILTIN)
    monkeypatch.setenv(LIGHT_VARIABLE, str(tmp_path))
    assert not has_export(folder)
    for name in (FILE, NOTE):
        shutil.copy(light / name, tmp_path)
    assert has_export(folder)
    content = bytearray((light / FILE).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(UserError, match="another sha256"):
        Predictor.load(BUILTIN, device="cpu").predict(TEXTS)
    note = json.loads((tmp_path / NOTE).read_text())
    note["made_from"]["model.safetensors"] = "0" * 64
    (tmp_path / NOTE).write_text(json.dumps(note))
    assert not has_export(folder)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UserError, match="make light"):
        Predictor.load(BUILTIN)
    assert is_builtin(resolve_model(BUILTIN))
    assert not is_builtin(tmp_path)


def test_extras_are_those_of_the_package(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    declared = project["optional-dependencies"]

    def packages(extra: str) -> set[str]:
        found = set()
        for line in declared[extra]:
            name = line.split(">")[0].split("=")[0].strip()
            if name.startswith("litotes["):
                for inner in name.removeprefix("litotes[").rstrip("]").split(","):
                    found |= packages(inner)
            found.add(name.replace("-", "_"))
        return found

    for extra, modules in errors.EXTRAS.items():
        assert set(modules) <= packages(extra), extra
    assert {one["needs"] for one in COMMANDS.values() if "needs" in one} <= set(errors.EXTRAS)
    plain = {line.split(">")[0] for line in project["dependencies"]}
    assert plain == {"onnxruntime", "tokenizers", "jinja2", "numpy", "pydantic", "rich"}
    assert not plain & set(ABSENT)
    assert packages("all") >= packages("train") | packages("serve")
