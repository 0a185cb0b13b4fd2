"""The second edition of the built-in model: a student mixed with the first edition.

    python -m reproduction.builtin_students DATA runs/students
    python -m reproduction.builtin_mixture runs/students/students/half-an-answer/model DATA OUT
    python bench/builtin_model.py OUT/model DATA --edition 2

    weights = share × student + (1 − share) × first edition

The student has learned from the texts that were written for this project, the first edition has
not; on texts of other kinds a mixture is better than either. The share is chosen, and the line
between literal and sarcastic drawn, by texts that neither has learned from: reserved ones of
`contrast` and `asides`, training comments of BESSTIE and validation tweets of TweetEval irony. The
line between negative and positive stays where texts without sentiment lie. A share may lose at most
half a point against the first edition in any set of another kind; of those the best mean is taken.
OUT: the model, and mixture.json with what each share scored.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from litotes.core.counts import Floats, confusion, macro_f1
from litotes.core.storage import write_json
from litotes.data.corpus import Corpus
from litotes.data.keys import text_key
from litotes.data.sources import load
from litotes.model.averaging import average_models
from litotes.model.builtin import edition_folder
from litotes.model.calibration import Calibration, fit_temperature
from litotes.model.checkpoint import Model, load_model, save_model
from litotes.text.packing import make_text_set
from litotes.training.inputs import PieceInputs, all_logits
from litotes.training.losses import has_label
from reproduction.builtin_students import WRITTEN, draw_texts, kept_apart, make_plan

FIRST = 1
SHARES = (1.0, 0.75, 0.5)
MOVED = ("sarcasm",)
"""Tasks whose line is drawn anew."""
RESERVED = "reserved"
N_TEXTS = 1000
MOST_LOST = 0.005
"""Of macro-F1, in a set of another kind, against the first edition."""
LINES = np.linspace(-2.0, 2.0, 81)
N_RESAMPLES = 99


@dataclass(frozen=True)
class Leads:
    """By how much the second class leads the first, and which is right. Both (text,)"""

    lead: Floats
    gold: Floats

    def score(self, line: float) -> float:
        return float(macro_f1(confusion(self.gold, self.lead > line, 2)))

    def resampled(self, generator: np.random.Generator) -> Leads:
        places = generator.integers(0, len(self.gold), len(self.gold))
        return Leads(self.lead[places], self.gold[places])


BySet = Mapping[str, Leads]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("student", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    corpora = texts_of_neither(options.data, options.out)
    student, first = load_model(options.student), load_model(edition_folder(FIRST))
    tried = {"first edition": look(first, corpora)}
    models = {}
    for share in SHARES:
        models[share] = average_models([student, first], [share, 1 - share])
        tried[f"{share:g}"] = look(models[share], corpora)
        write_json(options.out / "mixture.json", {"tried": tried})
        print(share, tried[f"{share:g}"]["scores"], flush=True)
    chosen = choose(tried)
    print(f"The best that loses nothing elsewhere: {chosen}", flush=True)
    write_json(options.out / "mixture.json", {"tried": tried, "chosen": chosen})
    model = finish(models[float(chosen)], tried[chosen], float(chosen))
    save_model(model, options.out / "model", card="")


def texts_of_neither(data: Path, out: Path) -> dict[str, Corpus]:
    """Texts that neither model has learned from, at most so many of a kind."""
    sets = kept_apart(data, make_plan(data, out, "minilm"))
    written = {text_key(example.text) for name in WRITTEN for example in load(name)}
    own = [one for one in sets[RESERVED] if text_key(one.text) in written]
    sets[RESERVED] = replace(sets[RESERVED], examples=tuple(own))
    return {name: draw_texts(corpus, N_TEXTS) for name, corpus in sets.items()}


def look(model: Model, corpora: Mapping[str, Corpus]) -> dict[str, Any]:
    """Line, temperature and scores of every task."""
    lines, temperatures, scores = {}, {}, {}
    for task, sets in leads_of(model, corpora).items():
        line = lines[task] = draw_line(sets) if task in MOVED else 0.0
        leads = np.concatenate([one.lead for one in sets.values()]) - line
        gold = np.concatenate([one.gold for one in sets.values()]).astype(np.int64)
        temperatures[task] = fit_temperature(np.stack([np.zeros_like(leads), leads], 1), gold)
        scores |= {f"{name}, {task}": round(one.score(line), 4) for name, one in sets.items()}
    n_texts = {name: len(corpus) for name, corpus in corpora.items()}
    found = {"lines": lines, "temperatures": temperatures, "n_texts": n_texts, "scores": scores}
    return found | {"mean": round(sum(scores.values()) / len(scores), 4)}


def leads_of(model: Model, corpora: Mapping[str, Corpus]) -> dict[str, dict[str, Leads]]:
    """By task and set."""
    found: dict[str, dict[str, Leads]] = {}
    for name, corpus in corpora.items():
        texts = make_text_set(corpus.examples, model.classifier.tasks.values(), model.tokenizer)
        with torch.inference_mode():
            inputs = PieceInputs(texts, torch.device("cpu"))
            by_task = all_logits(inputs, model.classifier.eval())
        for task, logits in by_task.items():
            gold = texts.targets[task]
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
        means = np.array([np.mean([one.score(line) for one in some]) for line in LINES])
        best.append(LINES[means == means.max()].mean())
    return float(np.median(best))


def choose(tried: Mapping[str, Mapping[str, Any]]) -> str:
    """The share with the best mean of those that lose nothing elsewhere."""
    first = tried["first edition"]["scores"]
    harmless = [
        name
        for name, found in tried.items()
        if name != "first edition"
        and all(
            score >= first[which] - MOST_LOST
            for which, score in found["scores"].items()
            if not which.startswith(RESERVED)
        )
    ]
    if not harmless:
        raise SystemExit("Every share loses more than a point on texts of another kind.")
    return max(harmless, key=lambda name: tried[name]["mean"])


def finish(model: Model, found: Mapping[str, Any], share: float) -> Model:
    """The model with its lines at one half, its temperatures, and what is known about it."""
    for task, line in found["lines"].items():
        with torch.no_grad():
            model.classifier.heads.get_submodule(task).output.bias[1] -= line
    n_texts = sum(found["n_texts"].values())
    calibration = {
        task: Calibration(temperature, None, n_texts)
        for task, temperature in found["temperatures"].items()
    }
    about = (
        f"{share:g} of a student of six cross-fitted mpnet teachers, whose answers count half a"
        f" label, and {1 - share:g} of the first edition. The line between literal and sarcastic,"
        f" and temperatures, were fitted on {n_texts:,} texts that neither has learned from."
    )
    return replace(model, calibration=calibration, facts=_facts(model.facts, about))


def _facts(facts: Mapping[str, Any], about: str) -> dict[str, Any]:
    """Without the student's own ways to its data and teachers."""
    kept = [note for note in facts["notes"] if not note.startswith("Distilled from")]
    found = {name: value for name, value in facts.items() if name != "history"}
    text = json.dumps(found | {"notes": [*kept, about]}, ensure_ascii=False)
    clean: dict[str, Any] = json.loads(re.sub(r':/[^"+ ]*/([\w-]+)(?=["+ ])', r":data/\1", text))
    return clean


if __name__ == "__main__":
    main()
