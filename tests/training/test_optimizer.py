"""Learning rates, decay and warm-up: which parameter gets which."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.optim import Adam, AdamW

from litotes.core.values import Task
from litotes.encoder.pretrained import Pretrained, load
from litotes.model.classifier import Classifier
from litotes.training.checkpoints import trainable_parameters
from litotes.training.optimizer import OWN_RATE, make_optimizer, rate_factor, scale_rates
from litotes.training.recipe import TrainingSettings


def parameters_of(tiny: Pretrained) -> dict[str, torch.nn.Parameter]:
    tasks = [Task("sentiment", ("negative", "positive"))]
    return trainable_parameters(Classifier(tiny.encoder, tasks, head="linear", dropout=0.1))


@pytest.mark.parametrize(("name", "kind"), [("adam", Adam), ("adamw", AdamW)])
def test_every_parameter_is_once_in_a_group_and_norms_and_biases_are_not_decayed(
    tiny: Pretrained, name: str, kind: type
) -> None:
    parameters = parameters_of(tiny)
    optimizer = make_optimizer(parameters, TrainingSettings(weight_decay=0.3, optimizer=name))
    assert type(optimizer) is kind
    found = [one for group in optimizer.param_groups for one in group["params"]]
    assert sorted(map(id, found)) == sorted(map(id, parameters.values()))
    for group in optimizer.param_groups:
        decays = {0.3 if parameter.ndim > 1 else 0.0 for parameter in group["params"]}
        assert decays == {group["weight_decay"]}


def test_heads_layers_and_weightings_have_rates_of_their_own(
    tiny: Pretrained, tiny_folder: Path
) -> None:
    settings = TrainingSettings(
        learning_rate=1e-4,
        head_learning_rate=1e-3,
        layer_decay=0.5,
        warmup_share=0.5,
        weighting_learning_rate=0.02,
    )
    sparse = load(str(tiny_folder), weighting="entmax", weighting_options={"alpha": "learned"})
    parameters = parameters_of(sparse) | {"balancing.x": torch.nn.Parameter(torch.zeros(2))}
    optimizer = make_optimizer(parameters, settings)
    scale_rates(optimizer, rate_factor(settings, step=0, n_steps=4))
    rates = {
        id(parameter): (group["base_rate"], group["lr"])
        for group in optimizer.param_groups
        for parameter in group["params"]
    }
    for name, rate in {
        "encoder.blocks.1.inner.weight": 1e-4,
        "encoder.blocks.0.inner.weight": 0.5e-4,
        "encoder.blocks.0.attention.qkv.weight": 0.5e-4,
        "encoder.blocks.0.attention.weighting.a": 0.02,
        "encoder.embeddings.piece.weight": 0.25e-4,
        "heads.sentiment.output.weight": 1e-3,
        "balancing.x": OWN_RATE,
    }.items():
        assert rates[id(parameters[name])] == pytest.approx((rate, rate / 2)), name
    plain = make_optimizer(parameters_of(tiny), TrainingSettings(learning_rate=2e-5))
    assert {group["base_rate"] for group in plain.param_groups} == {2e-5}


def test_warm_up_then_down_to_zero_or_level() -> None:
    falling = TrainingSettings(warmup_share=0.2)
    factors = [rate_factor(falling, step=step, n_steps=10) for step in range(10)]
    eighths = [7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]
    assert factors == pytest.approx([0.5, 1.0, 1.0, *eighths])
    level = TrainingSettings(warmup_share=0.2, schedule="constant")
    factors = [rate_factor(level, step=step, n_steps=10) for step in range(10)]
    assert factors == pytest.approx([0.5, *[1.0] * 9])
