"""A model to look into."""

from __future__ import annotations

import pytest
from tiny_models import model_of

from litotes.encoders import pretrained
from litotes.model.checkpoint import Model


@pytest.fixture
def dense(tiny: pretrained.Pretrained) -> Model:
    return model_of(tiny)
