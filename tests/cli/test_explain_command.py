"""`litotes explain` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from command_lines import Run

from litotes.cli.display import visible
from litotes.data.corpus import SARCASM, SENTIMENT
from litotes.encoder import pretrained
from litotes.explanation.attribution import METHODS
from litotes.model.checkpoint import Model, save_model
from litotes.model.classifier import Classifier

TEXT = "Lovely queue, the tea is not great"


@pytest.fixture(scope="module")
def model(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A pruned model of two tasks, as random as the encoder."""
    torch.manual_seed(0)
    options = {"schedule": [0.6, 0.3]}
    loaded = pretrained.load(str(tiny_folder), pruning="cascade", pruning_options=options)
    classifier = Classifier(loaded.encoder, (SENTIMENT, SARCASM), head="mean", dropout=0.0).eval()
    folder = tmp_path_factory.mktemp("explain") / "run"
    save_model(Model(classifier, loaded.tokenizer, "tiny", None), folder, card="")
    return f"--model {folder}"


def test_json_says_what_predict_says(model: str, run: Run) -> None:
    told = run(f"explain {model} --json", TEXT)
    content = json.loads(told.out)
    assert "this is about sentiment" in told.err
    assert set(content["shadings"]) == set(METHODS)
    assert "layers" not in content
    (predicted,) = json.loads(run(f"predict {model} --json", TEXT).out)
    assert {task: predicted[task] for task in ("sentiment", "sarcasm")} == content["answers"]


def test_the_terminal_view_survives_a_pipe(model: str, run: Run) -> None:
    out = run(f"explain {model} --task sarcasm --method occlusion", TEXT).out
    assert out.startswith("sarcasm: ")
    assert "% sure" in out
    assert "[++" in out or "[--" in out
    assert "\x1b" not in out
    assert "occlusion: [+word] speaks for the answer" in out
    assert "left after layer 1: " in out
    assert "stayed to the end: " in out
    plain = out.splitlines()[2].translate(str.maketrans("", "", "[]+-"))
    assert plain == TEXT  # the text as it was written, marks aside
    assert "[**" in run(f"explain {model} --task sarcasm --method rollout", TEXT).out
    cut = run(f"explain {model} --method standard", "tea " * 300).out
    assert "its end was not seen" in cut


def test_words_without_a_weight_are_not_first(model: str, run: Run) -> None:
    line = f"explain great {model} --method standard"
    weights = json.loads(run(f"{line} --json").out)["shadings"]["standard"]["weights"]
    assert weights == [0.0]  # it left before the last layer
    out = run(line).out
    assert "most: no word" in out
    (row,) = [line for line in out.splitlines() if line.split()[:1] == ["standard"]]
    assert row.rstrip().endswith("no word")


def test_for_and_against_are_the_largest_weights(model: str, run: Run) -> None:
    line = f"explain {model} --method integrated_gradients"
    content = json.loads(run(f"{line} --json", TEXT).out)
    weights = content["shadings"]["integrated_gradients"]["weights"]
    assert min(weights) < 0 < max(weights)
    words = [word["word"] for word in content["words"]]
    shown = run(line, TEXT).out.splitlines()
    lines = dict(line.split(": ", 1) for line in shown if ": " in line)
    best = sorted(zip(weights, words, strict=True), reverse=True)
    for_it = [f"{word} {weight:+.3f}" for weight, word in best[:3] if weight > 0]
    against = [f"{word} {weight:+.3f}" for weight, word in best[::-1][:3] if weight < 0]
    assert (lines["for"], lines["against"]) == (", ".join(for_it), ", ".join(against))


@pytest.mark.slow
def test_out_by_its_ending(model: str, run: Run, tmp_path: Path) -> None:
    beginnings = {"html": b"<!doctype html>", "svg": b"<?xml", "PNG": b"\x89PNG", "json": b"{"}
    for ending, beginning in beginnings.items():
        file = tmp_path / f"why.{ending}"
        told = run(f"explain {model} --out {file}", TEXT)
        assert told.out == ""
        assert f"Written to {file}." in told.err
        assert file.read_bytes().startswith(beginning)
    assert "Lovely" in (tmp_path / "why.html").read_text("utf-8")
    assert len(json.loads((tmp_path / "why.json").read_text("utf-8"))["layers"]) == 2


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("tea --out why.txt", "End the name in one of them"),
        ("'  '", "Text 1 is empty"),
        ("tea --pair ''", "The pair is empty"),
        ("tea --task sarcsm", "Did you mean 'sarcasm'"),
        ("tea --method rolout", "Did you mean 'rollout'"),
    ],
)
def test_a_mistake_is_one_sentence(line: str, error: str, model: str, run: Run) -> None:
    told = run(f"explain {line} {model}", code=2)
    assert told.out == ""
    assert error in told.err.splitlines()[-1]


def test_strange_characters_do_not_move_the_cursor(model: str, run: Run) -> None:
    assert visible("a\x1b[31mb\r\n\u202ec\td") == "a·[31mb  ·c d"
    assert visible("\U0001f469\u200d\U0001f527") == "\U0001f469\u200d\U0001f527"
    out = run(f"explain {model} --method standard", "tea \x1b[31m is\nbad [bold]x[/bold]").out
    assert "\x1b" not in out
    assert "bold" in out
