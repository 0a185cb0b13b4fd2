"""A model folder whose `model.onnx` is not whole, not its own, or exchanged is refused in one
sentence.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_exports import SARCASM, export_unmeasured, model_of, text_of

from litotes.core.errors import UserError
from litotes.core.storage import sha256_of
from litotes.encoder import pretrained
from litotes.model.calibration import Calibration
from litotes.model.checkpoint import save_model
from litotes.model.folder import hash_folder, open_model
from litotes.prediction.onnx_runtime import checked_export

TEXT = text_of(6)


@pytest.fixture(scope="module")
def exported(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder with its export, not to be touched."""
    folder = tmp_path_factory.mktemp("exported")
    tiny = pretrained.load(str(tiny_folder))
    learned = {"sarcasm": Calibration(0.7, 0.4, 12)}
    model = model_of(tiny.encoder, SARCASM, tokenizer=tiny.tokenizer, calibration=learned)
    save_model(model, folder, card="")
    export_unmeasured(folder)
    return folder


@pytest.fixture
def folder(exported: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return shutil.copytree(exported, tmp_path / "model")


def logits(folder: Path) -> np.ndarray:
    with checked_export(open_model(folder)) as (session, _):
        pass
    return session.logits([TEXT])["sarcasm"]


def keep_note_in_step(folder: Path) -> None:
    """As somebody does who means it."""
    change_json(folder / "export.json", sha256=sha256_of(folder / "model.onnx"))


def change_json(file: Path, **changes: Any) -> None:
    """The same: the manifest is kept in step."""
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    hash_folder(file.parent).write(file.parent)


def change_facts(folder: Path, **changes: str | None) -> None:
    model = onnx.load(folder / "model.onnx")
    facts = {entry.key: entry.value for entry in model.metadata_props} | changes
    del model.metadata_props[:]
    known = {key: value for key, value in facts.items() if value is not None}
    onnx.helper.set_model_props(model, known)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    keep_note_in_step(folder)


def swap_tokenizer(folder: Path) -> None:
    """Two pieces change places, and the manifest is kept in step."""
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    pieces = tokenizer["model"]["vocab"]
    pieces["great"], pieces["bad"] = pieces["bad"], pieces["great"]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    hash_folder(folder).write(folder)


def longer(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b" ")


def point_outside(folder: Path) -> None:
    """All weights where somebody else can change them afterwards."""
    model = onnx.load(folder / "model.onnx")
    how: Any = {"save_as_external_data": True, "location": "weights.bin", "size_threshold": 0}
    onnx.save_model(model, folder / "model.onnx", **how)
    keep_note_in_step(folder)


WEIGHTS, PIECES = "sha256 of model.safetensors", "sha256 of tokenizer.json"
Damage = Callable[[Path], object]


def described(**changes: Any) -> Damage:
    return lambda folder: change_json(folder / "litotes.json", **changes)


def noted(content: str) -> Damage:
    return lambda folder: (folder / "export.json").write_text(content)


def stated(**changes: Any) -> Damage:
    return lambda folder: change_facts(folder, **changes)


def gone(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


def lengthened(name: str) -> Damage:
    return lambda folder: longer(folder / name)


def unlisted(name: str) -> Damage:
    return lambda f: hash_folder(f).only(set(os.listdir(f)) - {name}).write(f)


def as_folder(folder: Path) -> None:
    (folder / "model.onnx").unlink()
    (folder / "model.onnx").mkdir()


def lengthened_and_noted(folder: Path) -> None:
    longer(folder / "model.onnx")
    keep_note_in_step(folder)


def with_hash_of_another(folder: Path) -> None:
    change_facts(folder, **{PIECES: sha256_of(folder / "README.md")})


OTHER_TASKS = {"tasks": {"irony": ["literal", "sarcastic"]}, "calibration": {}}
DAMAGE: dict[str, tuple[Damage, str]] = {
    "no file": (gone("model.onnx"), "There is no .*litotes export"),
    "a folder": (as_folder, "There is no .*litotes export"),
    "no note": (gone("export.json"), "was not finished"),
    "a note in a note in …": (noted('{"a":' * 100_000), "export.json: not readable"),
    "a note without a hash": (noted("{}"), "export.json: not readable"),
    "a list for a hash": (noted('{"sha256": ["a"]}'), "not the file that was exported"),
    "one byte more": (lengthened("model.onnx"), "not the file that was exported"),
    "one byte more, noted": (lengthened_and_noted, "is not a file that litotes exported"),
    "data outside": (point_outside, "ONNX Runtime .* cannot run"),
    "other labels": (described(tasks={"sarcasm": ["b", "a"]}), "disagree about tasks"),
    "other tasks": (described(**OTHER_TASKS), "disagree about tasks"),
    "another calibration": (described(calibration={}), "disagree about calibration"),
    "a calibration not said": (stated(calibration=None), "disagree about calibration"),
    "a calibration in no JSON": (stated(calibration="["), "disagree about calibration"),
    "longer texts": (described(max_pieces=97), "reads 96 pieces.*promises 97"),
    "texts of no length": (described(max_pieces="96"), "reads 96 pieces"),
    "another tokenizer": (swap_tokenizer, "not made from the tokenizer.json"),
    "other weights": (lengthened("model.safetensors"), "not made from the model.safetensors"),
    "no weights": (gone("model.safetensors"), "not made from the model.safetensors"),
    "no tokenizer": (gone("tokenizer.json"), "not made from the tokenizer.json"),
    "weights not said": (stated(**{WEIGHTS: None}), "not made from the model.safetensors"),
    "tokenizer not said": (stated(**{PIECES: None}), "not made from the tokenizer.json"),
    "a file that is not listed": (unlisted("model.onnx"), "model.onnx is not in manifest.json"),
    "a note that is not listed": (unlisted("export.json"), "export.json is not in manifest.json"),
    "a note that says more": (lengthened("export.json"), "is missing or not the file that was"),
    "the hash of another file": (with_hash_of_another, "not made from the tokenizer.json"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_folder_that_does_not_fit_together_is_refused(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage, words = DAMAGE[kind]
    damage(folder)
    # where the process stands ONNX Runtime would look for the data of a model that came as bytes
    monkeypatch.chdir(folder)
    with pytest.raises(UserError, match=words) as caught:
        logits(folder)
    assert "again" in str(caught.value) or "litotes export" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_description_is_read_before_the_export(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"never read")
    change_json(folder / "litotes.json", tasks=None)
    with pytest.raises(UserError, match=r"litotes\.json: not readable .* Copy the model folder"):
        logits(folder)
    (folder / "litotes.json").unlink()
    with pytest.raises(UserError, match=r"there is no litotes\.json"):
        logits(folder)


def test_a_whole_folder_answers(folder: Path) -> None:
    before = logits(folder)
    change_facts(folder, anything="else")  # more facts do no harm
    np.testing.assert_array_equal(logits(folder), before)
    # a tokenizer that cuts earlier than it must
    change_json(folder / "litotes.json", max_pieces=50)
    np.testing.assert_array_equal(logits(folder), before)


def test_an_export_that_crashed_is_not_finished(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from litotes.exporting import model_graph

    write = model_graph.write_bytes

    def crash_at(name: str) -> None:
        def write_or_crash(file: Path, content: bytes) -> None:
            if file.name == name:
                raise KeyboardInterrupt
            write(file, content)

        monkeypatch.setattr(model_graph, "write_bytes", write_or_crash)
        with pytest.raises(KeyboardInterrupt):
            export_unmeasured(folder)

    before = logits(folder)
    crash_at("model.onnx")
    np.testing.assert_array_equal(logits(folder), before)
    (folder / "export.json").unlink()
    crash_at("export.json")
    with pytest.raises(UserError, match="was not finished"):
        logits(folder)


def test_links_are_followed_for_the_hub_keeps_its_files_so(folder: Path, tmp_path: Path) -> None:
    before = logits(folder)
    (tmp_path / "blobs").mkdir()
    elsewhere = shutil.move(folder / "model.onnx", tmp_path / "blobs" / "1234")
    (folder / "model.onnx").symlink_to(elsewhere)
    snapshot = shutil.copytree(folder, tmp_path / "snapshots" / "5678", symlinks=True)
    np.testing.assert_array_equal(logits(snapshot), before)
    for target in ("/etc/passwd", elsewhere):  # from another folder it is nobody's cache
        (folder / "model.onnx").unlink()
        (folder / "model.onnx").symlink_to(target)
        with pytest.raises(UserError, match="leads out of the model folder"):
            logits(folder)


@pytest.mark.slow
@settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_damaged_bytes_give_an_error_or_the_same_answers(
    data: st.DataObject, exported: Path, tmp_path: Path
) -> None:
    """Any byte of any file that is read."""
    folder = tmp_path / "damaged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(exported, folder)
    names = "model.onnx export.json litotes.json manifest.json tokenizer.json model.safetensors"
    file = folder / data.draw(st.sampled_from(names.split()))
    content = bytearray(file.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    file.write_bytes(content[: data.draw(st.sampled_from([len(content), len(content) // 2, 0]))])
    try:
        answer = logits(folder)
    except UserError:
        return
    np.testing.assert_array_equal(answer, logits(exported))
