"""The app ends as it began, whatever runs it."""

from __future__ import annotations

import pytest
from app_client import run_in_thread
from fastapi import FastAPI

from litotes.service.problems import QueueFull


def test_a_service_that_breaks_off_closes_its_queues(app: FastAPI) -> None:
    async def break_off() -> None:
        async with app.router.lifespan_context(app):
            raise ConnectionError

    with pytest.raises(ConnectionError):
        run_in_thread(break_off())
    service = app.state.service
    with pytest.raises(QueueFull):
        service.batcher.check_room("somebody", 1)
    with pytest.raises(QueueFull):
        service.explainer.check_room("somebody")
