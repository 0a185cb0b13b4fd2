"""The one rule for names that become part of a path, a column or a weight's name."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def is_plain_name(name: object) -> bool:
    """Whether it is made of letters, digits, - and _, with a letter first.

    A folder of that name lies where it is expected, whoever chose the name.
    """
    return isinstance(name, str) and _PLAIN.fullmatch(name) is not None
