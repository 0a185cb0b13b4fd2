"""Students of the built-in model, and the choice among them."""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from litotes.core.numbers import confusion, macro_f1
from litotes.core.progress import ignore_progress
from litotes.encoder import pretrained
from litotes.model.checkpoint import Model, load_model
from litotes.model.classifier import Classifier
from reproduction.builtin import imitation
from reproduction.builtin.__main__ import (
    AS_GOOD,
    BEFORE,
    choose,
)
from reproduction.builtin.choice import (
    Leads,
    choose_temperature,
)
from reproduction.builtin.imitation import (
    TASKS,
    TEXTS,
    LastPass,
    Student,
    StudentJob,
    TeacherJob,
    answer,
    imitated_shares,
    load_leads,
    run_student,
    run_teacher,
    save_answers,
    text_set,
    train_padded,
)
from reproduction.builtin.texts import ASKED, N_FOLDS, OLDER, OWN, VARIANT, Row

ROWS = [
    Row("it is great", OWN, older=False, fold=0, sentiment=1.0, sarcasm=0.0),
    Row("it is bad", OLDER, older=True, fold=1, source="film reviews", sentiment=0.2),
    Row("a tea queue", VARIANT, older=True, fold=1, source="tweets"),
    Row("love the tea", ASKED, older=False, fold=-1),
]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Texts, and answers: teacher k leads by k."""
    with gzip.open(tmp_path / TEXTS, "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps(asdict(row)) + "\n" for row in ROWS)
    for fold in range(N_FOLDS):
        leads = torch.full((len(ROWS),), float(fold))
        save_answers(dict.fromkeys(TASKS, leads), tmp_path / f"teacher-{fold}")
    save_answers(dict.fromkeys(TASKS, torch.zeros(len(ROWS))), tmp_path / "ears")
    return tmp_path


def sigmoid(lead: float) -> float:
    return 1 / (1 + math.exp(-lead))


def test_only_the_teacher_that_has_not_seen_a_text_answers_it(out: Path) -> None:
    found = imitated_shares(ROWS, out, Student(0, share=0.5))
    mean = sum(map(sigmoid, range(N_FOLDS))) / N_FOLDS
    expected = [(0.5 + 1) / 2, (sigmoid(1) + 0.2) / 2, mean]
    assert found["sentiment"][:3].tolist() == pytest.approx(expected, abs=1e-3)
    # nothing is known of its sarcasm
    assert found["sarcasm"][1].item() == pytest.approx(sigmoid(1), abs=1e-3)


def tiny_model(tiny_folder: Path) -> Model:
    source = pretrained.load(str(tiny_folder))
    torch.manual_seed(0)
    classifier = Classifier(source.encoder, list(TASKS.values()), head="linear", dropout=0.1)
    return Model(classifier.eval(), source.tokenizer, source.name, source.sha256)


def test_a_teacher_answers_everything_and_a_student_what_is_asked(
    out: Path, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = TeacherJob(out, 0, str(tiny_folder), "cpu")
    (job.folder / imitation.ANSWERS).unlink()
    run_teacher(job, ignore_progress)
    assert job.is_done()
    assert len(load_leads(job.folder)["sarcasm"]) == len(ROWS)
    monkeypatch.setattr(imitation, "begin", lambda student: tiny_model(tiny_folder))
    student = StudentJob(out, "a student", Student(1, epochs=2), "cpu")
    run_student(student, ignore_progress)
    assert student.is_done()
    saved = load_model(student.model_folder)
    again = answer(saved.classifier, saved.tokenizer, ROWS[3:], torch.device("cpu"))
    kept = load_leads(student.folder)
    assert kept["sentiment"].tolist() == pytest.approx(again["sentiment"].tolist(), abs=0.02)


def weights_after(model: Model, rate: float) -> dict[str, Tensor]:
    pieces = text_set(ROWS, model.tokenizer).pieces
    shares = {
        "sentiment": torch.tensor([1.0, 0.2, 0.9, 0.4]),
        "sarcasm": torch.tensor([float("nan"), 0.1, 0.8, 0.5]),
    }
    course = LastPass((), seed=0, learning_rate=rate, ears=0.0)
    after = train_padded(model, pieces, shares, course)
    state: dict[str, Any] = after.classifier.state_dict()
    return {name: tensor.clone() for name, tensor in state.items()}


def test_the_last_pass_changes_all_but_the_frozen(tiny_folder: Path) -> None:
    model = tiny_model(tiny_folder)
    before = {name: tensor.clone() for name, tensor in model.classifier.state_dict().items()}
    same = weights_after(model, 0.0)
    assert all(same[name].equal(tensor) for name, tensor in before.items())
    after = weights_after(model, 1e-2)
    changed = {name for name, tensor in before.items() if not after[name].equal(tensor)}
    assert any(name.startswith("heads.sarcasm") for name in changed)
    assert any(".blocks.1." in name for name in changed)
    assert not any("embeddings" in name or ".blocks.0." in name for name in changed)


def test_scores_of_many_lines_are_those_of_each() -> None:
    generator = np.random.default_rng(0)
    gold = generator.integers(0, 2, 50)
    lead = generator.normal(0, 1, 50)
    lines = np.array([-9.0, -0.4, lead[7], 0.0, 9.0])  # one that a text lies on
    found = Leads(lead, gold).scores(lines)
    for line, score in zip(lines, found, strict=True):
        assert score == pytest.approx(macro_f1(confusion(gold, lead > line, 2)))


def test_the_temperature_is_that_of_the_sets_together() -> None:
    """Answers that are twice as sure as they may be, in a large set and a small one."""
    generator = np.random.default_rng(3)

    def drawn(n: int, sure: float) -> Leads:
        true = generator.normal(0, 2, n)
        gold = (generator.random(n) < 1 / (1 + np.exp(-true))).astype(np.int64)
        return Leads(sure * true + 0.5, gold)

    both = {"one": drawn(20_000, 2.0), "other": drawn(4000, 2.0)}
    assert choose_temperature(both, 0.5) == pytest.approx(2, rel=0.1)
    assert both["one"].calibration_error(0.5, 2.0) < 0.01 < both["one"].calibration_error(0.5, 1.0)
    apart = {"one": drawn(20_000, 2.0), "other": drawn(20_000, 1.0)}
    assert 1 < choose_temperature(apart, 0.5) < 2


def test_of_those_that_are_as_good_the_larger_area_is_chosen() -> None:
    def found(mean: float, area: float, elsewhere: float = 0.6) -> dict[str, Any]:
        return {"mean": mean, "area": area, "scores": {"other tweets, sarcasm": elsewhere}}

    tried = {
        (BEFORE,): found(0.9, 0.99),
        ("a",): found(0.73, 0.80),
        ("b",): found(0.73 - AS_GOOD / 2, 0.81),
        ("c",): found(0.73 - 2 * AS_GOOD, 0.82),
        ("d",): found(0.75, 0.83, elsewhere=0.5),
    }
    assert choose(tried) == ("b",)
    assert choose({(BEFORE,): found(0.9, 0.99), ("d",): found(0.7, 0.8, elsewhere=0.5)}) == ("d",)
