"""How sarcastic careful readers found VADER's sentences and iSarcasmEval's training tweets.

`readings/*.csv` name a text by the beginning of the SHA-256 of its key, and the share of readers,
in per cent, who are expected to call it sarcastic; of the texts that were read, those that are
not in the file are plainly literal. `readings/README.md` says how they were read.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

from litotes.core.values import Example
from litotes.data.corpus import text_key
from litotes.data.tables import read_rows

FOLDER = Path(__file__).parent / "readings"
FILES = {
    "tweets": "vader",
    "film reviews": "vader",
    "product reviews": "vader",
    "editorials": "vader",
    "iSarcasm": "isarcasm",
}
"""By the source that a text names."""
PLAIN = 0.02
"""Of a text that is not listed."""
N_DIGITS = 10


def reading_of(example: Example) -> float | None:
    """How probable it is that a reader calls the text sarcastic; None: it was not read."""
    name = FILES.get(example.source or "")
    if name is None:
        return None
    key = sha256(text_key(example.text).encode()).hexdigest()[:N_DIGITS]
    return _readings(name).get(key, PLAIN)


@cache
def _readings(name: str) -> dict[str, float]:
    rows = read_rows(FOLDER / f"{name}.csv", needs=("text", "percent"))
    return {row.require_word("text"): row.as_number("percent") / 100 for row in rows}
