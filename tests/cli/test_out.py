"""What `--out` may name, in every command that writes: files, pipes, links, and what is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from litotes.cli.main import main

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no such pipes")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A table of the shared task."""
    file = tmp_path / "data.csv"
    file.write_text("source,variety,text\nReddit,en-AU,tea\nGoogle,en-UK,bad tea\n")
    return file


@pytest.fixture
def read_pipe(tmp_path: Path) -> Callable[[str], Callable[[], bytes]]:
    """Makes a pipe of this name in the test's folder; what it gives returns what was written."""

    def make(name: str) -> Callable[[], bytes]:
        pipe, read = tmp_path / name, []
        os.mkfifo(pipe)
        reader = Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
        reader.start()

        def result() -> bytes:
            reader.join(20)
            assert pipe.is_fifo()
            return b"".join(read)

        return result

    return make


def test_predict_writes_into_a_pipe(
    trained_folder: Path,
    tmp_path: Path,
    data: Path,
    read_pipe: Callable[[str], Callable[[], bytes]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = ["--model", str(trained_folder), "--device", "cpu"]
    texts, rows = read_pipe("texts"), read_pipe("rows")
    assert main(["predict", "tea", *model, "--json", "--out", str(tmp_path / "texts")]) == 0
    assert [one["text"] for one in json.loads(texts())] == ["tea"]
    assert not capsys.readouterr().err
    command = ["predict", "--file", str(data), "--format", "jsonl", *model]
    assert main([*command, "--out", str(tmp_path / "rows")]) == 0
    assert [json.loads(line)["text"] for line in rows().splitlines()] == ["tea", "bad tea"]
    assert "rows is a pipe or a device: if this is stopped, it cannot resume." in (
        capsys.readouterr().err
    )


def test_submit_and_explain_write_into_a_pipe(
    trained_folder: Path,
    tmp_path: Path,
    data: Path,
    read_pipe: Callable[[str], Callable[[], bytes]],
) -> None:
    model = ["--model", str(trained_folder), "--device", "cpu"]
    archive, page = read_pipe("answer.zip"), read_pipe("why.json")
    submit = ["score", "--submit", str(data), *model, "--out", str(tmp_path / "answer.zip")]
    assert main(submit) == 0
    assert archive().startswith(b"PK")
    assert main(["explain", "tea", *model, "--out", str(tmp_path / "why.json")]) == 0
    assert json.loads(page())["text"] == "tea"


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "tea", "--out", "loop"],
        ["predict", "--file", "data.csv", "--format", "csv", "--out", "loop"],
        ["explain", "tea", "--out", "loop.json"],
        ["score", "--submit", "data.csv", "--model", "none", "--out", "loop.zip"],
    ],
)
def test_what_cannot_be_replaced_is_refused_before_the_work(
    tmp_path: Path,
    data: Path,
    arguments: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No model is loaded: there is none."""
    monkeypatch.chdir(tmp_path)
    for name in ("loop", "loop.json", "loop.zip"):
        Path(name).symlink_to(name)
    if "--model" not in arguments:
        arguments = [*arguments, "--model", "none"]
    assert main(arguments) == 2
    assert "is a link that leads back to itself" in capsys.readouterr().err


@pytest.mark.parametrize("format", ["table", "csv"])
def test_predict_does_not_replace_its_own_table(
    data: Path, format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = data.read_bytes()
    assert main(["predict", "--file", str(data), "--out", str(data), "--format", format]) == 2
    assert "is the table itself" in capsys.readouterr().err
    assert data.read_bytes() == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit", "--data", "sampler"],
        ["coverage", "--data", "sampler", "--by", "words"],
        ["score", "gold.csv", "gold.csv"],
        ["evaluate", "--data", "sampler", "--where", "variety=en-UK"],
        ["analyze", "--data", "sampler"],
        ["predict", "--file", "data.csv", "--on", "here", "--format", "csv"],
        ["export"],
        ["train", "recipe.toml"],
        ["matrix", "recipe.toml"],
    ],
)
def test_a_pipe_is_no_folder(
    trained_folder: Path,
    tmp_path: Path,
    data: Path,
    arguments: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("recipe.toml").write_text("")
    Path("gold.csv").write_text(
        "source,variety,text,sentiment,sarcasm\nReddit,en-AU,tea,0,1\nGoogle,en-UK,bad tea,1,0\n"
    )
    os.mkfifo("pipe")
    if arguments[0] in ("evaluate", "analyze", "predict", "export"):
        arguments = [*arguments, "--model", str(trained_folder)]
    assert main([*arguments, "--out", "pipe"]) == 2
    assert "pipe is not" in capsys.readouterr().err
    assert Path("pipe").is_fifo()
    assert sorted(os.listdir()) == ["data.csv", "gold.csv", "pipe", "recipe.toml"]


NOWHERE = "table:nowhere.csv?label=mood"
RECIPES = Path(__file__).parents[2] / "recipes"


@pytest.mark.parametrize(
    "command",
    [
        ["train", str(RECIPES / "quick.toml"), "--set", "model.encoder=nowhere"],
        [
            "train",
            str(RECIPES / "quick.toml"),
            *["--set", "model.encoder=x", "--set", "model.separate=true"],
        ],
        ["matrix", str(RECIPES / "quick.toml"), "--set", f"data.source={NOWHERE}"],
        ["study", str(RECIPES / "study_quick.toml"), "--set", f"data.source={NOWHERE}"],
        ["prune", "--model", "MODEL", "--data", NOWHERE],
        ["analyze", "--model", "MODEL", "--data", NOWHERE],
        ["export", "--model", "MODEL", "--data", NOWHERE],
        ["predict", "--model", "MODEL", "--file", "nowhere.csv", "--on", "ray"],
    ],
    ids=lambda command: command[0],
)
def test_a_command_that_fails_before_its_work_leaves_no_folder(
    command: list[str], trained_folder: Path, tmp_path: Path
) -> None:
    words = [str(trained_folder) if word == "MODEL" else word for word in command]
    assert main([*words, "--out", str(tmp_path / "new" / "out")]) == 2
    assert list(tmp_path.iterdir()) == []
