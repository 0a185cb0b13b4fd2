"""A model folder: opened once, without torch, every file with its hash, the description and the
list of hashes included.
"""

from __future__ import annotations

import os
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
from litotes.model import folder as folders
from litotes.model.builtin import BUILTIN, EDITIONS
from litotes.model.checkpoint import load_model, save_model
from litotes.model.folder import (
    DESCRIPTION,
    hash_folder,
    is_model_folder,
    open_model,
    read_files,
    read_manifest,
    whole_copy,
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
    describe(tmp_path / "again", parts=["again"])
    (tmp_path / "again" / "again").symlink_to(tmp_path / "again")
    (part,) = open_model(tmp_path / "again").models  # not for ever
    assert part.parts == ()
    words = {"kind": "tagging", "words": "blanks", "tasks": {"words": ["no", "yes"]}}
    describe(tmp_path / "sarcasm", **words)
    with pytest.raises(UserError, match="one of its parts does not label whole texts"):
        open_model(tmp_path)
    file = tmp_path / "litotes.json"
    assert list(listed(tmp_path)) == [file.name]
    file.write_text(file.read_text() + " ")
    with pytest.raises(UserError, match=r"litotes\.json is missing or not the file"):
        open_model(tmp_path)


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


ANSWERING = ["litotes.json", "tokenizer.json", "model.safetensors"]


@pytest.mark.parametrize("name", ANSWERING)
def test_a_file_that_answers_must_be_listed_and_as_it_was(folder: Path, name: str) -> None:
    file = folder / name
    for place in (0.2, 0.9):
        flip(file, int(place * file.stat().st_size))
        with pytest.raises(UserError, match=f"{name} is missing or not the file that was saved"):
            load_model(folder)
        flip(file, int(place * file.stat().st_size))
    hash_folder(folder).only(set(os.listdir(folder)) - {name}).write(folder)
    with pytest.raises(UserError, match=r"manifest\.json"):
        load_model(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(UserError, match=r"manifest\.json is missing"):
        open_model(folder)


def test_bytes_of_the_manifest_count(folder: Path) -> None:
    file = folder / "manifest.json"
    whole, expected = file.read_bytes(), listed(folder)
    for place in range(0, len(whole), 5):
        flip(file, place)
        with suppress(UserError):
            assert listed(folder) == expected  # white space
            assert chr(whole[place]).isspace()
        file.write_bytes(whole)


def test_damage_is_not_hidden_by_copies_and_exports_and_other_files_do_not_matter(
    folder: Path, tmp_path: Path
) -> None:
    """Hashes are those that the folder states, not those of what was copied."""
    before, stated = Predictor.load(folder, device="cpu").predict(["tea"]), listed(folder)
    (folder / "README.md").write_text("a better card")
    (folder / "notes.txt").write_text("mine")
    assert Predictor.load(folder, device="cpu").predict(["tea"]) == before
    with whole_copy(folder, tmp_path / "whole") as copy:
        assert sorted(os.listdir(copy.path)) == sorted(os.listdir(folder))
        assert Predictor.load(copy, device="cpu").predict(["tea"]) == before
        assert listed(copy.path) == stated
    with whole_copy(folder, tmp_path / "few", names=ANSWERING, more=[folder / "notes.txt"]) as copy:
        assert sorted(os.listdir(copy.path)) == sorted([*ANSWERING, "manifest.json", "notes.txt"])
        assert listed(copy.path).keys() == {*ANSWERING, "notes.txt"}
    export_unmeasured(folder)
    assert {name: listed(folder)[name] for name in stated} == stated
    flip(folder / "tokenizer.json", 500)
    out = tmp_path / "copy"
    with (
        pytest.raises(UserError, match=r"copy/tokenizer\.json is missing or not the file"),
        whole_copy(folder, out) as copy,
    ):
        load_model(copy)
    assert not out.exists()


def test_an_export_that_is_gone_is_missed(folder: Path) -> None:
    """Torch would answer slightly otherwise, without a word."""
    export_unmeasured(folder).unlink()
    with pytest.raises(UserError, match=r"There is no .*model\.onnx"):
        Predictor.load(folder, device="cpu")
    assert Predictor.load(folder, device="cpu", runtime="torch").predict(["tea"])


@pytest.mark.parametrize("runtime", ["torch", "onnx"])
def test_what_was_hashed_is_what_is_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch, runtime: str
) -> None:
    """Files that change after they were read and compared are not read again."""
    export_unmeasured(folder)
    before = Predictor.load(folder, device="cpu", runtime=runtime).predict(["tea"])
    read, check = runtime_choice.read_files, onnx_runtime.checked_export

    def damage() -> None:
        for path in folder.iterdir():
            path.write_bytes(b"something else")

    def read_and_damage(*arguments: Any) -> Any:
        found = read(*arguments)
        damage()
        return found

    @contextmanager
    def check_and_damage(*arguments: Any) -> Iterator[Any]:
        with check(*arguments) as export:
            yield export
        damage()

    monkeypatch.setattr(runtime_choice, "read_files", read_and_damage)
    monkeypatch.setattr(onnx_runtime, "checked_export", check_and_damage)
    assert Predictor.load(folder, device="cpu", runtime=runtime).predict(["tea"]) == before


def test_a_file_too_large_to_be_kept_is_hashed_and_mapped(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Predictor.load(folder, device="cpu").predict(["tea"])
    monkeypatch.setattr(folders, "MOST_KEPT_BYTES", 1000)
    assert Predictor.load(folder, device="cpu").predict(["tea"]) == before
    # only from a bundled encoder can steps away from it be taken back: any other is kept whole
    save_model(load_model(folder), folder.parent / "compact", card="", compact=True)
    assert (folder.parent / "compact" / "config.json").is_file()  # transformers can load it
    assert Predictor.load(folder.parent / "compact", device="cpu").predict(["tea"]) == before
    flip(folder / "model.safetensors", 20_000)
    with pytest.raises(UserError, match=r"model\.safetensors is missing or not the file"):
        load_model(folder)
