"""Tables of named choices are plain dicts; this is the one way to look a name up in them, and to
group things by one.
"""

from __future__ import annotations

import re
from collections import UserDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from inspect import signature
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from litotes.core.errors import UserError

Entry = TypeVar("Entry")  # Python 3.11 has no `def pick[Entry]`


class LazyTable(UserDict[str, Entry]):
    """A table whose names are known at once, and whose entries are imported when they are asked
    for: some need packages that the plain install lacks.

    package: where the modules are. places: {name: "module.Class"}
    """

    def __init__(self, package: str, places: Mapping[str, str]) -> None:
        self._places = {name: f"{package}.{place}" for name, place in places.items()}
        entries: dict[str, Any] = dict.fromkeys(places)
        super().__init__(entries)

    def __getitem__(self, name: str) -> Entry:
        if self.data[name] is None:
            module, _, entry = self._places[name].rpartition(".")
            self.data[name] = getattr(import_module(module), entry)
        return self.data[name]


def pick(table: Mapping[str, Entry], name: str, kind: str) -> Entry:
    """The entry called `name`; for a wrong name the error has the nearest one and the full list."""
    if name not in table:
        raise UserError(unknown_name(name, table, kind))
    return table[name]


def unknown_name(name: str, known: Iterable[str], kind: str) -> str:
    """The sentence for a name that is not there."""
    names = sorted(known)
    nearest = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
    return f"There is no {kind} {name!r}.{hint} Known: {', '.join(names)}."


def build(
    table: Mapping[str, Callable[..., Entry]],
    name: str,
    kind: str,
    *fixed: object,
    options: Mapping[str, Any],
) -> Entry:
    """The entry called `name`, made with its options: the keyword-only arguments of its class."""
    check_options(table, name, kind, options)
    return table[name](*fixed, **options)


def check_options(
    table: Mapping[str, Callable[..., object]], name: str, kind: str, options: Mapping[str, Any]
) -> None:
    """Refuses a wrong name, an option the entry does not have, or a value of another type than the
    option's.
    """
    entry = pick(table, name, kind)
    known = options_of(entry)
    for option, value in options.items():
        if not known:
            raise UserError(f"The {kind} {name!r} has no options.")
        if option not in known:
            raise UserError(unknown_name(option, known, f"option of the {kind} {name!r} called"))
        _check_type(entry, f"{option} of the {kind} {name!r}", option, value)


def _check_type(entry: Callable[..., object], what: str, option: str, value: object) -> None:
    hint = get_type_hints(getattr(entry, "__init__", entry)).get(option, Any)
    if _has_exact_type(value, hint):
        return
    # importing it takes a moment, which a good model and `litotes --help` need not wait for
    from pydantic import TypeAdapter, ValidationError

    try:
        TypeAdapter(hint).validate_python(value, strict=True)
    except ValidationError as error:
        raise UserError(
            f"{what} = {value!r}: {error.errors(include_url=False)[0]['msg']}."
        ) from error


def _has_exact_type(value: object, hint: Any) -> bool:
    """Tells whether the value has exactly this type, as far as that can be seen quickly."""
    kind, inside = get_origin(hint), get_args(hint)
    if kind is Literal:
        return isinstance(value, str) and value in inside
    if kind in (list, Sequence):
        return isinstance(value, list) and all(_has_exact_type(one, inside[0]) for one in value)
    if kind in (Union, UnionType):
        return any(_has_exact_type(value, one) for one in inside)
    return isinstance(hint, type) and type(value) is hint


def options_of(entry: Callable[..., object]) -> dict[str, Any]:
    """The options an entry of a table can be made with, and their defaults."""
    parameters = signature(entry).parameters.values()
    return {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY
    }


_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def is_plain_name(name: object) -> bool:
    """Tells whether it is made of letters, digits, - and _, with a letter first.

    A folder of that name lies where it is expected, no matter who chose it.
    """
    return isinstance(name, str) and _PLAIN.fullmatch(name) is not None


OUTPUT_COLUMNS = ("text", "pair", "truncated", "unreadable", "problem")
"""The columns of a table of answers that belong to no task."""


def can_name_task(name: str) -> bool:
    """Tells whether a task may have this name, which becomes a folder and a column of answers next
    to NAME_probability and NAME_probability_LABEL.
    """
    is_column = name in OUTPUT_COLUMNS or "_probability" in name
    return is_plain_name(name) and not is_column


def propose_task_name(column: str) -> str:
    """A name for the task of a column whose own name cannot be one."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", column).strip("_-")
    if not name:
        return "label"
    if not name[0].isalpha():
        return f"label_{name}"
    return name if can_name_task(name) else f"{name}_label"


Thing = TypeVar("Thing")
Key = TypeVar("Key")


def grouped(things: Iterable[Thing], key_of: Callable[[Thing], Key]) -> dict[Key, list[Thing]]:
    """The things by what `key_of` says of each: keys and things in the order they come in."""
    found: dict[Key, list[Thing]] = {}
    for thing in things:
        found.setdefault(key_of(thing), []).append(thing)
    return found
