from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_wheels import FakePip, make_fetchable

from litotes.cli.main import main
from litotes.encoder.fetching import FETCHABLE, fetch_encoder


@pytest.fixture(autouse=True)
def toy(tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePip:
    monkeypatch.setenv("LITOTES_HOME", str(tmp_path / "home"))
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    (tmp_path / "wheels").mkdir()
    monkeypatch.setitem(FETCHABLE, "toy", make_fetchable(tiny_folder, tmp_path / "wheels"))
    return FakePip(tmp_path / "wheels")


def test_list_says_what_is_here(toy: FakePip, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["encoders", "list"]) == 0
    assert "not fetched (405 MB)" in capsys.readouterr().out
    folder = fetch_encoder("toy", announce=lambda _: None, download=toy).folder
    assert main(["encoders", "list", "--json"]) == 0
    by_name = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert set(by_name) == set(FETCHABLE)
    assert by_name["toy"]["folder"] == str(folder)
    assert by_name["minilm"]["folder"] is not None  # the package is installed here
    assert by_name["minilm"]["download_bytes"] == FETCHABLE["minilm"].n_download


def test_check_verifies_and_computes(toy: FakePip, capsys: pytest.CaptureFixture[str]) -> None:
    folder = fetch_encoder("toy", announce=lambda _: None, download=toy).folder
    assert main(["encoders", "check", "toy", "--json"]) == 0
    (checked,) = json.loads(capsys.readouterr().out)
    assert (checked["files_verified"], checked["states"][1]) == (3, 32)
    (folder / "tokenizer.json").write_text("{}")
    assert main(["encoders", "check", "toy"]) == 2
    assert "tokenizer.json missing or damaged" in capsys.readouterr().err


def test_check_without_a_name_looks_at_what_is_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["encoders", "check"]) == 0
    assert capsys.readouterr().out.startswith("minilm is whole")


MISTAKES = {
    "get mpnett": "Did you mean 'mpnet'?",
    "get toy --hub --to here": "Hub's cache",
    "check mpnet": "litotes encoders get mpnet",
}


@pytest.mark.parametrize("arguments", MISTAKES)
def test_mistakes_are_sentences(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["encoders", *arguments.split()]) == 2
    assert MISTAKES[arguments] in capsys.readouterr().err


def test_what_is_installed_is_already_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["encoders", "get", "minilm"]) == 0
    assert "already there, verified" in capsys.readouterr().out


def test_a_recipe_that_names_an_absent_encoder_says_how_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "recipe.toml").write_text('[model]\nencoder = "mpnet"\n')
    out = str(tmp_path / "run")
    assert main(["train", str(tmp_path / "recipe.toml"), "--out", out]) == 2
    assert "litotes encoders get mpnet" in capsys.readouterr().err
