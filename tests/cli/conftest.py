"""A line of the command line, run in this process."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from command_lines import Run, Told

from litotes.cli.main import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(line: str, *more: object, code: int = 0) -> Told:
        capsys.readouterr()
        found = main([*shlex.split(line), *map(str, more)])
        told = capsys.readouterr()
        assert found == code, told.err
        return Told(told.out, told.err)

    return run


@pytest.fixture(scope="session")
def predicting(trained_folder: Path) -> str:
    """The beginning of a line."""
    return f"predict --model {trained_folder} --device cpu"
