"""From a trained model to one with exits: a folder, a table, a promise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import SENTIMENT, model_of

from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.core.progress import ignore_progress
from litotes.core.values import Task
from litotes.data.sources import load
from litotes.encoder import pretrained
from litotes.model.checkpoint import save_model
from litotes.model.folder import open_model, read_trained_texts, text_hash, write_trained_texts
from litotes.model.heads import ExitHeads
from litotes.prediction.predictor import Predictor
from litotes.pruning.choice import PruneSettings
from litotes.pruning.cost import flops
from litotes.pruning.exit_teaching import Lessons, read_lessons, teach
from litotes.pruning.exits import (
    ExitSettings,
    ExitsResult,
    add_exits,
    choose_texts,
    operations_ratio,
)
from litotes.pruning.plan import plan_pruning

MILD = ExitSettings(differ=0.05, confidence=0.5, n_rounds=1)
WORDS = ("great", "bad", "tea", "love", "hate", "queue", "not", "is", "it", "the", "a")


def write_texts(file: Path, n: int, *, first: int = 0) -> None:
    """Different texts, a quarter of them to test on, those of the train split first."""
    rows = ["text,mood,split"]
    for number in range(first, first + n):
        drawn = np.random.default_rng(number).choice(WORDS, size=2 + number % 9)
        split = "test" if number % 4 == 0 else "train"
        rows.append(f"{' '.join(drawn)} {number},{SENTIMENT.labels[number % 2]},{split}")
    file.write_text("\n".join(rows) + "\n")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("exits")


@pytest.fixture(scope="module")
def source(place: Path) -> str:
    write_texts(place / "texts.csv", 120)
    return f"table:{place / 'texts.csv'}?label.sentiment=mood&split=split"


@pytest.fixture(scope="module")
def folder(tiny_folder: Path, source: str, place: Path) -> Path:
    """A random model that says it was trained on the first 20 texts."""
    write_trained_texts(place / "whole", load(source).where(split="train").examples[:20])
    save_model(model_of(pretrained.load(str(tiny_folder))), place / "whole", card="# Mine\n")
    return place / "whole"


@pytest.fixture(scope="module")
def result(folder: Path, source: str, place: Path) -> ExitsResult:
    """The model with exits is in the folder `early`."""
    return add_exits(folder, source, place / "early", settings=MILD)


def test_exits_are_added_saved_and_answer(result: ExitsResult, source: str, place: Path) -> None:
    out = place / "early"
    assert [row.layer for row in result.rows] == [1, 2]
    assert sum(row.share for row in result.rows) == pytest.approx(1)
    assert result.rows[0].share > 0
    assert result.n == 30
    assert 0 <= result.interval[0] <= result.differ <= result.interval[1] <= 1
    assert min(result.flops_ratio, result.speed_ratio, result.worst_ratio) > 0
    content = json.loads((out / "exits.json").read_text())
    assert content["exits"] == json.loads((out / "litotes.json").read_text())["exits"]
    card = (out / "README.md").read_text()
    assert card.startswith("# Mine")
    assert "at most 5 %" in card
    # what was measured is what the saved model does
    measured = load(source).where(split="test")
    answers = Predictor.load(out, runtime="torch").predict([one.text for one in measured])
    share = np.mean([one.answered_at_layer == 1 for one in answers])
    assert share == pytest.approx(result.rows[0].share, abs=0.05)


@pytest.mark.usefixtures("result")
def test_nothing_is_chosen_by_what_is_measured(folder: Path, source: str, place: Path) -> None:
    known, before = read_trained_texts(place / "early"), read_trained_texts(folder)
    assert known is not None
    assert before is not None
    assert before < known
    for example in load(source):
        assert (text_hash(example) in known) == (example.split == "train")


def test_texts_it_was_trained_on_only_teach(folder: Path, source: str) -> None:
    texts = choose_texts(open_model(folder), source, [], n_tested=5, seed=0)
    trained = read_trained_texts(folder)
    assert trained is not None
    parts = (texts.taught, texts.fitted, texts.tested, texts.measured)
    hashes = [{text_hash(example) for example in part} for part in parts]
    assert trained <= hashes[0]
    assert not any(trained & others for others in hashes[1:])
    assert sum(map(len, hashes)) == len(set.union(*hashes)) == 120


def test_too_few_texts_are_refused_and_more_help(folder: Path, source: str, tmp_path: Path) -> None:
    strict = ExitSettings(differ=0.02, confidence=0.9, n_rounds=1)
    with pytest.raises(UserError, match=r"has 100 texts .* needed .* --unlabelled FILE"):
        add_exits(folder, source, tmp_path / "early", settings=strict)
    write_texts(tmp_path / "more.csv", 300, first=1000)
    texts = choose_texts(
        open_model(folder), source, [str(tmp_path / "more.csv")], n_tested=114, seed=0
    )
    assert len(texts.tested) >= 114
    assert len(texts.measured) == 30


def test_a_test_split_that_is_needed_is_named(folder: Path, source: str) -> None:
    texts = choose_texts(open_model(folder), source, [], n_tested=36, seed=0)
    assert any("do not score the model on it" in note for note in texts.notes)
    assert len(texts.measured) == 25


def test_a_layer_too_many_is_refused(folder: Path, source: str, tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match="choose --layers from 0, which is a table before the first, to 1"
    ):
        add_exits(folder, source, tmp_path / "early", settings=ExitSettings(layers=(2,)))


def test_what_cannot_be_promised_is_refused(
    folder: Path, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("litotes.pruning.exits.choose_cut", lambda *_, **__: None)
    with pytest.raises(UserError, match="No threshold keeps the promise: of 35 texts tested"):
        add_exits(folder, source, tmp_path / "early", settings=MILD)
    assert not (tmp_path / "early").exists()


@pytest.mark.usefixtures("result")
def test_a_number_and_a_second_time_are_refused(
    tiny: pretrained.Pretrained, folder: Path, source: str, place: Path, tmp_path: Path
) -> None:
    save_model(model_of(tiny, Task("warmth", ())), tmp_path / "number", card="")
    with pytest.raises(UserError, match="warmth with a number"):
        add_exits(tmp_path / "number", source, tmp_path / "early")
    early = place / "early"
    with pytest.raises(UserError, match="has exits already"):
        add_exits(early, source, tmp_path / "again")
    with pytest.raises(UserError, match=r"has exits\. Prune the model it was made from"):
        plan_pruning(early, source, tmp_path / "pruned", settings=PruneSettings())
    with pytest.raises(UserError, match="already holds a model"):
        add_exits(folder, source, early)


def test_exits_learn_what_the_last_layer_says(tiny: pretrained.Pretrained) -> None:
    """Of a model whose answer lies open after the first layer, an exit learns it all."""
    torch.manual_seed(0)
    vectors, direction = torch.randn(400, 16), torch.randn(16, 2)
    lessons = Lessons({1: vectors}, {"sentiment": vectors @ direction * 2})
    heads = ExitHeads(8, {"sentiment": 2}, (1,))
    teach(heads, lessons, lessons, {"sentiment": 2.0}, watch=ignore_progress)
    said = heads.outputs(1)["sentiment"](vectors)
    found, wanted = ((own / 2).softmax(1) for own in (said, lessons.logits["sentiment"]))
    assert (found - wanted).abs().max() < 0.05


def test_lessons_come_in_the_order_of_the_texts(tiny: pretrained.Pretrained) -> None:
    model = model_of(tiny)
    texts = ["a great tea and it is not bad", "bad", "the queue is great", "love"]
    pieces = model.tokenizer.encode(texts)
    together = read_lessons(model, pieces, (1,), what="", watch=ignore_progress)
    for place, text in enumerate(pieces):
        alone = read_lessons(model, [text], (1,), what="", watch=ignore_progress)
        for own, one in ((together.vectors[1], alone.vectors[1]),):
            torch.testing.assert_close(own[place], one[0])
        torch.testing.assert_close(
            together.logits["sentiment"][place], alone.logits["sentiment"][0]
        )


def test_operations_are_those_of_the_layers_that_ran(result: ExitsResult) -> None:
    encoder, lengths = result.model.classifier.encoder, [5, 9, 12]
    layers = [one.total for one in flops(encoder, lengths).layers]
    exits = 3 * 4 * encoder.spec.width * 2
    for at, spent in ((1, layers[0]), (2, sum(layers))):
        found = operations_ratio(result.model, lengths, np.array([at] * 3))
        assert found == pytest.approx(sum(layers) / (spent + exits))


def test_the_command(
    folder: Path, source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "early")
    asked = [
        "--model",
        str(folder),
        "--data",
        source,
        "--max-disagreement",
        "5",
        "--confidence",
        "0.5",
    ]
    assert main(["exits", *asked, "--layers", "1", "--out", out, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["differ"] == pytest.approx(0.05)
    assert main(["predict", "the tea is bad", "--model", out, "--format", "jsonl"]) == 0
    assert json.loads(capsys.readouterr().out)["answered_at_layer"] in (1, 2)
