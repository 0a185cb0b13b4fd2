"""From a dense run to a pruned model folder, with folds and more texts, and by command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest
import torch

from litotes.cli.main import main
from litotes.core.errors import Stopped, UserError
from litotes.data.sources import load
from litotes.encoder.packing import pack
from litotes.model.checkpoint import load_model
from litotes.prediction.predictor import Predictor
from litotes.pruning import PruneResult, PruneSettings, plan_pruning, prune
from litotes.training.course import Run
from litotes.training.recipe import Recipe
from litotes.training.run import train

pytestmark = pytest.mark.slow

QUICK = PruneSettings(
    loss=100.0, targets=(1.5, 2.5), epochs=1, settle_epochs=1, n_searched=4, control=False
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Texts of about the same few words in three varieties, some of them to test on."""
    rows = ["text,mood,variety,split"]
    for number in range(120):
        mood, variety = (
            ("positive", "negative")[number % 2],
            ("en-AU", "en-IN", "en-UK")[number % 3],
        )
        word = "great and i love it" if mood == "positive" else "bad and i hate it"
        rows.append(
            f"the tea {number} is {word},{mood},{variety},{'test' if number % 5 == 0 else 'train'}"
        )
    file = tmp_path_factory.mktemp("corpus") / "tea.csv"
    file.write_text("\n".join(rows) + "\n")
    return f"table:{file}?label.sentiment=mood&variety=variety&split=split"


@pytest.fixture(scope="module")
def recipe(corpus: str, tiny_recipe: Recipe) -> Recipe:
    return tiny_recipe.changed(
        data__source=corpus, data__where={}, model__max_pieces=16, training__epochs=1
    )


@pytest.fixture(scope="module")
def trained(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(recipe, tmp_path_factory.mktemp("trained") / "run")


@pytest.fixture
def dense(trained: Run, tmp_path: Path) -> Run:
    """A copy, to write beside it."""
    return replace(trained, folder=copytree(trained.folder, tmp_path / "dense"))


def test_a_pruned_model_is_chosen_saved_and_answers(
    dense: Run, corpus: str, tmp_path: Path
) -> None:
    pruned = prune(dense.folder, corpus, tmp_path / "pruned", settings=QUICK)
    assert pruned.chosen is not None
    assert [point.kind for point in pruned.points] == ["dense", "pruned", "pruned"]
    assert [point.target for point in pruned.points] == [1.0, 1.5, 2.5]
    assert all(point.flops_ratio >= 0.9 * point.target for point in pruned.points)
    frontier = json.loads((tmp_path / "pruned" / "frontier.json").read_text())
    assert [point["chosen"] for point in frontier["points"]].count(True) == 1
    model = load_model(tmp_path / "pruned")
    spec = model.classifier.encoder.spec
    assert spec.pruning == "learned"
    assert tuple(spec.pruning_options["shares"]) == pruned.chosen.shares
    assert sum(map(len, spec.heads_kept)) == pruned.chosen.n_heads < 8
    batch = pack(model.tokenizer.encode(["not a great queue, is it?"]))
    own, loaded = (one.classifier(batch)["sentiment"] for one in (pruned.model, model))
    assert torch.equal(own, loaded)
    assert Predictor.load(tmp_path / "pruned").predict(["great tea"])[0].answers[
        "sentiment"
    ].label in ("negative", "positive")
    assert not (tmp_path / "pruned" / "phases").exists()
    assert not (tmp_path / "pruned" / "config.json").exists()  # transformers would not prune
    assert model.facts["key"] != dense.model.facts["key"] == model.facts["dense"]
    assert "times fewer operations" in (tmp_path / "pruned" / "README.md").read_text("utf-8")


def test_a_stopped_prune_goes_on_to_the_same_model(dense: Run, corpus: str, tmp_path: Path) -> None:
    whole = prune(dense.folder, corpus, tmp_path / "whole", settings=QUICK)
    stopped = 0

    def stop_sometimes(what: str, done: int, total: int, note: str) -> None:
        nonlocal stopped
        if "settle-2.5" in what and not stopped:
            stopped = 1
            raise Stopped("as if by Ctrl-C")

    with pytest.raises(Stopped):
        prune(dense.folder, corpus, tmp_path / "again", settings=QUICK, watch=stop_sometimes)
    again = prune(dense.folder, corpus, tmp_path / "again", settings=QUICK)
    assert [(point.loss, point.divergence) for point in again.points] == [
        (point.loss, point.divergence) for point in whole.points
    ]


def test_texts_the_dense_model_has_learned_are_no_judge(
    recipe: Recipe, corpus: str, tmp_path: Path
) -> None:
    run = train(recipe.changed(training__held_out=0.0), tmp_path / "dense")
    settings = replace(QUICK, targets=(1.5, 90.0, 99.0))
    pruned = prune(run.folder, corpus, tmp_path / "pruned", settings=settings)
    assert any("held_out = 0" in note for note in pruned.notes)
    assert any("cannot be reached" in note for note in pruned.notes)
    # dense, and two: two targets out of reach end in the same shares
    assert len(pruned.points) == 3


def test_mistakes_are_told_before_work_starts(dense: Run, corpus: str, tmp_path: Path) -> None:
    prune(dense.folder, corpus, tmp_path / "pruned", settings=replace(QUICK, targets=(1.5,)))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    moods = ("negative", "neutral", "positive")
    rows = "".join(f"tea {n},{moods[n % 3]}\n" for n in range(60))
    (tmp_path / "three.csv").write_text("text,mood\n" + rows)
    three = f"table:{tmp_path / 'three.csv'}?label.sentiment=mood"
    for model, source, out, why in (
        (dense.folder, corpus, "pruned", "already holds a model"),
        (tmp_path / "pruned", corpus, "twice", "pruned already"),
        (dense.folder, corpus, "full", r"thesis\.txt"),
        (dense.folder, three, "new", "same labels"),
        (tmp_path / "nowhere", corpus, "new", "not a model folder"),
    ):
        with pytest.raises(UserError, match=why):
            prune(model, source, tmp_path / out, settings=QUICK)


def test_the_command(
    dense: Run, corpus: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = "--factors 1.5 --epochs 1 --target-epochs 1 --heads 1 --no-control --device cpu"
    command = ["prune", "--model", str(dense.folder), "--data", corpus, *quick.split()]
    assert main([*command, "--loss", "-100", "--out", str(tmp_path / "out")]) == 2
    assert "Allow more with --loss" in capsys.readouterr().err
    assert (tmp_path / "out" / "frontier.svg").read_text("utf-8").startswith("<?xml")
    assert main([*command, "--loss", "100"]) == 0
    printed = capsys.readouterr()
    assert "chosen" in printed.out
    assert printed.err.count("texts to choose by") == 1  # before the work, and not again after it
    pruned = f"{dense.folder}-pruned"
    last = printed.out.strip().splitlines()[-1]
    assert last == f"The model is in {pruned}. Export it: litotes export --model {pruned} --int8"
    assert (Path(f"{dense.folder}-pruned") / "litotes.json").is_file()


@pytest.mark.parametrize(
    "wrong",
    ["--factors 0.5", "--confidence 1.5", "--heads 0", "--cross-fit 1", "--importance loud"],
)
def test_wrong_numbers_are_reported(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["prune", "--model", "x", "--data", "sampler", *wrong.split()])
    assert wrong.split()[0] in capsys.readouterr().err


def test_options_become_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given: list[PruneSettings] = []

    def stop_here(*_: object, settings: PruneSettings, exclude: object) -> None:
        given.append(settings)
        raise UserError("far enough.")

    monkeypatch.setattr("litotes.cli.prune.plan_pruning", stop_here)
    command = ["prune", "--model", "m", "--data", "sampler", "--out", str(tmp_path / "out")]
    words = "--confidence 0.8 --cross-fit 4 --unlabelled u --held-out h --teacher-share 0.5"
    words += " --no-restore --no-fuse --importance received --no-control --seed 3"
    assert main(command) == main([*command, *words.split()]) == 2
    plain, full = given
    assert plain == PruneSettings()
    assert full == PruneSettings(
        sure=0.8,
        teacher=0.5,
        seed=3,
        folds=4,
        unlabelled="u",
        held_out="h",
        control=False,
        options={"importance": "received", "fuse": False, "restore": False},
    )


MOODS = {"positive": "great and i love it", "negative": "bad and i hate it"}
TINY = PruneSettings(loss=100.0, targets=(1.5,), epochs=1, settle_epochs=1, n_searched=4)


def write_table(file: Path, subject: str, n: int, *, column: str = "mood") -> str:
    rows = [f"text,{column}"]
    for number in range(n):
        mood = ("positive", "negative")[number % 2]
        rows.append(f"the {subject} {number} is {MOODS[mood]},{mood}")
    file.write_text("\n".join(rows) + "\n")
    return f"table:{file}?label.sentiment={column}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tiny_recipe: Recipe) -> Path:
    """Tables of texts, and a dense model of the first."""
    folder = tmp_path_factory.mktemp("fitting")
    source = write_table(folder / "tea.csv", "tea", 100)
    for name in ("queue", "biscuit"):
        write_table(folder / f"{name}.csv", name, 24)
    recipe = tiny_recipe.changed(
        data__source=source, data__where={}, model__max_pieces=16, training__epochs=1
    )
    train(recipe, folder / "dense")
    return folder


def source_of(folder: Path, name: str) -> str:
    return f"table:{folder / name}.csv?label.sentiment=mood"


@pytest.fixture(scope="module")
def full(folder: Path) -> PruneResult:
    """A pruning with all that there is."""
    settings = replace(
        TINY,
        folds=2,
        unlabelled=source_of(folder, "queue"),
        held_out=source_of(folder, "biscuit"),
    )
    return prune(folder / "dense", source_of(folder, "tea"), folder / "pruned", settings=settings)


def test_it_says_which_texts_chose_and_which_reported(full: PruneResult, folder: Path) -> None:
    dense, control, pruned = full.points
    assert [dense.kind, control.kind, pruned.kind] == ["dense", "control", "pruned"]
    assert dense.flops_ratio == control.flops_ratio == 1.0 < pruned.flops_ratio
    assert dense.expected.points == 0
    assert full.chosen is pruned
    assert full.texts is not None
    n_train = sum(example.split == "train" for example in load(source_of(folder, "tea")))
    assert full.texts.n_folds == 2
    # every labelled training text chose once: out of fold, or kept apart
    assert full.texts.kept_apart < full.texts.in_folds < n_train
    assert full.texts.kept_apart + full.texts.in_folds + full.texts.test == n_train
    assert (full.texts.unlabelled, full.texts.held_out) == (24, 24)
    assert pruned.reported is not None
    card = (folder / "pruned" / "README.md").read_text("utf-8")
    assert "in 2 folds" in card
    assert "had no part in the choice" in card
    facts = json.loads((folder / "pruned" / "litotes.json").read_text())["facts"]["pruned"]
    assert facts["texts"]["chosen_by"]["unlabelled"] == 24
    assert not (folder / "pruned" / "phases").exists()


def test_folds_are_not_trained_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strict = replace(TINY, loss=-90.0, folds=2, control=False)
    source, out = source_of(folder, "tea"), folder / "again"
    refused = prune(folder / "dense", source, out, settings=strict)
    assert refused.model is None
    assert "--loss" in refused.refusal()
    left = {path.name.split("-")[0] for path in (out / "phases").iterdir()}
    assert left >= {"fold"}
    assert not (out / "phases" / "fold-0").exists()  # its weights went with its answers
    monkeypatch.setattr(
        "litotes.training.trainer.Trainer.run", lambda *_, **__: pytest.fail("trained again")
    )
    again = prune(folder / "dense", source, out, settings=replace(strict, loss=100.0, sure=0.9))
    assert again.chosen is not None
    assert again.chosen.expected.chance_within > 0.9


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"held_out": "tea"}, "new to the model"),
        ({"unlabelled": "tea"}, "Choose other texts"),
        ({"held_out": "three"}, "same labels"),
    ],
)
def test_texts_that_cannot_play_their_part(
    folder: Path, wrong: dict[str, str], told: str, tmp_path: Path
) -> None:
    rows = "".join(f"cup {number},{'abc'[number % 3]}\n" for number in range(9))
    (folder / "three.csv").write_text("text,mood\n" + rows)
    sources = {name: source_of(folder, table) for name, table in wrong.items()}
    if wrong == {"held_out": "tea"} or wrong == {"unlabelled": "tea"}:
        # its test texts are new; only those trained on are left here
        lines = (folder / "tea.csv").read_text().splitlines()
        plan = plan_pruning(folder / "dense", source_of(folder, "tea"), tmp_path, settings=TINY)
        seen = {example.text for example in plan.data.seen()}
        kept = [line for line in lines[1:] if line.rpartition(",")[0] in seen]
        (tmp_path / "seen.csv").write_text("\n".join([lines[0], *kept]) + "\n")
        sources = {name: source_of(tmp_path, "seen") for name in wrong}
    with pytest.raises(UserError, match=told):
        plan_pruning(
            folder / "dense",
            source_of(folder, "tea"),
            tmp_path / "out",
            settings=replace(TINY, **sources),
        )
