"""What a leak is worth, on systems whose scores are known; and the files that reproduce a paper."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_study import results_of, square, study_of

from litotes.study.tables import ExperimentResults
from reproduction.leak import effect_sentences, leak_effects, leak_summary

HEADS = """
[[experiment]]
name = "Heads"
grid = { "model.head" = ["linear", "mean"], "data.where.variety" = ["en-AU", "en-UK"] }
compare = "model.head"
"""

LEAK = """
[[experiment]]
name = "Single"
figure = "3"
grid = { "data.where.variety" = ["en-AU", "en-UK"] }
[[experiment]]
name = "Crossed"
figure = "5"
grid = { "data.leaks" = ["drop", "keep"], "data.where.variety" = ["en-AU", "en-UK"] }
compare = "data.leaks"
against = ["Single"]
"""


def leak_results(
    folder: Path, *, dropped: float, kept: float, paper: float = 0.9
) -> list[ExperimentResults]:
    printed = {(row, column): 0.6 for row in ("en-AU", "en-UK") for column in ("en-AU", "en-UK")}
    sides = {"drop": dropped, "keep": kept}
    crossed = [
        square(score, score, values={"data.leaks": value}, published=dict.fromkeys(printed, paper))
        for value, score in sides.items()
    ]
    return results_of(
        study_of(folder, LEAK),
        {"Single": [square(0.6, 0.6, published=printed)], "Crossed": crossed},
    )


def test_the_leak_explains_most(tmp_path: Path) -> None:
    (effect,) = leak_effects(leak_results(tmp_path, dropped=0.63, kept=0.9))
    assert effect.overall.value == pytest.approx(0.27)
    assert {column: one.value for column, one in effect.by_column.items()} == pytest.approx(
        {"en-AU": 0.27, "en-UK": 0.27}
    )
    assert effect.n_significant == effect.n_cells == 4
    (advantage,) = effect.advantages
    assert (advantage.over, advantage.paper) == ("Single", pytest.approx(0.3))
    text = " ".join(effect_sentences(effect))
    assert text.startswith(
        "Sentiment: models that were trained on the leaking texts as well score +0.270 ("
    )
    assert "4 of the 4 cells differ significantly" in text
    assert "Without the leaking texts Crossed is 0.030 higher than Single (" in text
    assert "with them it is 0.300 higher than Single (" in text
    assert (
        "The paper's own tables differ by +0.300 on average. Of this advantage 10 % remains without"
        " the leak, 100 % with it." in text
    )
    assert text.endswith("the leak explains most of it.")
    (summary,) = leak_summary([effect])
    assert "+0.270" in summary


def test_the_leak_explains_nothing(tmp_path: Path) -> None:
    (effect,) = leak_effects(leak_results(tmp_path, dropped=0.6, kept=0.6))
    text = " ".join(effect_sentences(effect))
    assert (
        "score +0.000 (+0.000 to +0.000) compared with models that were not, mean over 4 cells,"
        " which may be chance" in text
    )
    assert "None of the 4 cells differ significantly" in text
    assert "Of this advantage nothing remains without the leak, nothing with it." in text
    assert text.endswith("the leak alone does not explain it.")


def test_the_paper_may_have_no_advantage(tmp_path: Path) -> None:
    (effect,) = leak_effects(leak_results(tmp_path, dropped=0.63, kept=0.7, paper=0.55))
    assert "The paper has no advantage to explain here: its tables differ by −0.050." in " ".join(
        effect_sentences(effect)
    )


def test_an_experiment_with_one_side_has_no_leak_to_tell(tmp_path: Path) -> None:
    assert (
        leak_effects(
            results_of(
                study_of(tmp_path, HEADS),
                {"Heads": [square(0.9, 0.6, values={"model.head": "mean"})]},
            )
        )
        == ()
    )
