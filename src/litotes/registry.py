"""Tables of named choices are plain dicts; this is the one way to look a name up in them."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from litotes.errors import UserError

Entry = TypeVar("Entry")  # Python 3.11 has no `def pick[Entry]`


def pick(table: Mapping[str, Entry], name: str, kind: str) -> Entry:
    """The entry called `name`; a wrong name is answered with the nearest one and the whole list."""
    if name not in table:
        raise UserError(unknown(name, table, kind))
    return table[name]


def unknown(name: str, known: Iterable[str], kind: str) -> str:
    """The sentence for a name that is not there."""
    names = sorted(known)
    nearest = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
    return f"There is no {kind} {name!r}.{hint} Known: {', '.join(names)}."
