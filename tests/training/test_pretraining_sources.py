"""Texts from plain files, tables and the sources of `train`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from litotes.core.errors import UserError
from litotes.data.sources import load
from litotes.training.pretraining.texts import Texts
from litotes.training.recipe import TextSettings


def read(**settings: Any) -> list[tuple[str, int]]:
    texts = Texts(TextSettings(**settings))
    found = [(line.text, line.document) for line in texts]
    assert [(line.text, line.document) for line in texts] == found, "it can be read again"
    return found


def test_blank_lines_end_documents(tmp_path: Path) -> None:
    one, two = tmp_path / "one.txt", tmp_path / "two.txt.gz"
    one.write_text("a\nb\n\n\nc\n")
    import gzip

    two.write_bytes(gzip.compress(b"d\n"))
    lines = read(source=[str(one), str(two)])
    assert [text for text, _ in lines] == ["a", "b", "c", "d"]
    documents = [document for _, document in lines]
    assert documents[0] == documents[1]
    assert len(set(documents)) == 3


def test_rows_of_tables_are_documents(tmp_path: Path) -> None:
    table = tmp_path / "rows.jsonl"
    rows = [{"body": "first line\nsecond line"}, {"body": "other"}]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = f"{table}?text=body"
    assert read(source=source) == [("first line\nsecond line", 0), ("other", 1)]
    joined = read(source=source, join_lines=True)
    assert joined == [("first line", 0), ("second line", 0), ("other", 1)]


def test_only_training_texts_of_a_corpus_are_read_and_once(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text(
        "text,label,split\ntea,0,train\nTEA,1,train\nqueue,0,train\nbad,1,test\nbad,1,train\n"
    )
    texts = Texts(TextSettings(source=f"table:{table}?label=label&split=split"))
    assert [line.text for line in texts] == ["tea", "queue"]
    assert any("1 training texts" in note for note in texts.notes)
    assert any("repetition" in note for note in texts.notes)


def test_a_corpus_is_selected_from() -> None:
    found = read(source="sampler", where={"variety": "en-AU"})
    corpus = load("sampler").without_leaks()[0].where(variety="en-AU", split="train")
    assert {text for text, _ in found} <= {example.text for example in corpus}
    assert 0 < len(found) <= len(corpus)


@pytest.mark.parametrize(
    ("source", "more", "words"),
    [
        ("nowhere.txt", {}, "does not exist"),
        ("FILE?column=a", {}, "Did you mean 'text'|option of the file"),
        ("FILE", {"where": {"variety": "en-AU"}}, "Leave data.where out"),
        ("sampeler", {}, "Did you mean 'sampler'"),
        ([], {}, "data.source is empty"),
    ],
)
def test_mistakes_are_sentences(
    tmp_path: Path, source: str, more: dict[str, Any], words: str
) -> None:
    (tmp_path / "file.txt").write_text("tea\n")
    if isinstance(source, str):
        source = source.replace("FILE", str(tmp_path / "file.txt"))
    with pytest.raises(UserError, match=words):
        read(source=source, **more)
