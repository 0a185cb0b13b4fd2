"""What `pip install litotes` leaves out, and the one sentence for a command that needs it.

The plain install answers; everything else is an extra of the package, `litotes[train]` and so on.
A package is looked for, not imported: that is quick, and nothing has been done when it is missing.
"""

from __future__ import annotations

from importlib.util import find_spec

from litotes.core.errors import UserError

EXTRAS: dict[str, tuple[str, ...]] = {
    "train": ("torch", "safetensors", "scipy", "matplotlib", "onnx"),
    "figures": ("matplotlib",),
    "onnx": ("onnx",),
    "translate": ("sacrebleu",),
    "hub": ("huggingface_hub",),
    "serve": ("fastapi", "uvicorn", "httptools", "prometheus_client"),
}
"""The modules that each extra of pyproject.toml brings, as far as a command needs all of them."""


def has_extra(extra: str) -> bool:
    return _first_missing(extra) is None


def require_extra(extra: str, what: str, *, instead: str = "") -> None:
    """Refuses to go on without an extra. what: begins the sentence; instead: ends it."""
    missing = _first_missing(extra)
    if missing is not None:
        raise UserError(
            f"{what} needs the package {missing}: `pip install 'litotes[{extra}]'`{instead}."
        )


def _first_missing(extra: str) -> str | None:
    return next((module for module in EXTRAS[extra] if find_spec(module) is None), None)
