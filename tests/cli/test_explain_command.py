"""`litotes explain` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from litotes.cli.display import visible
from litotes.cli.main import main
from litotes.data.corpus import SARCASM, SENTIMENT
from litotes.encoder import pretrained
from litotes.explanation.attribution import METHODS
from litotes.model.checkpoint import Model, save_model
from litotes.model.classifier import Classifier

TEXT = "Lovely queue, the tea is not great"


@pytest.fixture(scope="module")
def run_folder(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pruned model of two tasks, as random as the encoder."""
    torch.manual_seed(0)
    loaded = pretrained.load(
        str(tiny_folder), pruning="cascade", pruning_options={"schedule": [0.6, 0.3]}
    )
    classifier = Classifier(loaded.encoder, (SENTIMENT, SARCASM), head="mean", dropout=0.0).eval()
    folder = tmp_path_factory.mktemp("explain") / "run"
    save_model(Model(classifier, loaded.tokenizer, "tiny", None), folder, card="")
    return folder


def shown(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    capsys.readouterr()
    assert main(["explain", *arguments]) == code
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_json_says_what_predict_says(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = shown(capsys, TEXT, "--model", str(run_folder), "--json")
    content = json.loads(out)
    assert "this is about sentiment" in err
    assert set(content["shadings"]) == set(METHODS)
    assert "layers" not in content
    capsys.readouterr()
    assert main(["predict", TEXT, "--model", str(run_folder), "--json"]) == 0
    (predicted,) = json.loads(capsys.readouterr().out)
    assert {task: predicted[task] for task in ("sentiment", "sarcasm")} == content["answers"]


def test_the_terminal_view_survives_a_pipe(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = shown(
        capsys, TEXT, "--model", str(run_folder), "--task", "sarcasm", "--method", "occlusion"
    )
    assert out.startswith("sarcasm: ")
    assert "% sure" in out
    assert "[++" in out or "[--" in out
    assert "\x1b" not in out
    assert "occlusion: [+word] speaks for the answer" in out
    assert "left after layer 1: " in out
    plain = out.splitlines()[2]
    for mark in ("[", "]", "+", "-"):
        plain = plain.replace(mark, "")
    assert plain == TEXT  # the text as it was written, marks aside
    unsigned, _ = shown(
        capsys, TEXT, "--model", str(run_folder), "--task", "sarcasm", "--method", "rollout"
    )
    assert "[**" in unsigned


def test_words_without_a_weight_are_not_first(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("great", "--model", str(run_folder), "--method", "standard")
    weights = json.loads(shown(capsys, *arguments, "--json")[0])["shadings"]["standard"]["weights"]
    assert weights == [0.0]  # it left before the last layer
    out, _ = shown(capsys, *arguments)
    assert "most: no word" in out
    (row,) = [line for line in out.splitlines() if line.split()[:1] == ["standard"]]
    assert row.rstrip().endswith("no word")


def test_for_and_against_are_the_largest_weights(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = (TEXT, "--model", str(run_folder), "--method", "integrated_gradients")
    content = json.loads(shown(capsys, *arguments, "--json")[0])
    weights = content["shadings"]["integrated_gradients"]["weights"]
    assert min(weights) < 0 < max(weights)
    words = [word["word"] for word in content["words"]]
    lines = {
        line.split(": ")[0]: line.split(": ")[1]
        for line in shown(capsys, *arguments)[0].splitlines()
        if ": " in line
    }
    best = sorted(zip(weights, words, strict=True), reverse=True)
    assert lines["for"] == ", ".join(
        f"{word} {weight:+.3f}" for weight, word in best[:3] if weight > 0
    )
    assert lines["against"] == ", ".join(
        f"{word} {weight:+.3f}" for weight, word in best[::-1][:3] if weight < 0
    )


@pytest.mark.slow
def test_out_by_its_ending(
    run_folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    beginnings = {
        "why.html": b"<!doctype html>",
        "why.svg": b"<?xml",
        "why.PNG": b"\x89PNG",
        "why.json": b"{",
    }
    for name, beginning in beginnings.items():
        out, err = shown(capsys, TEXT, "--model", str(run_folder), "--out", str(tmp_path / name))
        assert out == ""
        assert f"Written to {tmp_path / name}." in err
        assert (tmp_path / name).read_bytes().lower().startswith(beginning.lower())
    assert "Lovely" in (tmp_path / "why.html").read_text("utf-8")
    assert len(json.loads((tmp_path / "why.json").read_text("utf-8"))["layers"]) == 2


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("tea", "--out", "why.txt"), "End the name in one of them"),
        (("  ",), "Text 1 is empty"),
        (("tea", "--pair", ""), "The pair is empty"),
        (("tea", "--task", "sarcsm"), "Did you mean 'sarcasm'"),
        (("tea", "--method", "rolout"), "Did you mean 'rollout'"),
    ],
)
def test_a_mistake_is_one_sentence(
    arguments: tuple[str, ...], error: str, run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = shown(capsys, *arguments, "--model", str(run_folder), code=2)
    assert out == ""
    assert error in err.splitlines()[-1]


def test_strange_characters_do_not_move_the_cursor(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert visible("a\x1b[31mb\r\n\u202ec\td") == "a·[31mb  ·c d"
    assert visible("\U0001f469\u200d\U0001f527") == "\U0001f469\u200d\U0001f527"
    out, _ = shown(
        capsys,
        "tea \x1b[31m is\nbad [bold]x[/bold]",
        "--model",
        str(run_folder),
        "--method",
        "standard",
    )
    assert "\x1b" not in out
    assert "bold" in out
