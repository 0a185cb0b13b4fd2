"""Two processes that train together, as torchrun starts them, but forked with torch imported."""

from __future__ import annotations

import multiprocessing
import os
import socket
from collections.abc import Callable
from typing import Any


def run_in_two(target: Callable[..., Any], *arguments: Any) -> None:
    """Runs target(*arguments) in both; fails unless both end well."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    forks = multiprocessing.get_context("forkserver")
    processes = [
        forks.Process(target=_run_as, args=(rank, port, target, arguments)) for rank in range(2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]


def _run_as(rank: int, port: int, target: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """With what torchrun tells each of them."""
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    target(*arguments)
