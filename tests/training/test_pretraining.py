"""Pretraining: which texts are read, courses, the folder that transformers reads."""

from __future__ import annotations

import gzip
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
from litotes.training.pretraining.course import MaskedLanguage, draw_curve
from litotes.training.pretraining.language_model import LanguageModel, load_heads
from litotes.training.pretraining.masking import MaskedTexts, Reader
from litotes.training.pretraining.texts import Texts
from litotes.training.recipe import PretrainRecipe, TextSettings
from litotes.training.run import train
from litotes.training.trainer import Trainer

SCRATCH = {
    "n_layers": 1,
    "width": 32,
    "n_attention_heads": 2,
    "n_positions": 48,
    "n_vocabulary": 150,
}


def recipe_for(prose: Path, **changes: Any) -> PretrainRecipe:
    """Nested tables are given whole; those not given are the tiny ones."""
    content: dict[str, Any] = {
        "data": {"source": str(prose), "held_out": 0.1},
        "model": {"scratch": SCRATCH},
        "training": {"steps": 6, "reports": 3, "batch_texts": 16, "learning_rate": 1e-3},
    }
    for table, values in changes.items():
        content[table] = content.get(table, {}) | values if isinstance(values, dict) else values
    return PretrainRecipe.of(content, "test")


def history(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def encoder_folder(prose: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nobody may write there."""
    folder = tmp_path_factory.mktemp("made") / "encoder"
    reports, seeds, read = [], [], Reader.read

    def watched(self: Reader, places: Any, *, seed: int) -> MaskedTexts:
        seeds.append(seed)
        return read(self, places, seed=seed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reader, "read", watched)
        train(recipe_for(prose), folder, watch=lambda *report: reports.append(report[3]))
    assert len(seeds) == len(set(seeds)) == 7, (
        "each step hides other pieces, and the held-out texts"
    )
    milestones = [note for note in reports if isinstance(note, Milestone)]
    for words, line in zip(milestones, history(folder)[1:], strict=True):
        for fact in (
            f"step {line['step']} of 6",
            f"{line['loss']:.3f}",
            f"{line['perplexity']:.2f}",
        ):
            assert fact in words
    return folder


def test_a_run_leaves_an_encoder_folder(encoder_folder: Path) -> None:
    names = {"config.json", "history.jsonl", "model.safetensors", "recipe.json", "scores.json"}
    names |= {"tokenizer.json", "tokenizer_config.json"}
    assert {path.name for path in encoder_folder.iterdir()} == names
    lines = history(encoder_folder)
    assert [line["step"] for line in lines] == [0, 2, 4, 6]
    scores = json.loads((encoder_folder / "scores.json").read_text())
    assert scores["perplexity"] == lines[-1]["perplexity"]
    assert scores["interval"][0] < scores["perplexity"] < scores["interval"][1]
    assert scores["texts"]["learned_from"] + scores["texts"]["held_out"] == 400
    assert PretrainRecipe.read(encoder_folder / "recipe.json").key() == scores["key"]


def test_every_pass_takes_each_block_once_however_often_it_reports(
    prose: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Reports cut the steps in stretches that begin and end within a pass."""
    seen: list[list[int]] = []
    batches = MaskedLanguage.batches

    def watched(self: MaskedLanguage, epoch: int) -> list[list[int]]:
        found = batches(self, epoch)
        if epoch == len(seen):  # asked again after a stretch that was taken
            seen.append([place for batch in found for place in batch])
        return found

    monkeypatch.setattr(MaskedLanguage, "batches", watched)
    changes = {"steps": None, "epochs": 2, "reports": 3, "batch_texts": 64}
    train(recipe_for(prose, training=changes), tmp_path / "encoder")
    taken = [place for stretch in seen for place in stretch]
    n_blocks = max(taken) + 1
    assert len(seen) == 3
    for number in range(2):
        one_pass = taken[number * n_blocks : (number + 1) * n_blocks]
        assert sorted(one_pass) == list(range(n_blocks))
    assert taken[:n_blocks] != taken[n_blocks:]


@pytest.mark.slow
def test_perplexity_falls_below_that_of_frequencies(prose: Path, tmp_path: Path) -> None:
    training = {"steps": 120, "reports": 3, "batch_texts": 24, "learning_rate": 3e-3}
    scores = train(recipe_for(prose, training=training), tmp_path / "run").scores
    curve = [line["perplexity"] for line in scores["history"]]
    assert curve == sorted(curve, reverse=True)
    assert curve[-1] < 0.8 * scores["unigram"] < 0.5 * curve[0]


def test_a_resumed_run_reads_the_texts_it_began_with(
    prose: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, stopped, damaged = (tmp_path / name for name in ("mine.csv", "stopped", "damaged"))
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
    with pytest.raises(Stopped, match=r"step 3 of 6.*--resume"):
        train(recipe, stopped)
    monkeypatch.undo()
    mine.write_text("text,label\nsomething,0\nelse,1\n")
    with pytest.raises(UserError, match="--resume"):
        train(recipe, stopped)
    with pytest.raises(UserError, match="another recipe"):
        train(recipe.model_copy(update={"seed": 1}), stopped, resume=True)
    copytree(stopped, damaged)
    (damaged / "texts" / "pieces.bin").write_bytes(b"")
    mine.write_text("text,label\n" + "".join(rows[:-50]))
    with pytest.raises(UserError, match="texts are no longer those"):
        train(recipe, damaged, resume=True)
    run = train(recipe, stopped, resume=True)
    assert any("repetition" in note for note in run.notes)
    for name in ("model.safetensors", "scores.json"):
        assert (stopped / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@torch.no_grad()
def test_transformers_reads_the_folder_and_a_pretraining_goes_on_from_it(
    prose: Path, encoder_folder: Path, tmp_path: Path
) -> None:
    text = "my mother brews cold coffee on day 7."
    tokenizer = AutoTokenizer.from_pretrained(encoder_folder)
    inputs = tokenizer(text, return_tensors="pt")
    loaded = pretrained.load(str(encoder_folder))
    pieces = loaded.tokenizer.encode([text])
    assert inputs["input_ids"][0].tolist() == pieces[0].ids
    assert tokenizer.mask_token == "[MASK]"
    hidden = AutoModel.from_pretrained(encoder_folder).eval()(**inputs).last_hidden_state[0]
    assert (encode(loaded.encoder, pack(pieces)).hidden - hidden).abs().max() < 1e-5

    model = LanguageModel(loaded.encoder, next_sentence=False)
    tensors = pretrained.read_tensors(encoder_folder / "model.safetensors")
    assert load_heads(model, tensors, "test") == []
    ids = torch.tensor(pieces[0].ids)
    columns = torch.stack([ids, ids, torch.zeros_like(ids), torch.ones_like(ids)])
    masked = MaskedTexts(columns, (len(ids),), torch.zeros(1)).pack([0], torch.device("cpu"))
    theirs, info = AutoModelForMaskedLM.from_pretrained(encoder_folder, output_loading_info=True)
    assert not info["missing_keys"]
    assert (model.eval()(masked)[0] - theirs.eval()(**inputs).logits[0]).abs().max() < 1e-5

    with torch.enable_grad():
        changes = {"scratch": None, "encoder": str(encoder_folder)}
        scores = train(recipe_for(prose, model=changes), tmp_path / "more").scores
    before = history(encoder_folder)[-1]["perplexity"]
    assert scores["history"][0]["perplexity"] == pytest.approx(before, rel=1e-4)
    assert scores["perplexity"] < before
    assert scores["notes"] == []


@pytest.mark.slow
def test_what_a_weighting_learns_is_kept(prose: Path, tmp_path: Path) -> None:
    choices = {"weighting": "entmax", "weighting_options": {"alpha": "learned"}}
    folder = str(tmp_path / "sparse")
    run = train(recipe_for(prose, model=choices), folder)
    assert any("model.weighting = 'entmax'" in note for note in run.notes)
    assert pretrained.load(folder).encoder.spec.weighting == "softmax"
    state = pretrained.load(folder, **choices).encoder.state_dict()
    tensors = pretrained.read_tensors(tmp_path / "sparse" / "model.safetensors")
    learned = {name: tensor for name, tensor in tensors.items() if ".weighting." in name}
    assert learned
    assert all(torch.equal(state[n.removeprefix("encoder.")], t) for n, t in learned.items())


def still_recipe(prose: Path, **changes: Any) -> PretrainRecipe:
    """Of pairs; without dropout, which differs between parts and between processes by design."""
    data = {"join_lines": True, "held_out": 0.2}
    model, objective = {"scratch": SCRATCH | {"dropout": 0.0}}, {"next_sentence": True}
    return recipe_for(prose, data=data, model=model, objective=objective, **changes)


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
        assert 0.3 < one["next_sentence"] < 0.7


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
        ({"objective": {"next_sentence": True}}, r"data\.join_lines = true"),
        ({"model": {"encoder": "minilm"}}, r"leave one of them out"),
        ({"objective": {"masked": 0.9, "random": 0.2}}, r"more than 1 together"),
        ({"training": {"learning_rat": 1}}, r"'learning_rate'"),
        ({"data": {"source": None}}, r"data\.source"),
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
    out = tmp_path / "out"
    command = ["pretrain", str(root / "recipes" / "pretrain.toml"), "--out", str(out)]
    for change in ("width=16", "n_layers=1", "n_vocabulary=100"):
        command += ["--set", f"model.scratch.{change}"]
    command += ["--set", f"data.source={prose}", "--set", "training.steps=2"]
    command += ["--set", "training.reports=1", "--set", "model.max_pieces=32"]
    assert main([*command, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["encoder"], shown["history"][-1]["step"]) == (str(out), 2)
    assert (out / "perplexity.svg").read_bytes().startswith(b"<?xml")
    assert main([*command, "--resume"]) == 0
    assert "by frequency alone" in capsys.readouterr().out
    recipe = tmp_path / "mine.toml"
    for content in (
        '[data]\nsource = "sampler"\n[model]\nencoder = "nowhere"\n',
        '[data]\nsource = "nowhere.txt"\n[model.scratch]\nn_layers = 1\n',
    ):
        recipe.write_text(content)
        assert main(["pretrain", str(recipe), "--out", str(tmp_path / "other")]) == 2
    assert not (tmp_path / "other").exists()


def read(**settings: Any) -> list[tuple[str, int]]:
    texts = Texts(TextSettings(**settings))
    found = [(line.text, line.document) for line in texts]
    assert [(line.text, line.document) for line in texts] == found, "it can be read again"
    return found


def test_blank_lines_and_rows_end_documents(tmp_path: Path) -> None:
    one, two, table = (tmp_path / name for name in ("one.txt", "two.txt.gz", "rows.jsonl"))
    one.write_text("a\nb\n\n\nc\n")
    two.write_bytes(gzip.compress(b"d\n"))
    texts, (a, b, c, d) = zip(*read(source=[str(one), str(two)]), strict=True)
    assert texts == ("a", "b", "c", "d")
    assert a == b < c < d
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
    assert any("1 text of 3" in note for note in texts.notes)
    found = {text for text, _ in read(source="sampler", where={"variety": "en-AU"})}
    corpus = load("sampler").without_leaks()[0].where(variety="en-AU", split="train")
    assert found == {example.text for example in corpus}


@pytest.mark.parametrize(
    ("source", "more", "words"),
    [
        ("nowhere.txt", {}, "does not exist"),
        ("FILE?column=a", {}, "'text'|option of the file"),
        ("FILE", {"where": {"variety": "en-AU"}}, r"data\.where out"),
        ("sampeler", {}, "'sampler'"),
        ([], {}, r"data\.source"),
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
    assert render_figure(picture, "svg").startswith(b"<?xml")
    (ax,) = picture.axes
    low, high = ax.get_ylim()
    assert sum(low <= tick <= high for tick in ax.get_yticks()) >= 2
