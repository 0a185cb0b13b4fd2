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
_INDEX = "index.html"


def read_page() -> dict[str, tuple[bytes, str]]:
    """The content and the media type of each file, by its name."""
    page = {}
    for file in (files("litotes.service") / "page").iterdir():
        suffix = "." + file.name.rpartition(".")[2]
        if file.is_file() and suffix in _TYPES:
            page[file.name] = (file.read_bytes(), _TYPES[suffix])
    return page


def page_routes() -> APIRouter:
    router = APIRouter(include_in_schema=False)
    page = read_page()

    def file_response(name: str) -> Response:
        if name not in page:
            raise HTTPException(404)
        content, media_type = page[name]
        return Response(content, headers={"Content-Type": media_type, "Cache-Control": "no-cache"})

    @router.get("/")
    async def index() -> Response:
        return file_response(_INDEX)

    @router.get("/page/{name}")
    async def page_file(name: str) -> Response:
        return file_response(name)

    return router
