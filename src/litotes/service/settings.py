"""The settings of the service, in one value.

Every limit is a number, so that nothing a client sends can grow without bound.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from ipaddress import ip_address

from litotes.core.errors import UserError

_ORIGIN = re.compile(r"https?://(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
_NAME = re.compile(r"[A-Za-z0-9._-]*[A-Za-z0-9_-]\.?")
_TOKEN = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class ServiceSettings:
    """Where the service listens, whom it answers, and how much it takes.

    allowed_hosts: names it may be requested under, besides localhost and `host` itself.
    allowed_origins: pages of other sites that may send requests, e.g. https://example.org.
    token: if set, every request to /v1 and /metrics must carry it.

    max_…: limits of one request.
    seconds: from a request's first line to its answer; body_seconds: of these, for its body.

    queue_seconds: a request is refused when others would hold it up longer at the speed measured.
    queue_texts, queue_characters: bound the queue whatever the speed.
    batch_texts: the most texts that are computed together.
    queue_explanations: how many may wait for the one being made.

    drain_seconds: from SIGTERM to the end.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    token: str | None = field(default=None, repr=False)
    max_texts: int = 64
    max_characters: int = 10_000
    max_explained_characters: int = 2_000
    max_body_bytes: int = 1_000_000
    seconds: float = 30.0
    body_seconds: float = 10.0
    queue_seconds: float = 0.5
    queue_texts: int = 1024
    queue_characters: int = 4_000_000
    batch_texts: int = 32
    queue_explanations: int = 4
    drain_seconds: float = 10.0

    def __post_init__(self) -> None:
        for setting in fields(self):
            value = getattr(self, setting.name)
            if isinstance(value, int | float) and setting.name != "port" and not value > 0:
                raise UserError(f"{setting.name} is {value}; it must be above 0.")
        if not 0 <= self.port <= 65535:
            raise UserError(
                f"Port {self.port} does not exist: take one from 1 to 65535, or 0 for any that is"
                " free."
            )
        for name in self.allowed_hosts:
            if not _NAME.fullmatch(name) and not _is_address(_plain_name(name)):
                raise UserError(
                    f"{name!r} is not a name under which a service is asked: write it without"
                    " scheme, port and path, e.g. example.org."
                )
        for origin in self.allowed_origins:
            if not _ORIGIN.fullmatch(origin):
                raise UserError(
                    f"{origin!r} is not the origin of a page: write it as a browser sends it,"
                    " scheme, name and port in small letters, without a path, e.g."
                    " https://example.org."
                )
        if self.token is not None and not _TOKEN.fullmatch(self.token):
            raise UserError(
                "A token is made of letters, digits and signs of ASCII, without blanks around it."
            )
        if self.body_seconds > self.seconds:
            raise UserError(
                f"body_seconds ({self.body_seconds}) is part of seconds ({self.seconds}) and cannot"
                " be more."
            )

    @property
    def max_texts_per_request(self) -> int:
        """Never more than the queue holds: such a request could never be answered."""
        return min(self.max_texts, self.queue_texts)

    @property
    def is_public(self) -> bool:
        """True if other machines can reach the service."""
        is_loopback = _is_address(self.host) and ip_address(self.host).is_loopback
        return self.host.lower() != "localhost" and not is_loopback

    def allows_host(self, name: str) -> bool:
        """Tells whether a request may have this name as its Host.

        Any other name could be that of another site, pointed at this machine. A service that
        listens everywhere allows every address: to abuse one, an attacker must own it.
        """
        if name in (*_LOOPBACK, self.host.lower(), *map(_plain_name, self.allowed_hosts)):
            return True
        return _is_address(name) and _is_address(self.host) and ip_address(self.host).is_unspecified


def _plain_name(name: str) -> str:
    """Prepares a Host for comparison: without brackets, and without the dot at its end."""
    return name.strip("[]").rstrip(".").lower()


def _is_address(name: str) -> bool:
    """Tells whether it is an IP address and not a name."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
