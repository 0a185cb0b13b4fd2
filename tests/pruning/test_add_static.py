"""A table before the first layer: taught by the model, tested together with the other exits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import SENTIMENT, model_of

from litotes.cli.main import main
from litotes.core.progress import ignore_progress
from litotes.encoder import pretrained
from litotes.encoder.tokenizer import Pieces
from litotes.model.checkpoint import save_model
from litotes.prediction.predictor import Predictor
from litotes.pruning.cost import flops
from litotes.pruning.exit_teaching import Lessons, teach_table
from litotes.pruning.exits import operations_ratio

WORDS = ("great", "bad", "tea", "love", "hate", "queue", "not", "is", "it", "the", "a")


def lessons_of(n: int, n_pieces: int, seed: int) -> tuple[Lessons, np.ndarray]:
    """Texts whose answer is a sum over their pieces; the weights of these."""
    weights = np.random.default_rng(0).normal(size=(n_pieces, 2)) * 2
    drawn = np.random.default_rng(seed)
    texts, logits = [], []
    for _ in range(n):
        ids = drawn.integers(0, n_pieces, drawn.integers(1, 12)).tolist()
        texts.append(Pieces(ids, [0] * len(ids), False))
        logits.append(weights[ids].sum(0) / len(ids) ** 0.5)
    said = torch.tensor(np.array(logits), dtype=torch.float32)
    return Lessons({}, {"mood": said}, texts), weights


def test_a_table_learns_a_model_that_is_one() -> None:
    (taught, _), (other, _) = (lessons_of(n, 12, seed) for n, seed in ((600, 1), (100, 2)))
    table = teach_table(taught, other, {"mood": 1.5}, n_pieces=12, watch=ignore_progress)
    said, wanted = table.logits(other.texts)["mood"], other.logits["mood"].numpy()
    found, expected = (own[:, 1] - own[:, 0] for own in (said, wanted))
    assert np.corrcoef(found, expected)[0, 1] > 0.995
    assert ((found > 0) == (expected > 0)).mean() > 0.97
    assert np.abs(found - expected).mean() < 0.15 * np.abs(expected).mean()


def test_texts_that_leave_before_the_first_layer(
    tiny_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["text,mood,split"]
    for number in range(160):
        drawn = np.random.default_rng(number).choice(WORDS, size=2 + number % 9)
        split = "test" if number % 4 == 0 else "train"
        rows.append(f"{' '.join(drawn)} {number},{SENTIMENT.labels[number % 2]},{split}")
    (tmp_path / "texts.csv").write_text("\n".join(rows) + "\n")
    model = model_of(pretrained.load(str(tiny_folder)))
    save_model(model, tmp_path / "whole", card="# Mine\n")
    source = f"table:{tmp_path / 'texts.csv'}?label.sentiment=mood&split=split"
    asked = ["--model", str(tmp_path / "whole"), "--data", source, "--piece-table"]
    mild = ["--max-disagreement", "20", "--confidence", "0.5", "--layers", "1"]
    assert main(["exits", *asked, *mild, "--out", str(tmp_path / "early"), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [row["layer"] for row in content["rows"]] == [0, 1, 2]
    assert content["exits"]["layers"] == [0, 1]
    assert content["rows"][0]["share"] > 0
    card = (tmp_path / "early" / "README.md").read_text()
    assert "Layer 0 is a table" in card
    assert "On a GPU every text that the table leaves goes to the end." in card
    answers = Predictor.load(tmp_path / "early").predict(["bad queue", "the great tea is not bad"])
    assert all(one.answered_at_layer in (0, 1, 2) for one in answers)
    alone = ["--max-disagreement", "30", "--confidence", "0.5", "--layers", "0"]
    assert main(["exits", *asked[:-1], *alone, "--out", str(tmp_path / "table")]) == 0
    assert "0 (table)" in capsys.readouterr().out
    early = Predictor.load(tmp_path / "early", runtime="torch").runtimes[0].model()
    encoder, lengths = early.classifier.encoder, [5, 9]
    whole = flops(encoder, lengths).total
    # the table adds two numbers for each piece; no layer is computed
    found = operations_ratio(early, lengths, np.array([0, 0]))
    assert found == pytest.approx(whole / (2 * sum(lengths)))
