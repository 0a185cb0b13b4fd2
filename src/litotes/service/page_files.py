"""The page: a few static files of the package, read once at the start.

No path is ever made from a request.
"""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.responses import Response

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
}
_FIRST = "index.html"


def read_page() -> dict[str, tuple[bytes, str]]:
    """{name: (content, type)}"""
    found = {}
    for file in (files("litotes.service") / "page").iterdir():
        suffix = "." + file.name.rpartition(".")[2]
        if file.is_file() and suffix in _TYPES:
            found[file.name] = (file.read_bytes(), _TYPES[suffix])
    return found


def page_routes() -> APIRouter:
    routes = APIRouter(include_in_schema=False)
    page = read_page()

    def answer(name: str) -> Response:
        if name not in page:
            raise HTTPException(404)
        content, kind = page[name]
        return Response(content, headers={"Content-Type": kind, "Cache-Control": "no-cache"})

    @routes.get("/")
    async def first() -> Response:
        return answer(_FIRST)

    @routes.get("/page/{name}")
    async def other(name: str) -> Response:
        return answer(name)

    return routes
