"""A model left to `transformers` gives the logits it gave."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_exports import KINDS, SARCASM, SENTIMENT, SPEC
from tiny_models import model_of
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.core.values import Task
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import FAMILIES
from litotes.encoder.pretrained import Pretrained
from litotes.exporting.transformers_folder import export_to_transformers
from litotes.model.calibration import Calibration
from litotes.model.checkpoint import Model, load_model, save_model
from litotes.model.classifier import Classifier
from litotes.model.folder import open_model
from litotes.model.runtime import compute_logits

# transformers' DeBERTa scripts some functions when it is imported
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")

TEXTS = ["great queue, the tea is bad", "a", "it is not the great love of tea, is it? i love it!"]


def model_of_family(tiny: Pretrained, family: str, task: Task = SENTIMENT) -> Model:
    """Random, with states and weights that are large enough to tell mistakes from rounding."""
    torch.manual_seed(0)
    sizes = {"n_vocabulary": tiny.encoder.spec.n_vocabulary, "n_positions": 102}
    padding = {"padding_piece": max(0, KINDS[family].get("first_position", 0) - 1)}
    encoder = Encoder(replace(SPEC, **KINDS[family] | sizes | padding))
    for name, parameter in encoder.named_parameters():
        is_norm = name.endswith("norm.weight")
        torch.nn.init.normal_(parameter, mean=float(is_norm), std=0.2)
    classifier = Classifier(encoder, (task,), head="linear", dropout=0.0).eval()
    torch.nn.init.normal_(classifier.heads[task.name].output.weight, std=0.3)
    return Model(classifier, tiny.tokenizer, "tiny", None)


def export(model: Model, folder: Path) -> Path:
    save_model(model, folder / "run", card="")
    export_to_transformers(open_model(folder / "run"), folder / "out")
    return folder / "out"


@torch.no_grad()
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_logits_are_the_same(tiny: Pretrained, tmp_path: Path, family: str) -> None:
    model = model_of_family(tiny, family)
    theirs, loading = AutoModelForSequenceClassification.from_pretrained(
        export(model, tmp_path), output_loading_info=True
    )
    theirs.eval()
    assert not loading["missing_keys"]
    assert not loading["unexpected_keys"]
    expected = compute_logits(model, model.tokenizer.encode(TEXTS))["sentiment"]
    assert expected.std() > 0.1
    for row, pieces in zip(expected, model.tokenizer.encode(TEXTS), strict=True):
        logits = theirs(input_ids=torch.tensor([pieces.ids])).logits[0]
        torch.testing.assert_close(logits, row, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_texts_labels_and_cards_travel_along(tiny: Pretrained, tmp_path: Path) -> None:
    calibration = {"sarcasm": Calibration(temperature=1.5, threshold=0.25)}
    model = replace(model_of_family(tiny, "bert", SARCASM), calibration=calibration)
    out = export(model, tmp_path)
    theirs = AutoModelForSequenceClassification.from_pretrained(out).eval()
    assert theirs.config.id2label == {0: "literal", 1: "sarcastic"}
    assert theirs.config.problem_type == "single_label_classification"
    tokenizer = AutoTokenizer.from_pretrained(out)
    batch = tokenizer(TEXTS, return_tensors="pt", padding=True)
    expected = compute_logits(model, model.tokenizer.encode(TEXTS))["sarcasm"]
    torch.testing.assert_close(theirs(**batch).logits, expected, atol=1e-5, rtol=1e-5)
    card = (out / "README.md").read_text()
    assert 'library_name: "transformers"' in card
    assert "temperature 1.5" in card
    assert "0.25" in card
    grade = export(model_of_family(tiny, "bert", Task("grade", ())), tmp_path / "number")
    config = json.loads((grade / "config.json").read_text())
    assert (config["problem_type"], len(config["id2label"])) == ("regression", 1)


@pytest.mark.parametrize(
    ("tasks", "choices", "reason"),
    [
        ((SENTIMENT, SARCASM), {"head": "linear"}, "answers one task"),
        ((SARCASM,), {"head": "mean"}, "head mean has no counterpart"),
        ((SARCASM,), {"head": "linear", "weighting": "entmax"}, "and this model by entmax"),
        ((SARCASM,), {"head": "linear", "pruning": "cascade"}, "cannot remove pieces"),
        ((SARCASM,), {"head": "linear", "heads_kept": [[0, 2], [3]]}, "cannot remove pieces"),
    ],
)
def test_what_transformers_cannot_compute_is_refused(
    tiny: Pretrained, tmp_path: Path, tasks: tuple[Task, ...], choices: dict[str, Any], reason: str
) -> None:
    model = model_of(tiny, *tasks, **choices)
    with pytest.raises(UserError, match=reason):
        export(model, tmp_path)
    assert not (tmp_path / "out").exists()


def test_the_command(tiny: Pretrained, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, out = str(tmp_path / "run"), str(tmp_path / "out")
    save_model(model_of(tiny, SARCASM, head="linear"), Path(run), card="")
    command = ["export", "--model", run, "--to", "transformers"]
    for more in (["--int8", "--out", out], ["--data", "sampler", "--out", out], []):
        assert main([*command, *more]) == 2
    assert "--to transformers needs --out" in capsys.readouterr().err
    assert not Path(out).exists()
    assert main([*command, "--out", out]) == 0
    assert f"from_pretrained({out!r})" in capsys.readouterr().out
    assert main([*command, "--out", out]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert load_model(run).classifier.head_name == "linear"
