"""A data set of the Hugging Face Hub, or a local folder in its form.

This is the only source that may use the network.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.core.registry import unknown_name
from litotes.data.corpus import SPLIT_WORDS, Corpus
from litotes.data.sources.columns import COLUMN_OPTIONS, column_map, corpus_of
from litotes.data.sources.options import require_path
from litotes.data.tables.rows import Row, as_text, require_columns

OPTIONS = {
    **COLUMN_OPTIONS,
    "subset": "the configuration of a data set that has several",
    "only": "read only these of its splits: only=train,test",
}


def read(path: Path | None, options: Mapping[str, str]) -> Corpus:
    """The splits of a data set as examples; OWNER/NAME@REVISION pins a version of it."""
    name = require_path(path).as_posix()
    columns = column_map(options)
    splits = _splits(name, options.get("subset"))
    wanted = options["only"].split(",") if "only" in options else list(splits)
    rows = chain.from_iterable(_rows(name, splits, split, columns.names) for split in wanted)
    return corpus_of(f"hub:{name}", rows, columns)


def _splits(name: str, subset: str | None) -> Mapping[str, Any]:
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise UserError(
            "Data sets of the Hub need the package datasets: pip install 'litotes[hub]'."
        ) from error
    repository, _, revision = (name, "", "") if Path(name).is_dir() else name.partition("@")
    try:
        # Streaming reads the rows without leaving a copy in a cache on the disk.
        splits: Mapping[str, Any] = load_dataset(
            repository, subset, revision=revision or None, streaming=True
        )
    except (OSError, ValueError) as error:
        raise UserError(_unreadable(name, error)) from error
    return splits


def _rows(
    name: str, splits: Mapping[str, Any], split: str, needs: tuple[str, ...]
) -> Iterator[tuple[Row, str]]:
    if split not in splits:
        raise UserError(f"hub:{name}: {unknown_name(split, splits, 'split')}")
    if split.casefold() not in SPLIT_WORDS:
        raise UserError(
            f"hub:{name}: the split {split!r} is none of train, valid and test. Leave it out with"
            " only=train,test or such."
        )
    file = f"hub:{name} {split}"
    features = splits[split].features  # not known of every kind of file before it is read
    if features is not None:
        require_columns(file, features, needs)
    words = _class_words(features or {})
    for number, record in enumerate(_records(name, splits[split]), start=1):
        require_columns(file, record, needs)
        values = {}
        for key in needs:
            place = f"{file}, row {number}, column {key!r}"
            values[key] = _value(record[key], words.get(key), place)
        yield Row(file, number, values, unit="row"), SPLIT_WORDS[split.casefold()]


def _records(name: str, split: Iterable[Mapping[str, object]]) -> list[Mapping[str, object]]:
    try:
        return list(split)  # to the end: a reader that is abandoned half-way leaves its file open
    except (OSError, ValueError) as error:
        raise UserError(_unreadable(name, error)) from error


def _class_words(features: Mapping[str, Any]) -> dict[str, list[str]]:
    # The Hub stores a label as a number and keeps its word in the description of the column.
    return {key: feature.names for key, feature in features.items() if hasattr(feature, "names")}


def _value(value: object, words: list[str] | None, place: str) -> str:
    if words is not None and isinstance(value, int):
        return words[value] if value >= 0 else ""  # -1 stands for a label that is kept secret
    return as_text(value, place)


def _unreadable(name: str, error: Exception) -> str:
    reason = (str(error) or type(error).__name__).splitlines()[0]
    advice = (
        "Check the name and the network; where access is granted on request, log in with `hf auth"
        " login`."
    )
    return f"hub:{name} cannot be read ({reason}). {advice}"
