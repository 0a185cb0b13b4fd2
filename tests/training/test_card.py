"""The model card quotes words of others as text."""

from __future__ import annotations

from dataclasses import replace

from tiny_models import model_of

from litotes.core.values import Task
from litotes.encoders import pretrained
from litotes.evaluation.evaluate import CellScores
from litotes.evaluation.scores import score
from litotes.training.card import model_card
from litotes.training.recipe import Recipe

HOSTILE = "a|b <script>alert(1)</script> [x](http://y) *c*\n# d \x1b[31m`e` \u202e\udce9"


def test_foreign_words_stay_text(tiny: pretrained.Pretrained) -> None:
    task = Task("sentiment", (HOSTILE, "positive"))
    words = HOSTILE.removesuffix("\udce9")  # a recipe holds UTF-8 alone
    recipe = Recipe().changed(data__source=words, data__where__variety=words)
    facts = {"recipe": recipe.model_dump(), "data": {"n_train": 3}, "notes": [HOSTILE]}
    model = replace(model_of(tiny, task), facts=facts, base=HOSTILE)
    rows = [CellScores(HOSTILE, score([0, 1], [0, 1], task))]
    card = model_card(model, rows)
    plain = model_card(replace(model, facts={**facts, "notes": ["a note"]}, base="tiny"), rows)
    assert card.count("\n") == plain.count("\n")
    outside_code = "".join(card.split("`")[::2])
    assert "<script>" not in outside_code
    assert "[x](" not in outside_code
    for line in card.splitlines():
        assert line.isprintable()
    (row,) = [line for line in card.splitlines() if line.startswith("| sentiment")]
    assert row.replace("\\|", "").count("|") == 7
    assert card.encode()
