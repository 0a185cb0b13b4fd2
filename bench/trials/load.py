"""Sends requests to a running service as fast as it can answer, or faster, and reports what came
back.

    python bench/trials/load.py closed --concurrency 64 --seconds 20
        a new request as soon as one is answered: finds the capacity
    python bench/trials/load.py open --rate 800 --seconds 60
        so many a second, whatever comes back (Poisson arrivals)
    python bench/trials/load.py contest --seconds 30
        closed, then open at that capacity, then open at four times as much

`--pid` names the server's process, whose memory is then recorded every second. Times are in
milliseconds, in an open loop from the moment the request was due: a generator that is late does not
flatter the server. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import cycle
from pathlib import Path
from typing import Any

from http_client import Connection, Lost, connect, post

_SECONDS_AFTER_REFUSAL = 0.2
"""That a client of the closed loop waits then: one that asks again at once finds no capacity, only
how fast it can be refused.
"""
VARIETIES = ("en-AU", "en-IN", "en-UK")


@dataclass
class Record:
    """What happened. milliseconds: of accepted requests; late: how much later than due requests
    were sent.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    milliseconds: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    late: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)

    def add(self, status: int, milliseconds: float) -> None:
        self.statuses[str(status)] += 1
        (self.milliseconds if status == 200 else self.refused).append(milliseconds)

    def as_json(self, seconds: float) -> dict[str, Any]:
        return {
            "seconds": round(seconds, 2),
            "answers": dict(self.statuses),
            "accepted_per_second": round(self.statuses["200"] / seconds, 1),
            "accepted_ms": quantiles(self.milliseconds),
            "refused_ms": quantiles(self.refused),
            "late_ms": quantiles(self.late),
            "memory_mb": self._memory(),
        }

    def _memory(self) -> dict[str, int] | None:
        """As docs/results/performance/service.json has it; None where no process was named."""
        if not self.memory:
            return None
        seen = {"first": self.memory[0], "largest": max(self.memory), "last": self.memory[-1]}
        return {when: n_bytes // 1_000_000 for when, n_bytes in seen.items()}


def quantiles(values: list[float]) -> dict[str, float] | None:
    ordered = sorted(values)
    return (
        {
            name: round(ordered[int(share * (len(ordered) - 1))], 2)
            for name, share in (("p50", 0.5), ("p99", 0.99))
        }
        if ordered
        else None
    )


def memory_of(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


async def watch_memory(pid: int | None, record: Record) -> None:
    while pid is not None:
        record.memory.append(memory_of(pid))
        await asyncio.sleep(1.0)


class Load:
    """A place to ask and the requests to ask with."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.host, self.port, self.pid = options.host, options.port, options.pid
        self.seed = options.seed
        texts = options.texts.read_text("utf-8").splitlines() if options.texts else sampler()
        random.Random(options.seed).shuffle(texts)
        self._requests: Iterator[bytes] = cycle(
            [post(self.host, self.port, options.path, text) for text in texts]
        )

    async def closed(self, concurrency: int, seconds: float) -> Record:
        record, end = Record(), time.perf_counter() + seconds

        async def client() -> None:
            connection: Connection | None = None
            while time.perf_counter() < end:
                if connection is None or not connection.is_open:
                    connection = await connect(self.host, self.port)
                began = time.perf_counter()
                try:
                    status = await connection.ask(next(self._requests))
                    record.add(status, 1000 * (time.perf_counter() - began))
                    await asyncio.sleep(0 if status == 200 else _SECONDS_AFTER_REFUSAL)
                except Lost:
                    record.statuses["lost"] += 1
            if connection is not None:
                connection.close()

        await self._watched(record, *(client() for _ in range(concurrency)))
        return record

    async def open(self, rate: float, seconds: float) -> Record:
        record, chance = Record(), random.Random(self.seed)
        idle: list[Connection] = []
        under_way: set[asyncio.Task[None]] = set()

        async def ask(due: float) -> None:
            try:
                connection = next(
                    (
                        one
                        for one in iter(lambda: idle.pop() if idle else None, None)
                        if one.is_open
                    ),
                    None,
                )
                connection = connection or await connect(self.host, self.port)
                record.late.append(1000 * (time.perf_counter() - due))
                record.add(
                    await connection.ask(next(self._requests)), 1000 * (time.perf_counter() - due)
                )
                idle.append(connection)
            except Lost:
                record.statuses["lost"] += 1
            except OSError:
                record.statuses["not connected"] += 1

        async def arrivals() -> None:
            due = time.perf_counter()
            end = due + seconds
            while due < end:
                due += chance.expovariate(rate)
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                task = asyncio.ensure_future(ask(due))
                under_way.add(task)
                task.add_done_callback(under_way.discard)
            await asyncio.gather(*under_way)

        await self._watched(record, arrivals())
        for connection in idle:
            connection.close()
        return record

    async def _watched(self, record: Record, *work: Any) -> None:
        watching = asyncio.ensure_future(watch_memory(self.pid, record))
        await asyncio.gather(*work)
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


def sampler() -> list[str]:
    folder = files("litotes") / "data" / "sampler"
    return [
        json.loads(line)["text"]
        for variety in VARIETIES
        for line in (folder / f"{variety}.jsonl").read_text("utf-8").splitlines()
    ]


async def contest(load: Load, concurrency: int, seconds: float) -> dict[str, Any]:
    """Whether more load than it can bear makes a service worse for those it lets in."""
    await load.closed(concurrency, min(3.0, seconds))  # caches, code, clocks
    closed = (await load.closed(concurrency, seconds)).as_json(seconds)
    capacity = closed["accepted_per_second"]
    at_capacity = (await load.open(capacity, seconds)).as_json(seconds)
    beyond = (await load.open(4 * capacity, seconds)).as_json(seconds)
    ratio = beyond["accepted_ms"]["p99"] / at_capacity["accepted_ms"]["p99"]
    return {
        "capacity": capacity,
        "closed": closed,
        "at_capacity": at_capacity,
        "at_4_times": beyond,
        "p99_ratio": round(ratio, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=("closed", "open", "contest"))
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--path", default="/v1/predict")
    parser.add_argument("--pid", type=int)
    parser.add_argument("--texts", type=Path, help="one a line; without it the built-in corpus")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with suppress(ImportError):
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    load = Load(options)
    if options.mode == "contest":
        result = asyncio.run(contest(load, options.concurrency, options.seconds))
    else:
        work = (
            load.closed(options.concurrency, options.seconds)
            if options.mode == "closed"
            else load.open(options.rate, options.seconds)
        )
        result = asyncio.run(work).as_json(options.seconds)
    print(json.dumps({"mode": options.mode, **result}, indent=2))


if __name__ == "__main__":
    main()
