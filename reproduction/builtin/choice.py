"""Lines, temperatures and scores of candidates, on texts that none of them has learned from."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from litotes.core.numbers import Floats, macro_f1
from litotes.core.storage import write_json
from litotes.data.corpus import Corpus
from litotes.encoder.packing import TextSet, make_text_set
from litotes.evaluation.reliability import reliability
from litotes.model.calibration import Calibration
from litotes.model.checkpoint import Model
from litotes.training.inputs import Inputs, all_logits
from litotes.training.losses import has_label
from reproduction.builtin.averaging import average_models
from reproduction.builtin.texts import RESERVED
from reproduction.roc import roc_area

MOVED = ("sarcasm",)
"""Tasks whose line is drawn anew."""
MOST_LOST = 0.005
"""Of macro-F1, in a set of another kind, against the model there was."""
LINES = np.linspace(-2.0, 2.0, 81)
TEMPERATURES = np.geomspace(0.5, 3.0, 61)
N_RESAMPLES = 99
FITTED = "The line between literal and sarcastic, and temperatures, were fitted on"
Parts = tuple[str, ...]
"""Names of models, each as often as it counts."""
Found = Mapping[str, Any]


@dataclass(frozen=True)
class Leads:
    """By how much the second class leads the first, and which is right. Both (text,)"""

    lead: Floats
    gold: Floats

    def scores(self, lines: Floats) -> Floats:
        """Macro-F1 with each of the lines."""
        first, second = (np.sort(self.lead[self.gold == label]) for label in (0, 1))
        kept = np.searchsorted(first, lines, side="right")  # of the first class, below the line
        lost = np.searchsorted(second, lines, side="right")
        counts = np.array([[kept, len(first) - kept], [lost, len(second) - lost]])
        return macro_f1(np.moveaxis(counts, -1, 0))  # of (line, gold, answered)

    def calibration_error(self, line: float, temperature: float) -> float:
        """How far stated and true shares of right answers lie apart."""
        odds = (self.lead - line) / temperature
        sure = 1 / (1 + np.exp(-np.abs(odds)))
        return reliability(sure, (odds > 0) == (self.gold == 1)).ece

    def area(self) -> float:
        """Under the ROC curve: how often a text of the second class leads one of the first."""
        return roc_area(self.lead, self.gold == 1)

    def resampled(self, generator: np.random.Generator) -> Leads:
        places = generator.integers(0, len(self.gold), len(self.gold))
        return Leads(self.lead[places], self.gold[places])


BySet = Mapping[str, Leads]


def write_tried(file: Path, tried: Mapping[Parts, Found], **more: Any) -> None:
    kept = {" + ".join(parts): found for parts, found in tried.items()}
    write_json(file, {"tried": kept, **more})


def mix(models: Mapping[str, Model], parts: Parts) -> Model:
    return average_models([models[name] for name in parts])


def tokenize(corpora: Mapping[str, Corpus], model: Model) -> dict[str, TextSet]:
    """The texts as all models of one encoder and the same tasks read them."""
    tasks = model.classifier.tasks.values()
    return {
        name: make_text_set(corpus.examples, tasks, model.tokenizer)
        for name, corpus in corpora.items()
    }


def look(model: Model, texts: Mapping[str, TextSet]) -> dict[str, Any]:
    """Line, temperature and scores of every task."""
    return judge(leads_of(model, texts), {name: len(own) for name, own in texts.items()})


def judge(leads: Mapping[str, BySet], n_texts: Mapping[str, int]) -> dict[str, Any]:
    """The same by answers that are there. leads: by task."""
    lines, temperatures = {}, {}
    scores: dict[str, float] = {}
    areas: list[float] = []
    for task, sets in leads.items():
        line = lines[task] = draw_line(sets) if task in MOVED else 0.0
        temperatures[task] = choose_temperature(sets, line)
        scores |= {
            f"{name}, {task}": round(float(one.scores(np.array([line]))[0]), 4)
            for name, one in sets.items()
        }
        areas += [one.area() for one in sets.values()]
    found = {
        "lines": lines,
        "temperatures": temperatures,
        "n_texts": dict(n_texts),
        "scores": scores,
    }
    means = {"mean": scores.values(), "area": areas}
    return found | {name: round(sum(some) / len(some), 4) for name, some in means.items()}


def leads_of(model: Model, texts: Mapping[str, TextSet]) -> dict[str, dict[str, Leads]]:
    """By task and set."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    found: dict[str, dict[str, Leads]] = {}
    for name, own in texts.items():
        with torch.inference_mode():
            inputs = Inputs(own, device)
            by_task = all_logits(inputs, model.classifier.to(device).eval())
        for task, logits in by_task.items():
            gold = own.targets[task]
            labelled = has_label(gold)  # (text,)
            lead = (logits[:, 1] - logits[:, 0])[labelled].double().numpy()
            right = gold[labelled].numpy()
            if len(set(right.tolist())) == 2:
                found.setdefault(task, {})[name] = Leads(lead, right)
    return found


def draw_line(sets: BySet) -> float:
    """Where the mean over sets of macro-F1 is best: the median over resamples of the texts."""
    generator = np.random.default_rng(0)
    best = []
    for _ in range(N_RESAMPLES):
        some = [one.resampled(generator) for one in sets.values()]
        means = np.mean([one.scores(LINES) for one in some], 0)
        best.append(LINES[means == means.max()].mean())
    return float(np.median(best))


def choose_temperature(sets: BySet, line: float) -> float:
    """With which the mean over sets of the calibration error is least: a set counts as much as
    another however many texts it has, as for the line.
    """

    def error(temperature: float) -> float:
        errors = [one.calibration_error(line, temperature) for one in sets.values()]
        return sum(errors) / len(errors)

    return float(min(TEMPERATURES, key=error))


def is_harmless(scores: Mapping[str, float], first: Mapping[str, float]) -> bool:
    """Whether no set of another kind loses more than it may against the model there was."""
    others = [which for which in scores if not which.startswith(RESERVED)]
    return all(scores[which] >= first[which] - MOST_LOST for which in others)


def finish(model: Model, found: Found, about: str) -> Model:
    """The model with its lines at one half, its temperatures, and what is known about it."""
    for task, line in found["lines"].items():
        with torch.no_grad():
            model.classifier.heads.get_submodule(task).output.bias[1] -= line
    n_texts = sum(found["n_texts"].values())
    calibration = {
        task: Calibration(temperature, None, n_texts)
        for task, temperature in found["temperatures"].items()
    }
    return replace(model, calibration=calibration, facts=_facts(model.facts, about))


def fitted_on(n_texts: int) -> str:
    return f"{FITTED} {n_texts:,} texts that none of them has learned from."


def _facts(facts: Mapping[str, Any], about: str) -> dict[str, Any]:
    """Without the student's own ways to its data and teachers."""
    kept = [note for note in facts["notes"] if not note.startswith("Distilled from")]
    kept = [note.partition(f" {FITTED}")[0] for note in kept]  # it is fitted anew
    found = {name: value for name, value in facts.items() if name != "history"}
    text = json.dumps(found | {"notes": [*kept, about]}, ensure_ascii=False)
    clean: dict[str, Any] = json.loads(re.sub(r':/[^"+ ]*/([\w-]+)(?=["+ ])', r":data/\1", text))
    return clean
