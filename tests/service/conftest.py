"""A tiny model that is served."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from asking_apps import asked
from fastapi import FastAPI

from litotes.predictor import Predictor
from litotes.recipe import Recipe
from litotes.run import train
from litotes.service import ServiceSettings, create_app

Ask = Callable[..., httpx.Response]


@pytest.fixture(scope="session")
def served_folder(tiny_recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tiny_recipe.changed(training__epochs=1), tmp_path_factory.mktemp("served") / "tiny").folder


@pytest.fixture(scope="session")
def predictor(served_folder: Path) -> Predictor:
    return Predictor.load(served_folder, device="cpu")


@pytest.fixture
def app(predictor: Predictor) -> Iterator[FastAPI]:
    made = create_app({"tiny": predictor}, settings=ServiceSettings())
    yield made
    made.state.service.close()


@pytest.fixture
def ask() -> Ask:
    return asked
