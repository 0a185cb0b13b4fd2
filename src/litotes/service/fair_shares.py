"""Whose turn it is, when several wait for the same work.

Each gets an equal share of the work, whoever asks for more, as if all were served at once, a little
each (fair queueing; Parekh and Gallager 1993). Virtual time is the work that each of those waiting
has received so far:

    one that begins to wait stands at the present virtual time;
    the next turn is that of the one that stands furthest back;
    a turn of w units of work moves it on by w, and virtual time by w / number of those waiting.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar


class Account:
    """How far one has been served."""

    stands_at = 0.0


AccountType = TypeVar("AccountType", bound=Account)


class FairShares:
    """Equal shares for those that wait at the same time."""

    def __init__(self) -> None:
        self._now = 0.0

    def join(self, account: Account) -> None:
        """Begins to wait: what it did not use before is not made up for."""
        account.stands_at = max(account.stands_at, self._now)

    def whose_turn(self, waiting: Collection[AccountType]) -> AccountType:
        """Of several that stand equally far back, the first."""
        return min(waiting, key=lambda account: account.stands_at)

    def charge(self, account: Account, work: float, n_waiting: int) -> None:
        account.stands_at += work
        self._now += work / n_waiting
