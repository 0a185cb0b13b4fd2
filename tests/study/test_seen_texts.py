"""A study says where its models were trained on texts of another corpus that they are tested on."""

from __future__ import annotations

from pathlib import Path

from litotes.data.sources import load
from litotes.model.folder import text_hash
from litotes.study import plan
from litotes.study.runs import forget, seen_notes
from litotes.training.recipe import Recipe


def write_table(file: Path, texts: list[str], split: str) -> str:
    rows = ["text,mood,split"]
    for place, text in enumerate(texts):
        rows.append(f"{text},{('positive', 'negative')[place % 2]},{split}")
    file.write_text("\n".join(rows) + "\n")
    return f"table:{file}?label.sentiment=mood&split=split"


def test_texts_of_another_corpus_that_were_trained_on_are_counted(tmp_path: Path) -> None:
    forget()
    texts = [f"a kettle number {number} that sings" for number in range(20)]
    source = write_table(tmp_path / "own.csv", texts, "train")
    other = write_table(tmp_path / "other.csv", [*texts[:3], "a cold tea", "a warm one"], "test")
    trained = frozenset(map(text_hash, load(source)))
    recipe = Recipe().changed(data__source=source)
    tests = [plan.TestedOn(data=other), plan.TestedOn(data=other, name="again")]
    (note,) = seen_notes(trained, tests, recipe, ["sentiment"])
    assert note.startswith("WARNING: ")
    assert "trained on 3 of these 5 texts" in note
    assert load(other).name in note
    assert seen_notes(frozenset(), tests, recipe, ["sentiment"]) == []
