"""What the service allows, all of it in one value.

Every limit has a number, so that nothing a stranger sends can grow without end.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from ipaddress import ip_address

from litotes.core.errors import UserError

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class ServiceSettings:
    """Where the service listens, whom it answers, and how much it takes.

    allowed_hosts: names under which it may be asked, beside localhost and `host` itself.
    allowed_origins: pages that may ask it although they came from elsewhere, e.g.
    https://example.org. token: what every request to /v1 and /metrics must then carry.

    most_…: of one request. seconds: from a request's first line to its answer; body_seconds: of
    them, to wait for its body.
    queue_seconds: a queue is full when the texts in it would wait longer, at the speed measured;
    with the batch under way and its own, a text is then answered within about a second. queue_texts
    and queue_characters bound the queue whatever the speed. batch_texts: at most so many are
    computed together. queue_explanations: that may wait for the one being made.
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
    queue_characters: int = 1_000_000
    batch_texts: int = 32
    queue_explanations: int = 4
    drain_seconds: float = 10.0

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, int | float) and one.name != "port" and not value > 0:
                raise UserError(f"{one.name} is {value}; it must be above 0.")
        if not 0 <= self.port <= 65535:
            raise UserError(
                f"Port {self.port} does not exist: take one from 1 to 65535, or 0 for any that is"
                " free."
            )
        if self.token is not None and not (
            self.token.isascii()
            and self.token.isprintable()
            and self.token.strip() == self.token != ""
        ):
            raise UserError(
                "A token is made of letters, digits and signs of ASCII, without blanks around it."
            )
        if self.body_seconds > self.seconds:
            raise UserError(
                f"body_seconds ({self.body_seconds}) are part of seconds ({self.seconds}): they"
                " cannot be more."
            )

    @property
    def max_texts_per_request(self) -> int:
        """More would never fit the queue, however often they were sent again."""
        return min(self.max_texts, self.queue_texts)

    @property
    def is_public(self) -> bool:
        """Whether other machines can reach it."""
        return self.host.lower() != "localhost" and not (
            is_address(self.host) and ip_address(self.host).is_loopback
        )

    def allows_host(self, name: str) -> bool:
        """Whether a request may ask for this name, as its Host says; else a page of that name could
        have been pointed at this machine.

        Where the service listens everywhere, any address will do: to abuse one, an attacker must
        have it.
        """
        if (
            name in _LOOPBACK
            or name == self.host.lower()
            or name in (allowed.lower() for allowed in self.allowed_hosts)
        ):
            return True
        return is_address(name) and is_address(self.host) and ip_address(self.host).is_unspecified


def is_address(name: str) -> bool:
    """Whether it is an address and not a name."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
