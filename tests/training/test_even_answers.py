"""Texts that a source calls neutral teach a student of two labels to be unsure."""

from __future__ import annotations

from pathlib import Path

import pytest

from litotes.core.errors import UserError
from litotes.data.corpus import example_key
from litotes.data.sources import load
from litotes.training.distillation import DistillRecipe, plan_distillation
from litotes.training.distillation.answers import with_even_answers


@pytest.mark.slow
def test_neutral_texts_are_even_and_others_as_they_were_answered(
    recipe: DistillRecipe, tmp_path: Path
) -> None:
    table = tmp_path / "some.csv"
    table.write_text("text,sentiment\nIt is nine.,neutral\nLovely.,positive\n", encoding="utf-8")
    source = f"table:{table}?label.sentiment=sentiment"
    nine, lovely = (example_key(example) for example in load(source))
    plan = plan_distillation(recipe.changed(even=[source]), tmp_path / "student")
    given = {"sentiment": {nine: (0.9, 0.1), lovely: (0.2, 0.8)}}
    answers = with_even_answers(given, plan)["sentiment"]
    assert answers == {nine: (0.5, 0.5), lovely: (0.2, 0.8)}
    assert given["sentiment"][nine] == (0.9, 0.1)
    table.write_text("text,sentiment\nLovely.,positive\nBad.,negative\n", encoding="utf-8")
    with pytest.raises(UserError, match="calls no text neutral"):
        with_even_answers(given, plan)
