"""Whole runs with the tiny encoder: the same bytes twice, and resumed as if never stopped."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_exports import export_unmeasured
from tiny_models import KINDS, model_of
from two_processes import run_in_two

from litotes.core.errors import Stopped, UserError
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


@pytest.fixture
def copied(whole: Whole, tmp_path: Path) -> Path:
    """The folder of that run, to be changed."""
    return shutil.copytree(whole.folder, tmp_path / "run")


@pytest.mark.slow
def test_the_same_recipe_gives_the_same_bytes(
    tiny_recipe: Recipe, whole: Whole, tmp_path: Path
) -> None:
    train(tiny_recipe, tmp_path / "same")
    train(tiny_recipe.changed(seed=1), tmp_path / "other")
    assert weights(whole.folder) == weights(tmp_path / "same")
    assert weights(whole.folder) != weights(tmp_path / "other")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["deberta", "modernbert"])
@pytest.mark.parametrize("weighting", ["softmax", "entmax"])
def test_newer_families_are_trained_and_answer_from_their_folder(
    tiny: Pretrained, tiny_recipe: Recipe, tmp_path: Path, kind: str, weighting: str
) -> None:
    encoder = model_of(tiny, **KINDS[kind]).classifier.encoder
    save(replace(tiny, encoder=encoder), tmp_path / "encoder")
    recipe = tiny_recipe.changed(
        model__encoder=str(tmp_path / "encoder"),
        model__weighting=weighting,
        model__pruning="cascade",
        training__epochs=1,
    )
    train(recipe, tmp_path / "run")
    model = load_model(tmp_path / "run")
    assert model.classifier.encoder.spec.family == KINDS[kind]["family"]
    texts = ["great tea", "the queue is bad, is it not?"]
    by_torch = Predictor.load(tmp_path / "run", runtime="torch").predict(texts)
    export_unmeasured(tmp_path / "run")
    by_onnx = Predictor.load(tmp_path / "run", runtime="onnx").predict(texts)
    for ours, theirs in zip(by_torch, by_onnx, strict=True):
        for task, answer in ours.answers.items():
            assert theirs.answers[task].probability == pytest.approx(answer.probability, abs=1e-4)


def history_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]


def test_a_run_leaves_a_whole_model_folder(whole: Whole) -> None:
    names = {path.name for path in whole.folder.iterdir()}
    assert names == {
        "litotes.json",
        "manifest.json",
        "model.safetensors",
        "tokenizer.json",
        "config.json",
        "README.md",
        "recipe.json",
        "history.jsonl",
        "scores.json",
        "trained_on.txt",
    }
    history = history_of(whole.folder)
    assert [line["epoch"] for line in history] == [1, 2]
    assert all(0 <= line["held_out"] <= 1 for line in history)
    assert {row.scores.task for row in whole.run.scores} == {"sentiment", "sarcasm"}
    assert "95 % bootstrap" in (whole.folder / "README.md").read_text()


def test_every_epoch_reports_its_held_out_score(whole: Whole) -> None:
    history = history_of(whole.folder)
    milestones = [note for note in whole.notes if isinstance(note, Milestone)]
    for number, (words, line) in enumerate(zip(milestones, history, strict=True), start=1):
        assert words.startswith(
            f"epoch {number} of 2: loss {line['loss']:.3f}, held-out macro-F1"
            f" {line['held_out']:.3f} (best"
        )
    shown = f"{history[0]['held_out']:.3f}"
    assert any(shown in note for note in whole.notes if note.startswith("epoch 2, "))


def test_a_loaded_model_answers_as_the_trained_one(whole: Whole) -> None:
    texts = ["Lovely, another queue.", "Great tea, and the scones!"]
    expected = Predictor(whole.run.model, device="cpu").predict(texts)
    assert Predictor.load(whole.folder, device="cpu").predict(texts) == expected


@pytest.mark.slow
def test_a_model_over_the_bundled_encoder_keeps_only_what_differs(tmp_path: Path) -> None:
    recipe = Recipe().changed(
        data__where__variety="en-AU",
        data__where__source="review",
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
    assert all(
        torch.equal(loaded[name], tensor)
        for name, tensor in run.model.classifier.encoder.state_dict().items()
    )


@pytest.mark.slow
def test_learns(tiny_recipe: Recipe, tmp_path: Path) -> None:
    """From random weights to the meaning of two words, on texts it has not seen."""
    file = tmp_path / "tea.csv"
    rows = [
        f"the tea {n} is {('great', 'bad')[n % 2]},{n % 2},{'test' if n % 5 == 0 else 'train'}"
        for n in range(80)
    ]
    file.write_text("text,label,split\n" + "\n".join(rows) + "\n")
    recipe = tiny_recipe.changed(
        data__source=f"table:{file}?label=label&split=split",
        data__where={},
        training__epochs=20,
        training__batch_texts=8,
        training__held_out=0.0,
    )
    run = train(recipe, tmp_path / "run")
    assert run.scores[0].scores.macro_f1 > 0.9
    assert run.scores[0].scores.interval[0] > run.scores[0].scores.majority


class Killed(Exception):
    """Stands for the moment a process is killed: nothing after it is executed."""


@pytest.fixture(scope="module")
def whole_frozen(tiny_recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole-frozen") / "run"
    train(tiny_recipe.changed(training__freeze_below=1), folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [0, 1])
@pytest.mark.parametrize("fatal_step", [1, 5, 7])  # 5: between two epochs
def test_a_killed_run_ends_as_one_never_killed(
    tiny_recipe: Recipe,
    whole: Whole,
    whole_frozen: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fatal_step: int,
    frozen: int,
) -> None:
    recipe = tiny_recipe.changed(training__checkpoint_seconds=0, training__freeze_below=frozen)
    never_killed = whole_frozen if frozen else whole.folder
    original = Trainer._step

    def dying(self: Trainer, places: Any) -> None:
        if self.state.step == fatal_step:
            raise Killed
        original(self, places)

    monkeypatch.setattr(Trainer, "_step", dying)
    with pytest.raises(Killed):
        train(recipe, tmp_path / "killed")
    monkeypatch.undo()
    train(recipe, tmp_path / "killed", resume=True)
    assert weights(tmp_path / "killed") == weights(never_killed)
    assert (tmp_path / "killed" / "history.jsonl").read_text() == (
        never_killed / "history.jsonl"
    ).read_text()
    assert not (tmp_path / "killed" / "checkpoints").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "fatal_file", ["recipe.json", "tokenizer.json", "manifest.json", "litotes.json"]
)
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


def test_two_processes_do_not_write_into_one_folder(tiny_recipe: Recipe, tmp_path: Path) -> None:
    with (
        locked(tmp_path / "run"),
        pytest.raises(
            UserError, match=rf"being written by another process \(PID {os.getpid()} on .*--out"
        ),
    ):
        train(tiny_recipe, tmp_path / "run")
    assert not (tmp_path / "run").exists()  # nobody wrote into it


@pytest.mark.slow
def test_a_damaged_checkpoint_is_passed_over(
    tiny_recipe: Recipe, whole: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny_recipe.changed(training__checkpoint_seconds=0)
    monkeypatch.setattr(Trainer, "_end_epoch", lambda self: (_ for _ in ()).throw(Killed()))
    with pytest.raises(Killed):
        train(recipe, tmp_path / "killed")
    monkeypatch.undo()
    kept = sorted((tmp_path / "killed" / "checkpoints").iterdir())
    assert [path.name for path in kept] == ["step-000000004", "step-000000005"]
    newest = kept[-1]
    content = bytearray((newest / "state.safetensors").read_bytes())
    content[-5] ^= 1
    (newest / "state.safetensors").write_bytes(content)
    train(recipe, tmp_path / "killed", resume=True)
    assert weights(tmp_path / "killed") == weights(whole.folder)


def saved(folder: Path) -> set[str]:
    return {path.name for path in (folder / "checkpoints").glob("step-*")}


@pytest.mark.slow
def test_sigkill_at_random_moments(tiny_recipe: Recipe, tmp_path: Path) -> None:
    """The real thing: processes shot while they train and save, and started again."""
    processes = multiprocessing.get_context("forkserver")
    recipe = tiny_recipe.changed(training__checkpoint_seconds=0, training__epochs=8)
    pace = train(recipe, tmp_path / "whole", device="cpu").model.facts["seconds_per_step"]
    chance, n_kills = random.Random(0), 0
    while n_kills < 4:
        before = saved(tmp_path / "shot")
        process = processes.Process(
            target=train, args=(recipe, tmp_path / "shot"), kwargs={"device": "cpu", "resume": True}
        )
        process.start()
        while saved(tmp_path / "shot") == before and process.is_alive():
            time.sleep(0.01)
        process.join(chance.uniform(0.0, 8 * pace))  # of 40 steps in all
        if not process.is_alive():
            break
        process.kill()
        process.join()
        n_kills += 1
    assert n_kills >= 2
    train(recipe, tmp_path / "shot", device="cpu", resume=True)
    assert weights(tmp_path / "shot") == weights(tmp_path / "whole")


@pytest.fixture
def still_changes(tiny_folder: Path, tmp_path: Path) -> list[str]:
    """Settings without dropout, which differs between processes by design."""
    config = json.loads((tiny_folder / "config.json").read_text())
    (tmp_path / "encoder").mkdir()
    for file in ("model.safetensors", "tokenizer.json"):
        (tmp_path / "encoder" / file).write_bytes((tiny_folder / file).read_bytes())
    still = config | {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (tmp_path / "encoder" / "config.json").write_text(json.dumps(still))
    return [
        f"model.encoder={tmp_path / 'encoder'}",
        "model.max_pieces=32",
        "model.dropout=0.0",
        "training.freeze_below=0",
        "training.epochs=1",
        "training.batch_texts=74",
        "data.where.source=review",
        "training.max_gradient_norm=0.0",
    ]


def same_weights(one: Path, two: Path) -> None:
    ours, theirs = (load_model(folder).classifier.state_dict() for folder in (one, two))
    for name, tensor in ours.items():
        torch.testing.assert_close(theirs[name], tensor, atol=2e-5, rtol=1e-4)


@pytest.mark.slow
def test_torchrun_takes_the_steps_of_one_process(
    root: Path, still_changes: list[str], tmp_path: Path
) -> None:
    file = root / "recipes" / "quick.toml"
    train(read_recipe(file, changes=still_changes), tmp_path / "one", device="cpu")
    launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "litotes"]
    options = [word for change in still_changes for word in ("--set", change)]
    command = [sys.executable, "-m", *launcher, "train", str(file), *options, "--device", "cpu"]
    subprocess.run([*command, "--out", str(tmp_path / "two")], check=True, capture_output=True)
    same_weights(tmp_path / "one", tmp_path / "two")


def train_on_cpu(recipe: Recipe, out: Path) -> None:
    train(recipe, out, device="cpu")


@pytest.mark.slow
def test_two_processes_balance_and_weigh_groups_as_one(
    root: Path, still_changes: list[str], tmp_path: Path
) -> None:
    how = ["model.head=crosstalk", "training.balancing=pcgrad"]
    how += ["training.groups=group_dro", "training.group_rate=0.5"]
    recipe = read_recipe(root / "recipes" / "quick.toml", changes=still_changes + how)
    train_on_cpu(recipe, tmp_path / "one")
    run_in_two(train_on_cpu, recipe, tmp_path / "two")
    same_weights(tmp_path / "one", tmp_path / "two")


@pytest.mark.slow
def test_ctrl_c_saves_and_says_how_to_go_on(
    tiny_recipe: Recipe, whole: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Trainer._step

    def interrupted(self: Trainer, places: Any) -> None:
        original(self, places)
        if self.state.step == 3:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Trainer, "_step", interrupted)
    with pytest.raises(Stopped, match=r"Stopped after step 3 of .*--resume"):
        train(tiny_recipe, tmp_path / "stopped")
    monkeypatch.undo()
    with pytest.raises(UserError, match="was stopped"):
        train(tiny_recipe, tmp_path / "stopped")
    with pytest.raises(UserError, match="another recipe"):
        train(tiny_recipe.changed(seed=7), tmp_path / "stopped", resume=True)
    train(tiny_recipe, tmp_path / "stopped", resume=True)
    assert weights(tmp_path / "stopped") == weights(whole.folder)


def test_a_finished_run_is_not_overwritten(
    tiny_recipe: Recipe, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = weights(copied)
    monkeypatch.setattr(Trainer, "run", lambda _, resume: pytest.fail("trained again"))
    with pytest.raises(UserError, match="already holds"):
        train(tiny_recipe.changed(seed=1), copied)
    again = train(tiny_recipe, copied, resume=True)
    assert again.model.facts["key"].startswith(tiny_recipe.key())
    assert weights(copied) == before


def test_pairs_and_regression_train_like_the_rest(tiny_recipe: Recipe, tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    rows = [
        f"a cup of tea {n},a cup of coffee {n},{n % 6 - 0.5},{'test' if n % 4 == 0 else 'train'}"
        for n in range(40)
    ]
    file.write_text("text,other,score,split\n" + "\n".join(rows) + "\n")
    source = f"table:{file}?pair=other&label=score&task=similarity&numbers=yes&split=split"
    run = train(
        tiny_recipe.changed(data__source=source, data__where={}),
        tmp_path / "run",
        device="cpu",
    )
    (row,) = run.scores
    assert row.scores.task == "similarity"
    assert -1 <= row.scores.pearson <= 1
    answer = (
        Predictor(run.model, device="cpu").predict(["one"], pairs=["two"])[0].answers["similarity"]
    )
    assert isinstance(answer.label, float)
    assert answer.probability is None


def test_a_run_on_other_data_is_not_taken_for_this_one(tiny_recipe: Recipe, tmp_path: Path) -> None:
    file = tmp_path / "tea.csv"
    recipe = tiny_recipe.changed(
        data__source=f"table:{file}?label=label&split=split",
        data__where={},
        training__held_out=0.0,
    )
    rows = [f"tea {n},{n % 2},{'test' if n % 5 == 0 else 'train'}" for n in range(30)]
    file.write_text("\n".join(["text,label,split", *rows]) + "\n")
    train(recipe, tmp_path / "run")
    train(recipe, tmp_path / "run", resume=True)
    file.write_text("\n".join(["text,label,split", *rows[:-1], "other tea,1,train"]) + "\n")
    with pytest.raises(UserError, match="on other data"):
        train(recipe, tmp_path / "run", resume=True)


def test_a_folder_with_other_files_is_left_alone(tiny_recipe: Recipe, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(UserError, match="not of a run"):
        train(tiny_recipe, tmp_path)
    assert (tmp_path / "README.md").read_text() == "mine"


def test_a_task_without_test_labels_is_trained_and_not_scored(
    tiny_recipe: Recipe, tmp_path: Path
) -> None:
    file = tmp_path / "half.csv"
    rows = [f"tea {n},{n % 2},{n % 3 == 0:d},train" for n in range(20)] + [
        f"test {n},{n % 2},,test" for n in range(9)
    ]
    file.write_text("\n".join(["text,sentiment,sarcasm,split", *rows]) + "\n")
    source = f"table:{file}?split=split&label.sentiment=sentiment&label.sarcasm=sarcasm"
    run = train(
        tiny_recipe.changed(data__source=source, data__where={}, training__held_out=0.0),
        tmp_path / "run",
    )
    assert {row.scores.task for row in run.scores} == {"sentiment"}
    assert set(run.model.classifier.tasks) == {"sentiment", "sarcasm"}


def test_training_without_a_test_split_says_so(tiny_recipe: Recipe, tmp_path: Path) -> None:
    file = tmp_path / "train.csv"
    file.write_text("text,label\n" + "".join(f"tea {n},{n % 2}\n" for n in range(20)))
    run = train(
        tiny_recipe.changed(data__source=f"table:{file}?label=label&test=0", data__where={}),
        tmp_path / "run",
    )
    assert run.scores == ()
    assert any("not tested" in note for note in run.notes)


def test_divergence_is_reported(tiny_recipe: Recipe, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="learning_rate"):
        train(
            tiny_recipe.changed(training__learning_rate=1e30, training__epochs=5), tmp_path / "run"
        )
    assert not (tmp_path / "run" / "litotes.json").exists()


@pytest.mark.slow
def test_the_best_epoch_is_kept_and_training_stops_early(
    tiny_recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With scores 0.3, 0.9, 0.5, 0.4 and patience 2 the second epoch's weights are the result, and
    the fifth epoch never runs.
    """
    seen: list[torch.Tensor] = []

    def judged(classifier: Any, source: Any, *, worst_group: bool) -> float:
        seen.append(classifier.heads["sentiment"].output.weight.detach().clone())
        return [0.3, 0.9, 0.5, 0.4][len(seen) - 1]

    monkeypatch.setattr("litotes.training.classification.held_out_score", judged)
    run = train(tiny_recipe.changed(training__epochs=9, training__patience=2), tmp_path / "run")
    assert len(seen) == 4
    assert run.model.facts["best_epoch"] == 2
    assert torch.equal(run.model.classifier.heads["sentiment"].output.weight, seen[1])
    assert not torch.equal(seen[1], seen[3])


@pytest.mark.slow
def test_orders_rates_and_weights_reach_the_steps(
    tiny_recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders, rates, weights = [], [], []
    original = Trainer._step

    def watching(self: Trainer, places: Any) -> None:
        original(self, places)
        orders.append(tuple(places))
        rates.append(self.objective.tensors.optimizer.param_groups[0]["lr"])
        weights.append(self.objective.task_losses.class_weights["sarcasm"].tolist())

    monkeypatch.setattr(Trainer, "_step", watching)
    train(tiny_recipe, tmp_path / "run")
    assert set(orders[:5]) != set(orders[5:])
    assert sorted(place for batch in orders[:5] for place in batch) == sorted(
        place for batch in orders[5:] for place in batch
    )
    assert rates[0] == pytest.approx(1e-3)  # one step of warm-up
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < 0.2 * rates[0]
    assert weights[0][1] > 1.2 * weights[0][0]  # sarcasm is the rarer class


@pytest.mark.slow
def test_parameters_of_a_weighting_are_saved(
    tiny_recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from litotes.encoder.attention import WEIGHTINGS
    from litotes.encoder.attention.weighting import Weighting
    from litotes.encoder.operations import TORCH, Operations, Value

    class Tempered(Weighting):
        def __init__(self, n_attention_heads: int) -> None:
            super().__init__(n_attention_heads)
            self.heat = torch.nn.Parameter(torch.zeros(n_attention_heads))

        def forward(
            self,
            affinity: Value,
            live: Value | None = None,
            heads: Value | None = None,
            *,
            ops: Operations = TORCH,
        ) -> Value:
            return ops.softmax(affinity * ops.per_head(self.heat.exp(), heads), live)

    monkeypatch.setitem(WEIGHTINGS, "tempered", Tempered)
    run = train(
        tiny_recipe.changed(model__weighting="tempered", training__learning_rate=3e-2),
        tmp_path / "run",
    )
    heat = run.model.classifier.encoder.blocks[0].attention.weighting.heat
    assert heat.abs().max() > 0
    assert torch.equal(
        load_model(tmp_path / "run").classifier.encoder.blocks[0].attention.weighting.heat, heat
    )
    assert not (tmp_path / "run" / "config.json").exists()


@pytest.mark.slow
def test_an_epoch_in_which_sparsity_still_rises_is_not_the_best(
    tiny_recipe: Recipe, tmp_path: Path
) -> None:
    """With a ramp over the whole training only the last epoch shows the model as it will be."""
    rising = tiny_recipe.changed(
        model__weighting="top_k",
        model__weighting_options={"sparsity": 0.8, "ramp": 1.0},
        model__max_pieces=16,
        training__epochs=5,
        training__patience=1,
    )
    run = train(rising, tmp_path / "run")
    assert run.model.facts["best_epoch"] == 5
    assert len(run.model.facts["history"]) == 5
