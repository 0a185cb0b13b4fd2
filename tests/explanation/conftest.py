"""A model of every kind to look into."""

from __future__ import annotations

import pytest
from tiny_models import KINDS, model_of

from litotes.encoder import pretrained
from litotes.model.checkpoint import Model


@pytest.fixture(scope="module", params=sorted(KINDS))
def model(request: pytest.FixtureRequest, shared_tiny: pretrained.Pretrained) -> Model:
    """For tests that change nothing in it."""
    return model_of(shared_tiny, **KINDS[request.param])


@pytest.fixture
def dense(tiny: pretrained.Pretrained) -> Model:
    return model_of(tiny)
