"""Editions of the built-in model: what they are called, and which of them answers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from litotes import export
from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.model import builtin
from litotes.model.builtin import (
    BUILTIN,
    EDITIONS,
    LIGHT_VARIABLE,
    built_in_models,
    edition_folder,
    is_builtin,
    name_of,
    resolve_model,
)
from litotes.model.folder import is_model_folder, open_model
from litotes.prediction.onnx_file import MADE_FROM, NOTE, has_export
from litotes.prediction.predictor import BatchPredictor, Predictor

TEXT = "Oh great, another delayed train."


@pytest.fixture
def two_editions(
    trained_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Path]:
    """A package whose second edition is a tiny model."""
    folders = {"builtin@1": edition_folder(1), "builtin@2": trained_folder}
    for edition, folder in enumerate(folders.values(), start=1):
        (tmp_path / f"edition_{edition}").symlink_to(folder)
    monkeypatch.setattr(builtin, "_HERE", tmp_path)
    monkeypatch.setattr(builtin, "EDITIONS", (1, 2))
    monkeypatch.delenv(LIGHT_VARIABLE)
    return folders


def write_note(folder: Path, model: str) -> None:
    """What says that the ONNX file there was made from this model."""
    folder.mkdir()
    (folder / NOTE).write_text(json.dumps({MADE_FROM: open_model(model).stated_hashes}))


def test_every_edition_is_there_and_is_found_by_its_number() -> None:
    for edition in EDITIONS:
        folder = resolve_model(f"{BUILTIN}@{edition}")
        assert is_model_folder(folder)
        assert is_builtin(folder)
    assert resolve_model(BUILTIN) == resolve_model(f"{BUILTIN}@{EDITIONS[-1]}")
    there = sorted(path.name for path in edition_folder(1).parent.glob("edition_*"))
    assert there == sorted(f"edition_{edition}" for edition in EDITIONS)


def test_the_last_edition_is_the_current_one(two_editions: dict[str, Path]) -> None:
    assert list(built_in_models()) == ["builtin", "builtin@1", "builtin@2"]
    assert resolve_model("builtin") == resolve_model("builtin@2")
    for name, folder in two_editions.items():
        assert resolve_model(name).resolve() == folder
    assert name_of(resolve_model("builtin@1")) == "builtin@1"
    assert name_of(resolve_model("builtin@2")) == "builtin"
    assert name_of(Path("mine")) == "mine"


@pytest.mark.slow
def test_each_name_gives_the_answers_of_its_edition(two_editions: dict[str, Path]) -> None:
    for name, folder in two_editions.items():
        ours, theirs = Predictor.load(name), Predictor.load(folder)
        assert ours.predict(TEXT) == theirs.predict(TEXT)
    assert Predictor.load("builtin").identities == Predictor.load("builtin@2").identities
    assert Predictor.load("builtin").identities != Predictor.load("builtin@1").identities


@pytest.mark.parametrize("name", ["builtin@7", "builtin@", "builtin@one", "builtin@01"])
def test_an_edition_that_is_not_there_is_a_sentence(
    name: str, two_editions: dict[str, Path]
) -> None:
    sentence = (
        f"There is no built-in model {name}: known are builtin, builtin@1, builtin@2; a folder of"
        f" that name is ./{name}."
    )
    for load in (resolve_model, open_model, Predictor.load, BatchPredictor):
        with pytest.raises(UserError) as caught:
            load(name)
        assert str(caught.value) == sentence


@pytest.mark.parametrize("name", ["builtin@7/run", "my-builtin@7", "builtins", "builtin7"])
def test_other_names_are_folders(name: str) -> None:
    assert resolve_model(name) == Path(name)


@pytest.mark.parametrize(
    "command",
    [
        ["predict", "x"],
        ["explain", "x"],
        ["evaluate", "--data", "sampler"],
        ["analyze", "--data", "sampler"],
        ["stress", "--data", "sampler"],
        ["export", "--out", "copy"],
        ["exits", "--data", "sampler", "--out", "copy"],
        ["calibrate", "--data", "sampler", "--out", "copy"],
        ["bench", "classify"],
    ],
    ids=lambda command: command[0],
)
def test_every_command_knows_the_editions(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*command, "--model", "builtin@7"]) == 2
    said = capsys.readouterr().err
    assert "There is no built-in model builtin@7: known are builtin, builtin@" in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_shell_takes_an_edition(capsys: pytest.CaptureFixture[str]) -> None:
    said = {}
    for name in (BUILTIN, f"{BUILTIN}@{EDITIONS[-1]}"):
        assert main(["predict", TEXT, "--model", name, "--json"]) == 0
        said[name] = capsys.readouterr().out
    assert len(set(said.values())) == 1
    assert main(["list", "models", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["models"]
    assert list(listed) == [*built_in_models(), "FOLDER"]


def test_a_worker_is_sent_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "builtin@1").mkdir()
    assert BatchPredictor("builtin@1").folder == "builtin@1"
    assert BatchPredictor("./builtin@1").folder == str(tmp_path / "builtin@1")


def test_no_edition_is_written_to(two_editions: dict[str, Path]) -> None:
    for name, called in {"builtin@1": "builtin@1", "builtin@2": "builtin"}.items():
        with pytest.raises(UserError, match=f"{called} is not yours"):
            export(name)


def test_an_earlier_edition_needs_torch(
    two_editions: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_note(tmp_path / "light", "builtin")  # as a wheel has it
    assert has_export(open_model("builtin"))
    assert not has_export(open_model("builtin@1"))
    with pytest.raises(UserError) as caught:
        Predictor.load("builtin@1", runtime="onnx")
    assert str(caught.value) == (
        "builtin@1 has no ONNX export: use --runtime torch (`pip install 'litotes[train]'`), or"
        " make one where that is installed: `litotes export --model builtin@1 --out FOLDER`."
    )
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UserError) as caught:
        Predictor.load("builtin@1")
    assert str(caught.value) == (
        "builtin@1 has no ONNX export, and torch needs the package torch: `pip install"
        " 'litotes[train]'`; or export it where that is installed: `litotes export --model"
        " builtin@1 --out FOLDER`."
    )


def test_the_file_of_an_earlier_edition_is_its_own(
    two_editions: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_note(tmp_path / "elsewhere", "builtin@1")
    monkeypatch.setenv(LIGHT_VARIABLE, str(tmp_path / "elsewhere"))
    assert has_export(open_model("builtin@1"))
    assert not has_export(open_model("builtin"))
