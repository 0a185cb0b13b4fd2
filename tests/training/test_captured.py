"""Steps over tensors that stay where they are against plain steps, in Triton's interpreter."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton", reason="Triton is not installed: pip install -e .[kernels]")

from torch.optim import AdamW

from litotes.core.values import MISSING, Task
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import EncoderSpec
from litotes.encoder.packing import TextSet
from litotes.encoder.tokenizer import Pieces
from litotes.kernels import encode as encoding_by
from litotes.model.classifier import Classifier
from litotes.training import captured, optimizer
from litotes.training.classification import COMPILING, Classification
from litotes.training.inputs import Inputs, freeze
from litotes.training.losses import SoftAnswers, Teacher
from litotes.training.objective import RunContext
from litotes.training.recipe import TrainingSettings
from litotes.training.trainer import Trainer

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
TASKS = (Task("mood", ("bad", "good")), Task("stars", ()))
LENGTHS = (3, 9, 1, 6, 8, 2, 7)


@pytest.fixture(autouse=True)
def small_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captured, "SMALLEST_STEP", 16)
    # where a gradient is all rounding, Adam would make a step of it
    monkeypatch.setitem(optimizer.OPTIMIZERS, "adamw", partial(AdamW, eps=1e-3))


def make_texts() -> TextSet:
    draw = torch.Generator().manual_seed(5)
    pieces = []
    for length in LENGTHS:
        ids = torch.randint(0, 40, (length,), generator=draw).tolist()
        pieces.append(Pieces(ids, [0] * length, truncated=False))
    targets = {
        "mood": torch.tensor([0, 1, MISSING, 1, 0, 0, 1]),
        "stars": torch.tensor([1.0, 2.0, 3.0, float("nan"), 0.5, 1.5, 2.5]),
    }
    return TextSet(pieces, targets, torch.tensor([0, 1, 0, 1, 1, 0, 0]), ("here", "there"))


def make_trainer(
    folder: Path,
    *,
    head: str = "linear",
    encoder: dict[str, Any] | None = None,
    teacher: Teacher | None = None,
    n_frozen: int = 0,
    **settings: Any,
) -> Trainer:
    torch.manual_seed(3)
    sizes: dict[str, Any] = {
        "family": "bert",
        "n_vocabulary": 40,
        "width": 32,
        "n_layers": 2,
        "n_attention_heads": 2,
        "inner_width": 48,
        "n_positions": 16,
        "n_segments": 2,
        "dropout": 0.0,
        "attention_dropout": 0.0,
    }
    spec = EncoderSpec(**(sizes | (encoder or {})))
    classifier = Classifier(Encoder(spec), TASKS, head=head, dropout=0.0).to(DEVICE)
    freeze(classifier, n_frozen)
    chosen = {"epochs": 2, "batch_texts": 3, "learning_rate": 1e-3, "precision": "float32"}
    objective = Classification(
        classifier,
        Inputs(make_texts(), DEVICE),
        TrainingSettings(**(chosen | settings)),
        RunContext(DEVICE, folder, "key"),
        seed=0,
        teacher=teacher,
    )
    return Trainer(objective, RunContext(DEVICE, folder, "key"))


def use_kernels(monkeypatch: pytest.MonkeyPatch, wanted: bool) -> None:
    monkeypatch.setattr(encoding_by, "kernels_wanted", lambda device: wanted)


TEACHER = Teacher({"mood": torch.eye(2).repeat(4, 1)[:7], "stars": torch.ones(7, 1)}, share=0.5)
SOFT_ANSWERS = SoftAnswers(
    TEACHER.logits,
    share=0.5,
    shares={task: torch.tensor([0.5, 0.0, 1.0, 0.5, 0.0, 0.5, 0.5]) for task in TEACHER.logits},
    weights={task: torch.linspace(0.5, 2.0, 7) for task in TEACHER.logits},
)
CASES: dict[str, dict[str, Any]] = {
    "dense": {},
    "answers of teachers to some texts": {"teacher": SOFT_ANSWERS},
    "cascade, pcgrad and groups": {
        "head": "mean",
        "encoder": {"pruning": "cascade", "pruning_options": {"schedule": [0.6, 0.4]}},
        "balancing": "pcgrad",
        "groups": "group_dro",
    },
    "learned alpha and uncertainty": {
        "head": "convolution",
        "encoder": {"weighting": "entmax", "weighting_options": {"alpha": "learned"}},
        "balancing": "uncertainty",
    },
    "distances, and a head that is gone for good": {
        "encoder": {
            "family": "mpnet",
            "n_segments": 0,
            "first_position": 2,
            "n_relative_buckets": 8,
            "heads_kept": ((1,), (0, 1)),
        }
    },
    "learned pruning with a teacher": {
        "head": "crosstalk",
        "encoder": {"pruning": "learned", "pruning_options": {"importance": "scorer"}},
        "teacher": TEACHER,
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_captured_steps_are_plain_steps(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tasks, missing labels, and a last batch of one text."""
    use_kernels(monkeypatch, False)
    plain = make_trainer(tmp_path / "plain", **CASES[case])
    assert plain.objective.captured is None
    plain.run()
    use_kernels(monkeypatch, True)
    trainer = make_trainer(tmp_path / "captured", **CASES[case])
    assert trainer.objective.captured is not None
    trainer.run()
    assert any(bucket.replay is not None for bucket in trainer.objective.captured.buckets.values())
    for expected, found in zip(plain.state.history, trainer.state.history, strict=True):
        assert found["loss"] == pytest.approx(expected["loss"], rel=1e-4)
    for name, expected in plain.objective.tensors.parameters.items():
        difference = (trainer.objective.tensors.parameters[name] - expected).abs().max()
        assert difference < 2e-5, name
    for name, expected in plain.objective.tensors.buffers.items():
        torch.testing.assert_close(
            trainer.objective.tensors.buffers[name], expected, atol=1e-4, rtol=1e-4
        )


NOT_CAPTURED: dict[str, dict[str, Any]] = {
    "bilstm": {"head": "bilstm"},
    "explores": {"encoder": {"pruning": "learned", "pruning_options": {"explore": 0.5}}},
    "frozen": {"n_frozen": 1},
    "recomputes": {"recompute_activations": True},
}


@pytest.mark.parametrize("case", NOT_CAPTURED)
def test_steps_that_differ_are_not_captured(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_kernels(monkeypatch, True)
    assert make_trainer(tmp_path, **NOT_CAPTURED[case]).objective.captured is None


@pytest.mark.slow
def test_batches_of_many_pieces_are_computed_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LENGTHS in batches of three: some have more than 14 pieces, some not."""
    use_kernels(monkeypatch, False)
    plain = make_trainer(tmp_path / "plain")
    plain.run()
    use_kernels(monkeypatch, True)
    said: list[str] = []
    trainer = make_trainer(tmp_path / "parts", pieces_at_once=14)
    trainer.context = replace(
        trainer.context, watch=lambda what, done, total, note: said.append(note)
    )
    trainer.run()
    assert trainer.objective.captured is not None
    assert trainer.objective.captured.buckets
    divided = [
        len(trainer.objective.divide(places, LENGTHS)) > 1
        for places in trainer.objective.batches(0)
    ]
    assert set(divided) == {True, False}
    assert said[:2] == ["batches of more than 14 pieces are not recorded", COMPILING]
    for name, expected in plain.objective.tensors.parameters.items():
        assert (trainer.objective.tensors.parameters[name] - expected).abs().max() < 2e-5, name


def test_nothing_is_captured_while_sparsity_rises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_kernels(monkeypatch, True)
    rising = {"weighting": "top_k", "weighting_options": {"ramp": 0.5}}
    trainer = make_trainer(tmp_path, encoder=rising)
    assert trainer.objective.captured is not None
    able = []
    for progress in (0.0, 0.4, 0.5, 1.0):
        trainer.objective.classifier.encoder.set_progress(progress)
        able.append(trainer.objective.captured.take(range(3)) is not None)
    assert able == [False, False, True, True]


def test_a_batch_too_large_for_a_bucket_is_left_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_kernels(monkeypatch, True)
    trainer = make_trainer(tmp_path)
    assert trainer.objective.captured is not None
    assert trainer.objective.captured.take(range(4)) is None


@pytest.mark.parametrize(
    ("n_pieces", "size"),
    [(1, 256), (256, 256), (257, 512), (2049, 2560), (4096, 4096), (4097, 5120), (9000, 10240)],
)
def test_buckets_grow_with_what_they_hold(
    n_pieces: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(captured, "SMALLEST_STEP", 256)
    assert captured.bucket_size(n_pieces) == size
