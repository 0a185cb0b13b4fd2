"""A whole distillation: from folds to a model folder, stopped and continued, by command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from litotes.cli.main import main
from litotes.core.errors import Stopped, UserError
from litotes.data.corpus import example_key
from litotes.model.checkpoint import load_model
from litotes.model.folder import read_trained_texts, text_hash
from litotes.prediction.predictor import Predictor
from litotes.pruning import PruneSettings, prune
from litotes.training.distillation import DistillRecipe, distill, plan_distillation
from litotes.training.distillation.distill import DistillResult, texts_to_show
from litotes.training.run import train

pytestmark = pytest.mark.slow


def test_a_student_is_a_model_folder_with_a_frontier(
    recipe: DistillRecipe, tea: str, tmp_path: Path
) -> None:
    out = tmp_path / "student"
    whole = recipe.changed(baseline=True, compare_layers=[1], teachers_a_fold=2)
    result = distill(whole, out)
    names = [point.name for point in result.points]
    assert names == ["teacher", "student", "student of 1 layer", "baseline"]
    teacher, student, shallow, baseline = result.points
    assert teacher.n_models == 4
    assert (student.n_layers, shallow.n_layers) == (2, 1)
    assert shallow.n_parameters < student.n_parameters == baseline.n_parameters
    for point in result.points:
        assert point.score is not None
        low, high = point.score.interval
        assert low <= point.score.macro_f1 <= high
        assert point.texts_per_second > 0
        assert point.tasks["sentiment"].macro_f1 == pytest.approx(point.score.macro_f1)
    frontier = json.loads((out / "frontier.json").read_text())
    assert [point["name"] for point in frontier["points"]] == names
    assert "<svg" in (out / "frontier.svg").read_text()
    assert Predictor.load(out).predict(["great tea"])[0].answers["sentiment"].label in (
        "negative",
        "positive",
    )
    plan = plan_distillation(whole, out)
    seen = read_trained_texts(out)
    assert seen is not None
    assert {text_hash(one) for one in (*plan.data.train, *plan.others)} <= seen
    assert plan.others
    quick = PruneSettings(loss=100.0, targets=(1.5,), epochs=1, settle_epochs=1, n_searched=4)
    assert prune(out, tea, tmp_path / "pruned", settings=quick).model is not None
    assert main(["export", "--model", str(out), "--out", str(tmp_path / "onnx")]) == 0
    assert "cross-fitted in 2 folds" in (out / "README.md").read_text()


def test_a_student_without_teachers_is_the_run_of_its_recipe(
    recipe: DistillRecipe, tmp_path: Path
) -> None:
    """The baseline of a frontier must be what `litotes train` makes."""
    result = distill(recipe.changed(baseline=True), tmp_path / "student")
    plain = train(recipe.student, tmp_path / "plain")
    score = plain.scores[0].scores.headline()["macro_f1"]
    assert result.points[-1].tasks["sentiment"].macro_f1 == pytest.approx(score)


@pytest.fixture(scope="module")
def whole(recipe: DistillRecipe, tmp_path_factory: pytest.TempPathFactory) -> DistillResult:
    """A distillation that nothing stopped, in this process alone."""
    return distill(recipe, tmp_path_factory.mktemp("whole") / "student", n_workers=1)


def test_a_stopped_distillation_goes_on_and_trains_nothing_twice(
    recipe: DistillRecipe, whole: DistillResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def stop(what: str, done: int, total: int, note: str) -> None:
        seen.append(what)
        if what.startswith("student: training"):
            raise Stopped("as if by Ctrl-C")

    with pytest.raises(Stopped):
        distill(recipe, tmp_path / "again", watch=stop)
    assert any(what.startswith("teacher 2 of 2: training") for what in seen)
    seen.clear()
    again = distill(
        recipe, tmp_path / "again", watch=lambda what, done, total, note: seen.append(what)
    )
    assert not any(what.startswith("teacher") and "training" in what for what in seen)
    assert again.scores == whole.scores
    monkeypatch.setattr("litotes.training.loop.Loop.run", lambda _: pytest.fail("trained again"))
    finished = distill(recipe, tmp_path / "again")
    assert finished.scores == whole.scores
    with pytest.raises(UserError, match="another recipe"):
        distill(recipe.changed(share=0.7), tmp_path / "again")


@pytest.mark.parametrize("match", ["hidden", "values", "relations"])
def test_a_student_that_matches_begins_elsewhere(
    match: str, recipe: DistillRecipe, tmp_path: Path
) -> None:
    matched = recipe.changed(match=match, match_epochs=1, start="teacher", layers=1)
    out = tmp_path / "student"
    distill(matched, out)
    assert load_model(out).classifier.encoder.spec.n_layers == 1
    assert not list(out.glob("distillation/teachers/*/model"))
    seen: list[str] = []
    distill(matched, out, watch=lambda what, done, total, note: seen.append(what))
    assert not any("training" in what or "matching" in what for what in seen)


def test_states_are_shown_by_teachers_that_have_not_seen_the_text(
    recipe: DistillRecipe, tmp_path: Path
) -> None:
    kept = recipe.changed(match="values", match_epochs=1, keep_teachers=True)
    distill(kept, tmp_path / "student")
    plan = plan_distillation(kept, tmp_path / "student")
    shown = texts_to_show(plan)
    assert len(shown) == 2
    n_shown = 0
    for folder, texts in shown:
        stated = read_trained_texts(folder)
        assert stated
        assert not stated & {text_hash(one) for one in texts}
        n_shown += len(texts)
    assert n_shown == len({example_key(one) for one in (*plan.data.train, *plan.others)})


@pytest.mark.usefixtures("forked_workers")
def test_teachers_in_processes_give_the_same_student(
    recipe: DistillRecipe, whole: DistillResult, tmp_path: Path
) -> None:
    two = distill(recipe, tmp_path / "two", n_workers=2)
    assert two.scores == whole.scores


def test_students_share_the_answers_of_teachers(recipe: DistillRecipe, tmp_path: Path) -> None:
    shared = recipe.changed(teachers_folder=str(tmp_path / "teachers"))
    distill(shared, tmp_path / "one")
    seen: list[str] = []
    other = shared.changed(share=0.9)
    distill(other, tmp_path / "two", watch=lambda what, done, total, note: seen.append(what))
    assert not any(what.startswith("teacher") for what in seen)


def test_the_command_distils_and_refuses(
    recipe: DistillRecipe, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = recipe.student.model_dump(mode="json")
    content["distill"] = {"folds": 2, "baseline": False}
    file = tmp_path / "recipe.json"
    file.write_text(json.dumps(content))
    out = tmp_path / "student"
    command = ["distill", str(file), "--out", str(out), "--layers", "1", "--width", "16"]
    assert main([*command, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [point["name"] for point in printed["points"]] == ["teacher", "student"]
    assert (printed["points"][1]["n_layers"], printed["points"][1]["width"]) == (1, 16)
    assert main(command) == 0
    assert "texts a second" in capsys.readouterr().out
    for wrong, why in (
        (["--layers", "3"], "cannot be made of 2"),
        (["--width", "12"], "8, 16, 24"),
        (["--set", "distill.shares=1"], "share"),
        (["--set", "distill.teacher.training.epoch=1"], "epochs"),
        (["--set", "model.separate=true"], "one student"),
        (["--teacher", str(tmp_path)], str(tmp_path)),
        (["--set", "distill.teacher.model.encoder=nobody"], "nobody"),
    ):
        assert main(["distill", str(file), "--out", str(tmp_path / "no"), *wrong]) == 2
        assert why in capsys.readouterr().err
    assert not (tmp_path / "no").exists()
