"""Data: sources are read into a `Corpus`, which is selected from, divided, and audited for what would spoil a score."""

from litotes.data.audit import Audit, audit
from litotes.data.corpus import Cell, Corpus, Count
from litotes.data.finding import Finding
from litotes.data.sources import SOURCES, load

__all__ = ["SOURCES", "Audit", "Cell", "Corpus", "Count", "Finding", "audit", "load"]
