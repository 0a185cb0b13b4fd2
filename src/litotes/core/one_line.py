"""What a value prints as: one line that says what matters, however much it holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_MAX_LINE, _MAX_TEXT = 200, 60


def one_line(value: object, **shown: Any) -> str:
    """`Name(shown=…, …)`, at most 200 characters: long texts are shortened, numbers rounded.

    For display only: what is shortened or rounded here is whole in the value.
    """
    parts = [f"{name}={_short(one)}" for name, one in shown.items()]
    return _shorten(f"{type(value).__name__}({', '.join(parts)})", _MAX_LINE, end="…)")


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:z.3f}".rstrip("0").rstrip(".")
    if isinstance(value, str):
        return repr(_shorten(value, _MAX_TEXT, end="…"))
    if isinstance(value, Mapping):
        return f"{{{_join(f'{key!r}: {_short(one)}' for key, one in value.items())}}}"
    if isinstance(value, list):
        return f"[{_join(map(_short, value))}]"
    if isinstance(value, tuple):
        return f"({_join(map(_short, value))})"
    return _shorten(repr(value), _MAX_TEXT, end="…")


def _join(parts: Iterable[str]) -> str:
    return _shorten(", ".join(parts), 2 * _MAX_TEXT, end="…")


def _shorten(text: str, most: int, *, end: str) -> str:
    return text if len(text) <= most else text[: most - len(end)] + end
