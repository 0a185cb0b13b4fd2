"""Data: sources are read into a `Corpus`, which is selected from, divided, and audited for what
would spoil a score.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from litotes.data.auditing import Audit, audit
    from litotes.data.corpus import Cell, Corpus, Count
    from litotes.data.finding import Finding
    from litotes.data.sources import SOURCES, load

__all__ = ["SOURCES", "Audit", "Cell", "Corpus", "Count", "Finding", "audit", "load"]

_PLACES = {
    "SOURCES": "sources",
    "load": "sources",
    "Audit": "auditing",
    "audit": "auditing",
    "Finding": "finding",
} | dict.fromkeys(("Cell", "Corpus", "Count"), "corpus")


def __getattr__(name: str) -> Any:
    """Imported when it is asked for: to answer a text, which needs this package's tokenizer alone,
    takes a tenth of a second less.
    """
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
