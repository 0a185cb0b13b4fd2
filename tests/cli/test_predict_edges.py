"""`litotes predict` where its input or output is at an edge: nothing is lost without a word."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from threading import Thread

import pytest

from litotes.cli.main import main


@pytest.fixture
def command(trained_folder: Path) -> list[str]:
    return ["predict", "--model", str(trained_folder), "--device", "cpu"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "in.csv"
    file.write_text("id,text\n1,tea\n2,bad tea\n")
    return file


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such pipes")
def test_a_pipe_whose_reader_leaves_is_no_error(
    command: list[str], table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    table.write_text("id,text\n" + "1,tea\n" * 40)
    reader = Thread(target=lambda: pipe.open("rb").close(), daemon=True)
    reader.start()
    code = main([*command, "--file", str(table), "--format", "csv", "--out", str(pipe)])
    assert code == 0
    assert "Broken pipe" not in capsys.readouterr().err
