"""Students: their shapes, what they imitate, and the frontier they are drawn on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from litotes.core.errors import UserError
from litotes.core.figures import render_figure
from litotes.core.progress import ignore_progress
from litotes.core.values import Example, Task
from litotes.data.corpus import Corpus
from litotes.encoder import pretrained
from litotes.encoder.encoder import Encoder
from litotes.encoder.layout import Layout
from litotes.encoder.operations import Rows
from litotes.encoder.packing import pack
from litotes.training.distillation import DistillRecipe, plan_distillation
from litotes.training.distillation.distill import Point, Score, figure, measure_scores
from litotes.training.distillation.plan import Matching, Shape
from litotes.training.distillation.students import (
    IMITATIONS,
    Relations,
    check_shapes,
    make_start,
    match_encoder,
    plan_shapes,
)
from litotes.training.recipe import TrainingSettings

TEXTS = ["great tea", "a bad queue, is it not?", "a"]


def test_layers_come_from_the_encoder_or_are_fresh(tiny_folder: Path) -> None:
    whole, cut = Shape(str(tiny_folder)), Shape(str(tiny_folder), layers=1)
    assert whole.is_whole
    assert not cut.is_whole
    first, small = make_start(whole, seed=0).encoder, make_start(cut, seed=0).encoder
    assert torch.equal(small.block(0).inner.weight, first.block(1).inner.weight)
    fresh = Shape(str(tiny_folder), layers=1, fresh=True)
    one, same, other = (make_start(fresh, seed=seed).encoder for seed in (0, 0, 1))
    assert torch.equal(one.block(0).inner.weight, same.block(0).inner.weight)
    assert not torch.equal(one.block(0).inner.weight, other.block(0).inner.weight)
    assert one.block(0).inner.weight.std().item() == pytest.approx(0.02, rel=0.2)


CUT = {"model__pruning": "cascade", "model__pruning_options": {"schedule": [0.6, 0.3]}}


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"distill__compare_layers": [5]}, "5 layers"),
        ({"distill__width": 5}, "8, 16, 24"),
        ({"distill__match": "values", "distill__teacher__model__encoder": "minilm"}, "same pieces"),
        ({"distill__match": "hidden", **CUT}, "does not go with pruning"),
    ],
)
def test_impossible_students_are_refused_before_teachers_are_trained(
    recipe: DistillRecipe, tmp_path: Path, wrong: dict[str, Any], why: str
) -> None:
    with pytest.raises(UserError, match=why):
        check_shapes(plan_distillation(recipe.changed(**wrong), tmp_path / "out"))
    many = {"layers": 2, "compare_layers": [1, 2, 1], "baseline": True, "start": "fresh"}
    asks = recipe.changed(**{f"distill__{name}": value for name, value in many.items()})
    shapes = plan_shapes(plan_distillation(asks, tmp_path / "out"))
    assert list(shapes) == ["student", "student of 1 layer", "baseline"]
    assert [shape.layers for shape in shapes.values()] == [2, 1, 2]
    assert all(shape.fresh for shape in shapes.values())


# Imitation


@pytest.fixture
def large(tiny: pretrained.Pretrained) -> Encoder:
    torch.manual_seed(3)
    spec = replace(
        tiny.encoder.spec, width=48, n_attention_heads=6, n_layers=4, attention_dropout=0.0
    )
    encoder = Encoder(spec).eval()
    for parameter in encoder.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.2)
    return encoder


@pytest.mark.parametrize("name", IMITATIONS)
def test_a_student_comes_nearer_to_a_wider_and_deeper_teacher(
    name: str, tiny: pretrained.Pretrained, large: Encoder
) -> None:
    torch.manual_seed(0)
    batch = pack(tiny.tokenizer.encode(TEXTS))
    imitation = IMITATIONS[name](tiny.encoder.spec, large.spec)
    wanted = [one.detach() for one in imitation.look(large, batch)]
    parameters = [*tiny.encoder.parameters(), *imitation.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=3e-3)
    distances = []
    for _ in range(30):
        distance = imitation(imitation.look(tiny.encoder, batch), wanted, batch.layout)
        optimizer.zero_grad()
        distance.backward()
        optimizer.step()
        distances.append(distance.item())
    assert distances[0] > 0
    assert distances[-1] < 0.7 * distances[0]


@pytest.mark.parametrize("apart", [True, False])
def test_the_relation_is_that_of_the_paper(apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """KL of softmax(V Vᵀ / √d), mean over pieces and relation heads, text by text; also where all
    texts are one block, as on a GPU.
    """
    torch.manual_seed(0)
    layout = Layout.of([3, 2])
    mine, theirs = torch.randn(5, 2, 4), torch.randn(5, 2, 6)
    expected = []
    for start, end in ((0, 3), (3, 5)):
        for head in range(2):
            vectors = (part[start:end, head] for part in (theirs, mine))
            p, q = ((one @ one.T / one.shape[-1] ** 0.5).softmax(-1) for one in vectors)
            expected.append((p * (p / q).log()).sum(-1))
    imitation = Relations.__new__(Relations)
    torch.nn.Module.__init__(imitation)
    imitation.n_heads = 2
    monkeypatch.setattr(Rows, "of", classmethod(lambda cls, layout: cls(layout, apart=apart)))
    found = imitation([mine], [theirs], layout)
    torch.testing.assert_close(found, torch.cat(expected).mean())
    assert imitation([mine], [mine], layout).abs() < 1e-6


def test_pieces_of_queries_keys_and_values_are_those_attention_uses(
    large: Encoder, tiny: pretrained.Pretrained
) -> None:
    batch = pack(tiny.tokenizer.encode(TEXTS))
    imitation = Relations(large.spec, large.spec)
    assert imitation.n_heads == 6
    seen: dict[int, torch.Tensor] = {}
    large(batch, observer=lambda trace: seen.update({trace.layer: trace.attention.value}))
    _, _, value = imitation.look(large, batch)
    torch.testing.assert_close(value, seen[3])


def weights(encoder: Encoder) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in encoder.parameters()])


def test_an_encoder_learns_from_texts_that_both_cut_alike(
    tiny_folder: Path, trained_folder: Path, tmp_path: Path
) -> None:
    settings = TrainingSettings(epochs=2, batch_texts=4, learning_rate=1e-3, precision="float32")
    texts = tuple(Example(f"the tea {number} is great", {}) for number in range(12))
    long = tuple(Example(f"great tea {number} " * 8, {}) for number in range(13))
    found = []
    for _ in range(2):
        student, seen = pretrained.load(str(tiny_folder), max_pieces=24), []
        found.append(weights(student.encoder).clone())
        match_encoder(
            student,
            Matching("hidden", settings, 0, ((trained_folder, (*texts, *long[:12])),)),
            tmp_path,
            device="cpu",
            watch=lambda what, done, total, note, seen=seen: seen.append((what, done, total)),
        )
        found.append(weights(student.encoder))
        assert seen[-1] == ("matching hidden: training", 6, 6)
        assert not (tmp_path / "checkpoints").exists()
    before, once, _, again = found
    assert torch.equal(once, again)
    assert not torch.equal(once, before)
    few = Matching("hidden", settings, 0, ((trained_folder, (*texts, *long)),))
    with pytest.raises(UserError, match="only 12 of 25 texts"):
        match_encoder(student, few, tmp_path, device="cpu", watch=ignore_progress)


# The frontier

LABELS = ("no", "yes")


def corpus(gold: list[int], *, apart: bool) -> Corpus:
    """Two tasks of the same texts, or of texts of their own."""
    examples = []
    for place, own in enumerate(gold):
        labels = {"a": LABELS[own]} if apart else dict.fromkeys("ab", LABELS[own])
        examples.append(Example(f"t{place}", labels, split="test"))
        if apart:
            examples.append(Example(f"u{place}", {"b": LABELS[own]}, split="test"))
    tasks = {name: Task(name, LABELS) for name in "ab"}
    return Corpus("made", tuple(examples), tasks)


def test_tasks_of_the_same_texts_share_their_luck() -> None:
    """Two tasks that are right and wrong together tell no more than one of them."""
    generator = np.random.default_rng(0)
    gold = generator.integers(0, 2, 200)
    given = np.where(generator.random(200) < 0.75, gold, 1 - gold).tolist()
    widths = {}
    for apart in (False, True):
        test = corpus(gold.tolist(), apart=apart)
        found, by_task = measure_scores(test, [dict.fromkeys("ab", given)], seed=0)
        assert found is not None
        assert found.macro_f1 == pytest.approx(by_task["a"].macro_f1)
        widths[apart] = np.ptp(found.interval) / np.ptp(by_task["a"].interval)
    assert widths[False] == pytest.approx(1, abs=0.06)
    assert widths[True] == pytest.approx(np.sqrt(0.5), abs=0.06)


TEACHER = Point("teacher", 3, 12, 768, 109_000_000, 40.0, Score(0.69, (0.66, 0.72)), {})
POINTS = (
    TEACHER,
    replace(TEACHER, name="student", texts_per_second=300.0, score=Score(0.65, (0.61, 0.68))),
    replace(TEACHER, name="baseline", texts_per_second=290.0, score=Score(0.61, (0.5, 0.64))),
)


def test_every_point_is_named_and_its_interval_inside() -> None:
    picture = figure(POINTS)
    (ax,) = picture.axes
    low, high = ax.get_ylim()
    assert low < 0.5
    assert high > 0.72
    names = [text.get_text().split(",")[0] for text in ax.texts]
    assert names == ["teacher", "student", "baseline"]
    containers: list[Any] = ax.containers
    colours = [bars.lines[0].get_markerfacecolor() for bars in containers]
    assert colours[2] == "white"
    assert len(set(colours)) == 3
    assert render_figure(picture, "svg") == render_figure(figure(POINTS), "svg")
    with pytest.raises(UserError, match="test split"):
        figure([replace(TEACHER, score=None)])
