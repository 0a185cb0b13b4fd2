"""`litotes analyze`, and pairs from the command line, as a user meets them."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import pytest

from litotes.cli.main import main
from litotes.core.values import Task
from litotes.encoder import pretrained
from litotes.explanation.analyses import ANALYSES
from litotes.model.checkpoint import Model, save_model
from litotes.model.classifier import Classifier

ROWS = (
    "great tea,the tea is great,5",
    "bad queue,a lovely walk,0.5",
    "i love it,i hate it,1",
    "the tea,a tea,4",
    "not bad,not great,2",
)


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """A table of pairs with a number for each."""
    file = tmp_path / "pairs.csv"
    file.write_text("text,other,score\n" + "\n".join(ROWS) + "\n")
    return file


@pytest.fixture
def folder(tiny: pretrained.Pretrained, tmp_path: Path) -> Path:
    """A model of pairs, for a number; random."""
    classifier = Classifier(
        tiny.encoder, [Task("similarity", ())], head="linear", dropout=0.0
    ).eval()
    save_model(Model(classifier, tiny.tokenizer, "tiny", None), tmp_path / "model", card="")
    return tmp_path / "model"


@pytest.fixture
def sampler_folder(tiny: pretrained.Pretrained, tmp_path: Path) -> Path:
    classifier = Classifier(
        tiny.encoder, [Task("sentiment", ("negative", "positive"))], head="mean", dropout=0.0
    ).eval()
    save_model(Model(classifier, tiny.tokenizer, "tiny", None), tmp_path / "sampled", card="")
    return tmp_path / "sampled"


@pytest.mark.slow
def test_everything_is_written(
    sampler_folder: Path, tiny_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "inside"
    arguments = (
        *["--data", "sampler", "--texts", "5", "--tuned-from"],
        str(tiny_folder),
        *["--device", "cpu", "--out"],
        str(out),
    )
    assert main(["analyze", "--model", str(sampler_folder), *arguments]) == 0
    shown = capsys.readouterr().out
    content = json.loads((out / "analysis.json").read_text())
    assert content["n_texts"] == 5
    assert set(content["results"]) == set(ANALYSES)
    for name in ANALYSES:
        assert name in shown
        assert json.loads((out / f"{name}.json").read_text()) == content["results"][name]
        assert (out / f"{name}.svg").read_bytes().startswith(b"<?xml")
    report = unescape((out / "report.html").read_text())
    for findings in content["findings"].values():
        assert findings[0] in report


def test_only_some_and_what_was_left_out(
    sampler_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = (
        "--model",
        str(sampler_folder),
        *["--data", "sampler", "--texts", "2", "--device", "cpu", "--json"],
    )
    assert main(["analyze", *common, "--only", "trace,change"]) == 0
    captured = capsys.readouterr()
    content = json.loads(captured.out)
    assert list(content["results"]) == ["trace"]
    assert "change was left out: it needs --tuned-from." in captured.err
    assert main(["analyze", *common, "--only", "tracks"]) == 2
    assert "Did you mean 'trace'?" in capsys.readouterr().err


def test_options_of_an_analysis(sampler_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = (
        "analyze",
        "--model",
        str(sampler_folder),
        *[
            "--data",
            "sampler",
            "--texts",
            "6",
            "--device",
            "cpu",
            "--json",
            "--only",
            "faithfulness",
        ],
    )
    assert (
        main(
            [
                *common,
                *["--set", "faithfulness.n_texts=2", "--set"],
                'faithfulness.methods=["rollout"]',
            ]
        )
        == 0
    )
    result = json.loads(capsys.readouterr().out)["results"]["faithfulness"]
    assert (result["n_texts"], result["n_seen"]) == (2, 6)
    assert {method["method"] for method in result["methods"]} == {"rollout", "random"}
    for change, word in (
        ("faithfulness.n=2", "n_texts"),
        ("faithfulness=2", "NAME.OPTION=VALUE"),
        ("faith.n_texts=2", "faithfulness"),
    ):
        assert main([*common, "--set", change]) == 2
        assert word in capsys.readouterr().err


def test_a_pair_is_read_from_its_column(
    folder: Path, pairs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ("predict", "--file", str(pairs), "--model", str(folder), "--json", "--device", "cpu")

    def numbers(*more: str) -> list[float]:
        assert main([*common, *more]) == 0
        return [row["similarity"]["label"] for row in json.loads(capsys.readouterr().out)]

    from litotes.prediction.predictor import Predictor

    texts, others, _ = zip(*(row.split(",") for row in ROWS), strict=True)
    expected = [
        one.answers["similarity"].label
        for one in Predictor.load(folder).predict(texts, pairs=others)
    ]
    assert numbers("--pair", "other") == pytest.approx(expected, abs=1e-5)
    assert numbers() != pytest.approx(expected, abs=1e-5)  # without the pair it is another question


def test_a_pair_needs_one_text_or_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["predict", "great tea", "bad tea", "--pair", "other", "--model", str(folder)]
    assert main(line) == 2
    assert "give one TEXT, or the --file that has it." in capsys.readouterr().err
