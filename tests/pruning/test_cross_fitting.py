"""Pruning with folds, texts without labels, held-out texts and a control, from beginning to end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from litotes.core.errors import UserError
from litotes.data.sources import load
from litotes.pruning import PruneResult, PruneSettings, plan_pruning, prune
from litotes.training.recipe import Recipe
from litotes.training.run import train

pytestmark = pytest.mark.slow

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


def test_dense_and_its_control_stand_in_the_frontier(full: PruneResult, folder: Path) -> None:
    dense, control, pruned = full.points
    assert [dense.kind, control.kind, pruned.kind] == ["dense", "control", "pruned"]
    assert dense.flops_ratio == control.flops_ratio == 1.0 < pruned.flops_ratio
    assert dense.best_guess.points == 0
    assert full.chosen is pruned
    written = json.loads((folder / "pruned" / "frontier.json").read_text())
    assert [point["kind"] for point in written["points"]] == ["dense", "control", "pruned"]


def test_it_says_which_texts_chose_and_which_reported(full: PruneResult, folder: Path) -> None:
    assert full.texts is not None
    n_train = sum(example.split == "train" for example in load(source_of(folder, "tea")))
    assert full.texts.n_folds == 2
    # every labelled training text chose once: out of fold, or kept apart
    assert full.texts.kept_apart < full.texts.in_folds < n_train
    assert full.texts.kept_apart + full.texts.in_folds + full.texts.test == n_train
    assert (full.texts.unlabelled, full.texts.held_out) == (24, 24)
    chosen = full.chosen
    assert chosen is not None
    assert chosen.reported is not None
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
    assert again.chosen.best_guess.chance_within > 0.9


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
