"""Distillation: who teaches which text, what teachers' answers become, and whole runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import torch

from litotes.cli.main import main
from litotes.core.errors import Stopped, UserError
from litotes.core.progress import ignore_progress
from litotes.core.values import Example
from litotes.data.corpus import example_key, plain_words
from litotes.data.near_duplicates import near_duplicates
from litotes.data.sources import load
from litotes.model.checkpoint import load_model
from litotes.model.folder import read_trained_texts, text_hash
from litotes.prediction.predictor import Predictor
from litotes.pruning import PruneSettings, prune
from litotes.training.distillation import DistillRecipe, distill, plan_distillation
from litotes.training.distillation.distill import DistillResult, run_job, texts_to_show
from litotes.training.distillation.plan import DistillPlan
from litotes.training.distillation.teachers import (
    gather_lessons,
    read_answers,
    with_even_answers,
    with_known_prevalence,
    without_lean,
)
from litotes.training.run import train


def keys_of(examples: Any) -> set[str]:
    return {example_key(one) for one in examples}


def test_the_sample_recipe_is_right(root: Path) -> None:
    recipe = DistillRecipe.read(root / "recipes" / "distill.toml", changes=["distill.folds=4"])
    assert recipe.distill.folds == 4
    assert recipe.teacher(1).training.epochs != recipe.training.epochs
    assert recipe.teacher(1).seed == 1


def test_a_folder_with_something_else_is_left_alone(recipe: DistillRecipe, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(UserError, match=r"letter\.txt"):
        plan_distillation(recipe, tmp_path)


# Teachers


def test_a_teacher_that_leans_is_set_upright() -> None:
    """3 of 4 texts are calm. The weighted loss is least at even odds, and the truth is 3 to 1."""
    weights = torch.tensor([2 / 3, 2.0])
    logits = torch.zeros(1, 2, requires_grad=True)
    losses = torch.nn.functional.cross_entropy(
        logits.expand(4, 2), torch.tensor([0, 0, 0, 1]), weight=weights
    )
    (pull,) = torch.autograd.grad(losses, logits)
    assert pull.abs().max() < 1e-7  # even odds are where such a teacher ends
    torch.testing.assert_close(without_lean(logits.detach(), weights), torch.tensor([[0.75, 0.25]]))


@pytest.mark.parametrize(
    ("logits", "weights", "wanted"),
    [
        ([1.0, 1.0, 5.0], [1.0, 1.0, 0.0], [0.5, 0.5, 0.0]),  # never seen: impossible
        ([0.3, -1.0], [1.0, 1.0], [0.785835, 0.214165]),
        ([3.5], None, [3.5]),  # a number
    ],
)
def test_answers_without_the_lean_of_class_weights(
    logits: list[float], weights: list[float] | None, wanted: list[float]
) -> None:
    given = None if weights is None else torch.tensor(weights)
    found = without_lean(torch.tensor([logits]), given)
    torch.testing.assert_close(found, torch.tensor([wanted]))


@pytest.fixture(scope="module")
def plan(recipe: DistillRecipe, tmp_path_factory: pytest.TempPathFactory) -> DistillPlan:
    many = recipe.changed(distill__folds=3, distill__teachers_a_fold=2)
    return plan_distillation(many, tmp_path_factory.mktemp("out") / "student")


def test_no_teacher_is_asked_about_anything_like_its_training_texts(plan: DistillPlan) -> None:
    assert len(plan.teachers) == 6
    assert plan.data.held_out is not None
    assert plan.data.test is not None
    apart = keys_of((*plan.data.held_out, *plan.data.test))
    for job in plan.teachers.values():
        assert job.corpus is not None
        trained = [example for example in job.corpus if example.split == "train"]
        assert trained
        assert job.asked
        found = near_duplicates([plain_words(one) for one in (*trained, *job.asked)])
        assert not [pair for pair in found.pairs if pair[0] < len(trained) <= pair[1]]
        assert not keys_of(trained) & keys_of(job.asked)
        assert not apart & (keys_of(trained) | keys_of(job.asked))


def test_every_training_text_is_asked_about_in_one_fold_and_others_in_all(
    plan: DistillPlan,
) -> None:
    asked = [key for job in plan.teachers.values() for key in keys_of(job.asked)]
    # the seeds of one fold
    assert {asked.count(example_key(example)) for example in plan.data.train} == {2}
    assert plan.others
    assert not any(example.labels for example in plan.others)
    assert {asked.count(example_key(example)) for example in plan.others} == {6}


@pytest.fixture(scope="module")
def ready(recipe: DistillRecipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of one variety of the corpus."""
    alone = recipe.student.changed(data__where__variety="en-AU")
    return train(alone, tmp_path_factory.mktemp("ready") / "teacher").folder


@pytest.mark.slow
def test_a_ready_teacher_is_not_asked_about_what_it_has_learned(
    ready: Path, recipe: DistillRecipe, tmp_path: Path
) -> None:
    plan = plan_distillation(recipe.changed(distill__teachers=[str(ready)]), tmp_path / "student")
    (job,) = plan.teachers.values()
    run_job(job, ignore_progress)
    answered = {text_hash(job.asked[place]) for place in read_answers(job.answers).places.tolist()}
    stated = set((ready / "trained_on.txt").read_text().split())
    assert answered
    assert {text_hash(one) for one in job.asked} - stated == answered
    answers = gather_lessons(plan).answers["sentiment"]
    assert {text_hash(one) for one in plan.data.train} & answered
    learned = keys_of(one for one in plan.data.train if text_hash(one) in stated)
    assert learned
    assert not learned & answers.keys()
    sums = torch.tensor(list(answers.values())).sum(-1)
    torch.testing.assert_close(sums, torch.ones_like(sums))


@pytest.mark.slow
def test_a_ready_teacher_is_not_asked_about_what_it_has_learned_in_other_words(
    ready: Path, recipe: DistillRecipe, tmp_path: Path
) -> None:
    asks = recipe.changed(
        data__rewrites=["emoji"], data__rewrite_share=1.0, distill__teachers=[str(ready)]
    )
    plan = plan_distillation(asks, tmp_path / "student")
    (job,) = plan.teachers.values()
    stated = set((ready / "trained_on.txt").read_text().split())
    pairs = plan.data.rewritten
    learned = keys_of(after for before, after in pairs if text_hash(before) in stated)
    assert learned
    assert not learned & keys_of(job.asked)


@pytest.mark.slow
def test_even_a_wrong_plan_asks_no_teacher_about_its_texts(
    recipe: DistillRecipe, tmp_path: Path
) -> None:
    plan = plan_distillation(recipe, tmp_path / "student")
    job = next(iter(plan.teachers.values()))
    assert job.corpus is not None
    trained = tuple(one for one in job.corpus if one.split == "train")
    wrong = replace(job, asked=(*trained, Example("something new", {})))
    run_job(wrong, ignore_progress)
    assert read_answers(wrong.answers).places.tolist() == [len(trained)]
    assert not job.model_folder.exists()  # its answers are all that is kept


@pytest.mark.slow
def test_teachers_that_cannot_teach_are_refused(
    ready: Path, recipe: DistillRecipe, tmp_path: Path
) -> None:
    silent = copytree(ready, tmp_path / "silent")
    (silent / "trained_on.txt").unlink()
    same = {"data__where__variety": "en-AU", "distill__unlabelled": "none"}
    for teacher, changes, why in (
        (silent, {}, "does not say which texts"),
        (ready, same, "must not teach"),
        (ready, {"data__tasks": ["tone"]}, "none of tone"),
    ):
        asks = recipe.changed(distill__teachers=[str(teacher)], **changes)
        with pytest.raises(UserError, match=why):
            plan_distillation(asks, tmp_path / "out")


# What their answers become

RARE = {"en-UK": {"sentiment": {"negative": 0.1}}}


def told(recipe: DistillRecipe, tea: str, out: Path, prevalence: Any) -> DistillPlan:
    """Each variety counts as a source."""
    asks = recipe.changed(data__source=f"{tea}&source=variety", distill__prevalence=prevalence)
    return plan_distillation(asks, out / "student")


def test_odds_are_moved_and_what_nobody_answered_is_the_prevalence(
    recipe: DistillRecipe, tea: str, tmp_path: Path
) -> None:
    plan = told(recipe, tea, tmp_path, RARE)
    texts = [one for one in plan.others if one.source == "en-UK"]
    answered, silent = map(example_key, texts[:2])
    elsewhere = "a text of another source"
    row = next(one for one in plan.data.train if one.source == "en-UK")
    labelled = example_key(row)
    given = {"sentiment": dict.fromkeys((answered, elsewhere, labelled), (0.6, 0.4))}
    moved = with_known_prevalence(given, plan)["sentiment"]
    labels = [one.labels["sentiment"] for one in plan.data.train]
    learned = labels.count("negative") / len(labels)
    odds = 0.6 / 0.4 * (0.1 / 0.9) / (learned / (1 - learned))
    assert moved[answered] == pytest.approx((odds / (1 + odds), 1 / (1 + odds)))
    assert moved[silent] == pytest.approx((0.1, 0.9))
    assert moved[elsewhere] == moved[labelled] == (0.6, 0.4)
    assert given["sentiment"][answered] == (0.6, 0.4)
    # a text that comes twice is moved once, and a label for it in one row is a label
    more = replace(plan, others=(*plan.others, texts[0], replace(row, labels={})))
    assert with_known_prevalence(given, more)["sentiment"] == moved


def test_a_label_that_no_teacher_has_seen_stays_impossible(
    recipe: DistillRecipe, tea: str, tmp_path: Path
) -> None:
    plan = told(recipe, tea, tmp_path, RARE)
    wider = replace(plan.data.train.tasks["sentiment"], labels=("negative", "neutral", "positive"))
    train = replace(plan.data.train, tasks={"sentiment": wider})
    plan = replace(plan, data=replace(plan.data, train=train))
    key = next(example_key(one) for one in plan.others if one.source == "en-UK")
    moved = with_known_prevalence({"sentiment": {key: (0.6, 0.0, 0.4)}}, plan)["sentiment"][key]
    assert moved[1] == 0.0
    assert sum(moved) == pytest.approx(1)


@pytest.mark.parametrize(
    ("prevalence", "words"),
    [
        ({"en-XX": {"sentiment": {"negative": 0.1}}}, "en-AU"),
        ({"en-AU": {"tone": {"dry": 0.1}}}, "Known: sentiment"),
        ({"en-AU": {"sentiment": {"sour": 0.1}}}, "label of sentiment"),
        ({"en-AU": {"sentiment": {"negative": 0.0}}}, "between 0 and 1"),
        ({"en-AU": {"sentiment": {"negative": 0.7, "positive": 0.4}}}, "between 0 and 1"),
        ({"en-AU": {"sentiment": {"negative": 0.7, "positive": 0.2}}}, "between 0 and 1"),
    ],
)
def test_a_prevalence_that_cannot_be_meant_is_refused(
    recipe: DistillRecipe, tea: str, tmp_path: Path, prevalence: Any, words: str
) -> None:
    with pytest.raises(UserError, match=words):
        with_known_prevalence({}, told(recipe, tea, tmp_path, prevalence))


def test_all_shares_may_be_named(recipe: DistillRecipe, tea: str, tmp_path: Path) -> None:
    named = {"en-UK": {"sentiment": {"negative": 0.3, "positive": 0.7}}}
    moved = with_known_prevalence({}, told(recipe, tea, tmp_path, named))["sentiment"]
    assert set(moved.values()) == {(0.3, 0.7)}


def test_neutral_texts_are_even_and_others_as_they_were_answered(
    recipe: DistillRecipe, tmp_path: Path
) -> None:
    table = tmp_path / "some.csv"
    table.write_text("text,sentiment\nIt is nine.,neutral\nLovely.,positive\n", encoding="utf-8")
    source = f"table:{table}?label.sentiment=sentiment"
    nine, lovely = (example_key(example) for example in load(source))
    plan = plan_distillation(recipe.changed(distill__even=[source]), tmp_path / "student")
    given = {"sentiment": {nine: (0.9, 0.1), lovely: (0.2, 0.8)}}
    answers = with_even_answers(given, plan)["sentiment"]
    assert answers == {nine: (0.5, 0.5), lovely: (0.2, 0.8)}
    table.write_text("text,sentiment\nLovely.,positive\nBad.,negative\n", encoding="utf-8")
    with pytest.raises(UserError, match="calls no text neutral"):
        with_even_answers(given, plan)


# Whole distillations


@pytest.mark.slow
def test_a_student_is_a_model_folder_with_a_frontier(
    recipe: DistillRecipe, tea: str, tmp_path: Path
) -> None:
    out = tmp_path / "student"
    whole = recipe.changed(
        distill__baseline=True, distill__compare_layers=[1], distill__teachers_a_fold=2
    )
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
    # the baseline of a frontier is what `litotes train` makes
    plain = train(whole.student, tmp_path / "plain").scores[0].scores.headline()["macro_f1"]
    assert baseline.tasks["sentiment"].macro_f1 == pytest.approx(plain)
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
    quick = PruneSettings(loss=100.0, targets=(1.5,), epochs=1, settle_epochs=1, n_searched=4)
    assert prune(out, tea, tmp_path / "pruned", settings=quick).model is not None
    assert main(["export", "--model", str(out), "--out", str(tmp_path / "onnx")]) == 0
    assert "cross-fitted in 2 folds" in (out / "README.md").read_text()


@pytest.fixture(scope="module")
def whole(recipe: DistillRecipe, tmp_path_factory: pytest.TempPathFactory) -> DistillResult:
    """A distillation that nothing stopped, in this process alone."""
    return distill(recipe, tmp_path_factory.mktemp("whole") / "student", n_workers=1)


class Seen(list[str]):
    """What a run reports to be doing."""

    def __call__(self, what: str, done: int, total: int, note: str) -> None:
        self.append(what)

    def trains(self, who: str = "") -> bool:
        return any(what.startswith(who) and "training" in what for what in self)


@pytest.mark.slow
def test_a_stopped_distillation_goes_on_and_trains_nothing_twice(
    recipe: DistillRecipe, whole: DistillResult, tmp_path: Path
) -> None:
    def stop(what: str, done: int, total: int, note: str) -> None:
        if what.startswith("student: training"):
            raise Stopped("as if by Ctrl-C")

    with pytest.raises(Stopped):
        distill(recipe, tmp_path / "again", watch=stop)
    seen = Seen()
    again = distill(recipe, tmp_path / "again", watch=seen)
    assert seen.trains("student")
    assert not seen.trains("teacher")
    assert again.scores == whole.scores
    seen.clear()
    assert distill(recipe, tmp_path / "again", watch=seen).scores == whole.scores
    assert not seen.trains()
    with pytest.raises(UserError, match="another recipe"):
        distill(recipe.changed(distill__share=0.7), tmp_path / "again")


@pytest.mark.slow
@pytest.mark.parametrize("match", ["hidden", "values", "relations"])
def test_a_student_that_matches_begins_elsewhere(
    match: str, recipe: DistillRecipe, tmp_path: Path
) -> None:
    begins = {"start": "teacher", "layers": 1, "match": match, "match_epochs": 1}
    matched = recipe.changed(**{f"distill__{name}": value for name, value in begins.items()})
    out, seen = tmp_path / "student", Seen()
    distill(matched, out)
    assert load_model(out).classifier.encoder.spec.n_layers == 1
    assert not list(out.glob("distillation/teachers/*/model"))
    distill(matched, out, watch=seen)
    assert not seen.trains()


@pytest.mark.slow
def test_states_are_shown_by_teachers_that_have_not_seen_the_text(
    recipe: DistillRecipe, tmp_path: Path
) -> None:
    changes = {"match": "values", "match_epochs": 1, "keep_teachers": True}
    kept = recipe.changed(**{f"distill__{name}": value for name, value in changes.items()})
    distill(kept, tmp_path / "student")
    plan = plan_distillation(kept, tmp_path / "student")
    shown = texts_to_show(plan)
    assert len(shown) == 2
    for folder, texts in shown:
        stated = read_trained_texts(folder)
        assert stated
        assert not stated & {text_hash(one) for one in texts}
    n_shown = sum(len(texts) for _, texts in shown)
    assert n_shown == len(keys_of((*plan.data.train, *plan.others)))


@pytest.mark.slow
@pytest.mark.usefixtures("forked_workers")
def test_teachers_in_processes_give_the_same_student(
    recipe: DistillRecipe, whole: DistillResult, tmp_path: Path
) -> None:
    """And students share the answers of teachers."""
    shared = recipe.changed(distill__teachers_folder=str(tmp_path / "teachers"))
    assert distill(shared, tmp_path / "one", n_workers=2).scores == whole.scores
    seen = Seen()
    distill(shared.changed(distill__share=0.9), tmp_path / "two", watch=seen)
    assert seen.trains("student")
    assert not seen.trains("teacher")


@pytest.mark.slow
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
