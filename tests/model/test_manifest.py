"""Every file of a model folder has its hash, the description and the list of hashes included."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tiny_exports import export_unmeasured
from tiny_models import model_of

from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.core.storage import sha256_of
from litotes.encoder import pretrained
from litotes.exporting.export import working_copy
from litotes.model import folder as folders
from litotes.model.checkpoint import load_model, save_model, save_parts
from litotes.model.folder import hash_folder, open_model, read_manifest
from litotes.prediction import onnx_runtime, predictor
from litotes.prediction.predictor import Predictor


@pytest.fixture
def folder(tiny: pretrained.Pretrained, tmp_path: Path) -> Path:
    save_model(model_of(tiny), tmp_path / "model", card="a card")
    return tmp_path / "model"


def listed(folder: Path) -> dict[str, str]:
    manifest = read_manifest(folder)
    assert manifest is not None
    return dict(manifest.files)


def flip(file: Path, place: int, bit: int = 0) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 1 << bit
    file.write_bytes(content)


def as_of_old(folder: Path) -> None:
    """The folder as format 1 had it."""
    file = folder / "litotes.json"
    files = {name: sha256_of(folder / name) for name in ("model.safetensors", "tokenizer.json")}
    content = json.loads(file.read_text()) | {"format": 1, "files": files}
    file.write_text(json.dumps(content))
    (folder / "manifest.json").unlink()


def test_every_file_is_listed(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()} - {"manifest.json"}
    assert listed(folder) == {name: sha256_of(folder / name) for name in names}
    assert {"litotes.json", "model.safetensors", "tokenizer.json", "README.md"} <= names
    export_unmeasured(folder)
    assert listed(folder).keys() - names == {"model.onnx", "export.json"}
    assert listed(folder) == dict(hash_folder(folder).files)


def test_another_number_in_the_description_is_noticed(folder: Path) -> None:
    """Four attention heads or two: both divide the width, so only a hash can tell."""
    file = folder / "litotes.json"
    text = file.read_text()
    file.write_text(text.replace('"n_attention_heads": 4', '"n_attention_heads": 2'))
    with pytest.raises(UserError, match=r"litotes\.json is missing or not the file that was saved"):
        open_model(folder)


@pytest.mark.parametrize("name", ["litotes.json", "tokenizer.json", "model.safetensors"])
@pytest.mark.parametrize("place", [0.2, 0.5, 0.9])
def test_a_flipped_bit_is_refused_with_the_name_of_the_file(
    folder: Path, name: str, place: float
) -> None:
    file = folder / name
    flip(file, int(place * file.stat().st_size))
    with pytest.raises(UserError, match=f"{name} is missing or not the file that was saved"):
        load_model(folder)


def test_every_byte_of_the_manifest_counts(folder: Path) -> None:
    file = folder / "manifest.json"
    whole, expected = file.read_bytes(), listed(folder)
    for place in range(len(whole)):
        flip(file, place)
        with suppress(UserError):
            assert listed(folder) == expected  # white space
            assert chr(whole[place]).isspace()
        file.write_bytes(whole)


def test_the_new_format_needs_its_manifest(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    with pytest.raises(UserError, match=r"manifest\.json is missing"):
        open_model(folder)


@pytest.mark.parametrize("name", ["litotes.json", "tokenizer.json", "model.safetensors"])
def test_a_file_that_answers_must_be_listed(folder: Path, name: str) -> None:
    hash_folder(folder).only(set(os.listdir(folder)) - {name}).write(folder)
    with pytest.raises(UserError, match=r"manifest\.json"):
        load_model(folder)


def test_other_files_do_not_matter(folder: Path) -> None:
    before = Predictor.load(folder, device="cpu").predict(["tea"])
    (folder / "README.md").write_text("a better card")
    (folder / "notes.txt").write_text("mine")
    assert Predictor.load(folder, device="cpu").predict(["tea"]) == before


def test_a_folder_of_the_old_format_is_opened_with_a_word(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Predictor.load(folder, device="cpu").predict(["tea"])
    as_of_old(folder)
    predictor = Predictor.load(folder, device="cpu")
    assert predictor.predict(["tea"]) == before
    assert main(["predict", "tea", "--model", str(folder), "--device", "cpu"]) == 0
    assert capsys.readouterr().err.count("was written by an earlier litotes") == 1
    export_unmeasured(folder)
    assert not (folder / "manifest.json").exists()
    assert Predictor.load(folder, runtime="onnx").predict(["tea"])
    flip(folder / "tokenizer.json", 500)
    for runtime in ("torch", "onnx"):
        with pytest.raises(UserError, match=r"tokenizer\.json"):
            Predictor.load(folder, device="cpu", runtime=runtime)


def test_a_folder_of_parts_has_a_manifest_too(folder: Path) -> None:
    whole = folder.parent / "whole"
    shutil.copytree(folder, whole / "sentiment")
    save_parts(["sentiment"], whole)
    assert list(listed(whole)) == ["litotes.json"]
    (whole / "litotes.json").write_text((whole / "litotes.json").read_text() + " ")
    with pytest.raises(UserError, match=r"whole/litotes\.json is missing or not the file"):
        open_model(whole)


def test_a_copy_does_not_hide_damage(folder: Path) -> None:
    """A copy states the hashes that the folder states, not those of what was copied."""
    flip(folder / "tokenizer.json", 500)
    out = folder.parent / "copy"
    with (
        pytest.raises(UserError, match=r"copy/tokenizer\.json is missing or not the file"),
        working_copy(folder, str(out)) as copy,
    ):
        load_model(copy)
    assert not out.exists()


def test_an_export_does_not_hide_damage(folder: Path) -> None:
    flip(folder / "README.md", 0)
    before = listed(folder)
    export_unmeasured(folder)
    assert {name: listed(folder)[name] for name in before} == before


def test_an_export_that_is_gone_is_missed(folder: Path) -> None:
    """Torch would answer slightly otherwise, without a word."""
    export_unmeasured(folder).unlink()
    with pytest.raises(UserError, match=r"There is no .*model\.onnx"):
        Predictor.load(folder, device="cpu")
    assert Predictor.load(folder, device="cpu", runtime="torch").predict(["tea"])


def damage(folder: Path) -> None:
    for path in folder.iterdir():
        path.write_bytes(b"something else")


def test_what_was_hashed_is_what_torch_uses(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that change after they were read and compared are not read again."""
    before = Predictor.load(folder, device="cpu", runtime="torch").predict(["tea"])
    read = predictor.read_files

    def read_and_damage(*arguments: Any) -> Any:
        found = read(*arguments)
        damage(folder)
        return found

    monkeypatch.setattr(predictor, "read_files", read_and_damage)
    assert Predictor.load(folder, device="cpu", runtime="torch").predict(["tea"]) == before


def test_what_was_hashed_is_what_onnx_runtime_uses(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_unmeasured(folder)
    before = Predictor.load(folder, device="cpu", runtime="onnx").predict(["tea"])
    check = onnx_runtime.checked_export

    @contextmanager
    def check_and_damage(*arguments: Any) -> Iterator[Any]:
        with check(*arguments) as export:
            yield export
        damage(folder)

    monkeypatch.setattr(onnx_runtime, "checked_export", check_and_damage)
    assert Predictor.load(folder, device="cpu", runtime="onnx").predict(["tea"]) == before


def test_a_file_too_large_to_be_kept_is_hashed_and_mapped(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Predictor.load(folder, device="cpu").predict(["tea"])
    monkeypatch.setattr(folders, "MOST_KEPT_BYTES", 1000)
    assert Predictor.load(folder, device="cpu").predict(["tea"]) == before
    flip(folder / "model.safetensors", 20_000)
    with pytest.raises(UserError, match=r"model\.safetensors is missing or not the file"):
        load_model(folder)
