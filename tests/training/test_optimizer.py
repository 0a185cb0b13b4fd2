from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.optim import Adam, AdamW

from litotes.core.values import Task
from litotes.encoder.pretrained import Pretrained, load
from litotes.model.classifier import Classifier
from litotes.training.checkpoints import RunTensors, _restore, trainable_parameters
from litotes.training.optimizer import OWN_RATE, make_optimizer, rate_factor, scale_rates
from litotes.training.recipe import TrainingSettings


def classifier_of(tiny: Pretrained) -> Classifier:
    return Classifier(
        tiny.encoder, [Task("sentiment", ("negative", "positive"))], head="linear", dropout=0.1
    )


def test_norms_and_biases_are_not_decayed(tiny: Pretrained) -> None:
    optimizer = make_optimizer(
        trainable_parameters(classifier_of(tiny)), TrainingSettings(weight_decay=0.3)
    )
    for group in optimizer.param_groups:
        assert {parameter.ndim > 1 for parameter in group["params"]} == {
            group["weight_decay"] == 0.3
        }


def test_every_parameter_is_in_exactly_one_group(tiny: Pretrained) -> None:
    classifier = classifier_of(tiny)
    groups = make_optimizer(trainable_parameters(classifier), TrainingSettings()).param_groups
    assert sorted(id(p) for group in groups for p in group["params"]) == sorted(
        id(p) for p in classifier.parameters()
    )


def test_heads_may_learn_faster(tiny: Pretrained) -> None:
    classifier = classifier_of(tiny)
    optimizer = make_optimizer(
        trainable_parameters(classifier),
        TrainingSettings(learning_rate=1e-5, head_learning_rate=1e-3),
    )
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    assert rates[id(classifier.heads["sentiment"].output.weight)] == 1e-3
    assert rates[id(classifier.encoder.embeddings.piece.weight)] == 1e-5
    scale_rates(optimizer, rate_factor(TrainingSettings(warmup_share=0.5), step=0, n_steps=4))
    assert {group["lr"] for group in optimizer.param_groups} == {0.5e-5, 0.5e-3}


def test_warm_up_then_down_to_zero() -> None:
    settings = TrainingSettings(warmup_share=0.2)
    factors = [rate_factor(settings, step=step, n_steps=10) for step in range(10)]
    assert factors == pytest.approx(
        [0.5, 1.0, 1.0, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]
    )


def test_the_papers_schedule_is_level() -> None:
    settings = TrainingSettings(warmup_share=0.0, schedule="constant", optimizer="adam")
    assert {rate_factor(settings, step=step, n_steps=10) for step in range(10)} == {1.0}


@pytest.mark.parametrize(("name", "kind"), [("adam", Adam), ("adamw", AdamW)])
def test_optimizer_by_name(tiny: Pretrained, name: str, kind: type) -> None:
    assert (
        type(
            make_optimizer(
                trainable_parameters(classifier_of(tiny)), TrainingSettings(optimizer=name)
            )
        )
        is kind
    )


@pytest.mark.parametrize(("fused", "expected"), [(True, "meta"), (False, "cpu")])
def test_a_restored_optimizer_counts_steps_where_it_looks_for_them(
    fused: bool, expected: str
) -> None:
    """Fused kernels want the count beside the parameters; `meta` stands for a GPU."""
    parameter = torch.nn.Parameter(torch.zeros(2, device="meta"))
    optimizer = AdamW([parameter])
    optimizer.param_groups[0]["fused"] = fused
    _restore(
        {"optimizer/w/step": torch.tensor(3.0), "optimizer/w/exp_avg": torch.ones(2)},
        RunTensors({"w": parameter}, {}, optimizer),
    )
    assert optimizer.state[parameter]["step"].device.type == expected
    assert optimizer.state[parameter]["exp_avg"].device.type == "meta"


def rates_by_name(classifier: Classifier, settings: TrainingSettings) -> dict[str, float]:
    parameters = trainable_parameters(classifier)
    groups = make_optimizer(parameters, settings).param_groups
    rates = {id(p): group["base_rate"] for group in groups for p in group["params"]}
    return {name: rates[id(parameter)] for name, parameter in parameters.items()}


def test_lower_layers_may_learn_more_slowly(tiny: Pretrained) -> None:
    settings = TrainingSettings(learning_rate=1e-4, head_learning_rate=1e-3, layer_decay=0.5)
    rates = rates_by_name(classifier_of(tiny), settings)
    assert rates["encoder.blocks.1.inner.weight"] == pytest.approx(1e-4)
    assert rates["encoder.blocks.0.inner.weight"] == pytest.approx(0.5e-4)
    assert rates["encoder.embeddings.piece.weight"] == pytest.approx(0.25e-4)
    assert rates["heads.sentiment.output.weight"] == pytest.approx(1e-3)


def test_weightings_have_a_rate_of_their_own(tiny_folder: Path) -> None:
    sparse = load(str(tiny_folder), weighting="entmax", weighting_options={"alpha": "learned"})
    name = "encoder.blocks.0.attention.weighting.a"
    assert rates_by_name(classifier_of(sparse), TrainingSettings())[name] == OWN_RATE
    settings = TrainingSettings(weighting_learning_rate=0.02, layer_decay=0.5)
    rates = rates_by_name(classifier_of(sparse), settings)
    assert rates[name] == 0.02
    assert rates["encoder.blocks.0.attention.qkv.weight"] == pytest.approx(0.5 * 5e-5)
