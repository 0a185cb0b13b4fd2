"""A tiny model that is served, and the shortest way to ask an app."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
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


async def asked_later(app: FastAPI, path: str, body: Any = None, *, headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
    """A body is posted: as JSON, or as it is when it is bytes."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        if body is None:
            return await client.request(more.pop("method", "GET"), path, headers=headers, **more)
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await client.post(path, content=content, headers={"content-type": "application/json"} | (headers or {}), **more)


def asked(*arguments: Any, **options: Any) -> httpx.Response:
    return asyncio.run(asked_later(*arguments, **options))
