"""The shortest way to ask an app, without a server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
from fastapi import FastAPI


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
