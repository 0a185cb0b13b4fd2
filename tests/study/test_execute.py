"""What a killed study left half-written goes when it is started again."""

from __future__ import annotations

from pathlib import Path

import pytest

from litotes.study import runs as execution
from litotes.study.plan import read_study


def test_what_a_killed_study_left_half_written_is_removed(
    tmp_path: Path, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, out = tmp_path / "study.toml", tmp_path / "out"
    file.write_text(
        f'name = "One"\n[recipe.model]\nencoder = "{tiny_folder}"\n[[experiment]]\nname = "One"\n'
        'set = { "data.tasks" = ["sentiment"] }\ngrid = { "data.where.variety" = ["en-AU"] }\n'
    )
    for folder in (out, out / "figures", out / "runs", out / "runs" / "key" / "tests"):
        (folder / ".staged-abcdefgh").mkdir(parents=True)
    (out / "runs" / "key" / "tests" / ".staged-abcdefgh" / "test.json").write_text("{")
    monkeypatch.setattr(execution, "_run", lambda *_: iter(()))
    execution.execute(read_study(file), out)
    assert not list(out.rglob(".staged-*"))
    assert (out / "runs" / "key" / "tests").is_dir()
