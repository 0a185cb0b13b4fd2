"""Whole runs of a classifier with the tiny encoder: the folder, the same bytes twice, several
processes, what is refused. What holds for runs of every kind is in test_courses.py.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_exports import export_unmeasured
from tiny_models import KINDS, model_of

from litotes.core.errors import UserError
from litotes.core.progress import Milestone
from litotes.core.storage import locked
from litotes.encoder.pretrained import Pretrained, save
from litotes.model.checkpoint import load_model
from litotes.prediction.predictor import Predictor
from litotes.training.course import Run
from litotes.training.recipe import Recipe, read_recipe
from litotes.training.run import train
from litotes.training.trainer import Trainer


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


@dataclass(frozen=True)
class Whole:
    """A run that nothing stopped, and the notes it gave; for tests that write nothing there."""

    run: Run
    folder: Path
    notes: list[str]


@pytest.fixture(scope="module")
def whole(tiny_recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    notes: list[str] = []
    folder = tmp_path_factory.mktemp("whole") / "run"
    run = train(tiny_recipe, folder, watch=lambda what, done, total, note: notes.append(note))
    return Whole(run, folder, notes)


def of_table(recipe: Recipe, file: Path, rows: Sequence[str], options: str) -> Recipe:
    """The recipe, about a table of these rows."""
    file.write_text("\n".join(rows) + "\n")
    return recipe.changed(data__source=f"table:{file}?{options}", data__where={})


def test_a_run_leaves_a_whole_model_folder(whole: Whole) -> None:
    names = "README.md config.json history.jsonl litotes.json manifest.json model.safetensors"
    names += " recipe.json scores.json tokenizer.json trained_on.txt"
    assert sorted(path.name for path in whole.folder.iterdir()) == names.split()
    history = [
        json.loads(line) for line in (whole.folder / "history.jsonl").read_text().splitlines()
    ]
    assert [(line["epoch"], line["step"]) for line in history] == [(1, 5), (2, 10)]
    assert whole.run.model.facts["history"] == history
    assert {row.scores.task for row in whole.run.scores} == {"sentiment", "sarcasm"}
    assert "95 % bootstrap" in (whole.folder / "README.md").read_text()
    ends = [note for note in whole.notes if isinstance(note, Milestone)]
    scored = [f"held-out macro-F1 {line['held_out']:.3f} (best" for line in history]
    assert [words in end for words, end in zip(scored, ends, strict=True)] == [True, True]
    texts = ["Lovely, another queue.", "Great tea, and the scones!"]
    expected = Predictor(whole.run.model, device="cpu").predict(texts)
    assert Predictor.load(whole.folder, device="cpu").predict(texts) == expected


@pytest.mark.slow
def test_the_same_recipe_gives_the_same_bytes(
    tiny_recipe: Recipe, whole: Whole, tmp_path: Path
) -> None:
    train(tiny_recipe, tmp_path / "same")
    assert weights(whole.folder) == weights(tmp_path / "same")
    train(tiny_recipe.changed(seed=1, training__epochs=1), tmp_path / "other")
    assert weights(whole.folder) != weights(tmp_path / "other")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["deberta", "modernbert"])
def test_newer_families_and_what_a_weighting_learns_answer_from_their_folder(
    tiny: Pretrained, tiny_recipe: Recipe, tmp_path: Path, kind: str
) -> None:
    encoder = model_of(tiny, **KINDS[kind]).classifier.encoder
    save(replace(tiny, encoder=encoder), tmp_path / "encoder")
    recipe = tiny_recipe.changed(
        model__encoder=str(tmp_path / "encoder"),
        model__weighting="entmax",
        model__weighting_options={"alpha": "learned"},
        model__pruning="cascade",
        training__epochs=1,
    )
    trained = train(recipe, tmp_path / "run").model.classifier
    loaded = load_model(tmp_path / "run").classifier
    assert loaded.encoder.spec.family == KINDS[kind]["family"]
    name = "encoder.blocks.0.attention.weighting.a"
    assert len(loaded.state_dict()[name].unique()) > 1  # it has learned
    torch.testing.assert_close(loaded.state_dict(), trained.state_dict(), atol=0, rtol=0)
    texts = ["great tea", "the queue is bad, is it not?"]
    by_torch = Predictor.load(tmp_path / "run", runtime="torch").predict(texts)
    export_unmeasured(tmp_path / "run")
    by_onnx = Predictor.load(tmp_path / "run", runtime="onnx").predict(texts)
    for ours, theirs in zip(by_torch, by_onnx, strict=True):
        for task, answer in ours.answers.items():
            assert theirs.answers[task].probability == pytest.approx(answer.probability, abs=1e-4)


@pytest.mark.slow
def test_a_model_over_the_bundled_encoder_keeps_only_what_differs(tmp_path: Path) -> None:
    recipe = Recipe().changed(
        data__where={"variety": "en-AU", "source": "review"},
        training__epochs=1,
        training__batch_texts=64,
        training__freeze_below=6,
        model__max_pieces=8,
    )
    run = train(recipe, tmp_path / "run")
    assert (tmp_path / "run" / "model.safetensors").stat().st_size < 20_000
    # transformers would fill the gaps with random weights
    assert not (tmp_path / "run" / "config.json").exists()
    loaded = load_model(tmp_path / "run").classifier.encoder.state_dict()
    expected = run.model.classifier.encoder.state_dict()
    torch.testing.assert_close(loaded, expected, atol=0, rtol=0)


@pytest.mark.slow
def test_learns(tiny_recipe: Recipe, tmp_path: Path) -> None:
    """From random weights to the meaning of two words, on texts it has not seen."""
    rows = [
        f"the tea {n} is {('great', 'bad')[n % 2]},{n % 2},{'test' if n % 5 == 0 else 'train'}"
        for n in range(80)
    ]
    recipe = of_table(
        tiny_recipe, tmp_path / "tea.csv", ["text,label,split", *rows], "label=label&split=split"
    )
    how = {"training__epochs": 20, "training__batch_texts": 8, "training__held_out": 0.0}
    (row,) = train(recipe.changed(**how), tmp_path / "run").scores
    assert row.scores.macro_f1 > 0.9
    assert row.scores.interval[0] > row.scores.majority


class Killed(Exception):
    """Stands for the moment a process is killed: nothing after it is executed."""


@pytest.mark.slow
def test_a_killed_run_over_frozen_layers_ends_as_one_never_killed(
    tiny_recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny_recipe.changed(training__checkpoint_seconds=0, training__freeze_below=1)
    whole = train(recipe, tmp_path / "whole").folder
    original = Trainer._step

    def dying(self: Trainer, places: Any) -> None:
        if self.state.step == 5:  # between two epochs
            raise Killed
        original(self, places)

    monkeypatch.setattr(Trainer, "_step", dying)
    with pytest.raises(Killed):
        train(recipe, tmp_path / "killed")
    monkeypatch.undo()
    train(recipe, tmp_path / "killed", resume=True)
    assert weights(tmp_path / "killed") == weights(whole)
    assert not (tmp_path / "killed" / "checkpoints").exists()


@pytest.mark.slow
@pytest.mark.parametrize("fatal_file", ["recipe.json", "tokenizer.json", "litotes.json"])
def test_a_run_killed_while_it_writes_its_files_goes_on(
    tiny_recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fatal_file: str
) -> None:
    """Without any checkpoint: what lies there is its own, half-written files as well."""
    original = Path.replace

    def dying(self: Path, target: Path) -> Path:
        if target.name == fatal_file:
            raise Killed
        return original(self, target)

    monkeypatch.setattr(Path, "replace", dying)
    # who is killed does not tidy up
    monkeypatch.setattr(Path, "unlink", lambda self, missing_ok=False: None)
    monkeypatch.setattr(shutil, "rmtree", lambda folder, ignore_errors=False: None)
    with pytest.raises(Killed):
        train(tiny_recipe.changed(training__epochs=1), tmp_path / "run")
    monkeypatch.undo()
    (staged,) = (tmp_path / "run").glob(f".staged-*/{fatal_file}")
    assert staged.is_file()
    assert train(tiny_recipe.changed(training__epochs=1), tmp_path / "run", resume=True).scores
    assert not list((tmp_path / "run").glob(".*"))


def saved(folder: Path) -> set[str]:
    return {path.name for path in (folder / "checkpoints").glob("step-*")}


@pytest.mark.slow
def test_sigkill_at_random_moments(tiny_recipe: Recipe, tmp_path: Path) -> None:
    """The real thing: processes shot while they train and save, and started again."""
    forks = multiprocessing.get_context("forkserver")
    recipe = tiny_recipe.changed(training__checkpoint_seconds=0, training__epochs=6)
    pace = train(recipe, tmp_path / "whole", device="cpu").model.facts["seconds_per_step"]
    chance, n_kills = random.Random(0), 0
    how = {"device": "cpu", "resume": True}
    for _ in range(3):
        before = saved(tmp_path / "shot")
        process = forks.Process(target=train, args=(recipe, tmp_path / "shot"), kwargs=how)
        process.start()
        while saved(tmp_path / "shot") == before and process.is_alive():
            time.sleep(0.01)
        process.join(chance.uniform(0.0, 6 * pace))  # of 30 steps in all
        n_kills += process.is_alive()
        process.kill()
        process.join()
    assert n_kills >= 2
    train(recipe, tmp_path / "shot", device="cpu", resume=True)
    assert weights(tmp_path / "shot") == weights(tmp_path / "whole")


@pytest.mark.slow
def test_two_processes_take_the_steps_of_one(root: Path, tiny_folder: Path, tmp_path: Path) -> None:
    """Started by torchrun; they balance tasks and weigh groups as one. Without dropout, which
    differs between processes by design.
    """
    config = json.loads((tiny_folder / "config.json").read_text())
    shutil.copytree(tiny_folder, tmp_path / "encoder")
    still = config | {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (tmp_path / "encoder" / "config.json").write_text(json.dumps(still))
    changes = [
        f"model.encoder={tmp_path / 'encoder'}",
        "model.max_pieces=32",
        "model.dropout=0.0",
        "model.head=crosstalk",
        "training.freeze_below=0",
        "training.epochs=1",
        "training.batch_texts=74",
        "training.balancing=pcgrad",
        "training.groups=group_dro",
        "training.group_rate=0.5",
        "training.max_gradient_norm=0.0",
        "data.where.source=review",
    ]
    file = root / "recipes" / "quick.toml"
    train(read_recipe(file, changes=changes), tmp_path / "one", device="cpu")
    launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "litotes"]
    options = [word for change in changes for word in ("--set", change)]
    command = [sys.executable, "-m", *launcher, "train", str(file), *options, "--device", "cpu"]
    subprocess.run([*command, "--out", str(tmp_path / "two")], check=True, capture_output=True)
    one, two = (load_model(tmp_path / name).classifier.state_dict() for name in ("one", "two"))
    torch.testing.assert_close(two, one, atol=2e-5, rtol=1e-4)


# What is refused, and what is trained all the same


def test_folders_of_others_and_other_texts_are_refused(tiny_recipe: Recipe, tmp_path: Path) -> None:
    rows = [f"tea {n},{n % 2},{'test' if n % 5 == 0 else 'train'}" for n in range(30)]
    table = tmp_path / "tea.csv", "label=label&split=split"
    recipe = of_table(tiny_recipe, table[0], ["text,label,split", *rows], table[1])
    recipe = recipe.changed(training__held_out=0.0, training__epochs=1)
    with (
        locked(tmp_path / "run"),
        pytest.raises(UserError, match=rf"being written by another process \(PID {os.getpid()}"),
    ):
        train(recipe, tmp_path / "run")
    assert not (tmp_path / "run").exists()  # nobody wrote into it
    run = train(recipe, tmp_path / "run")
    assert train(recipe, tmp_path / "run", resume=True).notes == run.notes
    rows[-1] = "other tea,1,train"
    of_table(tiny_recipe, table[0], ["text,label,split", *rows], table[1])
    with pytest.raises(UserError, match="on other data"):
        train(recipe, tmp_path / "run", resume=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "README.md").write_text("mine")
    with pytest.raises(UserError, match=r"not of a run \(README\.md\)"):
        train(recipe, tmp_path / "mine")
    with pytest.raises(TypeError, match="changes"):
        train(recipe, tmp_path / "other", changes=["seed=1"])


def test_pairs_and_regression_train_like_the_rest(tiny_recipe: Recipe, tmp_path: Path) -> None:
    rows = [
        f"a cup of tea {n},a cup of coffee {n},{n % 6 - 0.5},{'test' if n % 4 == 0 else 'train'}"
        for n in range(40)
    ]
    options = "pair=other&label=score&task=similarity&numbers=yes&split=split"
    recipe = of_table(
        tiny_recipe, tmp_path / "pairs.csv", ["text,other,score,split", *rows], options
    )
    run = train(recipe.changed(training__epochs=1), tmp_path / "run", device="cpu")
    (row,) = run.scores
    assert row.scores.task == "similarity"
    assert -1 <= row.scores.pearson <= 1
    assert run.model.facts["data"]["n_pairs"] == run.model.facts["data"]["n_train"]
    predictor = Predictor(run.model, device="cpu")
    answer = predictor.predict(["one"], pairs=["two"])[0].answers["similarity"]
    assert isinstance(answer.label, float)
    assert answer.probability is None


def test_a_task_without_test_labels_is_trained_and_not_scored(
    tiny_recipe: Recipe, tmp_path: Path
) -> None:
    rows = [f"tea {n},{n % 2},{n % 3 == 0:d},train" for n in range(20)]
    rows += [f"test {n},{n % 2},,test" for n in range(9)]
    options = "split=split&label.sentiment=sentiment&label.sarcasm=sarcasm"
    header = "text,sentiment,sarcasm,split"
    recipe = of_table(tiny_recipe, tmp_path / "half.csv", [header, *rows], options)
    how = {"training__held_out": 0.0, "training__selection": "worst_group"}
    run = train(recipe.changed(**how, training__epochs=1), tmp_path / "run")
    assert {row.scores.task for row in run.scores} == {"sentiment"}
    assert set(run.model.classifier.tasks) == {"sentiment", "sarcasm"}
    assert not run.model.calibration
    for words in ("Not calibrated", "worst_group chose nothing"):
        assert any(words in note for note in run.notes)
