"""Models of words: scores, windows, answers, commands."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support

import litotes
from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.core.values import MISSING, Task
from litotes.data.words import WordExample
from litotes.encoder.layout import Layout
from litotes.encoder.packing import Window
from litotes.encoder.pretrained import Pretrained
from litotes.encoder.tokenizer import Pieces
from litotes.model.checkpoint import load_word_model
from litotes.training.course import Run
from litotes.training.recipe import WordRecipe
from litotes.training.run import train
from litotes.training.tagging.answers import _best_span, answer_texts, make_windows, make_word_set
from litotes.training.tagging.course import span_loss, total_weight
from litotes.training.tagging.scores import (
    most_frequent_tags,
    score_spans,
    score_tags,
    span_overlap,
)
from litotes.training.tagging.tagger import Tagger


def make_recipe(file: Path, encoder: Path, kind: str, **changes: object) -> WordRecipe:
    content = {
        "kind": kind,
        "data": {"source": f"words:{file}?task=feeling&words=blanks"},
        "model": {"encoder": str(encoder)},
        "training": {
            "epochs": 6,
            "batch_texts": 8,
            "learning_rate": 3e-3,
            "head_learning_rate": 3e-2,
            "patience": 12,
        },
    }
    return WordRecipe.of(content, "test").changed(**changes)


@pytest.fixture(scope="session")
def runs(
    word_file: Path, tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Run]:
    """One of each kind, and a pruned one, trained once."""
    out = tmp_path_factory.mktemp("word-runs")
    pruned = {"model__pruning": "cascade", "model__pruning_options": {"schedule": [1.0, 0.6]}}
    made = {
        "tagging": make_recipe(word_file, tiny_folder, "tagging"),
        "span": make_recipe(word_file, tiny_folder, "span", training__epochs=10),
        "pruned": make_recipe(word_file, tiny_folder, "tagging", **pruned),
    }
    return {name: train(recipe, out / name) for name, recipe in made.items()}


def test_models_learn_and_answer_as_they_did_when_they_were_saved(runs: dict[str, Run]) -> None:
    for name, least in {"tagging": 0.95, "pruned": 0.85}.items():
        scores = runs[name].scores
        assert scores["accuracy"] > least, name
        assert scores["entity_f1"] > least - 0.05, name
        assert scores["baselines"]["most_frequent_tag"]["accuracy"] == 1.0  # a word says it all
    spans = runs["span"].scores
    assert spans["overlap_f1"] > spans["majority"] + 0.2
    assert spans["exact_match"] <= spans["overlap_f1"]
    for run in runs.values():
        network, tokenizer = run.model.network, run.model.tokenizer
        windows = make_windows([["tea", "is", "great"]], tokenizer, network.kind)
        (now,) = answer_texts(network, windows)
        (loaded,) = answer_texts(load_word_model(run.folder).network, windows)
        assert now.span == loaded.span
        torch.testing.assert_close(now.probabilities, loaded.probabilities)


@pytest.fixture(scope="module")
def tagger(runs: dict[str, Run]) -> Tagger:
    return litotes.Tagger.load(runs["tagging"].folder, device="cpu")


def test_a_tagger_says_where_words_stand(tagger: Tagger) -> None:
    found = tagger.predict("the  tea is great")
    assert [(word.start, word.end) for word in found.words] == [(0, 3), (5, 8), (9, 11), (12, 17)]
    assert found.tags == ("O", "O", "O", "B-F")
    (entity,) = found.stretches
    assert (entity.kind, entity.written, entity.first, entity.last) == ("F", "great", 3, 4)
    assert found.as_json()["feeling"]["entities"][0]["text"] == "great"
    given, alone = tagger.predict([["the", "tea", "is", "great"], "love"])
    assert [(word.start, word.end) for word in given.words] == [(0, 3), (4, 7), (8, 10), (11, 16)]
    assert (given.tags, alone.tags) == (found.tags, ("B-F",))


def test_a_span_or_none(runs: dict[str, Run]) -> None:
    tagger = Tagger.load(runs["span"].folder)
    found, none, long = tagger.predict(["tea is queue", "the tea", "tea great " * 400])
    assert found.span is not None
    assert (found.span.written, found.span.start, found.span.end) == ("queue", 7, 12)
    assert 0 < (found.probability or 0) <= 1
    assert none.as_json()["feeling"].keys() == {"span", "probability"}
    assert long.truncated


def test_words_that_were_not_read_take_no_share_of_a_span() -> None:
    window = Window(Pieces([0, 5, 6], [0] * 3, True), 0, range(4), ((1,), (2,), (), ()))
    logits = torch.tensor([[0.0, 0.0], [1.0, -1.0], [-1.0, 1.0], [9.0, 9.0], [9.0, 9.0]])
    found = _best_span(logits, window)
    short = Window(Pieces([0, 5, 6], [0] * 3, False), 0, range(2), ((1,), (2,)))
    alone = _best_span(logits[:3], short)
    assert found.span == alone.span == (0, 2)
    assert found.probability == pytest.approx(alone.probability)


def test_every_word_of_a_long_text_is_answered(runs: dict[str, Run]) -> None:
    words = ["tea", "great"] * 400
    for name in ("tagging", "pruned"):
        (found,) = Tagger.load(runs[name].folder).predict([words])
        assert len(found.words) == len(words)
        assert not found.truncated
        assert all(found.tags)


def test_bad_texts(tagger: Tagger, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="empty"):
        tagger.predict("  ")
    with pytest.raises(UserError, match=r"'emtpy'.*'empty'"):
        tagger.predict(["tea", ""], bad_texts="emtpy")
    assert list(tagger.predict_stream([])) == []
    monkeypatch.setattr("litotes.training.tagging.tagger._AT_ONCE", 2)
    *good, bad = tagger.predict_stream(["tea"] * 4 + [""])
    assert [one.problem for one in good] == [None] * 4
    assert (bad.problem or "").startswith("Text 5 ")
    assert "feeling" not in bad.as_json()


def test_targets_and_losses_of_words_and_spans(tiny: Pretrained) -> None:
    long = WordExample(("tea",) * 200, ("x",) * 199 + ("y",), True, (198, 199))
    short = WordExample(("a", "b"), ("y", "x"), True, (1, 2))
    task = Task("t", ("x", "y"))
    words = make_word_set([long], task, tiny.tokenizer, "tagging")
    learned = torch.cat(words.targets)
    assert len(words) > 1
    assert (learned != MISSING).sum() == 200  # each word once, however windows overlap
    spans = make_word_set([long, short], task, tiny.tokenizer, "span")
    assert [target.tolist() for target in spans.targets] == [[MISSING, MISSING], [2, 2]]
    assert (words.n_cut, spans.n_cut) == (0, 1)
    # rare labels count more where they are weighed; a text that was cut teaches no span
    targets, weights = torch.tensor([0, 0, 1, MISSING]), torch.tensor([0.5, 2.0])
    assert total_weight(targets, weights) == 3
    assert total_weight(targets, None) == 3
    logits = torch.randn(5, 2, generator=torch.Generator().manual_seed(0))
    found = span_loss(logits, torch.tensor([[1, 2], [MISSING, 0]]), Layout.of([3, 2]))
    first, second = logits[:3].log_softmax(0), logits[3:].log_softmax(0)
    torch.testing.assert_close(found, -(first[1, 0] + first[2, 1] + second[0, 1]))


def test_the_commands(
    runs: dict[str, Run], word_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(runs["tagging"].folder)
    assert main(["predict", "--model", model, "tea is great", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert [word["label"] for word in found["feeling"]["words"]] == ["O", "O", "B-F"]
    source = f"words:{word_file}?task=feeling&words=blanks"
    assert main(["evaluate", "--model", model, "--data", source, "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["accuracy"] == pytest.approx(runs["tagging"].scores["accuracy"])
    page = tmp_path / "words.html"
    assert main(["explain", "great <b> love", "--model", model, "--out", str(page)]) == 0
    html = page.read_text()
    assert "<mark" in html
    assert "<b>" not in html
    for line in (
        "export",
        "predict x --format csv",
        "predict x --probabilities",
        f"evaluate --data {source} --slices",
        "explain x --out x.svg",
    ):
        capsys.readouterr()
        assert main([*line.split(), "--model", model]) == 2, line
        assert "word" in capsys.readouterr().err, line


def test_marks_beside_an_explanation(
    runs: dict[str, Run], trained_folder: Path, tmp_path: Path
) -> None:
    out, model = tmp_path / "why.html", str(runs["span"].folder)
    line = ["explain", "tea is love", "--model", str(trained_folder), "--highlight-model", model]
    assert main([*line, "--out", str(out)]) == 0
    assert 'id="locus-title"' in out.read_text()
    assert main([*line, "--out", str(out.with_suffix(".json"))]) == 0
    assert "feeling" in json.loads(out.with_suffix(".json").read_text())["locus"]


def test_recipes_that_ship_can_be_read(root: Path) -> None:
    for kind in ("tagging", "span"):
        assert WordRecipe.read(root / "recipes" / f"{kind}.toml").kind == kind
    with pytest.raises(UserError, match="class_weights"):
        WordRecipe.read(root / "recipes" / "span.toml", changes=["training.class_weights=true"])


LABELS = ("a", "b", "c")
GOLD = [list("abca"), list("bb"), list("cabab"), list("a")]
FOUND = [list("abba"), list("ab"), list("cacab"), list("b")]


def test_words_as_scikit_learn_counts_them() -> None:
    scores = score_tags("t", LABELS, GOLD, FOUND)
    gold, found = [*chain(*GOLD)], [*chain(*FOUND)]
    assert scores.accuracy == pytest.approx(accuracy_score(gold, found))
    assert scores.macro_f1 == pytest.approx(f1_score(gold, found, average="macro"))
    wanted = precision_recall_fscore_support(gold, found, labels=list(LABELS))
    ours = [[one.precision, one.recall, one.f1, one.n] for one in scores.labels]
    np.testing.assert_allclose(ours, np.transpose(wanted))
    assert (scores.n_texts, scores.n_words, scores.majority) == (4, len(gold), 5 / 12)
    assert scores.interval[0] < scores.accuracy < scores.interval[1]
    for one in scores.labels:
        assert one.f1_interval[0] <= one.f1 <= one.f1_interval[1]
    assert scores.entity_f1 is None
    # a word without an answer is wrong
    missed = score_tags("t", LABELS, [list("ab")], [["a", None]])
    assert missed.accuracy == 0.5
    assert [one.recall for one in missed.labels] == [1, 0, 0]
    # resamples take whole texts: with the one of all mistakes twice or not at all, all changes
    gold, found = [["a"] * 50, ["a"] * 50], [["a"] * 50, ["b"] * 50]
    assert score_tags("t", LABELS, gold, found).interval == (0.0, 1.0)


def test_entities_count_whole() -> None:
    labels = ("O", "B-L", "B-P", "I-P")
    gold = [["B-P", "I-P", "O", "B-L"], ["O", "B-P"]]
    found = [["B-P", "O", "O", "B-L"], ["O", "B-P"]]
    scores = score_tags("t", labels, gold, found)
    assert scores.entity_f1 == pytest.approx(2 / 3)  # 3 meant, 3 found, 2 of them whole
    assert scores.n_entities == 3
    assert score_tags("t", labels, gold, gold).entity_f1 == 1


def test_spans() -> None:
    assert span_overlap((0, 4), (2, 6)) == pytest.approx(0.5)
    assert span_overlap((0, 2), (2, 4)) == span_overlap(None, (0, 1)) == 0
    assert span_overlap(None, None) == 1
    scores = score_spans("t", [(0, 4), None, (1, 2)], [(2, 6), None, (1, 2)])
    assert scores.exact_match == pytest.approx(2 / 3)
    assert scores.overlap_f1 == pytest.approx(2.5 / 3)
    assert scores.majority == pytest.approx(1 / 3)
    assert scores.overlap_f1_interval == pytest.approx((0.5, 1.0))


def test_the_most_frequent_tag_of_each_word() -> None:
    train = [
        WordExample(("can", "can", "rust"), ("AUX", "AUX", "VERB")),
        WordExample(("can", "sand", "Tin"), ("NOUN", "NOUN", "NOUN")),
    ]
    test = [WordExample(("can", "CAN", "tin", "zebra"))]
    assert most_frequent_tags(train, test) == [["AUX", "AUX", "NOUN", "NOUN"]]
