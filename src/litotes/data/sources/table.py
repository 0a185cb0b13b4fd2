"""Any CSV, TSV, JSON-lines or Parquet file, its columns named by the user."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from litotes.data.corpus import Corpus
from litotes.data.sources.columns import COLUMN_OPTIONS, column_map, corpus_of
from litotes.data.sources.options import choice, require_path
from litotes.data.tables import read_rows

OPTIONS = {**COLUMN_OPTIONS, "quotes": "no when a CSV or TSV file is written without quoting (yes)"}


def read(path: Path | None, options: Mapping[str, str]) -> Corpus:
    """The rows of one file as examples."""
    file = require_path(path)
    columns = column_map(options)
    quotes = choice(options, "quotes", ("yes", "no")) == "yes"
    lenient = not columns.stops_at_bad_rows
    rows = read_rows(file, needs=columns.names, quotes=quotes, lenient=lenient)
    return corpus_of(file.name, ((row, "train") for row in rows), columns)
