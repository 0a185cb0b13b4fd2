"""Standard streams that are closed, full, ASCII only or abandoned, and what reaches a terminal."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree
from types import ModuleType

import pytest
from command_lines import Run
from tiny_exports import export_unmeasured

from litotes.cli import main as command_line
from litotes.cli.display import print_lines, progress, say
from litotes.cli.main import main
from litotes.cli.tables import print_table

COMMAND = f"{sys.executable} -m litotes"


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a line of the shell, in which $L is the command."""
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "L": COMMAND} | environment
    return subprocess.run(
        ["/bin/sh", "-c", line], capture_output=True, text=True, env=variables, check=False
    )


@pytest.fixture(scope="module")
def predict(trained_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The command with an exported model, which answers before torch would be imported."""
    folder = copytree(trained_folder, tmp_path_factory.mktemp("exported") / "run")
    export_unmeasured(folder)
    return f"$L predict --model {folder} --runtime onnx"


@pytest.mark.slow
def test_a_result_that_cannot_be_printed_is_a_sentence() -> None:
    for line in ("list sources >&-", "list sources --json >/dev/full", "audit --data sampler >&-"):
        done = shell(f"$L {line}")
        assert done.returncode == 2
        told = done.stderr.splitlines()[-1]
        assert told.startswith("litotes: Standard output cannot be written (")
        assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_note_that_cannot_be_printed_stops_nothing() -> None:
    for where in ("2>&-", "2>/dev/full"):
        done = shell(f"$L audit --data sampler --json {where}")
        assert done.returncode == 0
        assert json.loads(done.stdout)["findings"]
    assert shell("$L audit --data nix 2>&-").returncode == 2


@pytest.mark.slow
def test_a_closed_stream_takes_no_other_files_place(tmp_path: Path) -> None:
    """The number of a closed descriptor goes to the next file that is opened."""
    out = tmp_path / "out"
    assert shell(f"$L audit --data sampler --out {out} >&- 2>&-").returncode == 2
    assert json.loads((out / "audit.json").read_text("utf-8"))["findings"]


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_error() -> None:
    done = shell('{ $L list sources; echo "code $?" >&2; } | true')
    assert done.stderr == "code 0\n"


@pytest.mark.slow
def test_a_stdout_of_ascii_alone(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,variety\ncafé \U0001f600,é\ntea,☕\n", "utf-8")
    audit = f"$L audit --data 'table:{tmp_path}/a.csv?variety=variety'"
    shown = shell(audit, PYTHONIOENCODING="ascii")
    assert shown.returncode == 0
    assert "\\u00e9" in shown.stdout
    exact = shell(f"{audit} --json", PYTHONIOENCODING="utf-8")
    plain = shell(f"{audit} --json", PYTHONIOENCODING="ascii")
    assert plain.stdout.isascii()
    assert json.loads(plain.stdout) == json.loads(exact.stdout)


STEERING = "red\x1b[31m\nforged: line\x9b2J\u202e"


def test_nothing_printed_steers_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_lines(STEERING)
    print_table((STEERING,), [(STEERING,)], title=STEERING)
    say([STEERING])
    with progress() as watch:
        watch(STEERING, 1, 2, STEERING)
    captured = capsys.readouterr()
    for line in (captured.out + captured.err).splitlines():
        assert line.isprintable()
        assert not line.startswith("forged")


def test_an_error_stays_one_line(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    for line, odd in (
        ("audit --data", f"table:{STEERING}.csv"),
        ("train", f"{STEERING}.toml"),
        ("predict tea --model", STEERING),
    ):
        (told,) = run(line, odd, code=2).err.splitlines()
        assert told.isprintable()
    with pytest.raises(SystemExit):
        main(["audit", "--data", "sampler", STEERING])
    error = capsys.readouterr().err.splitlines()[-1]
    assert error == "litotes audit: error: unrecognized arguments: red·[31m forged: line·2J·"


@pytest.mark.parametrize("out", ["/", "//", "/..", "caf\udce9"])
def test_a_silly_out_is_refused(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["audit", "--data", "sampler", "--out", out])
    assert stopped.value.code == 2
    assert "choose" in capsys.readouterr().err.splitlines()[-1]


def test_a_table_whose_name_is_not_utf8(tmp_path: Path, run: Run) -> None:
    file = tmp_path / os.fsdecode(b"caf\xe9.csv")
    try:
        file.write_text("text\ntea\nqueue\n")
    except OSError:
        pytest.skip("this file system has UTF-8 names alone")
    out = tmp_path / "out"
    shown = json.loads(run("audit --json --data", f"table:{file}", "--out", out).out)
    assert shown == json.loads((out / "audit.json").read_text("utf-8"))
    assert "caf·.csv: 2 texts" in run("audit --data", f"table:{file}").out
    (tmp_path / "recipe.toml").write_text("")
    line = f"train {tmp_path}/recipe.toml --set"
    assert "not UTF-8" in run(line, f"data.source=table:{file}", code=2).err


@pytest.mark.slow
def test_nothing_to_read_on_a_closed_stdin(predict: str) -> None:
    done = shell(f"{predict} <&-")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "litotes: There is nothing to label: stdin is empty.\n"


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_bytes_on_stdin_that_are_no_text(encoding: str, predict: str) -> None:
    command = f"printf 'caf\\351\\ntea\\n' | {predict}"
    done = shell(f"{command} --bad-rows stop", PYTHONIOENCODING=encoding)
    assert done.returncode == 2
    assert "stdin, line 1 holds a NUL or bytes that are not UTF-8" in done.stderr
    assert done.stderr.startswith("litotes: ")
    done = shell(command, PYTHONIOENCODING=encoding)
    assert done.returncode == 0
    assert "answer: stdin, line 1 holds a NUL or bytes" in done.stderr


@pytest.mark.slow
def test_a_process_that_ends_at_once_has_written_everything(predict: str) -> None:
    done = shell(f"yes 'a cup of tea' | head -400 | {predict} --format jsonl | cat")
    assert done.stdout.count("\n") == 400
    assert json.loads(done.stdout.splitlines()[-1])["text"] == "a cup of tea"
    assert shell(f"{predict} 'a cup of tea' --task nix").returncode == 2


def test_only_an_answer_without_torch_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("torch", "ray", "multiprocessing"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "onnxruntime", ModuleType("onnxruntime"))
    assert command_line._holds_a_model_only("predict")
    assert not command_line._holds_a_model_only("serve")
    monkeypatch.setitem(sys.modules, "multiprocessing", ModuleType("multiprocessing"))
    assert not command_line._holds_a_model_only("predict")


def test_only_the_display_prints() -> None:
    folder = Path(command_line.__file__).parent
    for file in folder.glob("*.py"):
        nodes = list(ast.walk(ast.parse(file.read_text("utf-8"))))
        calls = [node.func for node in nodes if isinstance(node, ast.Call)]
        names = [call.id for call in calls if isinstance(call, ast.Name)]
        assert "print" not in names, f"{file.name}: use print_lines, print_table, say or print_json"
