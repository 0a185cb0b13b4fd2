"""Stops a loaded service at random moments, and counts the requests it had accepted and did not
answer.

    python bench/trials/sigterm.py --model runs/mine --times 100

Clients keep connections alive, as many as --concurrency, and now and then open a new one. A request
is accepted when its connection was made and it was sent; it must then be answered, with whatever
status. A connection that is refused is fine: the client knows that it was not heard. Prints one
JSON document; exit code 1 when something was lost or the service did not end well.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import sys
import time
from collections import Counter
from typing import Any

from http_client import Lost, connect, post
from load import sampler

_SECONDS_TO_STOP = 10.0


async def start(model: str) -> tuple[asyncio.subprocess.Process, int]:
    """The process and its port, when it is ready."""
    command = [sys.executable, "-m", "litotes", "serve", "--model", model, "--port", "0"]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    async for line in process.stderr:
        if line.startswith(b"Ready: "):
            return process, int(line.rsplit(b":", 1)[1])
    raise SystemExit("The service did not start.")


async def client(port: int, texts: list[str], chance: random.Random, seen: Counter[str]) -> None:
    """Sends one request after the other until the service has stopped listening."""
    connection = None
    while True:
        if connection is None or not connection.is_open or chance.random() < 0.05:
            if connection is not None:
                connection.close()
            try:
                connection = await asyncio.wait_for(connect("127.0.0.1", port), 3.0)
            except (OSError, TimeoutError):
                return
        is_fresh = connection.n_answered == 0
        try:
            seen[
                str(
                    await connection.ask(
                        post("127.0.0.1", port, "/v1/predict", chance.choice(texts))
                    )
                )
            ] += 1
        except Lost:
            seen["lost on a new connection" if is_fresh else "lost on a kept connection"] += 1
        await asyncio.sleep(chance.choice((0.0, 0.0, 0.01, 0.1)))


async def shoot(model: str, concurrency: int, chance: random.Random) -> dict[str, Any]:
    texts = sampler()
    process, port = await start(model)
    assert process.stderr is not None
    # a full pipe would be another experiment
    reading = asyncio.ensure_future(process.stderr.read())
    seen: Counter[str] = Counter()
    clients = [asyncio.ensure_future(client(port, texts, chance, seen)) for _ in range(concurrency)]
    await asyncio.sleep(chance.uniform(0.2, 2.0))
    began = time.perf_counter()
    process.send_signal(signal.SIGTERM)
    try:
        code = await asyncio.wait_for(process.wait(), _SECONDS_TO_STOP + 5)
    except TimeoutError:
        process.kill()
        code = -1
    seconds = time.perf_counter() - began
    await asyncio.gather(*clients)
    await reading
    return {"code": code, "seconds": round(seconds, 2), "answers": dict(seen)}


async def shoot_all(options: argparse.Namespace) -> dict[str, Any]:
    chance, total, slowest, n_bad_ends = random.Random(options.seed), Counter[str](), 0.0, 0
    for number in range(1, options.times + 1):
        shot = await shoot(options.model, options.concurrency, chance)
        print(number, shot, file=sys.stderr)
        total.update(shot["answers"])
        slowest = max(slowest, shot["seconds"])
        n_bad_ends += shot["code"] != 0 or shot["seconds"] > _SECONDS_TO_STOP
    n_lost = sum(n for answer, n in total.items() if answer.startswith("lost"))
    return {
        "times": options.times,
        "lost": n_lost,
        "bad_ends": n_bad_ends,
        "slowest_seconds": slowest,
        "answers": dict(total),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    result = asyncio.run(shoot_all(parser.parse_args()))
    print(json.dumps(result))
    sys.exit(1 if result["lost"] or result["bad_ends"] else 0)


if __name__ == "__main__":
    main()
