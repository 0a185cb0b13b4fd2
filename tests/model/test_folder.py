"""A model folder is opened once, without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from litotes.core.errors import UserError
from litotes.core.values import Task
from litotes.model.builtin import BUILTIN, resolve_model
from litotes.model.folder import DESCRIPTION, is_model_folder, open_model, read_files


def describe(folder: Path, **content: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / DESCRIPTION).write_text(json.dumps({"format": 1, "litotes": "0"} | content))
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
    for name in (BUILTIN, f"{BUILTIN}@1"):
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


@pytest.mark.parametrize("base", [{"name": ["minilm"], "omitted": True}, "minilm", None])
def test_a_base_that_is_not_a_name_is_not_looked_for(base: object, tmp_path: Path) -> None:
    folder = open_model(describe(tmp_path, base=base))
    assert [file.parent for file in folder.large_files] == [tmp_path, tmp_path]


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


FACTS = {
    "key": "a",
    "recipe": {"data": {"source": "sampler"}},
    "data": {"n_train": 3, "sha256": "0"},
    "notes": ["A note."],
}


@pytest.mark.parametrize("facts", [{}, {"classes": [0, 1]}, FACTS, FACTS | {"best_epoch": None}])
def test_facts_of_a_run_or_none(facts: object, tmp_path: Path) -> None:
    assert open_model(describe(tmp_path, facts=facts)).description["facts"] == facts


@pytest.mark.parametrize(
    "facts",
    [
        5,
        [],
        {name: FACTS[name] for name in ("key", "recipe", "data")},
        *(FACTS | {name: 5} for name in FACTS),
        FACTS | {"notes": [5]},
        FACTS | {"data": {"sha256": "0"}},
        FACTS | {"recipe": {"data": {"source": None}}},
        FACTS | {"seconds_per_step": "many"},
    ],
)
def test_damaged_facts_are_a_sentence(facts: object, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"litotes\.json: not readable \(its "):
        open_model(describe(tmp_path, facts=facts))
