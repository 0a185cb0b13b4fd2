"""The shortest way to ask an app, without a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import httpx
from fastapi import FastAPI

Outcome = TypeVar("Outcome")


async def ask_app_async(
    app: FastAPI, path: str, body: Any = None, *, headers: dict[str, str] | None = None, **more: Any
) -> httpx.Response:
    """A body is posted: as JSON, or as it is when it is bytes."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        if body is None:
            return await client.request(more.pop("method", "GET"), path, headers=headers, **more)
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await client.post(
            path,
            content=content,
            headers={"content-type": "application/json"} | (headers or {}),
            **more,
        )


def ask_app(*arguments: Any, **options: Any) -> httpx.Response:
    return run_in_thread(ask_app_async(*arguments, **options))


def run_in_thread(work: Coroutine[Any, Any, Outcome]) -> Outcome:
    """What it gives, run in a thread of its own: in this one the browser of other tests may have a
    loop that runs.
    """
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
