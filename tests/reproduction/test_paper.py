"""The files that reproduce a paper can be read, and find what the documentation says."""

from __future__ import annotations

from pathlib import Path

import pytest

from litotes.study.plan import read_study
from litotes.study.vocabulary import count_vocabularies
from litotes.training.recipe import Recipe

REPRODUCTION = Path(__file__).parents[2] / "reproduction"


@pytest.mark.parametrize(
    "file", sorted(REPRODUCTION.glob("study_*.toml")), ids=lambda file: file.stem
)
def test_studies_can_be_read(file: Path) -> None:
    assert read_study(file).experiments


def test_every_experiment_with_a_figure_has_published_scores() -> None:
    study = read_study(REPRODUCTION / "study_paper.toml")
    assert study.published is not None
    for experiment in study.experiments:
        figure = experiment.settings.figure
        if figure is None:
            continue
        for setting in experiment.grid:
            tasks = setting.recipe.data.tasks or []
            for test in experiment.tests:
                labels = [test.label(), setting.recipe.model.head]
                found = [
                    study.published.scores_for(figure, task, labels=labels, rows=[setting.row])
                    for task in tasks
                ]
                assert any(found), f"{experiment.settings.name}, {setting.name}"


def test_the_papers_times_and_setup() -> None:
    published = read_study(REPRODUCTION / "study_paper.toml").published
    assert published is not None
    both = Recipe().changed(
        data__source="besstie:x", data__tasks=["sentiment", "sarcasm"], model__head="crosstalk"
    )
    assert published.seconds_for(both) == 0.3163
    differences = "; ".join(published.differences_in_setup(both))
    assert differences.startswith(
        "the encoder: minilm (the paper: bert-base-uncased); the optimizer: adamw (the paper: adam)"
    )
    assert any("figure 5 on splits that leak" in note for note in published.notes_about("5"))
    assert not any("leak" in note for note in published.notes_about("3"))


@pytest.mark.slow
def test_figure_1_on_the_real_corpora(shared_data: Path) -> None:
    """What docs/results/coverage.md says in prose, found by the report itself."""
    sources = [
        f"sources.{name}={name}:{shared_data / name}"
        for name in ("besstie", "twitter", "bicodemix")
    ]
    (found,) = count_vocabularies(read_study(REPRODUCTION / "study_paper.toml", changes=sources))
    assert len(found.published) == 33
    by_group = found.deviations()
    assert by_group["Reddit sentiment", "Reddit sentiment"] < 0.004
    assert by_group["Twitter sentiment", "Google sentiment"] > 0.1
    assert [row.of for row in found.exchanges()] == ["Twitter sentiment", "Bicodemix sentiment"]
