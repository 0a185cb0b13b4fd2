"""`litotes coverage` from the parser to the files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from litotes.cli.main import main


@pytest.mark.slow
def test_files_and_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = [
        *["coverage", "--data", "sampler", "--top", "100", "--where", "task=sarcasm", "--out"],
        str(tmp_path),
    ]
    assert main([*arguments, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content == json.loads((tmp_path / "coverage.json").read_text())
    assert (content["by"], content["top"]) == ("pieces", 100)
    assert content["names"][0] == "en-AU forum sarcasm"
    assert all(row[place] == 1 for place, row in enumerate(content["matrix"]))
    assert {path.name for path in tmp_path.iterdir()} == {
        *["coverage.json", "coverage.svg", "coverage.png"]
    }


def test_the_table_counts_train_unless_told_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = []
    for where in ([], ["--where", "split=train"], ["--where", "split=train,test"]):
        assert main(["coverage", "--data", "sampler", "--by", "words", "--json", *where]) == 0
        sizes.append(json.loads(capsys.readouterr().out)["n_texts"])
    assert sizes[0] == sizes[1]
    assert sum(sizes[2]) == 2 * 780
    assert main(["coverage", "--data", "sampler", "--by", "words"]) == 0
    assert "different words" in capsys.readouterr().out


def test_a_note_where_there_is_too_little(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "few.csv"
    file.write_text("text\nthree little words\n")
    assert main(["coverage", "--data", "sampler", f"table:{file}", "--by", "words"]) == 0
    captured = capsys.readouterr()
    assert "few.csv (3)" in captured.err
    assert "few.csv" in captured.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "sampler", "sampler"], "Two parts are called"),
        (["--data", "sampler", "--where", "split=valid"], "There is no split 'valid'"),
        (["--data", "sampler", "--encoder", "minilmm"], "Did you mean 'minilm'"),
    ],
)
def test_mistakes_are_sentences(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["coverage", *arguments]) == 2
    assert message in capsys.readouterr().err
