"""What `--out` may name, in every command that writes: files, pipes, links, and what is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from command_lines import Run

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no such pipes")

DATA = "source,variety,text{}\nReddit,en-AU,tea{}\nGoogle,en-UK,bad tea{}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a table of the shared task, and answers to it."""
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text(DATA.format("", "", ""))
    Path("gold.csv").write_text(DATA.format(",sentiment,sarcasm", ",0,1", ",1,0"))
    Path("recipe.toml").write_text("")
    return tmp_path


def read_pipe(name: str) -> Callable[[], bytes]:
    """Makes a pipe of this name; what it gives returns what was written."""
    pipe, read = Path(name).absolute(), []
    os.mkfifo(pipe)
    reader = Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()

    def result() -> bytes:
        reader.join(20)
        assert pipe.is_fifo()
        return b"".join(read)

    return result


def test_a_pipe_is_written_into(trained_folder: Path, run: Run) -> None:
    model = f"--model {trained_folder} --device cpu"
    written = read_pipe("texts")
    assert not run(f"predict tea {model} --json --out texts").err
    assert [one["text"] for one in json.loads(written())] == ["tea"]
    written = read_pipe("rows")
    told = run(f"predict --file data.csv --format jsonl {model} --out rows")
    assert [json.loads(line)["text"] for line in written().splitlines()] == ["tea", "bad tea"]
    assert "rows is a pipe or a device: if this is stopped, it cannot resume." in told.err
    written = read_pipe("answer.zip")
    run(f"score --submit data.csv {model} --out answer.zip")
    assert written().startswith(b"PK")
    written = read_pipe("why.json")
    run(f"explain tea {model} --out why.json")
    assert json.loads(written())["text"] == "tea"


@pytest.mark.parametrize(
    "line",
    [
        "predict tea --out loop",
        "predict --file data.csv --format csv --out loop",
        "explain tea --out loop.json",
        "score --submit data.csv --out loop.zip",
    ],
)
def test_what_cannot_be_replaced_is_refused_before_the_work(line: str, run: Run) -> None:
    """No model is loaded: there is none."""
    loop = line.split()[-1]
    Path(loop).symlink_to(loop)
    assert "is a link that leads back to itself" in run(f"{line} --model none", code=2).err


def test_predict_does_not_replace_its_own_table(run: Run) -> None:
    before = Path("data.csv").read_bytes()
    for format in ("table", "csv"):
        line = f"predict --file data.csv --out data.csv --format {format}"
        assert "is the table itself" in run(line, code=2).err
    assert Path("data.csv").read_bytes() == before


def test_a_file_is_no_folder(run: Run, tmp_path: Path) -> None:
    told = run("audit --data sampler --out gold.csv/deeper", code=2).err
    assert "--out" in told.splitlines()[-1]
    for out in (".", "..", "./"):
        assert "--out needs the name of a file" in run(f"predict tea --out {out}", code=2).err


@pytest.mark.parametrize(
    "line",
    [
        "audit --data sampler",
        "coverage --data sampler --by words",
        "score gold.csv gold.csv",
        "evaluate --data sampler --where variety=en-UK --where split=test --model MODEL",
        "analyze --data sampler --model MODEL",
        "predict --file data.csv --on here --format csv --model MODEL",
        "export --model MODEL",
        "train recipe.toml",
        "matrix recipe.toml",
    ],
)
def test_a_pipe_is_no_folder(line: str, trained_folder: Path, run: Run) -> None:
    os.mkfifo("pipe")
    line = line.replace("MODEL", str(trained_folder))
    assert "pipe is not" in run(f"{line} --out pipe", code=2).err
    assert Path("pipe").is_fifo()
    assert sorted(os.listdir()) == ["data.csv", "gold.csv", "pipe", "recipe.toml"]


NOWHERE = "table:nowhere.csv?label=mood"
QUICK, STUDY = (
    Path(__file__).parents[2] / "recipes" / name for name in ("quick.toml", "study_quick.toml")
)


@pytest.mark.parametrize(
    "line",
    [
        f"train {QUICK} --set model.encoder=nowhere",
        f"train {QUICK} --set model.encoder=x --set model.separate=true",
        f"matrix {QUICK} --set data.source={NOWHERE}",
        f"study {STUDY} --set data.source={NOWHERE}",
        f"prune --model MODEL --data {NOWHERE}",
        f"analyze --model MODEL --data {NOWHERE}",
        f"export --model MODEL --data {NOWHERE}",
        "predict --model MODEL --file nowhere.csv --on ray",
    ],
)
def test_a_command_that_fails_before_its_work_leaves_no_folder(
    line: str, trained_folder: Path, run: Run
) -> None:
    run(line.replace("MODEL", str(trained_folder)), "--out", "new/out", code=2)
    assert not Path("new").exists()
