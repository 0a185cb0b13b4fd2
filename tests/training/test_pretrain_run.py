"""Whole pretrainings of a tiny encoder: resumed as if never stopped, read by `train` and by
`transformers`.
"""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import torch
from snippet_runner import run_command
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer
from two_processes import run_in_two

from litotes.cli.main import main
from litotes.core.errors import Stopped, UserError
from litotes.core.progress import Milestone
from litotes.encoder import pretrained
from litotes.encoder.packing import pack
from litotes.kernels.encode import encode
from litotes.training.pretraining.course import read_masked
from litotes.training.pretraining.language_model import LanguageModel, load_heads
from litotes.training.pretraining.masking import MaskedText, pack_masked
from litotes.training.recipe import PretrainRecipe, Recipe
from litotes.training.run import train
from litotes.training.trainer import Trainer

SUBJECTS = ("the cat", "my mother", "a king", "our neighbour")
VERBS = ("drinks", "brews", "spills", "praises")
OBJECTS = ("black tea", "cold coffee", "warm milk", "old wine")


@pytest.fixture(scope="module")
def prose(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences in which words predict one another, in small documents."""
    chance = random.Random(0)
    file = tmp_path_factory.mktemp("prose") / "prose.txt"
    lines = []
    for number in range(400):
        which = chance.randrange(4)
        day = chance.randrange(28) + 1
        lines.append(f"{SUBJECTS[which]} {VERBS[which]} {OBJECTS[which]} on day {day}.")
        if number % 8 == 7:
            lines.append("")
    file.write_text("\n".join(lines) + "\n")
    return file


def recipe_for(prose: Path, **changes: Any) -> PretrainRecipe:
    """Nested tables are given whole; those not given are the tiny ones."""
    content: dict[str, Any] = {
        "data": {"source": str(prose), "held_out": 0.1},
        "model": {
            "scratch": {
                "n_layers": 1,
                "width": 32,
                "n_attention_heads": 2,
                "n_positions": 48,
                "n_vocabulary": 150,
            }
        },
        "training": {"steps": 6, "reports": 3, "batch_texts": 16, "learning_rate": 1e-3},
    }
    for table, values in changes.items():
        content[table] = content.get(table, {}) | values if isinstance(values, dict) else values
    return PretrainRecipe.of(content, "test")


@pytest.fixture(scope="module")
def encoder_folder(prose: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nobody may write there."""
    return train(recipe_for(prose), tmp_path_factory.mktemp("made") / "encoder").folder


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def history(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]


def test_a_run_leaves_an_encoder_folder(encoder_folder: Path) -> None:
    assert {path.name for path in encoder_folder.iterdir()} == {
        "config.json",
        "history.jsonl",
        "model.safetensors",
        "recipe.json",
        "scores.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    lines = history(encoder_folder)
    assert [line["step"] for line in lines] == [0, 2, 4, 6]
    scores = json.loads((encoder_folder / "scores.json").read_text())
    assert scores["perplexity"] == lines[-1]["perplexity"]
    assert scores["interval"][0] < scores["perplexity"] < scores["interval"][1]
    assert scores["unigram"] > 1
    assert scores["texts"]["learned_from"] + scores["texts"]["held_out"] == 400
    assert PretrainRecipe.read(encoder_folder / "recipe.json").key() == scores["key"]


@pytest.mark.slow
def test_perplexity_falls_below_that_of_frequencies(prose: Path, tmp_path: Path) -> None:
    training = {"steps": 150, "reports": 3, "batch_texts": 32, "learning_rate": 3e-3}
    scores = train(recipe_for(prose, training=training), tmp_path / "run").scores
    curve = [line["perplexity"] for line in scores["history"]]
    assert curve == sorted(curve, reverse=True)
    assert curve[-1] < 0.7 * scores["unigram"] < 0.5 * curve[0]


def test_every_measurement_is_reported(prose: Path, tmp_path: Path) -> None:
    notes: list[str] = []
    train(recipe_for(prose), tmp_path / "run", watch=lambda *report: notes.append(report[3]))
    milestones = [note for note in notes if isinstance(note, Milestone)]
    for words, line in zip(milestones, history(tmp_path / "run")[1:], strict=True):
        shown = f"loss {line['loss']:.3f}, held-out perplexity {line['perplexity']:.2f}"
        assert words == f"step {line['step']} of 6: {shown}"


def test_every_step_hides_other_pieces(
    prose: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = []

    def watching(*arguments: Any, seed: int) -> list[MaskedText]:
        seeds.append(seed)
        return read_masked(*arguments, seed=seed)

    monkeypatch.setattr("litotes.training.pretraining.course.read_masked", watching)
    train(recipe_for(prose), tmp_path / "run")
    assert len(seeds) == len(set(seeds)) == 7  # one of them held out


class Killed(Exception):
    """Stands for the moment a process is killed: nothing after it is executed."""


NEXT_SENTENCES = {
    "data": {"join_lines": True, "held_out": 0.2},
    "objective": {"next_sentence": True},
}


@pytest.fixture(scope="module", params=[{}, NEXT_SENTENCES], ids=["pieces", "next sentences"])
def never_killed(
    request: pytest.FixtureRequest, prose: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[PretrainRecipe, Path]:
    """A recipe that saves at every step, and a run of it."""
    training = recipe_for(prose).training.model_dump() | {"checkpoint_seconds": 0}
    recipe = recipe_for(prose, training=training, **request.param)
    return recipe, train(recipe, tmp_path_factory.mktemp("never-killed") / "run").folder


@pytest.mark.slow
@pytest.mark.parametrize("fatal_step", [0, 3, 4])  # 4: between two measurements
def test_a_killed_run_ends_as_one_never_killed(
    never_killed: tuple[PretrainRecipe, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fatal_step: int,
) -> None:
    recipe, whole = never_killed
    original = Trainer._step

    def dying(self: Trainer, places: Any) -> None:
        if self.state.step == fatal_step:
            raise Killed
        original(self, places)

    monkeypatch.setattr(Trainer, "_step", dying)
    with pytest.raises(Killed):
        train(recipe, tmp_path / "killed")
    monkeypatch.undo()
    assert (tmp_path / "killed" / "texts").is_dir()
    train(recipe, tmp_path / "killed", resume=True)
    assert weights(tmp_path / "killed") == weights(whole)
    for name in ("history.jsonl", "scores.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (whole / name).read_bytes()
    assert not (tmp_path / "killed" / "checkpoints").exists()
    assert not (tmp_path / "killed" / "texts").exists()


def test_a_resumed_run_reads_the_texts_it_began_with(
    prose: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine.csv"
    rows = [f"{line},0\n" for line in prose.read_text().splitlines() if line]
    mine.write_text("text,label\n" + "".join(rows))
    recipe = recipe_for(Path(f"table:{mine}?label=label"))
    train(recipe, tmp_path / "whole")
    original = Trainer._step

    def interrupted(self: Trainer, places: Any) -> None:
        original(self, places)
        if self.state.step == 3:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Trainer, "_step", interrupted)
    with pytest.raises(Stopped, match=r"Stopped after step 3 of 6.*--resume"):
        train(recipe, tmp_path / "stopped")
    monkeypatch.undo()
    mine.write_text("text,label\nsomething,0\nelse,1\n")
    with pytest.raises(UserError, match=r"was stopped. Go on with --resume"):
        train(recipe, tmp_path / "stopped")
    with pytest.raises(UserError, match="another recipe"):
        train(recipe.model_copy(update={"seed": 1}), tmp_path / "stopped", resume=True)
    damaged = tmp_path / "damaged"
    copytree(tmp_path / "stopped", damaged)
    (damaged / "texts" / "pieces.bin").write_bytes(b"")
    mine.write_text("text,label\n" + "".join(rows[:-50]))
    with pytest.raises(UserError, match="texts are no longer those"):
        train(recipe, damaged, resume=True)
    run = train(recipe, tmp_path / "stopped", resume=True)
    assert any("repetition" in note for note in run.notes)
    for name in ("model.safetensors", "scores.json"):
        whole = (tmp_path / "whole" / name).read_bytes()
        assert (tmp_path / "stopped" / name).read_bytes() == whole


def test_a_finished_run_is_taken_as_it_is(prose: Path, encoder_folder: Path) -> None:
    before = weights(encoder_folder)
    recipe = recipe_for(prose)
    with pytest.raises(UserError, match="already holds a trained model"):
        train(recipe, encoder_folder)
    scores = train(recipe, encoder_folder, resume=True).scores
    assert scores["perplexity"] == history(encoder_folder)[-1]["perplexity"]
    with pytest.raises(UserError, match="another recipe"):
        train(recipe.model_copy(update={"seed": 1}), encoder_folder, resume=True)
    assert weights(encoder_folder) == before


def test_a_folder_of_others_is_left_alone(prose: Path, tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("mine")
    with pytest.raises(UserError, match=r"not of a run \(letters.txt\)"):
        train(recipe_for(prose), tmp_path)


TEXT = "my mother brews cold coffee on day 7."


@torch.no_grad()
def test_transformers_reads_the_folder(encoder_folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(encoder_folder)
    inputs = tokenizer(TEXT, return_tensors="pt")
    loaded = pretrained.load(str(encoder_folder))
    pieces = loaded.tokenizer.encode([TEXT])
    assert inputs["input_ids"][0].tolist() == pieces[0].ids
    assert tokenizer.mask_token == "[MASK]"
    hidden = AutoModel.from_pretrained(encoder_folder).eval()(**inputs).last_hidden_state[0]
    assert (encode(loaded.encoder, pack(pieces)).hidden - hidden).abs().max() < 1e-5

    model = LanguageModel(loaded.encoder, next_sentence=False)
    tensors = pretrained.read_tensors(encoder_folder / "model.safetensors")
    assert load_heads(model, tensors, "test") == []
    ids = torch.tensor(pieces[0].ids)
    every = torch.arange(len(ids))
    masked = pack_masked(
        [MaskedText(ids, torch.zeros_like(ids), every, ids, 0)], torch.device("cpu")
    )
    theirs, info = AutoModelForMaskedLM.from_pretrained(encoder_folder, output_loading_info=True)
    assert not info["missing_keys"]
    assert (model.eval()(masked).pieces - theirs.eval()(**inputs).logits[0]).abs().max() < 1e-5


@pytest.mark.slow
def test_train_takes_the_folder(encoder_folder: Path, tiny_recipe: Recipe, tmp_path: Path) -> None:
    changed = tiny_recipe.changed(model__encoder=str(encoder_folder), training__epochs=1)
    assert train(changed, tmp_path / "model").scores


def test_a_pretraining_goes_on_from_the_folder(
    prose: Path, encoder_folder: Path, tmp_path: Path
) -> None:
    model = {"scratch": None, "encoder": str(encoder_folder)}
    scores = train(recipe_for(prose, model=model), tmp_path / "more").scores
    before = history(encoder_folder)[-1]["perplexity"]
    assert scores["history"][0]["perplexity"] == pytest.approx(before, rel=1e-4)
    assert scores["perplexity"] < before
    assert scores["notes"] == []


@pytest.mark.slow
def test_what_a_weighting_learns_is_kept(prose: Path, tmp_path: Path) -> None:
    choices = {"weighting": "entmax", "weighting_options": {"alpha": "learned"}}
    recipe = recipe_for(prose, model=choices)
    run = train(recipe, tmp_path / "sparse")
    assert any("model.weighting = 'entmax'" in note for note in run.notes)
    fresh = pretrained.load(str(tmp_path / "sparse")).encoder
    assert fresh.spec.weighting == "softmax"
    loaded = pretrained.load(str(tmp_path / "sparse"), **choices).encoder
    tensors = pretrained.read_tensors(tmp_path / "sparse" / "model.safetensors")
    learned = {name: tensor for name, tensor in tensors.items() if ".weighting." in name}
    assert learned
    state = loaded.state_dict()
    assert all(torch.equal(state[n.removeprefix("encoder.")], t) for n, t in learned.items())


def still_recipe(prose: Path, **changes: Any) -> PretrainRecipe:
    """Without dropout, which differs between parts and between processes by design."""
    scratch = recipe_for(prose).model.model_dump()["scratch"] | {"dropout": 0.0}
    return recipe_for(prose, model={"scratch": scratch}, **NEXT_SENTENCES, **changes)


@pytest.fixture(scope="module")
def still(prose: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of that recipe, each step at once and in one process."""
    return train(still_recipe(prose), tmp_path_factory.mktemp("still") / "run").folder


@pytest.mark.parametrize("n_pieces", [1, 40])
def test_steps_in_parts_are_steps_at_once(
    prose: Path, still: Path, tmp_path: Path, n_pieces: int
) -> None:
    train(still_recipe(prose, training={"pieces_at_once": n_pieces}), tmp_path / "parts")
    for one, two in zip(history(still), history(tmp_path / "parts"), strict=True):
        assert two == pytest.approx(one, rel=1e-3)


@pytest.mark.slow
def test_two_processes_take_the_steps_of_one(prose: Path, still: Path, tmp_path: Path) -> None:
    file = tmp_path / "recipe.json"
    file.write_text(json.dumps(still_recipe(prose).model_dump(mode="json")))
    command = ["pretrain", str(file), "--device", "cpu", "--out", str(tmp_path / "two")]
    run_in_two(run_command, command)
    for one, two in zip(history(still), history(tmp_path / "two"), strict=True):
        assert two == pytest.approx(one, rel=1e-3)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"objective": {"next_sentence": True}}, r"set data.join_lines = true"),
        ({"model": {"encoder": "minilm"}}, r"leave one of them out"),
        ({"objective": {"masked": 0.9, "random": 0.2}}, r"more than 1 together"),
        ({"training": {"learning_rat": 1}}, r"Did you mean 'learning_rate'"),
        ({"data": {"source": None}}, r"data.source"),
    ],
)
def test_settings_that_contradict_are_sentences(
    prose: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        recipe_for(prose, **changes)


def test_the_command(
    prose: Path, tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["pretrain", str(root / "recipes" / "pretrain.toml"), "--out", str(tmp_path / "out")]
    command += ["--set", f"data.source={prose}", "--set", "model.scratch.width=16"]
    command += ["--set", "model.scratch.n_vocabulary=100", "--set", "training.steps=2"]
    assert main([*command, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["encoder"], shown["history"][-1]["step"]) == (str(tmp_path / "out"), 2)
    assert (tmp_path / "out" / "perplexity.svg").read_bytes().startswith(b"<?xml")
    assert main([*command, "--resume"]) == 0
    assert "by frequency alone" in capsys.readouterr().out


def test_an_encoder_that_is_not_there_leaves_no_folder(tmp_path: Path, root: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text('[data]\nsource = "sampler"\n[model]\nencoder = "nowhere"\n')
    assert main(["pretrain", str(recipe), "--out", str(tmp_path / "out")]) == 2
    recipe.write_text('[data]\nsource = "nowhere.txt"\n[model.scratch]\nn_layers = 1\n')
    assert main(["pretrain", str(recipe), "--out", str(tmp_path / "out")]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]
