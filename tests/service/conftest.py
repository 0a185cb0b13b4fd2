"""A tiny model that is served."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from app_client import ask_app
from fastapi import FastAPI
from tiny_models import model_of

from litotes.core.values import Task
from litotes.encoders import pretrained
from litotes.prediction.predictor import Predictor
from litotes.service import ServiceSettings, create_app

Ask = Callable[..., httpx.Response]


@pytest.fixture(scope="session")
def predictor(trained_folder: Path) -> Predictor:
    return Predictor.load(trained_folder, device="cpu")


@pytest.fixture(scope="session")
def moods(tiny_folder: Path) -> Predictor:
    """A random model with three labels, and with a number."""
    tasks = Task("mood", ("angry", "content", "calm")), Task("warmth", ())
    return Predictor(model_of(pretrained.load(str(tiny_folder)), *tasks), device="cpu")


@pytest.fixture
def app(predictor: Predictor) -> Iterator[FastAPI]:
    made = create_app({"tiny": predictor}, settings=ServiceSettings())
    yield made
    made.state.service.close()


@pytest.fixture
def ask() -> Ask:
    return ask_app
