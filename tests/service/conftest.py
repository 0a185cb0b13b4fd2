"""A tiny model that is served."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from app_client import ask_app
from fastapi import FastAPI
from pairs_model import train_pairs
from several_model import train_several
from tiny_models import TEXTS, model_of

from litotes.core.values import Task
from litotes.encoder import pretrained
from litotes.model.calibration import Bound, LabelSets, label_shares
from litotes.model.folder import whole_copy, write_label_sets
from litotes.prediction.predictor import Predictor
from litotes.service import ServiceSettings, create_app
from litotes.training.recipe import Recipe

Ask = Callable[..., httpx.Response]


@pytest.fixture(scope="session")
def predictor(trained_folder: Path) -> Predictor:
    return Predictor.load(trained_folder, device="cpu")


@pytest.fixture(scope="session")
def moods(tiny_folder: Path) -> Predictor:
    """A random model with three labels, and with a number."""
    tasks = Task("mood", ("angry", "content", "calm")), Task("warmth", ())
    return Predictor(model_of(pretrained.load(str(tiny_folder)), *tasks), device="cpu")


@pytest.fixture(scope="session")
def unsure_folder(
    predictor: Predictor, trained_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Calibrated so that half of TEXTS have no sentiment, and half have both labels of sarcasm; of
    en-AU all labels are always possible.
    """
    copy = tmp_path_factory.mktemp("unsure") / "tiny"
    with whole_copy(trained_folder, copy) as folder:
        bounds = {}
        predictions = predictor.predict(TEXTS)
        for task, pick_share in {"sentiment": max, "sarcasm": min}.items():
            threshold = predictor.runtimes[0].calibration[task].threshold
            shares = label_shares(
                np.array([list(one.answers[task].probabilities.values()) for one in predictions]),
                threshold,
            )
            # between two texts, far from either
            middle = float(np.median([pick_share(row) for row in shares.tolist()]))
            bounds[task] = LabelSets(0.9, Bound(middle, 20), {"en-AU": Bound(0.0, 20)})
        write_label_sets(folder, bounds)
    return copy


@pytest.fixture(scope="session")
def pairs_folder(tiny_recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has learned from pairs of texts."""
    return train_pairs(tiny_recipe, tmp_path_factory.mktemp("pairs"))


@pytest.fixture(scope="session")
def several_folder(tiny_recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that may give a text several labels."""
    return train_several(tiny_recipe, tmp_path_factory.mktemp("several"))


@pytest.fixture
def app(predictor: Predictor) -> Iterator[FastAPI]:
    made = create_app({"tiny": predictor}, settings=ServiceSettings())
    yield made
    made.state.service.close()


@pytest.fixture
def ask() -> Ask:
    return ask_app
