"""A client that offers another protocol is answered in this one (RFC 9110, section 7.8).

Java's client offers HTTP/2 with every request. httptools takes what stands behind such a head for
the first bytes of the other protocol, and the request's body would be lost.
"""

from __future__ import annotations

import re

_END_OF_HEAD = b"\r\n\r\n"
_UPGRADE = re.compile(rb"(?i)(?<=\r\n)upgrade(?=[ \t]*:)")
_IGNORED = b"ignored"  # as long as the name that it replaces

N_BEFORE = 10
"""Bytes in which the end of a head, or the name of the header, may have begun."""


def ignore_upgrade(before: bytes, data: bytes) -> bytes:
    """The data with the header `Upgrade` of the head they begin in, or go on with, under a name
    that means nothing; what stands behind the head stays as it is.

    before: the last bytes of this head that came before.
    """
    head, end, rest = (before + data).partition(_END_OF_HEAD)
    return (_UPGRADE.sub(_IGNORED, head) + end + rest)[len(before) :]
