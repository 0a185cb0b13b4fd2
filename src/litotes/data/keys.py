"""When two texts or two examples count as the same."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from unicodedata import normalize

from litotes.core.values import Example


def text_key(text: str) -> str:
    """What makes two texts the same: compatibility forms, case and white space do not count."""
    folded = normalize("NFKC", text).casefold()
    return " ".join(normalize("NFKC", folded).split())  # folding case can undo the normal form


def example_key(example: Example) -> str:
    """The key of everything an example is judged by: its text, and the second text of a pair."""
    key = text_key(example.text)
    return key if example.pair is None else f"{key}\n{text_key(example.pair)}"


def leak_key(example: Example) -> str:
    """What must not be on both sides of a split: as `example_key`, but that a pair is the same the
    other way round. Paraphrases and questions that ask the same come in either order.
    """
    return "\n".join(sorted(example_key(example).split("\n")))


def plain_words(example: Example) -> str:
    """Words in lower case, nothing else: `it 's` and `It’s` are the same."""
    return " ".join(re.findall(r"[^\W_]+", example_key(example)))


def digest(example: Example) -> bytes:
    """The SHA-256 of all that an example says."""
    fields = (
        example.text,
        sorted(example.labels.items()),
        example.pair,
        example.variety,
        example.source,
        example.split,
        example.group,
    )
    return sha256(json.dumps(fields).encode()).digest()
