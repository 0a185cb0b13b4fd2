"""A Hugging Face Hub on this machine: the few routes that pushing and pulling need."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import yaml

COMMIT = re.compile(r"/api/models/([\w.-]+/[\w.-]+)/commit/main(?:\?.*)?")
PREUPLOAD = re.compile(r"/api/models/([\w.-]+/[\w.-]+)/preupload/main(?:\?.*)?")
INFO = re.compile(r"/api/models/([\w.-]+/[\w.-]+)(?:/revision/([\w.-]+))?(?:\?.*)?")
FILE = re.compile(r"/([\w.-]+/[\w.-]+)/resolve/([\w.-]+)/([\w./-]+)(?:\?.*)?")


class FakeHub:
    """repositories: {name: {"private": …, "commits": {revision: {path: content}}}}"""

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                hub.answer(self)

            do_POST = do_HEAD = do_GET

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def files(self, name: str) -> dict[str, bytes]:
        """Those of the last commit."""
        *_, last = self.repositories[name]["commits"].values()
        return dict(last)

    def put(self, name: str, path: str, content: bytes | None) -> None:
        """Somebody edits a file in the browser, or takes it away."""
        files = self.files(name) | {path: content or b""}
        if content is None:
            del files[path]
        commits = self.repositories[name]["commits"]
        commits[f"{len(commits) + 1:040x}"] = files

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("content-length") or 0))
        self.asked.append(f"{request.command} {request.path}")
        if request.command == "POST":
            status, content = self._post(request.path, body)
        else:
            status, content = self._get(request.path)
        payload = content if isinstance(content, bytes) else json.dumps(content).encode()
        request.send_response(status)
        request.send_header("content-length", str(len(payload)))
        if isinstance(content, bytes):
            request.send_header("etag", f'"{hashlib.sha256(content).hexdigest()}"')
            found = FILE.fullmatch(request.path)
            assert found is not None
            request.send_header("x-repo-commit", found[2])
        elif status == 404:
            request.send_header("x-error-code", content["code"])
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(payload)

    def _post(self, path: str, body: bytes) -> tuple[int, Any]:
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = "/".join(filter(None, (asked.get("organization"), asked["name"])))
            if name in self.repositories:
                return 409, {"error": "it is there", "code": "", "url": f"{self.endpoint}/{name}"}
            # earlier versions of the library say `private`
            is_private = asked.get("private") or asked.get("visibility") == "private"
            self.repositories[name] = {"private": bool(is_private), "commits": {}}
            return 200, {"url": f"{self.endpoint}/{name}"}
        if path == "/api/validate-yaml":
            yaml.safe_load(json.loads(body)["content"].partition("---\n")[2].partition("---\n")[0])
            return 200, {"errors": [], "warnings": []}
        if found := PREUPLOAD.fullmatch(path):
            how = {"uploadMode": "regular", "shouldIgnore": False}
            asked = json.loads(body)["files"]
            return 200, {"files": [{"path": one["path"], **how} for one in asked]}
        if found := COMMIT.fullmatch(path):
            return 200, self._commit(found[1], body)
        return 404, {"error": "no such route", "code": "RepoNotFound"}

    def _commit(self, name: str, body: bytes) -> dict[str, Any]:
        commits = self.repositories[name]["commits"]
        files = self.files(name) if commits else {}
        for line in map(json.loads, body.splitlines()):
            if line["key"] == "file":
                files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
        revision = f"{len(commits) + 1:040x}"
        commits[revision] = files
        url = f"{self.endpoint}/{name}/commit/{revision}"
        return {"success": True, "commitOid": revision, "commitUrl": url, "hookOutput": ""}

    def _get(self, path: str) -> tuple[int, Any]:
        missing = 404, {"error": "not found", "code": "RepoNotFound"}
        if found := FILE.fullmatch(path):
            name, revision, file = found.groups()
            files = self.repositories.get(name, {"commits": {}})["commits"].get(revision, {})
            if file not in files:
                return 404, {"error": "no such file", "code": "EntryNotFound"}
            return 200, files[file]
        if (found := INFO.fullmatch(path)) and found[1] in self.repositories:
            commits = self.repositories[found[1]]["commits"]
            revision = found[2] if found[2] in commits else list(commits)[-1]
            siblings = [{"rfilename": file} for file in commits[revision]]
            return 200, {"id": found[1], "sha": revision, "siblings": siblings}
        return missing
