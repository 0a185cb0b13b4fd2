"""A model folder: opened once, without torch, every file with its hash, the description and the
list of hashes included.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tiny_exports import export_unmeasured
from tiny_models import model_of

from litotes.core.errors import UserError
from litotes.core.storage import sha256_of
from litotes.core.values import Task
from litotes.encoder import pretrained
from litotes.encoder.families import EncoderSpec
from litotes.exporting.export import working_copy
from litotes.model import folder as folders
from litotes.model.builtin import BUILTIN, EDITIONS, resolve_model
from litotes.model.checkpoint import load_model, save_model, save_parts
from litotes.model.folder import (
    DESCRIPTION,
    hash_folder,
    is_model_folder,
    open_model,
    read_files,
    read_manifest,
    write_description,
)
from litotes.prediction import onnx_runtime, runtime_choice
from litotes.prediction.predictor import Predictor


def describe(folder: Path, **content: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    shape = {"n_layers": 2, "n_vocabulary": 9, "width": 4, "n_attention_heads": 1}
    encoder = EncoderSpec("bert", **shape, inner_width=4, n_positions=9).as_json()
    base = {"name": "tiny", "sha256": None, "omitted": False}
    whole = {"head": "mean", "dropout": 0.0, "calibration": {}, "max_pieces": 9, "facts": {}}
    whole |= {"tasks": {}, "encoder": encoder, "base": base} | content
    if "kind" in content:
        del whole["head"], whole["calibration"]
    if "parts" in content:
        whole = content
    write_description(folder, {"format": 2, "litotes": "0"} | whole)
    return folder


def test_the_description_is_read_once(tmp_path: Path) -> None:
    folder = open_model(describe(tmp_path / "model", tasks={"sarcasm": ["literal", "sarcastic"]}))
    (folder.path / DESCRIPTION).unlink()
    assert folder.tasks == {"sarcasm": Task("sarcasm", ("literal", "sarcastic"))}
    assert folder.calibration == {}
    assert open_model(folder) is folder
    assert folder.models == (folder,)
    assert not is_model_folder(folder.path)


def test_parts_are_opened_with_their_folder(tmp_path: Path) -> None:
    describe(tmp_path, parts=["sentiment", "sarcasm"])
    with pytest.raises(UserError, match="sentiment is not a model folder"):
        open_model(tmp_path)
    for task in ("sentiment", "sarcasm"):
        describe(tmp_path / task, tasks={task: ["no", "yes"]})
    folder = open_model(tmp_path)
    assert [part.path.name for part in folder.models] == ["sentiment", "sarcasm"]
    assert [list(part.tasks) for part in folder.models] == [["sentiment"], ["sarcasm"]]


def test_parts_label_whole_texts(tmp_path: Path) -> None:
    describe(tmp_path, parts=["words"])
    words = {"kind": "tagging", "words": "blanks", "tasks": {"words": ["no", "yes"]}}
    describe(tmp_path / "words", **words)
    with pytest.raises(UserError, match="one of its parts does not label whole texts"):
        open_model(tmp_path)


def test_a_part_that_leads_back_is_not_opened_for_ever(tmp_path: Path) -> None:
    describe(tmp_path / "model", parts=["again"])
    (tmp_path / "model" / "again").symlink_to(tmp_path / "model")
    (part,) = open_model(tmp_path / "model").models
    assert part.parts == ()


def test_only_a_string_is_a_built_in_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (BUILTIN, f"{BUILTIN}@{EDITIONS[-1]}"):
        describe(tmp_path / name, tasks={"mine": []})
        assert list(open_model(name).tasks) == ["sentiment", "sarcasm"]
        assert list(open_model(Path(name)).tasks) == ["mine"]
        assert list(open_model(f"./{name}").tasks) == ["mine"]


def test_the_encoder_two_models_rest_on_is_read_once() -> None:
    builtin = open_model(BUILTIN)
    files = read_files([builtin, builtin])
    assert list(files) == builtin.large_files
    assert len(files) == 3
    named = {file.name: read.sha256 for file, read in files.items() if file.parent == builtin.path}
    assert named == builtin.stated_hashes


def test_opening_needs_no_torch() -> None:
    opened = (
        "import sys; from litotes.model.folder import open_model;"
        " open_model('builtin'); print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", opened], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
    assert is_model_folder(resolve_model(BUILTIN))


# Its manifest


@pytest.fixture
def folder(tiny: pretrained.Pretrained, tmp_path: Path) -> Path:
    save_model(model_of(tiny), tmp_path / "model", card="a card")
    return tmp_path / "model"


def listed(folder: Path) -> dict[str, str]:
    return dict(read_manifest(folder).files)


def flip(file: Path, place: int, bit: int = 0) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 1 << bit
    file.write_bytes(content)


def test_every_file_is_listed(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()} - {"manifest.json"}
    assert listed(folder) == {name: sha256_of(folder / name) for name in names}
    assert {"litotes.json", "model.safetensors", "tokenizer.json", "README.md"} <= names
    export_unmeasured(folder)
    assert listed(folder).keys() - names == {"model.onnx", "export.json"}
    assert listed(folder) == dict(hash_folder(folder).files)


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
    read = runtime_choice.read_files

    def read_and_damage(*arguments: Any) -> Any:
        found = read(*arguments)
        damage(folder)
        return found

    monkeypatch.setattr(runtime_choice, "read_files", read_and_damage)
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


def test_a_model_that_nothing_could_complete_is_kept_whole(folder: Path, tmp_path: Path) -> None:
    """Only from a bundled encoder can steps away from it be taken back."""
    model = load_model(folder)
    save_model(model, tmp_path / "compact", card="", compact=True)
    again = load_model(tmp_path / "compact").classifier.state_dict()
    for name, tensor in model.classifier.state_dict().items():
        assert again[name].equal(tensor), name
