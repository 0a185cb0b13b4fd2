"""Distillation: who teaches which text, what teachers' answers become, and whole runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
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
from litotes.model.folder import hash_folder, read_trained_texts, text_hash, write_trained_texts
from litotes.prediction.predictor import Predictor
from litotes.pruning import PruneSettings, prune
from litotes.training.distillation import DistillRecipe, distill, plan_distillation
from litotes.training.distillation.distill import run_job, texts_to_show
from litotes.training.distillation.plan import DistillPlan
from litotes.training.distillation.teachers import (
    gather_lessons,
    lesson_notes,
    read_answers,
    with_even_answers,
    with_known_prevalence,
    without_lean,
)
from litotes.training.run import train


def keys_of(examples: Any) -> set[str]:
    return set(map(example_key, examples))


def stated(folder: Path) -> set[str]:
    """The hashes of the texts that a model has learned from."""
    return set((folder / "trained_on.txt").read_text().split())


# Teachers


def test_a_teacher_that_leans_is_set_upright() -> None:
    """3 of 4 texts are calm. The weighted loss is least at even odds, and the truth is 3 to 1."""
    weights, logits = torch.tensor([2 / 3, 2.0]), torch.zeros(1, 2, requires_grad=True)
    gold = torch.tensor([0, 0, 0, 1])
    loss = torch.nn.functional.cross_entropy(logits.expand(4, 2), gold, weight=weights)
    (pull,) = torch.autograd.grad(loss, logits)
    assert pull.abs().max() < 1e-7  # even odds are where such a teacher ends
    torch.testing.assert_close(without_lean(logits.detach(), weights), torch.tensor([[0.75, 0.25]]))
    for given, weighted, wanted in (
        ([1.0, 1.0, 5.0], torch.tensor([1.0, 1.0, 0.0]), [0.5, 0.5, 0.0]),  # never seen: impossible
        ([0.3, -1.0], torch.ones(2), [0.785835, 0.214165]),
        ([3.5], None, [3.5]),  # a number
    ):
        found = without_lean(torch.tensor([given]), weighted)
        torch.testing.assert_close(found, torch.tensor([wanted]))


@pytest.fixture(scope="module")
def plan(recipe: DistillRecipe, tmp_path_factory: pytest.TempPathFactory) -> DistillPlan:
    many = recipe.changed(distill__folds=3, distill__teachers_a_fold=2, distill__match="hidden")
    return plan_distillation(many, tmp_path_factory.mktemp("out") / "student")


def test_no_teacher_is_asked_about_anything_like_its_training_texts(plan: DistillPlan) -> None:
    data, jobs = plan.data, list(plan.teachers.values())
    apart, asked = keys_of((*(data.held_out or ()), *(data.test or ()))), []
    assert apart
    for job in jobs:
        assert job.corpus is not None
        trained = [example for example in job.corpus if example.split == "train"]
        found = near_duplicates([plain_words(one) for one in (*trained, *job.asked)])
        assert not [pair for pair in found.pairs if pair[0] < len(trained) <= pair[1]]
        assert not keys_of(trained) & keys_of(job.asked)
        assert not apart & (keys_of(trained) | keys_of(job.asked))
        asked += keys_of(job.asked)
    # a training text by both seeds of its fold, one without a label by all
    assert {asked.count(key) for key in keys_of(data.train)} == {2}
    assert {asked.count(key) for key in keys_of(plan.others)} == {6}
    assert not any(example.labels for example in plan.others)
    assert [job.recipe.seed for job in jobs if job.recipe] == [0, 1] * 3
    # the first of each fold shows its states, so its model stays till then
    assert [job.shows for job in jobs] == [job.keep_model for job in jobs] == [True, False] * 3
    assert len({job.folder for job in jobs}) == 6


@pytest.fixture
def ready(trained_folder: Path, tea: str, tmp_path: Path) -> Path:
    """A model that says it has learned one variety of the corpus."""
    folder = copytree(trained_folder, tmp_path / "teacher")
    write_trained_texts(folder, load(tea).where(variety="en-AU"))
    hash_folder(folder).write(folder)
    return folder


def test_a_ready_teacher_is_not_asked_about_what_it_has_learned(
    ready: Path, recipe: DistillRecipe, tmp_path: Path
) -> None:
    asks = recipe.changed(distill__teachers=[str(ready)])
    plan = plan_distillation(asks, tmp_path / "student")
    (job,) = plan.teachers.values()
    run_job(job, ignore_progress)
    answered = {text_hash(job.asked[place]) for place in read_answers(job.answers).places.tolist()}
    assert {text_hash(one) for one in job.asked} - stated(ready) == answered
    lessons = gather_lessons(plan)
    answers = lessons.answers["sentiment"]
    assert {text_hash(one) for one in plan.data.train} & answered
    learned = keys_of(one for one in plan.data.train if text_hash(one) in stated(ready))
    assert learned
    assert not learned & answers.keys()
    assert lesson_notes(plan, lessons)[0].startswith(f"{len(learned)} of {len(plan.data.train)}")
    sums = torch.tensor(list(answers.values())).sum(-1)
    torch.testing.assert_close(sums, torch.ones_like(sums))
    # nor in other words
    rewritten = asks.changed(data__rewrites=["emoji"], data__rewrite_share=1.0)
    plan = plan_distillation(rewritten, tmp_path / "rewritten")
    (job,) = plan.teachers.values()
    pairs = plan.data.rewritten
    learned = keys_of(after for before, after in pairs if text_hash(before) in stated(ready))
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


def test_teachers_that_cannot_teach_are_refused(
    ready: Path, recipe: DistillRecipe, tmp_path: Path
) -> None:
    silent = copytree(ready, tmp_path / "silent")
    (silent / "trained_on.txt").unlink()
    same = {"data__where__variety": "en-AU", "distill__unlabelled": "none"}
    renamed = {"data__labels": {"sentiment": {"positive": "fond"}}}
    for teacher, changes, why in (
        (silent, {}, "does not say which texts"),
        (ready, same, "must not teach"),
        (ready, {"data__tasks": ["tone"]}, "none of tone"),
        (ready, renamed, "with negative, positive, the student with"),
    ):
        asks = recipe.changed(distill__teachers=[str(teacher)], **changes)
        with pytest.raises(UserError, match=why):
            plan_distillation(asks, tmp_path / "out")


# What their answers become


@pytest.fixture
def told(recipe: DistillRecipe, tea: str, tmp_path: Path) -> DistillPlan:
    """Each variety counts as a source."""
    asks = recipe.changed(data__source=f"{tea}&source=variety")
    return plan_distillation(asks, tmp_path / "student")


def moved(
    plan: DistillPlan, answers: Mapping[str, Any], **prevalence: Mapping[str, float]
) -> Mapping[str, Any]:
    """The answers about sentiment, with these shares known of its labels in texts of en-UK."""
    known = {"en-UK": prevalence}
    with_them = replace(plan, recipe=plan.recipe.changed(distill__prevalence=known))
    return with_known_prevalence({"sentiment": answers}, with_them)["sentiment"]


RARE = {"negative": 0.1}


def test_odds_are_moved_and_what_nobody_answered_is_the_prevalence(told: DistillPlan) -> None:
    texts = [one for one in told.others if one.source == "en-UK"]
    answered, silent = map(example_key, texts[:2])
    elsewhere = "a text of another source"
    row = next(one for one in told.data.train if one.source == "en-UK")
    given = dict.fromkeys((answered, elsewhere, example_key(row)), (0.6, 0.4))
    found = moved(told, given, sentiment=RARE)
    labels = [one.labels["sentiment"] for one in told.data.train]
    learned = labels.count("negative") / len(labels)
    odds = 0.6 / 0.4 * (0.1 / 0.9) / (learned / (1 - learned))
    assert found[answered] == pytest.approx((odds / (1 + odds), 1 / (1 + odds)))
    assert found[silent] == pytest.approx((0.1, 0.9))
    assert found[elsewhere] == found[example_key(row)] == (0.6, 0.4)
    assert given[answered] == (0.6, 0.4)
    # a text that comes twice is moved once, and a label for it in one row is a label
    more = replace(told, others=(*told.others, texts[0], replace(row, labels={})))
    assert moved(more, given, sentiment=RARE) == found
    all_named = moved(told, {}, sentiment={"negative": 0.3, "positive": 0.7})
    assert set(all_named.values()) == {(0.3, 0.7)}
    # a label that no teacher has seen stays impossible
    wider = replace(told.data.train.tasks["sentiment"], labels=("negative", "new", "positive"))
    train = replace(told.data.train, tasks={"sentiment": wider})
    told = replace(told, data=replace(told.data, train=train))
    low, none, high = moved(told, {answered: (0.6, 0.0, 0.4)}, sentiment=RARE)[answered]
    assert (none, low + high) == (0.0, pytest.approx(1))


@pytest.mark.parametrize(
    ("prevalence", "words"),
    [
        ({"en-XX": {"sentiment": RARE}}, "en-AU"),
        ({"en-AU": {"tone": {"dry": 0.1}}}, "Known: sentiment"),
        ({"en-AU": {"sentiment": {"sour": 0.1}}}, "label of sentiment"),
        ({"en-AU": {"sentiment": {"negative": 0.0}}}, "between 0 and 1"),
        ({"en-AU": {"sentiment": {"negative": 0.7, "positive": 0.4}}}, "between 0 and 1"),
        ({"en-AU": {"sentiment": {"negative": 0.7, "positive": 0.2}}}, "between 0 and 1"),
    ],
)
def test_a_prevalence_that_cannot_be_meant_is_refused(
    told: DistillPlan, prevalence: Any, words: str
) -> None:
    asks = told.recipe.changed(distill__prevalence=prevalence)
    with pytest.raises(UserError, match=words):
        with_known_prevalence({}, replace(told, recipe=asks))


def test_neutral_texts_are_even_and_others_as_they_were_answered(
    told: DistillPlan, tmp_path: Path
) -> None:
    table = tmp_path / "some.csv"
    table.write_text("text,sentiment\nIt is nine.,neutral\nLovely.,positive\n", encoding="utf-8")
    source = f"table:{table}?label.sentiment=sentiment"
    nine, lovely = map(example_key, load(source))
    told = replace(told, recipe=told.recipe.changed(distill__even=[source]))
    given = {"sentiment": {nine: (0.9, 0.1), lovely: (0.2, 0.8)}}
    answers = with_even_answers(given, told)["sentiment"]
    assert answers == {nine: (0.5, 0.5), lovely: (0.2, 0.8)}
    table.write_text("text,sentiment\nLovely.,positive\nBad.,negative\n", encoding="utf-8")
    with pytest.raises(UserError, match="calls no text neutral"):
        with_even_answers(given, told)


# Whole distillations


class Seen(list[str]):
    """What a run reports to be doing."""

    def __call__(self, what: str, done: int, total: int, note: str) -> None:
        self.append(what)

    def trains(self, who: str = "") -> bool:
        return any(what.startswith(who) and "training" in what for what in self)


@pytest.mark.slow
def test_a_student_is_a_model_folder_with_a_frontier(
    recipe: DistillRecipe, tea: str, tmp_path: Path
) -> None:
    out, changes = tmp_path / "student", {"baseline": True, "compare_layers": [1]}
    changes |= {"teachers_a_fold": 2, "keep_teachers": True, "match": "values", "match_epochs": 1}
    whole = recipe.changed(**{f"distill__{name}": value for name, value in changes.items()})
    result = distill(whole, out)
    names = [point.name for point in result.points]
    assert names == ["teacher", "student", "student of 1 layer", "baseline"]
    teacher, student, shallow, baseline = result.points
    assert [point.n_models for point in result.points] == [4, 1, 1, 1]
    assert (teacher.n_layers, student.n_layers, shallow.n_layers) == (2, 2, 1)
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
    assert "cross-fitted in 2 folds" in (out / "README.md").read_text()
    answer = Predictor.load(out).predict(["great tea"])[0].answers["sentiment"].label
    assert answer in ("negative", "positive")
    plan = plan_distillation(whole, out)
    seen = read_trained_texts(out) or set()
    assert {text_hash(one) for one in (*plan.data.train, *plan.others)} <= seen
    # states are shown by teachers that have not seen the text
    shown = texts_to_show(plan)
    assert len(shown) == 2
    assert not any(stated(folder) & set(map(text_hash, texts)) for folder, texts in shown)
    n_shown = sum(len(texts) for _, texts in shown)
    assert n_shown == len(keys_of((*plan.data.train, *plan.others)))
    quick = PruneSettings(loss=100.0, targets=(1.5,), epochs=1, settle_epochs=1, n_searched=4)
    assert prune(out, tea, tmp_path / "pruned", settings=quick).model is not None
    assert main(["export", "--model", str(out), "--out", str(tmp_path / "onnx")]) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("forked_workers")
def test_a_stopped_distillation_goes_on_and_trains_nothing_twice(
    recipe: DistillRecipe, tmp_path: Path
) -> None:
    """Teachers in processes give the same student, and students share the answers of teachers."""
    whole = distill(recipe, tmp_path / "whole", n_workers=1)
    shared = recipe.changed(distill__teachers_folder=str(tmp_path / "teachers"))

    def stop(what: str, done: int, total: int, note: str) -> None:
        if what.startswith("student: training"):
            raise Stopped("as if by Ctrl-C")

    with pytest.raises(Stopped):
        distill(shared, tmp_path / "again", watch=stop)
    seen = Seen()
    assert distill(shared, tmp_path / "again", watch=seen).scores == whole.scores
    assert seen.trains("student")
    assert not seen.trains("teacher")
    seen.clear()
    assert distill(shared, tmp_path / "again", watch=seen).scores == whole.scores
    assert not seen.trains()
    others = shared.changed(distill__share=0.9)
    with pytest.raises(UserError, match="another recipe"):
        distill(others, tmp_path / "again")
    distill(others, tmp_path / "two", watch=seen)
    assert seen.trains("student")
    assert not seen.trains("teacher")
    in_processes = distill(recipe, tmp_path / "processes", n_workers=2)
    assert in_processes.scores == whole.scores


@pytest.mark.slow
@pytest.mark.parametrize("match", ["hidden", "relations"])
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
def test_the_command_distils_and_refuses(
    recipe: DistillRecipe, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = recipe.student.model_dump(mode="json")
    content["distill"] = {"folds": 2, "baseline": False}
    file, out, no = tmp_path / "recipe.json", tmp_path / "student", tmp_path / "no"
    file.write_text(json.dumps(content))
    command = ["distill", str(file), "--out", str(out), "--layers", "1", "--width", "16"]
    assert main([*command, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [point["name"] for point in printed["points"]] == ["teacher", "student"]
    assert (printed["points"][1]["n_layers"], printed["points"][1]["width"]) == (1, 16)
    assert main(command) == 0
    assert "texts a second" in capsys.readouterr().out
    both = ["--set", "distill.teachers=['a']", "--set", "distill.teacher.model={dropout = 0.0}"]
    for wrong, why in (
        (["--layers", "3"], "cannot be made of 2"),
        (["--width", "12"], "8, 16, 24"),
        (["--set", "distill.shares=1"], "share"),
        (["--set", "distill.teacher.training.epoch=1"], "epochs"),
        (["--set", "model.separate=true"], "one student"),
        (["--teacher", str(tmp_path)], str(tmp_path)),
        (["--set", "distill.teacher.model.encoder=nobody"], "nobody"),
        (both, "Leave one of them out"),
    ):
        assert main(["distill", str(file), "--out", str(no), *wrong]) == 2
        assert why in capsys.readouterr().err
    assert not no.exists()
    no.mkdir()
    (no / "letter.txt").write_text("dear")
    for folder, why in ((no, "letter.txt"), (train(recipe.student, out / "x").folder, "a model")):
        assert main(["distill", str(file), "--out", str(folder)]) == 2
        assert why in capsys.readouterr().err
