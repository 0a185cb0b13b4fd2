"""The trainer on four texts: steps, epochs, what is kept, saved, resumed, told and refused."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from tiny_models import KINDS, TEXTS
from torch import Tensor

from litotes.core.errors import UserError
from litotes.core.progress import Milestone
from litotes.core.values import MISSING, Task
from litotes.encoder import pretrained
from litotes.encoder.packing import TextSet
from litotes.model.classifier import Classifier
from litotes.training import processes
from litotes.training.balancing import BALANCINGS
from litotes.training.classification import Classification
from litotes.training.inputs import Inputs
from litotes.training.objective import RunContext
from litotes.training.processes import Processes, bytes_of_run, choose_workers
from litotes.training.recipe import TrainingSettings
from litotes.training.trainer import Trainer

CPU = torch.device("cpu")
TASKS = (Task("mood", ("bad", "good")), Task("stars", ()))
STILL = {"dropout": 0.0, "attention_dropout": 0.0}


@pytest.fixture
def objective_of(tiny_folder: Path) -> Callable[..., Classification]:
    """Makes one of four texts, one without a label of each task."""

    def make(choices: Mapping[str, Any] = STILL, **settings: Any) -> Classification:
        loaded = pretrained.load(str(tiny_folder), **{**STILL, **choices})
        torch.manual_seed(1)
        classifier = Classifier(loaded.encoder, TASKS, head="mean", dropout=0.0)
        targets = {
            "mood": torch.tensor([0, 1, MISSING, 1]),
            "stars": torch.tensor([1.0, float("nan"), 3.0, 0.5]),
        }
        groups = torch.tensor([0, 1, 0, 1])
        texts = TextSet(loaded.tokenizer.encode(TEXTS), targets, groups, ("here", "there"))
        chosen = TrainingSettings(**{"epochs": 1, "max_gradient_norm": 0.0, **settings})
        context = RunContext(CPU, Path())
        return Classification(classifier, Inputs(texts, CPU), chosen, context, seed=0)

    return make


# A step in parts, or with activations computed again, is the step


def assert_same_step(found: Classification, expected: Classification) -> None:
    steps = []
    for objective in (found, expected):
        objective.model.train()
        torch.manual_seed(0)
        loss = objective.take_step(range(len(TEXTS)), 0)
        gradients = {name: own.grad for name, own in objective.tensors.parameters.items()}
        steps.append({"loss": loss, **gradients})
    assert any(gradient is not None for gradient in gradients.values())
    torch.testing.assert_close(*steps, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("balancing", sorted(BALANCINGS))
@pytest.mark.parametrize(("limit", "n_parts"), [(1, 4), (40, 2)])
def test_a_step_in_parts_is_the_whole_step(
    balancing: str, limit: int, n_parts: int, objective_of: Callable[..., Classification]
) -> None:
    divided = objective_of(balancing=balancing, pieces_at_once=limit)
    lengths = divided.inputs.texts.lengths
    parts = divided.divide([3, 0, 1, 2], lengths)
    assert [place for part in parts for place in part] == [3, 0, 1, 2]
    assert all(len(part) == 1 or sum(lengths[place] for place in part) <= limit for part in parts)
    assert len(divided.divide(range(len(TEXTS)), lengths)) == n_parts
    assert_same_step(divided, objective_of(balancing=balancing))
    with pytest.raises(UserError, match=r"pieces_at_once.*group_dro"):
        objective_of(groups="group_dro", pieces_at_once=limit)


@pytest.mark.parametrize("kind", ["dense", "sparse", "cascade", "fused", "restored"])
def test_activations_computed_again_give_the_same_gradients(
    kind: str, objective_of: Callable[..., Classification]
) -> None:
    choices = KINDS[kind] | {"dropout": 0.2, "attention_dropout": 0.2}
    again = objective_of(choices, recompute_activations=True)
    assert_same_step(again, objective_of(choices))


def test_recomputing_keeps_less_and_ends_with_the_step(
    objective_of: Callable[..., Classification],
) -> None:
    n_kept = {True: 0, False: 0}
    for again in n_kept:

        def keep(tensor: Tensor, again: bool = again) -> Tensor:
            n_kept[again] += 1
            return tensor

        objective = objective_of(recompute_activations=again)
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            objective.take_step(range(len(TEXTS)), 0)
        assert not objective.classifier.encoder.recomputes
    assert n_kept[True] < n_kept[False] / 2


def test_gradients_are_limited_and_precision_is_as_told(
    objective_of: Callable[..., Classification],
) -> None:
    norms = []
    for most in (0.0, 0.01):
        objective = objective_of(max_gradient_norm=most)
        objective.take_step(range(len(TEXTS)), 0)
        found = [one.grad.norm() for one in objective.tensors.parameters.values()]
        norms.append(float(torch.stack(found).norm()))
    assert norms[0] > 0.1
    assert norms[1] == pytest.approx(0.01, rel=1e-3)
    for precision, dtype in (("auto", None), ("float32", None), ("bfloat16", torch.bfloat16)):
        with objective_of(precision=precision).autocast() as found:
            assert getattr(found, "fast_dtype", None) == dtype


# Epochs


def judged(objective: Classification, scores: list[float | None]) -> list[Tensor]:
    """Has the epochs judged by these scores; gives the weights that each of them judged."""
    seen: list[Tensor] = []

    def validate() -> float | None:
        seen.append(objective.classifier.heads["mood"].output.weight.detach().clone())
        return scores[len(seen) - 1]

    objective.validate = validate
    return seen


def test_the_best_epoch_is_kept_and_training_stops_early(
    objective_of: Callable[..., Classification], tmp_path: Path
) -> None:
    said: list[str] = []
    objective = objective_of(epochs=9, patience=2, batch_texts=2, learning_rate=1e-2)
    seen = judged(objective, [0.3, 0.9, 0.5, 0.4])
    progress, losses, take_step = [], [], objective.take_step

    def watched(batch: Any, step: int) -> Tensor:
        losses.append(take_step(batch, step))
        return losses[-1]

    objective.take_step, objective.set_progress = watched, progress.append
    context = RunContext(CPU, tmp_path, watch=lambda what, done, total, note: said.append(note))
    state = Trainer(objective, context).run()
    assert (state.best_score, state.best_epoch, state.epoch, state.step) == (0.9, 2, 4, 8)
    # before every step, and as every epoch is judged
    n_done = [0, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 8]
    assert progress == [n / 18 for n in n_done]
    rates = [objective.rate(step) for step in range(objective.n_steps)]
    assert rates == [1.0, *(n / 17 for n in range(17, 0, -1))]  # one step of warm-up
    assert torch.equal(objective.classifier.heads["mood"].output.weight, seen[1])
    assert not torch.equal(seen[1], seen[3])
    means = [float(sum(losses[2 * epoch :][:2])) / 2 for epoch in range(4)]
    assert [line["loss"] for line in state.history] == pytest.approx(means)
    assert not (tmp_path / "checkpoints").exists()  # it was not long
    assert [line["held_out"] for line in state.history] == [0.3, 0.9, 0.5, 0.4]
    assert [(line["epoch"], line["step"]) for line in state.history] == [
        (1, 2),
        (2, 4),
        (3, 6),
        (4, 8),
    ]
    ends = [note for note in said if isinstance(note, Milestone)]
    loss = state.history[2]["loss"]
    assert ends[1].endswith("held-out score 0.900 (best so far)")
    assert ends[2] == (
        f"epoch 3 of 9: loss {loss:.3f}, held-out score 0.500 (best: 0.900 in epoch 2)"
    )
    within = [note for note in said if note.startswith("epoch 2, loss ")]
    assert len(within) == 2
    assert all(note.endswith("held-out score 0.300") for note in within)


RISING = {"weighting": "top_k", "weighting_options": {"sparsity": 0.8, "ramp": 1.0}}


@pytest.mark.parametrize(
    ("choices", "scores", "best_score"), [({}, [None] * 3, None), (RISING, [0.9, 0.5, 0.4], 0.4)]
)
def test_where_epochs_cannot_be_compared_the_last_one_is_taken(
    choices: dict[str, Any],
    scores: list[float | None],
    best_score: float | None,
    objective_of: Callable[..., Classification],
    tmp_path: Path,
) -> None:
    """No answer tells them apart, or sparsity rises until the last step."""
    objective = objective_of(choices, epochs=3, patience=1, learning_rate=1e-2)
    seen = judged(objective, scores)
    state = Trainer(objective, RunContext(CPU, tmp_path)).run()
    assert (state.best_epoch, state.best_score, len(seen)) == (3, best_score, 3)
    assert torch.equal(objective.classifier.heads["mood"].output.weight, seen[2])


def test_every_epoch_has_an_order_and_every_step_a_seed_of_its_own(
    objective_of: Callable[..., Classification],
) -> None:
    objective, again = objective_of(batch_texts=3, epochs=4), objective_of(batch_texts=3)
    orders = [objective.batches(epoch) for epoch in range(4)]
    assert all([len(batch) for batch in order] == [3, 1] for order in orders)
    assert all(
        sorted(place for batch in order for place in batch) == [0, 1, 2, 3] for order in orders
    )
    assert len({str(order) for order in orders}) > 1
    assert again.batches(2) == orders[2]
    seeds = [objective.seed_of(step) for step in range(8)]
    assert len(set(seeds)) == 8
    assert seeds == [again.seed_of(step) for step in range(8)]
    objective.processes = Processes(1, 2)
    assert objective.seed_of(0) not in seeds


class Killed(Exception):
    """Stands for the moment a process is killed: nothing after it is executed."""


@pytest.mark.parametrize("damaged", [False, True])
def test_a_resumed_run_ends_as_one_never_killed(
    damaged: bool, objective_of: Callable[..., Classification], tmp_path: Path
) -> None:
    """Also where the newest checkpoint does not have the content it was written with."""
    how = {"epochs": 3, "batch_texts": 2, "checkpoint_seconds": 0, "groups": "group_dro"}
    whole = objective_of(balancing="uncertainty", **how)
    expected = Trainer(whole, RunContext(CPU, tmp_path / "whole")).run()
    context = RunContext(CPU, tmp_path / "killed")
    killed = objective_of(balancing="uncertainty", **how)
    take_step = killed.take_step

    def die(batch: Any, step: int) -> Tensor:
        if step == 3:
            raise Killed
        return take_step(batch, step)

    killed.take_step = die
    with pytest.raises(Killed):
        Trainer(killed, context).run()
    kept = sorted((tmp_path / "killed" / "checkpoints").iterdir())
    assert [path.name for path in kept] == ["step-000000002", "step-000000003"]
    if damaged:
        content = bytearray((kept[1] / "state.safetensors").read_bytes())
        content[-5] ^= 1
        (kept[1] / "state.safetensors").write_bytes(content)
    again = objective_of(balancing="uncertainty", **how)
    found = Trainer(again, context).run(resume=True)
    assert replace(found, seconds=0) == replace(expected, seconds=0)
    for part in ("parameters", "buffers"):
        torch.testing.assert_close(
            getattr(again.tensors, part), getattr(whole.tensors, part), atol=0, rtol=0
        )
    folders = [tmp_path / name / "history.jsonl" for name in ("whole", "killed")]
    assert folders[0].read_bytes() == folders[1].read_bytes()


@pytest.mark.parametrize("was_enabled", [True, False])
def test_a_run_that_diverges_says_so_and_leaves_onednn_as_it_was(
    was_enabled: bool,
    tmp_path: Path,
    objective_of: Callable[..., Classification],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As torch does after a bfloat16 product that the processor does not have, a step switches it
    off; here another step switches it on.
    """
    objective = objective_of()
    objective.classifier.heads["mood"].output.bias.data[0] = torch.nan
    take_step = objective.take_step

    def switch_and_step(places: Any, step: int) -> Tensor:
        torch.backends.mkldnn.enabled = not was_enabled
        return take_step(places, step)

    monkeypatch.setattr(objective, "take_step", switch_and_step)
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", was_enabled)
    with pytest.raises(UserError, match=r"nan at step 1: training diverged.*learning_rate"):
        Trainer(objective, RunContext(CPU, tmp_path)).run()
    assert torch.backends.mkldnn.enabled == was_enabled


# Curves elsewhere


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What MLflow and TensorBoard, neither of which need be installed, are told to do."""
    found: list[str] = []

    @contextmanager
    def opened(name: str) -> Iterator[Any]:
        found.append(f"open {name}")
        try:
            yield writer
        except BaseException:
            found.append(f"fail {name}")
            raise
        found.append(f"close {name}")

    writer = ModuleType("writer")
    writer.add_scalar = lambda name, value, step: found.append(f"step {step}: {name}")
    writer.flush = lambda: None
    mlflow, tensorboard = ModuleType("mlflow"), ModuleType("torch.utils.tensorboard")
    mlflow.start_run = lambda run_name, nested: opened(run_name)
    mlflow.log_metrics = lambda values, step: found.extend(f"step {step}: {one}" for one in values)
    tensorboard.SummaryWriter = lambda folder: opened(Path(folder).name)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", tensorboard)
    return found


@pytest.mark.parametrize(("tracker", "name"), [("mlflow", "mine"), ("tensorboard", "tensorboard")])
def test_a_run_is_tracked_once_and_closed(
    tracker: str,
    name: str,
    objective_of: Callable[..., Classification],
    events: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = RunContext(CPU, tmp_path / "mine")
    other = replace(context, processes=Processes(rank=1))
    for one in (other, context):
        Trainer(objective_of(tracker=tracker), one).run()
    told = [f"step 1: {what}" for what in ("epoch", "step", "loss")]
    assert events == [f"open {name}", *told, f"close {name}"]
    events.clear()
    broken = objective_of(tracker=tracker)
    monkeypatch.setattr(broken, "judge", lambda state: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Trainer(broken, context).run()
    assert events == [f"open {name}", f"fail {name}"]
    for library in ("mlflow", "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UserError, match=f"pip install {tracker}"):
        Trainer(objective_of(tracker=tracker), context)


# Several processes, and several runs


def test_processes_share_a_batch_and_add_up_alone(
    objective_of: Callable[..., Classification],
) -> None:
    assert [Processes(rank, 3).share("abcde") for rank in range(3)] == ["ad", "be", "c"]
    alone, gradient = Processes(), torch.ones(2)
    alone.add_up([gradient, None])
    assert (alone.total(2.5), gradient.tolist(), alone.is_first) == (2.5, [1.0, 1.0], True)
    # parts that two processes compute of a batch of three add up to the whole of it
    whole, *parts = (objective_of() for _ in range(3))
    (expected,) = whole.losses([0, 1, 3], 0)
    for rank, part in enumerate(parts):
        part.processes = Processes(rank, 2)
    found = [next(part.losses([0, 1, 3], 0)) for part in parts]
    torch.testing.assert_close(list(map(sum, zip(*found, strict=True))), expected)
    # one that has no text adds nothing, and keeps every parameter in the graph
    (nothing,) = parts[1].losses([0], 0)
    assert sum(nothing).item() == 0
    sum(nothing).backward()
    assert all(own.grad is not None for own in parts[1].classifier.heads.parameters())


@pytest.mark.parametrize(
    ("n_cores", "room_for", "expected"),
    [(16, 3.5, 3), (4, 9, 2), (1, 9, 1), (64, 99, 6), (8, 0, 1)],
)
def test_a_gpu_is_shared_by_as_many_runs_as_it_holds(
    n_cores: int,
    room_for: float,
    expected: int,
    tiny_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoder = str(tiny_folder)
    free = int(room_for * bytes_of_run(encoder))
    monkeypatch.setattr(processes, "n_cores", lambda: n_cores)
    monkeypatch.setattr(processes, "choose_device", torch.device)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, 2 * free))
    assert choose_workers([encoder, encoder], "cuda") == expected
    assert choose_workers(["nobody asks"], "cpu") == 1
