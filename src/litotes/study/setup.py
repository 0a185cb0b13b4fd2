"""How a study's runs were made, as it may be told to others: corpora and encoders by name and hash,
no paths of this machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from litotes.study.job import corpus_of
from litotes.study.paper import differences_in_setup, warnings_about
from litotes.study.plan import Experiment, Study, named
from litotes.training.recipe import Recipe, recipe_of


def base_recipe(study: Study) -> Recipe:
    """What all runs share."""
    return recipe_of(dict(study.settings.recipe), study.settings.name)


def shareable(recipe: Recipe, study: Study) -> Recipe:
    """The recipe with its corpus under the study's name for it, and an encoder's folder by its last
    name.
    """
    return recipe.changed(
        data__source=source_name(recipe.data.source, study),
        model__encoder=encoder_name(recipe.model.encoder),
    )


def source_name(source: str, study: Study) -> str:
    """The study's name for a corpus; one that has none is called by its kind and the last name of
    its path.
    """
    names = {address: name for name, address in study.settings.sources.items()}
    kind, _, path = source.partition("?")[0].partition(":")
    return names.get(source, f"{kind}:{Path(path).name}" if path else kind)


def encoder_name(encoder: str) -> str:
    return Path(encoder).name if Path(encoder).is_dir() else encoder


def corpora(study: Study) -> dict[str, dict[str, Any]]:
    """Every corpus the experiments read: how many texts, and the hash by which another copy is
    known to be the same.
    """
    trained_on = [
        setting.recipe.data.source
        for experiment in study.experiments
        for setting in experiment.grid
    ]
    tested_on = [
        test.data for experiment in study.experiments for test in experiment.tests if test.data
    ]
    described = {}
    for source in dict.fromkeys([*trained_on, *tested_on]):
        corpus = corpus_of(source)
        described[source_name(source, study)] = {
            "n_texts": len(corpus),
            "sha256": corpus.fingerprint(),
        }
    return described


def setup_words(experiment: Experiment, study: Study) -> Iterator[str]:
    """Why our numbers may differ from the paper's: what is known about the figure, and what was
    done otherwise.
    """
    figure = experiment.settings.figure
    if figure is None:
        return
    yield from warnings_about(figure)
    by_setting: dict[str, list[str]] = {}
    for setting in experiment.grid:
        others = {
            path: value
            for path, value in setting.values.items()
            if path != experiment.settings.rows
        } or setting.values
        name = ", ".join(named(path, value) for path, value in others.items())
        by_setting.setdefault(name, []).extend(
            differences_in_setup(shareable(setting.recipe, study))
        )
    everything = dict.fromkeys(
        difference for differences in by_setting.values() for difference in differences
    )
    everywhere = [
        one for one in everything if all(one in differences for differences in by_setting.values())
    ]
    if everywhere:
        yield f"What we did otherwise: {'; '.join(everywhere)}."
    for one in everything:
        if one not in everywhere:
            names = [name for name, differences in by_setting.items() if one in differences]
            yield f"Only with {' and '.join(names)}: {one}."
