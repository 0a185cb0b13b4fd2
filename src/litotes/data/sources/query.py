"""The options of a source as a user writes them: `key=value&key=value`."""

from __future__ import annotations

from urllib.parse import unquote

from litotes.core.errors import UserError


def parse_query(query: str) -> dict[str, str]:
    """The options by name; %XX in a value is read as in an address."""
    options: dict[str, str] = {}
    for part in query.split("&") if query else ():
        key, _, value = part.partition("=")
        if not key or not value:
            raise UserError(
                f"The option {part!r} is not of the form key=value (write %26 for an & that belongs"
                " to a value)."
            )
        if key in options:
            raise UserError(f"The option {key!r} is given twice: give it once.")
        options[key] = unquote(value)
    return options
