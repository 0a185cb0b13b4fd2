"""How a study's runs were made, as others may read it: corpora and encoders by name and hash, no
paths of this machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from litotes.study.plan import Experiment, Study, label_values
from litotes.study.published import Published
from litotes.study.runs import load_once
from litotes.training.recipe import Recipe, recipe_of


def base_recipe(study: Study) -> Recipe:
    """What all runs share."""
    return recipe_of(dict(study.settings.recipe), study.settings.name)


def shareable(recipe: Recipe, study: Study) -> Recipe:
    """The recipe with its corpus under the study's name for it, and an encoder without its path."""
    return recipe.changed(
        data__source=source_name(recipe.data.source, study),
        model__encoder=encoder_name(recipe.model.encoder),
    )


def source_name(source: str, study: Study) -> str:
    """The study's name for a corpus; without one, its kind and the last name of its path."""
    names = {address: name for name, address in study.settings.sources.items()}
    kind, _, path = source.partition("?")[0].partition(":")
    return names.get(source, f"{kind}:{Path(path).name}" if path else kind)


def encoder_name(encoder: str) -> str:
    return Path(encoder).name if Path(encoder).is_dir() else encoder


def sources(study: Study) -> list[str]:
    """The addresses of all corpora that the experiments read: first those trained on."""
    trained_on: dict[str, None] = {}  # sets that keep their order
    tested_on: dict[str, None] = {}
    for experiment in study.experiments:
        for setting in experiment.grid:
            trained_on[setting.recipe.data.source] = None
        for test in experiment.tests:
            if test.data:
                tested_on[test.data] = None
    return list(trained_on | tested_on)


def describe_corpora(study: Study) -> dict[str, dict[str, Any]]:
    """Every corpus by name: how many texts, and the hash by which another copy is recognised."""
    described = {}
    for source in sources(study):
        corpus = load_once(source)
        facts = {"n_texts": len(corpus), "sha256": corpus.fingerprint()}
        described[source_name(source, study)] = facts
    return described


def setup_sentences(experiment: Experiment, study: Study) -> Iterator[str]:
    """Why our numbers may differ from the published ones.

    What is known about the figure, and what we did differently: in all settings, or only in some.
    """
    figure, published = experiment.settings.figure, study.published
    if figure is None or published is None:
        return
    yield from published.notes_about(figure)
    names = {label_values(setting.shared or setting.values) for setting in experiment.grid}
    differences = _differences(experiment, study, published)
    everywhere = [one for one, where in differences.items() if len(where) == len(names)]
    if everywhere:
        yield f"What we did otherwise: {'; '.join(everywhere)}."
    for difference, where in differences.items():
        if difference not in everywhere:
            yield f"Only with {' and '.join(where)}: {difference}."


def _differences(
    experiment: Experiment, study: Study, published: Published
) -> dict[str, dict[str, None]]:
    """What was done differently, and in which settings; the inner dicts are ordered sets."""
    found: dict[str, dict[str, None]] = {}
    for setting in experiment.grid:
        name = label_values(setting.shared or setting.values)
        for difference in published.differences_in_setup(shareable(setting.recipe, study)):
            found.setdefault(difference, {})[name] = None
    return found
