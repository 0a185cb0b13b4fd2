"""A study that is resumed computes as it began, and says which texts its models have seen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from litotes.core.errors import UserError
from litotes.data.sources import load
from litotes.model.folder import text_hash
from litotes.study import plan
from litotes.study import runs as execution
from litotes.study import runs as job
from litotes.study.plan import Study, read_study
from litotes.study.runs import execute, forget, seen_notes
from litotes.training.course import Run
from litotes.training.recipe import Recipe


@pytest.fixture
def study(tmp_path: Path, tiny_folder: Path) -> Study:
    file = tmp_path / "threads.toml"
    file.write_text(
        'name = "Threads"\n[recipe.model]\n'
        f'encoder = "{tiny_folder}"\nmax_pieces = 8\n'
        '[recipe.training]\nepochs = 1\n[[experiment]]\nname = "Two"\n'
        'set = { "data.tasks" = ["sentiment"] }\n'
        'grid = { "data.where.variety" = ["en-AU", "en-UK"] }\n'
    )
    return read_study(file)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """With how many threads each run was trained."""
    used: list[int] = []

    def train(*arguments: Any, **options: Any) -> Run:
        used.append(torch.get_num_threads())
        return original(*arguments, **options)

    original = job.train
    before = torch.get_num_threads()
    monkeypatch.setattr(job, "train", train)
    yield used
    torch.set_num_threads(before)


def test_a_resumed_study_computes_with_as_many_threads(
    study: Study, threads: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"

    def stop_after_first(what: str, done: int, total: int, note: str) -> None:
        if (what, done) == ("runs", 1):
            raise KeyboardInterrupt

    torch.set_num_threads(2)
    with pytest.raises(KeyboardInterrupt):
        execute(study, out, device="cpu", watch=stop_after_first)
    assert threads == [2]
    assert json.loads((out / "runs" / "threads.json").read_text()) == {"n_threads": 2}
    torch.set_num_threads(1)
    runs = execute(study, out, device="cpu")
    assert (runs.n_found, runs.failures) == (1, {})
    assert threads == [2, 2]
    assert torch.get_num_threads() == 1  # for this process nothing has changed


@pytest.mark.parametrize(
    ("on", "n_workers", "expected"), [("here", 1, 2), ("here", 3, 5), ("ray", 1, 1)]
)
def test_threads_are_chosen_when_a_study_begins(
    on: str,
    n_workers: int,
    expected: int,
    tmp_path: Path,
    threads: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch.set_num_threads(2)
    monkeypatch.setattr(execution, "threads_per_worker", lambda n_workers: 5)
    file = tmp_path / "threads.json"
    assert execution._n_threads(file, n_workers, on) == expected
    assert execution._n_threads(file, 7, "here") == expected
    for damaged in (
        "",
        "[]",
        "{}",
        '{"n_threads": -1}',
        '{"n_threads": "2"}',
        '{"n_threads": 1e9}',
    ):
        file.write_text(damaged)
        with pytest.raises(UserError, match="damaged"):
            execution._n_threads(file, n_workers, on)


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


def write_table(file: Path, texts: list[str], split: str) -> str:
    rows = ["text,mood,split"]
    for place, text in enumerate(texts):
        rows.append(f"{text},{('positive', 'negative')[place % 2]},{split}")
    file.write_text("\n".join(rows) + "\n")
    return f"table:{file}?label.sentiment=mood&split=split"


def test_texts_of_another_corpus_that_were_trained_on_are_counted(tmp_path: Path) -> None:
    forget()
    texts = [f"a kettle number {number} that sings" for number in range(20)]
    source = write_table(tmp_path / "own.csv", texts, "train")
    other = write_table(tmp_path / "other.csv", [*texts[:3], "a cold tea", "a warm one"], "test")
    trained = frozenset(map(text_hash, load(source)))
    recipe = Recipe().changed(data__source=source)
    tests = [plan.TestedOn(data=other), plan.TestedOn(data=other, name="again")]
    (note,) = seen_notes(trained, tests, recipe, ["sentiment"])
    assert note.startswith("WARNING: ")
    assert "trained on 3 of these 5 texts" in note
    assert load(other).name in note
    assert seen_notes(frozenset(), tests, recipe, ["sentiment"]) == []
