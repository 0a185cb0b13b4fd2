"""The frontier: shares searched for a saving, and its picture."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.colors import same_color
from torch import Tensor
from torch.nn.functional import one_hot

from litotes.core.errors import UserError
from litotes.core.figures import render_figure
from litotes.core.values import Example
from litotes.data.corpus import SENTIMENT
from litotes.encoder.packing import TextSet, make_text_set
from litotes.encoder.pretrained import Pretrained
from litotes.encoder.reshaping import rebuild_encoder
from litotes.model.classifier import Classifier
from litotes.pruning.cost import flops
from litotes.pruning.frontier import (
    NO_LOSS,
    SAVINGS,
    SERIES,
    Kind,
    Loss,
    Point,
    figure,
    join_tasks,
    measure_loss,
)
from litotes.pruning.losses import Answers
from litotes.pruning.phases import N_CHANGES, POWERS, Search
from litotes.training.inputs import Inputs, all_logits
from litotes.training.losses import Teacher

LABELS = ("negative", "positive")


def classifier_of(tiny: Pretrained, **choices: object) -> Classifier:
    torch.manual_seed(0)
    return Classifier(
        rebuild_encoder(tiny.encoder, **choices), [SENTIMENT], head="mean", dropout=0.0
    ).eval()


def texts_of(tiny: Pretrained, n: int = 12) -> TextSet:
    words = ["the", "great", "tea", "is", "not", "bad", "and", "it", "love", "a", "queue"]
    examples = [
        Example(" ".join(words[place % 5 : place % 5 + 6]), {"sentiment": LABELS[place % 2]})
        for place in range(n)
    ]
    return make_text_set(examples, [SENTIMENT], tiny.tokenizer)


@pytest.mark.parametrize("target", [1.0, 2.0])
def test_the_search_meets_its_target_and_tells_what_it_tries(
    tiny: Pretrained, target: float
) -> None:
    dense, pruned = classifier_of(tiny), classifier_of(tiny, pruning="learned")
    texts = texts_of(tiny)
    source = Inputs(texts, torch.device("cpu"))
    teacher = Teacher(all_logits(source, dense), 0.9)
    told: list[int] = []
    found = Search(pruned, source, teacher, dense=dense, seed=0).for_target(
        target, watch=told.append
    )
    pruned.encoder.pruning.shares = found.shares
    ratio = flops(dense.encoder, texts.lengths).total / flops(pruned.encoder, texts.lengths).total
    assert target <= ratio < 1.35 * target
    assert told == list(range(1, len(POWERS) + N_CHANGES + 1))
    assert (found.divergence > 1e-9) == (target > 1)
    assert all(
        after <= before for before, after in zip(found.shares, found.shares[1:], strict=False)
    )


def loss_of(dense: Tensor, pruned: Tensor) -> Loss:
    """What is lost on texts of two labels in turn; dense, pruned: class numbers, (text,)."""
    gold = torch.arange(len(dense)) % 2
    labels = torch.stack([dense, pruned])
    given = Answers(gold.numpy(), labels.numpy(), one_hot(labels, 2).double().numpy())
    return measure_loss({"sentiment": given}, 1, budget=0.5)


def test_a_loss_has_its_interval() -> None:
    right = torch.arange(40) % 2
    worse = right.clone()
    worse[:4] = 1 - worse[:4]  # 4 of 40 wrong, two of each label
    same = loss_of(right, right)
    assert (same.points, same.interval, same.chance_within) == (0.0, (0.0, 0.0), 1.0)
    loss = loss_of(right, worse)
    assert loss.points == pytest.approx(10.0)
    assert 0 <= loss.interval[0] < 10 < loss.interval[1]
    assert loss.chance_within < 0.1
    gain = loss_of(worse, right)
    assert gain.points == pytest.approx(-10.0)
    assert gain.chance_within == 1.0


def test_every_task_must_be_within_the_budget() -> None:
    generator = np.random.default_rng(0)
    draws = {"one": generator.normal(0, 1, 2000), "other": generator.normal(0, 1, 2000)}
    joined = join_tasks({"one": 0.0, "other": 0.4}, draws, budget=0.5)
    assert joined.points == joined.by_task["other"].points
    alone = join_tasks({"one": 0.0}, {"one": draws["one"]}, budget=0.5)
    assert joined.chance_within < alone.chance_within - 0.1


def made(
    target: float,
    speed: float,
    loss: float,
    test_loss: float | None,
    *,
    chosen: bool = False,
    kind: Kind = "pruned",
) -> Point:
    tested = None if test_loss is None else Loss(test_loss, (test_loss - 1.5, test_loss + 1), 0.7)
    return Point(
        target,
        (0.5, 0.2),
        8,
        target + 0.05,
        speed,
        Loss(loss, (loss - 2, loss + 3), 0.8),
        tested,
        0.01,
        chosen,
        kind=kind,
        expected=Loss(loss / 2, (loss / 2 - 1, loss / 2 + 2), 0.7),
    )


DENSE = replace(made(1.0, 1.0, 0.0, 0.0, kind="dense"), flops_ratio=1.0, expected=NO_LOSS)
CONTROL = replace(made(1.0, 1.02, -0.6, -0.4, kind="control"), flops_ratio=1.0)
POINTS = (
    DENSE,
    CONTROL,
    made(2.5, 1.9, 0.4, 0.6, chosen=True),
    made(1.5, 1.3, -0.2, 0.1),
    made(3.0, 2.1, 6.0, 4.0),
)


def drawn(ax: Axes, *, name: str) -> list[tuple[float, float]]:
    """The places of the points with this name in the legend."""
    (handle,) = [
        one for one, label in zip(*ax.get_legend_handles_labels(), strict=True) if label == name
    ]
    line = handle.lines[0] if hasattr(handle, "lines") else handle
    return [(round(x, 6), round(y, 6)) for x, y in zip(*line.get_data(), strict=True)]


def test_the_chosen_one_is_ringed_and_it_alone() -> None:
    operations, time = figure(POINTS, budget=0.5).axes
    assert drawn(operations, name="chosen") == [(2.55, 0.2)]
    assert drawn(time, name="chosen") == [(1.9, 0.2)]
    nothing = [replace(point, chosen=False) for point in POINTS]
    assert "chosen" not in render_figure(figure(nothing, budget=0.5), "svg").decode()


def test_losses_stand_at_their_savings() -> None:
    picture = figure(POINTS, budget=0.75)
    operations, time = picture.axes
    marks: dict[str, Any] = {}
    for ax, places in ((operations, (1.0, 1.55, 2.55, 3.05)), (time, (1.02, 1.3, 1.9, 2.1))):
        for name, losses in {
            "kept apart": (-0.6, -0.2, 0.4, 6.0),
            "expected": (-0.3, -0.1, 0.2, 3.0),
            "test": (-0.4, 0.1, 0.6, 4.0),
        }.items():
            assert drawn(ax, name=name) == list(zip(places, losses, strict=True))
        assert drawn(ax, name="dense") == [(1.0, 0.0)]
        low, high = ax.get_ylim()
        assert low < -2.2
        assert high > 9.0
    containers: list[Any] = operations.containers
    marks = {bars.get_label(): bars.lines[0].get_markerfacecolor() for bars in containers}
    assert same_color(marks["expected"], SERIES["expected"].colour)
    assert same_color(marks["kept apart"], "white")
    assert same_color(marks["test"], "white")
    svg = render_figure(picture, "svg").decode()
    labels = ("budget, 0.75", "dense, trained on", "loss of macro-F1, points")
    assert all(shown in svg for shown in (*SAVINGS.values(), *labels))
    assert svg == render_figure(figure(POINTS, budget=0.75), "svg").decode()
    with pytest.raises(UserError, match="at least one target"):
        figure([], budget=0.5)
