"""A model folder holds no code: what it was made with has to be here as well."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from litotes.core.errors import UserError
from litotes.core.values import Task
from litotes.encoder import pretrained
from litotes.model.checkpoint import Model, load_model, save_model
from litotes.model.classifier import Classifier
from litotes.model.folder import DESCRIPTION, hash_folder


@pytest.fixture
def folder(tiny_folder: Path, tmp_path: Path) -> Path:
    source = pretrained.load(str(tiny_folder))
    tasks = [Task("sarcasm", ("literal", "sarcastic"))]
    classifier = Classifier(source.encoder, tasks, head="linear", dropout=0.0)
    model = Model(classifier, source.tokenizer, source.name, source.sha256, {}, {})
    save_model(model, tmp_path / "model", card="")
    return tmp_path / "model"


@pytest.mark.parametrize("kind", ["weighting", "pruning", "head"])
def test_a_part_that_is_not_here_is_named_with_its_folder(folder: Path, kind: str) -> None:
    content = json.loads((folder / DESCRIPTION).read_text())
    (content if kind == "head" else content["encoder"])[kind] = "homemade"
    (folder / DESCRIPTION).write_text(json.dumps(content))
    hash_folder(folder).write(folder)
    with pytest.raises(UserError, match=f"made with the {kind} 'homemade'") as refusal:
        load_model(folder)
    assert str(refusal.value).startswith(str(folder))


def test_a_model_that_nothing_could_complete_is_kept_whole(folder: Path, tmp_path: Path) -> None:
    """Only from a bundled encoder can steps away from it be taken back."""
    model = load_model(folder)
    save_model(model, tmp_path / "compact", card="", compact=True)
    again = load_model(tmp_path / "compact").classifier.state_dict()
    for name, tensor in model.classifier.state_dict().items():
        assert again[name].equal(tensor), name
