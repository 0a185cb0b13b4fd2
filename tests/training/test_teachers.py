"""Teachers: the lean that is divided out, and texts that they must not teach."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest
import torch

from litotes.core.errors import UserError
from litotes.core.progress import ignore_progress
from litotes.core.values import Example
from litotes.data.corpus import example_key, plain_words
from litotes.data.near_duplicates import near_duplicates
from litotes.model.folder import text_hash
from litotes.training.distillation import DistillRecipe, plan_distillation
from litotes.training.distillation.answers import gather_lessons
from litotes.training.distillation.plan import DistillPlan
from litotes.training.distillation.teachers import read_answers, run_teacher, without_lean
from litotes.training.run import train


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


def test_a_class_that_a_teacher_never_saw_stays_impossible() -> None:
    found = without_lean(torch.tensor([[1.0, 1.0, 5.0]]), torch.tensor([1.0, 1.0, 0.0]))
    torch.testing.assert_close(found, torch.tensor([[0.5, 0.5, 0.0]]))


def test_unweighted_answers_and_numbers_stay_as_they_are() -> None:
    logits = torch.tensor([[0.3, -1.0]])
    torch.testing.assert_close(without_lean(logits, torch.ones(2)), logits.softmax(-1))
    assert without_lean(torch.tensor([[3.5]]), None).item() == 3.5


@pytest.fixture(scope="module")
def plan(recipe: DistillRecipe, tmp_path_factory: pytest.TempPathFactory) -> DistillPlan:
    many = recipe.changed(folds=3, teachers_a_fold=2)
    return plan_distillation(many, tmp_path_factory.mktemp("out") / "student")


def test_no_teacher_is_asked_about_anything_like_its_training_texts(plan: DistillPlan) -> None:
    assert len(plan.teachers) == 6
    for job in plan.teachers.values():
        assert job.corpus is not None
        trained = [example for example in job.corpus if example.split == "train"]
        assert trained
        assert job.asked
        texts = [plain_words(example) for example in (*trained, *job.asked)]
        found = near_duplicates(texts)
        across = [pair for pair in found.pairs if pair[0] < len(trained) <= pair[1]]
        assert not across
        assert not {example_key(one) for one in trained} & {example_key(one) for one in job.asked}


def test_every_training_text_is_asked_about_in_one_fold_and_others_in_all(
    plan: DistillPlan,
) -> None:
    asked: dict[str, set[str]] = {}
    for name, job in plan.teachers.items():
        for example in job.asked:
            asked.setdefault(example_key(example), set()).add(name)
    for example in plan.data.train:
        assert len(asked[example_key(example)]) == 2  # the seeds of one fold
    assert plan.others
    for example in plan.others:
        assert not example.labels
        assert len(asked[example_key(example)]) == 6


def test_texts_kept_apart_teach_nobody(plan: DistillPlan) -> None:
    assert plan.data.held_out is not None
    assert plan.data.test is not None
    apart = {example_key(one) for one in (*plan.data.held_out, *plan.data.test)}
    for job in plan.teachers.values():
        assert job.corpus is not None
        trained = {example_key(one) for one in job.corpus if one.split == "train"}
        assert not apart & trained
        assert not apart & {example_key(one) for one in job.asked}


@pytest.fixture(scope="module")
def ready(recipe: DistillRecipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of one variety of the corpus."""
    alone = recipe.student.changed(data__where__variety="en-AU")
    return train(alone, tmp_path_factory.mktemp("ready") / "teacher").folder


@pytest.mark.slow
def test_a_ready_teacher_is_not_asked_about_what_it_has_learned(
    ready: Path, recipe: DistillRecipe, tmp_path: Path
) -> None:
    plan = plan_distillation(recipe.changed(teachers=[str(ready)]), tmp_path / "student")
    (job,) = plan.teachers.values()
    run_teacher(job, ignore_progress)
    answered = {text_hash(job.asked[place]) for place in read_answers(job).places.tolist()}
    stated = set((ready / "trained_on.txt").read_text().split())
    assert answered
    assert not answered & stated
    assert {text_hash(one) for one in job.asked} - stated == answered
    lessons = gather_lessons(plan)
    taught = {text_hash(one) for one in plan.data.train} & answered
    keys = {example_key(one) for one in plan.data.train if text_hash(one) in stated}
    assert taught
    assert keys
    assert not keys & lessons.answers["sentiment"].keys()
    assert is_upright(lessons.answers["sentiment"].values())


@pytest.mark.slow
def test_a_ready_teacher_is_not_asked_about_what_it_has_learned_in_other_words(
    ready: Path, recipe: DistillRecipe, tmp_path: Path
) -> None:
    student = recipe.student.changed(data__rewrites=["emoji"], data__rewrite_share=1.0)
    asks = DistillRecipe(student, recipe.changed(teachers=[str(ready)]).distill)
    plan = plan_distillation(asks, tmp_path / "student")
    (job,) = plan.teachers.values()
    stated = set((ready / "trained_on.txt").read_text().split())
    assert len(plan.data.replaced) == len(plan.data.train)
    learned = set()
    for before, after in zip(plan.data.replaced, plan.data.train, strict=True):
        if text_hash(before) in stated:
            learned.add(example_key(after))
    assert learned
    assert not learned & {example_key(one) for one in job.asked}


def is_upright(answers: object) -> bool:
    rows = torch.tensor(list(answers))  # type: ignore[call-overload]
    return bool((rows.sum(-1) - 1).abs().max() < 1e-5)


@pytest.mark.slow
def test_even_a_wrong_plan_asks_no_teacher_about_its_texts(
    recipe: DistillRecipe, tmp_path: Path
) -> None:
    plan = plan_distillation(recipe, tmp_path / "student")
    job = next(iter(plan.teachers.values()))
    assert job.corpus is not None
    trained = tuple(one for one in job.corpus if one.split == "train")
    wrong = replace(job, asked=(*trained, Example("something new", {})))
    run_teacher(wrong, ignore_progress)
    assert read_answers(wrong).places.tolist() == [len(trained)]
    assert not job.model_folder.exists()  # its answers are all that is kept


@pytest.mark.slow
def test_teachers_that_cannot_teach_are_refused(
    ready: Path, recipe: DistillRecipe, tmp_path: Path
) -> None:
    silent = copytree(ready, tmp_path / "silent")
    (silent / "trained_on.txt").unlink()
    with pytest.raises(UserError, match="does not say which texts"):
        plan_distillation(recipe.changed(teachers=[str(silent)]), tmp_path / "out")
    own = DistillRecipe(recipe.student.changed(data__where__variety="en-AU"), recipe.distill)
    only_labels = own.changed(teachers=[str(ready)], unlabelled="none")
    with pytest.raises(UserError, match="must not teach"):
        plan_distillation(only_labels, tmp_path / "out")
    other = recipe.student.changed(data__tasks=["tone"])
    with pytest.raises(UserError, match="none of tone"):
        plan_distillation(
            DistillRecipe(other, recipe.changed(teachers=[str(ready)]).distill), tmp_path / "out"
        )
