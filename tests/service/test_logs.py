"""Log lines that cannot be written are counted; the service goes on."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from io import StringIO
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from litotes.service.telemetry import Log


class Full(StringIO):
    """A stream that takes nothing for a while."""

    is_full = True

    def write(self, text: str) -> int:
        if self.is_full:
            raise OSError(28, "No space left on device")
        return super().write(text)


def test_lines_that_cannot_be_written_are_counted_and_reported_later() -> None:
    stream, lost = Full(), []
    log = Log(stream, on_loss=lost.append)
    log.write("first")
    log.write("second")
    log.flush()
    log.write("third")
    log.flush()
    assert sum(lost) == 3
    stream.is_full = False
    log.write("fourth")
    log.flush()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["fourth", "lines_lost"]
    assert lines[1]["n"] == 3
    log.close()
    assert len(stream.getvalue().splitlines()) == 2


def test_a_stderr_that_was_never_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    lost: list[int] = []
    log = Log(on_loss=lost.append)
    log.write("first")
    log.close()
    assert lost == [1]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
@pytest.mark.parametrize("where", ["2>/dev/full", ">&- 2>&- <&-"])
def test_a_service_without_stderr_goes_on(where: str, trained_folder: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = f"{sys.executable} -m litotes serve --model tiny={trained_folder} --device cpu"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    shell = ["/bin/sh", "-c", f"exec {command} --port {port} {where}"]

    def ask(path: str) -> str:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as response:
            return str(response.read().decode())

    with subprocess.Popen(shell, env=environment) as process:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with suppress(URLError, ConnectionError):
                if ask("/ready"):
                    break
            time.sleep(0.1)
        ask("/v1/models")
        time.sleep(0.3)
        lost = [line for line in ask("/metrics").splitlines() if line.startswith("litotes_lost")]
        assert "full" not in where or float(lost[0].split()[1]) >= 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
