"""The mean of several models: between them, exactly the same where they agree."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from litotes.core.errors import UserError
from litotes.data.corpus import SENTIMENT
from litotes.encoder.pretrained import Pretrained
from litotes.model.calibration import Calibration
from litotes.model.checkpoint import Model
from litotes.model.classifier import Classifier
from reproduction.builtin.averaging import average_models


@pytest.fixture(scope="module")
def one(shared_tiny: Pretrained) -> Model:
    classifier = Classifier(deepcopy(shared_tiny.encoder), [SENTIMENT], head="linear", dropout=0.0)
    return Model(classifier.eval(), shared_tiny.tokenizer, "tiny", None)


@pytest.fixture(scope="module")
def two(one: Model) -> tuple[Model, Model]:
    """Models that differ in their heads alone."""
    other = deepcopy(one.classifier)
    with torch.no_grad():
        for parameter in other.heads.parameters():
            parameter += 1.0
    return one, replace(one, classifier=other)


@pytest.mark.parametrize("shares", [None, [0.75, 0.25]])
def test_the_mean_lies_between_two(two: tuple[Model, Model], shares: list[float] | None) -> None:
    first, other = (list(one.classifier.heads.parameters()) for one in two)
    mean = average_models(two, shares).classifier.heads.parameters()
    for own, before, after in zip(mean, first, other, strict=True):
        torch.testing.assert_close(own, before + (0.25 if shares else 0.5))
        torch.testing.assert_close(after, before + 1)  # neither has moved


def test_is_the_same_to_the_last_bit_where_all_agree(two: tuple[Model, Model]) -> None:
    one = two[0]
    fitted = replace(one, calibration={SENTIMENT.name: Calibration(temperature=2.0, n=10)})
    mean = average_models([fitted, one, one])
    assert mean.calibration_of(SENTIMENT.name) == Calibration(), "fitted to other weights"
    own = one.classifier.state_dict()
    for name, tensor in mean.classifier.state_dict().items():
        assert torch.equal(tensor, own[name]), name
    with pytest.raises(UserError, match="same encoder, head and tasks"):
        average_models([one, replace(two[1], base_sha256="another")])
