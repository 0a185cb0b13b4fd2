"""Attacks a service of its own on this machine, and reports what a normal client notices.

    python bench/trials/attack.py                       about five minutes, the built-in model
    python bench/trials/attack.py --model runs/mine --seconds 60
    python bench/trials/attack.py --only bodies greedy
    python bench/trials/attack.py --same-address   they come from the normal client's address

Before the attacks and during each of them a normal client asks for ten labels a second, and a
watcher asks /live twenty times a second, each on connections of its own. Prints a table and one
JSON document; the exit code is 1 if an attack was felt:

    /live    answered every time, 99 of 100 within half a second
    normal   answered every time, 99 of 100 within twice what is usual (and 50 ms)
    memory   grew by less than 300 MB

Part of the checks before a release (CONTRIBUTING.md). The attackers send only to 127.0.0.1, from
127.0.0.2 where the system has it (Linux), and run at a low priority: over a network, their own work
would be done elsewhere.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

from http_client import Connection, Lost, connect, post
from load import memory_of, quantiles

HOST = "127.0.0.1"
_ATTACKER = [HOST]
"""The address that this process attacks from."""
_NORMAL_A_SECOND, _PROBES_A_SECOND = 10, 20
_MOST_LIVE_MS, _MOST_MEMORY_MB, _SLACK_MS = 500.0, 300, 50.0


def request(method: str, path: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {HOST}", *headers]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


def open_connection(port: int) -> socket.socket:
    return socket.create_connection((HOST, port), timeout=10, source_address=(_ATTACKER[0], 0))


def send(port: int, content: bytes) -> None:
    """Sends it on a new connection, and waits for the end or ten seconds."""
    with open_connection(port) as connection, suppress(OSError):
        connection.sendall(content)
        while connection.recv(1 << 20):
            pass


def bodies(port: int, _: int) -> None:
    """Bodies within the limits, full of what no request has."""
    wrong = b'{"texts": [' + b",".join([b"1"] * 490_000) + b"]}"
    nested = b'{"texts": [' + b",".join([b"[]"] * 330_000) + b"]}"
    for body in (wrong, nested):
        send(port, request("POST", "/v1/predict", body, "Connection: close"))


def trailers(port: int, _: int) -> None:
    """A chunked body whose trailer does not end."""
    head = request("POST", "/v1/predict", b"", "Transfer-Encoding: chunked")
    send(port, head + b"2\r\n{}\r\n0\r\nX: " + b"x" * 20_000_000)


def pipelines(port: int, _: int) -> None:
    """A megabyte of small requests at once, on a hundred connections."""
    connections = []
    for _ in range(100):
        connection = open_connection(port)
        connection.settimeout(0.5)
        connections.append(connection)
    content = request("GET", "/v1/models") * 25_000
    for connection in connections:
        with suppress(OSError):
            connection.sendall(content[:1_000_000])
    for connection in connections:
        with suppress(OSError), connection:
            while connection.recv(1 << 20):
                pass


def greedy(port: int, number: int) -> None:
    """The largest requests there may be, one after the other."""
    text = f"The queue at number {number} was a delight, as ever, and the tea was cold. " * 130
    body = json.dumps({"texts": [text[:9000]] * 64}).encode()
    send(port, request("POST", "/v1/predict", body, "Connection: close"))
    time.sleep(0.05)


def connections(port: int, _: int) -> None:
    """Five thousand connections that ask for nothing."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 6000), hard))
    with ExitStack() as opened, suppress(OSError):
        for _ in range(min(hard - 100, 5000)):
            opened.enter_context(open_connection(port))
        time.sleep(3)


ATTACKS: dict[str, tuple[Callable[[int, int], None], int]] = {
    "bodies": (bodies, 1),
    "trailers": (trailers, 4),
    "pipelines": (pipelines, 1),
    "greedy": (greedy, 2),
    "connections": (connections, 1),
}
"""Each with the number of processes that do it at the same time."""


def attack(name: str, address: str, port: int, number: int, seconds: float) -> None:
    os.nice(15)
    _ATTACKER[0] = address
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(OSError):
            ATTACKS[name][0](port, number)


class Watch:
    """What a normal client and a watcher of /live see."""

    def __init__(self, port: int, pid: int) -> None:
        self._port, self._pid = port, pid
        self.statuses: dict[str, int] = {}
        self.normal_ms: list[float] = []
        self.live_ms: list[float] = []
        self.live_failed = 0
        self.memory_mb: list[int] = []

    async def run(self, seconds: float) -> dict[str, Any]:
        self._end = time.monotonic() + seconds
        text = "Lovely. Another delay, and the tea was cold."
        normal = post(HOST, self._port, "/v1/predict", text)
        await asyncio.gather(
            self._ask(normal, _NORMAL_A_SECOND, self._add_normal),
            self._ask(request("GET", "/live"), _PROBES_A_SECOND, self._add_live),
            self._watch_memory(),
        )
        return {
            "normal": self.statuses,
            "normal_ms": quantiles(self.normal_ms),
            "live_ms": quantiles(self.live_ms),
            "live_most_ms": round(max(self.live_ms, default=0.0), 1),
            "live_failed": self.live_failed,
            "memory_mb": max(self.memory_mb),
        }

    def _add_normal(self, status: str, milliseconds: float) -> None:
        self.statuses[status] = self.statuses.get(status, 0) + 1
        if status == "200":
            self.normal_ms.append(milliseconds)

    def _add_live(self, status: str, milliseconds: float) -> None:
        self.live_failed += status != "200"
        self.live_ms.append(milliseconds)

    async def _ask(self, content: bytes, rate: int, add: Callable[[str, float], None]) -> None:
        """So many a second, whatever comes back, each from the moment it was due."""
        idle: list[Connection] = []
        under_way = set()
        due = time.monotonic()

        async def ask(due: float) -> None:
            try:
                while idle and not idle[-1].is_open:
                    idle.pop()
                connection = idle.pop() if idle else await connect(HOST, self._port)
                status = str(await asyncio.wait_for(connection.ask(content), 30))
                idle.append(connection)
            except (Lost, OSError, TimeoutError) as error:
                status = type(error).__name__
            add(status, 1000 * (time.monotonic() - due))

        while due < self._end:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            task = asyncio.ensure_future(ask(due))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            due += 1 / rate
        await asyncio.gather(*under_way)
        for connection in idle:
            connection.close()

    async def _watch_memory(self) -> None:
        while time.monotonic() < self._end:
            self.memory_mb.append(memory_of(self._pid) // 1_000_000)
            await asyncio.sleep(0.25)


def start_service(model: str | None) -> tuple[subprocess.Popen[str], int]:
    command = [sys.executable, "-m", "litotes", "serve", "--port", "0", "--device", "cpu"]
    process = subprocess.Popen(
        command + (["--model", model] if model else []), stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("Ready: "):
            return process, int(line.rsplit(":", 1)[1])
    raise SystemExit("The service did not start.")


def drain(process: subprocess.Popen[str]) -> None:
    """Reads its log, so that it does not wait for a reader."""
    import threading

    assert process.stderr is not None
    threading.Thread(target=process.stderr.read, daemon=True).start()


def attacker_address(*, is_same: bool) -> str:
    if is_same:
        return HOST
    with socket.socket() as other:
        try:
            other.bind(("127.0.0.2", 0))
        except OSError:
            return HOST
    return "127.0.0.2"


def run_attack(name: str, address: str, port: int, pid: int, seconds: float) -> dict[str, Any]:
    role = [sys.executable, __file__, "--as", name, address, str(port)]
    attackers = [
        subprocess.Popen([*role, str(number), str(seconds)]) for number in range(ATTACKS[name][1])
    ]
    try:
        return asyncio.run(Watch(port, pid).run(seconds))
    finally:
        for attacker in attackers:
            attacker.kill()
            attacker.wait()


def faults(found: dict[str, Any], usual: dict[str, Any]) -> list[str]:
    seen = []
    limit = max(2 * usual["normal_ms"]["p99"], _SLACK_MS)
    if found["live_failed"] or found["live_ms"]["p99"] > _MOST_LIVE_MS:
        seen.append("live")
    # where no connection is left, the normal client may be told so
    if set(found["normal"]) - {"200"} or not found["normal_ms"]:
        seen.append("normal not answered")
    elif found["normal_ms"]["p99"] > limit:
        seen.append("normal slow")
    if found["memory_mb"] - usual["memory_mb"] > _MOST_MEMORY_MB:
        seen.append("memory")
    return seen


def show(name: str, found: dict[str, Any], felt: list[str]) -> None:
    normal, live = found["normal_ms"] or {}, found["live_ms"]
    print(
        f"{name:12} normal p50 {normal.get('p50', 0):7.1f} p99 {normal.get('p99', 0):8.1f} ms"
        f"  {found['normal']}  /live p99 {live['p99']:7.1f} most {found['live_most_ms']:8.1f} ms"
        f" failed {found['live_failed']}  {found['memory_mb']} MB  {', '.join(felt) or 'held'}",
        file=sys.stderr,
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", help="a model folder; without it the built-in one")
    parser.add_argument("--seconds", type=float, default=45.0, help="of each attack")
    parser.add_argument("--only", nargs="+", choices=ATTACKS, default=list(ATTACKS))
    parser.add_argument("--same-address", action="store_true")
    parser.add_argument("--as", nargs=5, dest="role", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role:
        name, address, port, number, seconds = options.role
        attack(name, address, int(port), int(number), float(seconds))
        return
    address = attacker_address(is_same=options.same_address)
    process, port = start_service(options.model)
    drain(process)
    try:
        asyncio.run(Watch(port, process.pid).run(3.0))  # caches, code, clocks
        usual = asyncio.run(Watch(port, process.pid).run(min(options.seconds, 30.0)))
        show("usual", usual, [])
        result, has_held = {"usual": usual}, True
        for name in options.only:
            found = run_attack(name, address, port, process.pid, options.seconds)
            felt = faults(found, usual)
            has_held = has_held and not felt
            show(name, found, felt)
            result[name] = found | {"felt": felt}
            time.sleep(3)
        after = asyncio.run(Watch(port, process.pid).run(5.0))
        show("after", after, [])
        print(json.dumps(result | {"after": after}, indent=1))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    sys.exit(0 if has_held else 1)


if __name__ == "__main__":
    main()
