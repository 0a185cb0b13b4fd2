"""Pretraining: which texts are read, courses, the folder that transformers reads."""

from __future__ import annotations

import json
import os
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
from litotes.core.figures import render_figure
from litotes.core.progress import Milestone
from litotes.data.sources import load
from litotes.encoder import pretrained
from litotes.encoder.packing import pack
from litotes.kernels.encode import encode
from litotes.training.pretraining.course import draw_curve, read_masked
from litotes.training.pretraining.language_model import LanguageModel, load_heads
from litotes.training.pretraining.masking import MaskedText, pack_masked
from litotes.training.pretraining.texts import Texts
from litotes.training.recipe import PretrainRecipe, Recipe, TextSettings
from litotes.training.run import train
from litotes.training.trainer import Trainer


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


NEXT_SENTENCES = {
    "data": {"join_lines": True, "held_out": 0.2},
    "objective": {"next_sentence": True},
}


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


def read(**settings: Any) -> list[tuple[str, int]]:
    texts = Texts(TextSettings(**settings))
    found = [(line.text, line.document) for line in texts]
    assert [(line.text, line.document) for line in texts] == found, "it can be read again"
    return found


def test_blank_lines_end_documents(tmp_path: Path) -> None:
    one, two = tmp_path / "one.txt", tmp_path / "two.txt.gz"
    one.write_text("a\nb\n\n\nc\n")
    import gzip

    two.write_bytes(gzip.compress(b"d\n"))
    lines = read(source=[str(one), str(two)])
    assert [text for text, _ in lines] == ["a", "b", "c", "d"]
    documents = [document for _, document in lines]
    assert documents[0] == documents[1]
    assert len(set(documents)) == 3


def test_rows_of_tables_are_documents(tmp_path: Path) -> None:
    table = tmp_path / "rows.jsonl"
    rows = [{"body": "first line\nsecond line"}, {"body": "other"}]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = f"{table}?text=body"
    assert read(source=source) == [("first line\nsecond line", 0), ("other", 1)]
    joined = read(source=source, join_lines=True)
    assert joined == [("first line", 0), ("second line", 0), ("other", 1)]


def test_only_training_texts_of_a_corpus_are_read_and_once(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text(
        "text,label,split\ntea,0,train\nTEA,1,train\nqueue,0,train\nbad,1,test\nbad,1,train\n"
    )
    texts = Texts(TextSettings(source=f"table:{table}?label=label&split=split"))
    assert [line.text for line in texts] == ["tea", "queue"]
    assert any("1 training texts" in note for note in texts.notes)
    assert any("repetition" in note for note in texts.notes)


def test_a_corpus_is_selected_from() -> None:
    found = read(source="sampler", where={"variety": "en-AU"})
    corpus = load("sampler").without_leaks()[0].where(variety="en-AU", split="train")
    assert {text for text, _ in found} <= {example.text for example in corpus}
    assert 0 < len(found) <= len(corpus)


@pytest.mark.parametrize(
    ("source", "more", "words"),
    [
        ("nowhere.txt", {}, "does not exist"),
        ("FILE?column=a", {}, "Did you mean 'text'|option of the file"),
        ("FILE", {"where": {"variety": "en-AU"}}, "Leave data.where out"),
        ("sampeler", {}, "Did you mean 'sampler'"),
        ([], {}, "data.source is empty"),
    ],
)
def test_mistakes_are_sentences(
    tmp_path: Path, source: str, more: dict[str, Any], words: str
) -> None:
    (tmp_path / "file.txt").write_text("tea\n")
    if isinstance(source, str):
        source = source.replace("FILE", str(tmp_path / "file.txt"))
    with pytest.raises(UserError, match=words):
        read(source=source, **more)


@pytest.mark.parametrize("values", [(4000, 600, 340), (19.0, 13.0, 11.0)])
def test_the_axis_has_numbers_on_it(values: tuple[float, ...]) -> None:
    history = [{"step": 10 * n, "perplexity": value} for n, value in enumerate(values)]
    picture = draw_curve(history, unigram=max(values))
    assert render_figure(picture, "svg") == render_figure(picture, "svg")
    (ax,) = picture.axes
    low, high = ax.get_ylim()
    shown = [tick for tick in ax.get_yticks() if low <= tick <= high]
    assert len(shown) >= 2
