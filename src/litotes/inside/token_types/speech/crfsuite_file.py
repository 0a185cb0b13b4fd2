"""The weights of a conditional random field, read from a file of CRFsuite (Okazaki 2007): numbers
and names, nothing that runs.

The file is a header with the offsets of its parts; a table of weights, each of a look of a word for
a tag, or of a tag after a tag; and the names of the tags and of the looks, as two constant
databases (CQDB) of which only the list from numbers to names is needed.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from litotes.core.counts import Counts, Floats
from litotes.core.errors import UserError

_HEADER = struct.Struct("<4sI4s9I")
_WEIGHT = np.dtype([("is_move", "<u4"), ("source", "<u4"), ("tag", "<u4"), ("weight", "<f8")])


@dataclass(frozen=True)
class FieldWeights:
    """What a random field knows: look `look[n]` speaks for tag `tag[n]` with `weight[n]`. follows:
    (tag before, tag).
    """

    tags: tuple[str, ...]
    looks: tuple[str, ...]
    look: Counts
    tag: Counts
    weight: Floats
    follows: Floats


def read_weights(file: Path) -> FieldWeights:
    content = file.read_bytes()
    if len(content) < _HEADER.size or content[:4] != b"lCRF":
        raise UserError(f"{file} is no file of CRFsuite: install the package it belongs to again.")
    at_weights, at_tags, at_looks = _HEADER.unpack_from(content)[7:10]
    (n_weights,) = struct.unpack_from("<I", content, at_weights + 8)
    both = np.frombuffer(content, _WEIGHT, n_weights, at_weights + 12)
    moves, states = both[both["is_move"] == 1], both[both["is_move"] == 0]
    tags = _names(content, at_tags)
    follows = np.zeros((len(tags), len(tags)))
    follows[moves["source"], moves["tag"]] = moves["weight"]
    look, tag = states["source"].astype(np.int64), states["tag"].astype(np.int64)
    return FieldWeights(
        tags, _names(content, at_looks), look, tag, states["weight"].copy(), follows
    )


def _names(content: bytes, start: int) -> tuple[str, ...]:
    """The names in a database that begins at `start`, by their numbers.

    Offsets within it count from its beginning.
    """
    n_names, at_list = struct.unpack_from("<2I", content, start + 16)
    places = struct.unpack_from(f"<{n_names}I", content, start + at_list)
    return tuple(_name(content, start + place) for place in places)


def _name(content: bytes, place: int) -> str:
    """A number, the length of a name, and the name with a zero byte at its end."""
    (length,) = struct.unpack_from("<I", content, place + 4)
    return content[place + 8 : place + 7 + length].decode()
