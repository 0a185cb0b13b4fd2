"""Model folders pushed to a Hub and pulled from it, whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_hub import FakeHub
from made_exits import with_table
from tiny_models import model_of

from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.core.storage import MANIFEST
from litotes.encoder import pretrained
from litotes.model.checkpoint import save_model, save_parts
from litotes.model.exits import TABLE
from litotes.model.folder import Manifest, open_model
from litotes.model.hub import TRAVELS, pull, push
from litotes.prediction.predictor import Predictor

NAME = "somebody/tiny"
TEXTS = ["the tea is great", "bad queue"]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    monkeypatch.setenv("HF_TOKEN", "made-up")
    running = FakeHub()
    monkeypatch.setenv("HF_ENDPOINT", running.endpoint)
    yield running
    running.close()


@pytest.fixture
def mine(trained_folder: Path, tmp_path: Path) -> Path:
    """A folder with things that must not travel."""
    folder = tmp_path / "mine"
    shutil.copytree(trained_folder, folder)
    (folder / "weights.pt").write_bytes(b"pickled")
    (folder / "model.onnx").write_bytes(b"exported")
    (folder / "export.json").write_text("{}")
    (folder / "modeling.py").write_text("import os")
    (folder / ".secret.json").write_text("{}")
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints" / "last.json").write_text("{}")
    return folder


def same_answers(one: Path, other: Path) -> bool:
    models = [Predictor.load(folder, device="cpu", runtime="torch") for folder in (one, other)]
    left, right = (model.predict(TEXTS) for model in models)
    return left == right


def test_a_folder_comes_back_and_answers_the_same(hub: FakeHub, mine: Path, tmp_path: Path) -> None:
    pushed = push(mine, NAME, endpoint=hub.endpoint)
    assert set(pushed.left_out) == {"weights.pt", "model.onnx", "export.json", "modeling.py"}
    files = hub.files(NAME)
    assert all(path.endswith(TRAVELS) for path in files)
    assert {"README.md", "litotes.json", "model.safetensors", MANIFEST} <= set(files)
    assert hub.repositories[NAME]["private"] is True
    pulled = pull(NAME, tmp_path / "theirs", endpoint=hub.endpoint)
    assert pulled.revision == pushed.revision
    assert set(pulled.files) == set(files) == set(pushed.files)
    assert pulled.notes == ()
    assert {path.name for path in (tmp_path / "theirs").iterdir()} == set(files)
    assert same_answers(mine, tmp_path / "theirs")


def test_a_revision_is_pulled_as_it_was(hub: FakeHub, mine: Path, tmp_path: Path) -> None:
    first = push(mine, NAME, endpoint=hub.endpoint)
    (mine / "README.md").write_text("# Another card\n")
    second = push(mine, NAME, endpoint=hub.endpoint)
    assert first.revision != second.revision
    old, new = tmp_path / "old", tmp_path / "new"
    pull(f"{NAME}@{first.revision}", old, endpoint=hub.endpoint)
    pull(NAME, new, endpoint=hub.endpoint)
    assert (new / "README.md").read_text() == "# Another card\n" != (old / "README.md").read_text()
    hub.put(NAME, "README.md", b"# Mine\n")  # somebody edits the card there
    hub.put(NAME, "pytorch_model.bin", b"pickled")
    hub.put(NAME, "more.json", b"{}")
    pulled = pull(NAME, tmp_path / "theirs", endpoint=hub.endpoint)
    assert pulled.notes == ("README.md was edited after the model was pushed.",)
    assert (tmp_path / "theirs" / "README.md").read_bytes() == b"# Mine\n"
    assert not {"pytorch_model.bin", "more.json"} & set(os.listdir(tmp_path / "theirs"))


def test_a_folder_of_several_models(hub: FakeHub, trained_folder: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(trained_folder, whole / "sentiment")
    save_parts(["sentiment"], whole)
    push(whole, NAME, endpoint=hub.endpoint)
    assert "sentiment/model.safetensors" in hub.files(NAME)
    pull(NAME, tmp_path / "back", endpoint=hub.endpoint)
    assert len(open_model(tmp_path / "back").parts) == 1
    assert same_answers(whole, tmp_path / "back")


def test_a_table_travels_with_its_model(
    hub: FakeHub, tiny: pretrained.Pretrained, tmp_path: Path
) -> None:
    folder, theirs = tmp_path / "early", tmp_path / "theirs"
    save_model(with_table(model_of(tiny), (1,), threshold=0.6), folder, card="# Early\n")
    assert push(folder, NAME, endpoint=hub.endpoint).left_out == ()
    pull(NAME, theirs, endpoint=hub.endpoint)
    assert (theirs / TABLE).read_bytes() == (folder / TABLE).read_bytes()
    assert same_answers(folder, theirs)
    stated = json.loads(hub.files(NAME)[MANIFEST])["files"]
    for name in ("model.safetensors", TABLE):
        fewer = {key: value for key, value in stated.items() if key != name}
        hub.put(NAME, MANIFEST, json.dumps(Manifest(fewer).as_json()).encode())
        with pytest.raises(UserError, match=f"lists no {name}"):
            pull(NAME, tmp_path / "fewer", endpoint=hub.endpoint)
        assert not (tmp_path / "fewer").exists()
    hub.put(NAME, MANIFEST, json.dumps(Manifest(stated).as_json()).encode())
    hub.put(NAME, TABLE, hub.files(NAME)[TABLE] + b" ")
    with pytest.raises(UserError, match=rf"{TABLE} of somebody/tiny is not the file"):
        pull(NAME, tmp_path / "changed", endpoint=hub.endpoint)
    (folder / TABLE).unlink()
    with pytest.raises(UserError, match="missing"):
        push(folder, NAME, endpoint=hub.endpoint)


@pytest.mark.parametrize("name", ["model.safetensors", "litotes.json", "tokenizer.json"])
def test_what_decides_an_answer_must_be_what_was_pushed(
    hub: FakeHub, mine: Path, tmp_path: Path, name: str
) -> None:
    push(mine, NAME, endpoint=hub.endpoint)
    for content, words in (
        (hub.files(NAME)[name] + b" ", rf"{name} of somebody/tiny is not the file"),
        (None, "no litotes model folder"),
    ):
        hub.put(NAME, name, content)
        with pytest.raises(UserError, match=words):
            pull(NAME, tmp_path / "theirs", endpoint=hub.endpoint)
    assert not (tmp_path / "theirs").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]
    (mine / name).write_bytes((mine / name).read_bytes() + b" ")
    with pytest.raises(UserError, match="not the file that was saved"):
        push(mine, NAME, endpoint=hub.endpoint)


@pytest.mark.parametrize("name", ["../evil.json", "run.py", "weights.bin", ".hidden.json"])
def test_what_may_not_travel_is_not_fetched(
    hub: FakeHub, mine: Path, tmp_path: Path, name: str
) -> None:
    push(mine, NAME, endpoint=hub.endpoint)
    stated = json.loads(hub.files(NAME)[MANIFEST])["files"]
    hub.put(NAME, MANIFEST, json.dumps(Manifest({**stated, name: "0" * 64}).as_json()).encode())
    hub.put(NAME, name, b"x")
    hub.asked.clear()
    with pytest.raises(UserError, match="nothing was pulled"):
        pull(NAME, tmp_path / "theirs", endpoint=hub.endpoint)
    assert not any(Path(name).name in one for one in hub.asked)
    assert not (tmp_path / "theirs").exists()


def test_names_and_folders_are_checked_first(hub: FakeHub, mine: Path, tmp_path: Path) -> None:
    for name in ("tiny", "a/b/c", "../tiny", "somebody/", "some body/x"):
        with pytest.raises(UserError, match="OWNER/NAME"):
            push(mine, name, endpoint=hub.endpoint)
        with pytest.raises(UserError, match="OWNER/NAME"):
            pull(name, tmp_path / "theirs", endpoint=hub.endpoint)
    with pytest.raises(UserError, match="without @"):
        push(mine, f"{NAME}@main", endpoint=hub.endpoint)
    with pytest.raises(UserError, match="not empty"):
        pull(NAME, mine, endpoint=hub.endpoint)
    with pytest.raises(UserError, match="could not be pulled"):
        pull("no/body", tmp_path / "theirs", endpoint=hub.endpoint)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_the_commands(
    hub: FakeHub, mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hub", "push", str(mine), NAME, "--public"]) == 0
    said = capsys.readouterr()
    assert "litotes hub pull somebody/tiny@" in said.out
    assert "model.onnx" in said.err
    assert hub.repositories[NAME]["private"] is False
    out = tmp_path / "theirs"
    assert main(["hub", "pull", NAME, "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == NAME
    assert same_answers(mine, out)
    with pytest.raises(SystemExit) as stopped:
        main(["hub", "pull", NAME])
    assert stopped.value.code == 2
    assert "--out" in capsys.readouterr().err
