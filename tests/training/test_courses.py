"""What holds for a run of every kind: stopped, killed, finished, found, refused."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from made_pairs import make_recipe as make_translation
from made_pairs import make_texts

from litotes.core.errors import Stopped, UserError
from litotes.training.course import Run
from litotes.training.recipe import PretrainRecipe, Recipe, WordRecipe
from litotes.training.run import train
from litotes.training.trainer import Trainer


@dataclass(frozen=True)
class Case:
    """A recipe of six steps or more that saves at every step, and a run of it that nothing
    stopped.
    """

    recipe: Any
    corpus: Any
    whole: Run

    def run(self, out: Path, **changes: Any) -> Run:
        recipe = self.recipe.changed(**changes) if changes else self.recipe
        return train(recipe, out, corpus=self.corpus, device="cpu")

    def resume(self, out: Path, **changes: Any) -> Run:
        recipe = self.recipe.changed(**changes) if changes else self.recipe
        return train(recipe, out, corpus=self.corpus, device="cpu", resume=True)


def word_recipe(kind: str, word_file: Path, tiny_folder: Path, prose: Path) -> Any:
    data = {"source": f"words:{word_file}?task=feeling&words=blanks"}
    content = {"kind": kind, "data": data, "model": {"encoder": str(tiny_folder)}}
    training = {"epochs": 2, "batch_texts": 8, "learning_rate": 3e-3}
    return WordRecipe.of({**content, "training": training}, "test")


def prose_recipe(kind: str, word_file: Path, tiny_folder: Path, prose: Path) -> Any:
    is_pairs = kind == "next sentences"
    sizes = {"n_layers": 1, "width": 32, "n_attention_heads": 2, "n_positions": 48}
    content = {
        "data": {"source": str(prose), "held_out": 0.2, "join_lines": is_pairs},
        "model": {"scratch": {**sizes, "n_vocabulary": 150}},
        "objective": {"next_sentence": is_pairs},
        "training": {"steps": 6, "reports": 3, "batch_texts": 16, "learning_rate": 1e-3},
    }
    return PretrainRecipe.of(content, "test")


def translation_recipe(kind: str, *_: Path) -> Any:
    return make_translation(training={"epochs": 2, "batch_pieces": 512, "averaged": 2})


KINDS: dict[str, Callable[..., Any]] = {
    "tagging": word_recipe,
    "span": word_recipe,
    "pretraining": prose_recipe,
    "next sentences": prose_recipe,
    "translation": translation_recipe,
}


@pytest.fixture(scope="module", params=[*KINDS, "classification"])
def case(
    request: pytest.FixtureRequest,
    word_file: Path,
    prose: Path,
    tiny_folder: Path,
    tiny_recipe: Recipe,
    tmp_path_factory: pytest.TempPathFactory,
) -> Case:
    kind, corpus = request.param, None
    recipe: Any = tiny_recipe
    if kind in KINDS:
        recipe = KINDS[kind](kind, word_file, tiny_folder, prose)
    if kind == "translation":
        corpus = make_texts(200, n_others=6)
    recipe = recipe.changed(training__checkpoint_seconds=0)
    folder = tmp_path_factory.mktemp("whole") / "run"
    return Case(recipe, corpus, train(recipe, folder, corpus=corpus, device="cpu"))


def same(one: Path, other: Path) -> bool:
    """The same weights and history, to the last bit, and nothing else of a run under way."""
    names = ("model.safetensors", "history.jsonl")
    is_same = all((one / name).read_bytes() == (other / name).read_bytes() for name in names)
    return is_same and {path.name for path in one.iterdir()} == {
        path.name for path in other.iterdir()
    }


class Killed(Exception):
    """Stands for the moment a process is killed: nothing after it is executed."""


@pytest.mark.slow
@pytest.mark.parametrize("fatal_step", [4])  # within an epoch, or between two measurements
def test_a_killed_run_ends_as_one_never_killed(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fatal_step: int
) -> None:
    original = Trainer._step

    def dying(self: Trainer, batch: Any) -> None:
        if self.state.step == fatal_step:
            raise Killed
        original(self, batch)

    monkeypatch.setattr(Trainer, "_step", dying)
    with pytest.raises(Killed):
        case.run(tmp_path / "killed")
    monkeypatch.undo()
    case.resume(tmp_path / "killed")
    assert same(tmp_path / "killed", case.whole.folder)


def test_a_stopped_run_goes_on_or_is_left_alone(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Trainer._step

    def interrupted(self: Trainer, batch: Any) -> None:
        original(self, batch)
        if self.state.step == 3:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Trainer, "_step", interrupted)
    with pytest.raises(Stopped, match=r"step 3 of .*--resume"):
        case.run(tmp_path / "stopped")
    monkeypatch.undo()
    with pytest.raises(UserError, match=r"was stopped. Go on with --resume"):
        case.run(tmp_path / "stopped")
    with pytest.raises(UserError, match="another recipe"):
        case.resume(tmp_path / "stopped", seed=1)
    case.resume(tmp_path / "stopped")
    assert same(tmp_path / "stopped", case.whole.folder)


def test_a_finished_run_is_taken_as_it_is(case: Case) -> None:
    before = (case.whole.folder / "model.safetensors").read_bytes()
    with pytest.raises(UserError, match="already holds a trained model"):
        case.run(case.whole.folder)
    with pytest.raises(UserError, match="another recipe"):
        case.resume(case.whole.folder, seed=1)
    again = case.resume(case.whole.folder)
    assert json.dumps(again.scores, default=repr) == json.dumps(case.whole.scores, default=repr)
    assert again.notes == case.whole.notes
    assert (case.whole.folder / "model.safetensors").read_bytes() == before


def test_a_folder_of_others_is_left_alone(case: Case, tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("mine")
    with pytest.raises(UserError, match=r"letters\.txt"):
        case.run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letters.txt"]
