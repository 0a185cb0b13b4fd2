"""What a pruning is planned by, what is chosen, and how a refusal is told."""

from __future__ import annotations

from collections import namedtuple
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.model.checkpoint import load_model
from litotes.pruning import PruneResult, PruneSettings, plan_pruning
from litotes.pruning import plan as plans
from litotes.pruning.choice import TextCounts, best_within
from litotes.pruning.frontier import NO_LOSS, Kind, Loss, Point

Usage = namedtuple("Usage", "total used free")


def test_a_plan_says_how_few_texts_there_are_to_choose_by(
    trained_folder: Path, tmp_path: Path
) -> None:
    plan = plan_pruning(trained_folder, "sampler", tmp_path / "new", settings=PruneSettings())
    n = len(plan.judged)
    assert any(f"There are {n} texts to choose by" in note for note in plan.notes)
    assert not (tmp_path / "new").exists()


def test_texts_to_choose_by_have_labels(
    trained_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = plans.prepare

    def without_labels(recipe: object) -> object:
        data = prepare(recipe)  # type: ignore[arg-type]
        assert data.held_out is not None
        bare = tuple(replace(example, labels={}) for example in data.held_out)
        return replace(data, held_out=replace(data.held_out, examples=bare))

    monkeypatch.setattr(plans, "prepare", without_labels)
    with pytest.raises(UserError, match=r"held out to choose by has a label for s.*held_out=0\.2"):
        plan_pruning(trained_folder, "sampler", tmp_path / "new", settings=PruneSettings())


def test_a_disk_without_room_is_noticed(
    trained_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans.shutil, "disk_usage", lambda place: Usage(10, 9, 1))
    with pytest.raises(UserError, match=r"Pruning needs about .* GB in .*Make room"):
        plan_pruning(trained_folder, "sampler", tmp_path / "new", settings=PruneSettings())
    assert not (tmp_path / "new").exists()
    # the dense model, its state for a resumed run, and one for each factor, and the controls
    weights = load_model(trained_folder).classifier.state_dict().values()
    n_bytes = sum(tensor.nbytes for tensor in weights)
    for n_models, is_enough in ((4, False), (40, True)):
        free = n_models * n_bytes
        monkeypatch.setattr(plans.shutil, "disk_usage", lambda place, n=free: Usage(n, 0, n))
        with nullcontext() if is_enough else pytest.raises(UserError, match="Make room"):
            plan_pruning(trained_folder, "sampler", tmp_path / "new", settings=PruneSettings())


def test_texts_to_avoid_are_asked_for_where_the_recipe_has_them_elsewhere(
    trained_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, settings = tmp_path / "new", PruneSettings()
    recipe_of = plans.recipe_of

    def with_avoided(facts: dict[str, object], where: str) -> object:
        return recipe_of(facts, where).changed(data__avoid=["vader:nowhere"])

    monkeypatch.setattr(plans, "recipe_of", with_avoided)
    message = r"vader:nowhere are to be left out, and cannot be read: .*nowhere.* --exclude none"
    with pytest.raises(UserError, match=message):
        plan_pruning(trained_folder, "sampler", out, settings=settings)
    assert not plan_pruning(
        trained_folder, "sampler", out, settings=settings, exclude=()
    ).recipe.data.avoid
    elsewhere = plan_pruning(
        trained_folder, "sampler", out, settings=settings, exclude=["contrast"]
    )
    assert elsewhere.recipe.data.avoid == ["contrast"]


def test_a_built_in_model_is_planned_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[tuple[str, tuple[str, ...] | None]] = []

    def note(
        run: str, source: str, out: Path, *, settings: object, exclude: tuple[str, ...]
    ) -> None:
        planned.append((run, exclude))
        raise UserError("enough")

    monkeypatch.setattr("litotes.cli.prune.plan_pruning", note)
    words = ["prune", "--model", "builtin", "--data", "sampler", "--out", str(tmp_path / "new")]
    assert main(words) == 2
    assert main([*words, "--exclude", "none"]) == 2
    assert main([*words, "--exclude", "contrast,vader:there"]) == 2
    assert planned == [("builtin", None), ("builtin", ()), ("builtin", ("contrast", "vader:there"))]


def made(ratio: float, loss: float, *, chance: float = 0.5, kind: Kind = "pruned") -> Point:
    """A setting that texts showed to lose nothing, and that is expected to lose `loss`."""
    expected = Loss(loss, (loss - 1.0, loss + 1.0), chance)
    return Point(ratio, (0.5,), 8, ratio, ratio, NO_LOSS, None, 0.01, kind=kind, expected=expected)


FRONTIER = (
    made(1.0, 0.0, chance=1.0, kind="dense"),
    made(1.0, -0.4, chance=0.95, kind="control"),
    made(1.5, 0.1, chance=0.85),
    made(2.0, 0.4, chance=0.55),
    made(2.5, 0.7, chance=0.4),
)


@pytest.mark.parametrize(
    ("budget", "sure", "target"),
    [(0.5, None, 2.0), (1.0, None, 2.5), (0.5, 0.8, 1.5), (0.5, 0.5, 2.0)],
)
def test_the_fastest_within_the_budget(budget: float, sure: float | None, target: float) -> None:
    best = best_within(FRONTIER, budget, sure)
    assert best is not None
    assert best.target == target
    # what is allowed exactly is allowed
    (chosen,) = (point for point in FRONTIER if point.kind == "pruned" and point.target == target)
    assert best_within([chosen], chosen.expected.points, None) is chosen
    assert best_within([chosen], 0.0, chosen.expected.chance_within) is chosen


@pytest.mark.parametrize(("budget", "sure"), [(0.05, None), (0.5, 0.9)])
def test_dense_and_its_control_are_no_pruning(budget: float, sure: float | None) -> None:
    assert best_within(FRONTIER, budget, sure) is None


def refusal(*, loss: float, sure: float | None = None, n: int = 300, n_folds: int = 0) -> str:
    texts = TextCounts(kept_apart=n, n_folds=n_folds)
    settings = PruneSettings(loss=loss, sure=sure)
    return PruneResult(settings, FRONTIER, None, (), texts=texts).refusal()


def test_a_refusal_says_how_many_texts_are_missing() -> None:
    told = refusal(loss=0.5, sure=0.95)
    assert "1.5 times fewer" in told
    assert "certainty of 0.95" in told
    assert "0.85" in told
    # an interval of ± 1 around 0.1 has to shrink to where 0.5 lies outside of it
    assert "about 1,050 more labelled texts" in told
    assert "--cross-fit 4" in told
    assert "--cross-fit" not in refusal(loss=0.5, sure=0.95, n_folds=4)


def test_a_refusal_says_where_texts_do_not_help() -> None:
    assert "more would not change it" in refusal(loss=-3.0)
    assert "times the 300 labelled texts" in refusal(loss=0.0)
    assert "no number of texts" in refusal(loss=0.099)
    assert "--confidence" not in refusal(loss=0.0)


def test_texts_in_words() -> None:
    counts = TextCounts(kept_apart=200, in_folds=1800, n_folds=4, unlabelled=5000, test=600)
    words = counts.in_words()
    for shown in ("200", "1800", "4 folds", "5000", "600 texts of the test split"):
        assert shown in words
    assert "--held-out" in replace(counts, test=0).in_words()
