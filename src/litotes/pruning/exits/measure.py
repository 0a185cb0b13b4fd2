"""What exits save and what they change, on texts by which nothing was chosen."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import betaincinv, expit

from litotes.core.numbers import Counts
from litotes.core.progress import TimedAction, Watch, time_in_turns
from litotes.encoder.tokenizer import Pieces
from litotes.evaluation.reliability import reliability
from litotes.model.checkpoint import Model
from litotes.model.classifier import EarlyExits
from litotes.model.exits import label_margins
from litotes.model.runtime import compute_outputs
from litotes.pruning.cost import flops
from litotes.pruning.exits.control import Rehearsal
from litotes.pruning.exits.result import ExitRow
from litotes.pruning.exits.teaching import Lessons


def exit_logits(exits: EarlyExits, layer: int, lessons: Lessons) -> dict[str, NDArray[np.float32]]:
    """{task: (text, class)}"""
    if layer == 0:
        assert exits.table is not None
        return exits.table.logits(lessons.texts)
    with torch.no_grad():
        vectors = lessons.vectors[layer]
        return {task: own(vectors).numpy() for task, own in exits.heads.outputs(layer).items()}


def agreements(
    model: Model, lessons: Lessons, logits: Mapping[str, NDArray[np.float32]]
) -> dict[str, NDArray[np.bool_]]:
    """By task, which texts these logits give the label of the whole model. (text,) each"""
    found = {}
    for task, own in logits.items():
        calibration = model.calibration_of(task)
        labels, _ = calibration.apply(own)
        whole, _ = calibration.apply(lessons.logits[task].numpy())
        found[task] = labels == whole
    return found


def rehearse(model: Model, exits: EarlyExits, lessons: Lessons) -> Rehearsal:
    log_odds, agrees = [], []
    rule = exits.rule
    for layer in rule.layers:
        logits = exit_logits(exits, layer, lessons)
        log_odds.append(rule.log_odds(layer, logits, model.calibration))
        agrees.append(np.logical_and.reduce(list(agreements(model, lessons, logits).values())))
    return Rehearsal(np.stack(log_odds), np.stack(agrees))


def exit_rows(model: Model, lessons: Lessons) -> tuple[ExitRow, ...]:
    """A row for every exit, and one for the end."""
    assert model.exits is not None
    rule = model.exits.rule
    rehearsal = rehearse(model, model.exits, lessons)
    places, differs = rehearsal.places(rule.cut), rehearsal.differs(rule.cut)
    rows = []
    for place, layer in enumerate(rule.layers):
        here = places == place
        logits = exit_logits(model.exits, layer, lessons)
        ece = {}
        for task, agrees in agreements(model, lessons, logits).items():
            margins = label_margins(logits[task], model.calibration_of(task))
            sure = expit(rule.sureness[layer][task].log_odds(margins))
            ece[task] = reliability(sure, agrees).ece_equal_mass
        differ = float(differs[here].mean()) if here.any() else None
        agreed = float(rehearsal.agrees[place].mean())
        rows.append(ExitRow(layer, float(here.mean()), differ, agreed, ece))
    n_layers = len(model.classifier.encoder.spec.walk)
    stayed = float((places == len(rule.layers)).mean())
    return (*rows, ExitRow(n_layers, stayed, 0.0 if stayed else None, 1.0, {}))


def share_interval(n_hit: int, n: int) -> tuple[float, float]:
    """The exact 95 % interval of a share (Clopper and Pearson 1934)."""
    low = betaincinv(n_hit, n - n_hit + 1, 0.025) if n_hit else 0.0
    high = betaincinv(n_hit + 1, n - n_hit, 0.975) if n_hit < n else 1.0
    return float(low), float(high)


def operations_ratio(model: Model, lengths: Sequence[int], layers: Counts) -> float:
    """How many times fewer operations exits cost: those of the encoder, and of the exits themselves
    (4 · width · classes for each text that comes to one, of the table classes for each piece).
    layers: where each text is answered.
    """
    assert model.exits is not None
    classifier, rule = model.classifier, model.exits.rule
    spec, firsts_only = classifier.encoder.spec, classifier.firsts_only
    whole = flops(classifier.encoder, lengths, firsts_only=firsts_only).total
    n_classes = sum(task.n_outputs for task in classifier.tasks.values())
    spent = sum(lengths) * n_classes if rule.has_table else 0
    for layer in np.unique(layers).tolist():
        own = [length for length, at in zip(lengths, layers, strict=True) if at == layer]
        cost = flops(classifier.encoder, own, firsts_only=firsts_only)
        if layer:
            spent += cost.embeddings + sum(one.total for one in cost.layers[:layer])
        n_passed = sum(passed <= layer for passed in rule.inner_layers)
        spent += len(own) * n_passed * 4 * spec.width * n_classes
    return whole / spent


def speed_ratios(
    model: Model, texts: Sequence[Pieces], *, n_rounds: int, watch: Watch
) -> tuple[float, float]:
    """How many times as fast the texts are answered with exits, and how many times as slow where no
    text may leave; by torch, in turns.
    """
    assert model.exits is not None
    stuck = replace(model.exits, rule=replace(model.exits.rule, threshold=1.0))
    models = {
        "whole": replace(model, exits=None),
        "exits": model,
        "nobody leaves": replace(model, exits=stuck),
    }

    def action(one: Model) -> TimedAction:
        return TimedAction(lambda _: compute_outputs(one, texts))

    actions = {name: action(one) for name, one in models.items()}
    times = time_in_turns(actions, what="measuring speed", n_rounds=n_rounds, watch=watch)
    seconds = {name: statistics.median(own) for name, own in times.items()}
    return seconds["whole"] / seconds["exits"], seconds["nobody leaves"] / seconds["whole"]
