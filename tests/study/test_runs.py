"""A study that is resumed computes as it began, and says which texts its models have seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from litotes.core.errors import UserError
from litotes.data.sources import load
from litotes.model.folder import text_hash
from litotes.study import plan
from litotes.study import runs as execution
from litotes.study.plan import Study, read_study
from litotes.study.runs import execute, forget, plan_jobs, seen_notes
from litotes.training.course import Run
from litotes.training.recipe import Recipe

VARIETIES = ("en-AU", "en-UK")


def write_table(file: Path, texts: list[str], splits: str) -> str:
    rows = ["text,mood,variety,split"]
    for place, text in enumerate(texts):
        split = splits.split()[place % len(splits.split())]
        mood = ("positive", "negative")[place // 2 % 2]
        rows.append(f"{text},{mood},{VARIETIES[place % 2]},{split}")
    file.write_text("\n".join(rows) + "\n")
    return f"table:{file}?label.sentiment=mood&split=split&variety=variety"


@pytest.fixture
def study(tmp_path: Path, tiny_folder: Path) -> Study:
    texts = [f"a kettle number {number}" for number in range(24)]
    source = write_table(tmp_path / "few.csv", texts, "train train train train test test")
    file = tmp_path / "threads.toml"
    file.write_text(
        f'name = "Threads"\n[recipe.data]\nsource = "{source}"\n[recipe.model]\n'
        f'encoder = "{tiny_folder}"\nmax_pieces = 8\n[recipe.training]\nepochs = 1\n'
        '[[experiment]]\nname = "Two"\ngrid = { "data.where.variety" = ["en-AU", "en-UK"] }\n'
    )
    return read_study(file)


@pytest.mark.slow
def test_a_resumed_study_computes_with_as_many_threads(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[int] = []
    original, before = execution.train, torch.get_num_threads()

    def train(*arguments: Any, **options: Any) -> Run:
        used.append(torch.get_num_threads())
        return original(*arguments, **options)

    def stop_after_first(what: str, done: int, total: int, note: str) -> None:
        if (what, done) == ("runs", 1):
            raise KeyboardInterrupt

    monkeypatch.setattr(execution, "train", train)
    out = tmp_path / "out"
    for name in ("figures", "runs/key/tests"):  # what a killed study left half written
        (out / name / ".staged-abcdefgh").mkdir(parents=True)
    try:
        torch.set_num_threads(2)
        with pytest.raises(KeyboardInterrupt):
            execute(study, out, device="cpu", watch=stop_after_first)
        assert json.loads((out / "runs" / "threads.json").read_text()) == {"n_threads": 2}
        torch.set_num_threads(1)
        runs = execute(study, out, device="cpu")
        assert (runs.n_found, runs.failures, used) == (1, {}, [2, 2])
        assert torch.get_num_threads() == 1  # for this process nothing has changed
    finally:
        torch.set_num_threads(before)
    assert not list(out.rglob(".staged-*"))
    for damaged in (
        "",
        "[]",
        "{}",
        '{"n_threads": -1}',
        '{"n_threads": "2"}',
        '{"n_threads": 1e9}',
    ):
        (out / "runs" / "threads.json").write_text(damaged)
        with pytest.raises(UserError, match="damaged"):
            execute(study, out, device="cpu")


def test_a_run_is_known_by_its_recipe_and_its_texts(study: Study, tmp_path: Path) -> None:
    forget()
    jobs = plan_jobs(study, tmp_path)
    names = [f"{number}/2 Two, {one}, seed 0" for number, one in enumerate(VARIETIES, start=1)]
    assert [job.title for job in jobs.values()] == names
    assert list(plan_jobs(study, tmp_path / "elsewhere")) == list(jobs)
    file = tmp_path / "few.csv"
    file.write_text(file.read_text().replace("number 3", "number 33"))
    forget()
    assert not jobs.keys() & plan_jobs(study, tmp_path).keys()


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
