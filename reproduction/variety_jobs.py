"""One run of `variety_stress`: train on one variety, test on all, and answer rewritten texts.

OUT/cases.json          texts under every rewrite and their controls, the same for all models
OUT/runs/NAME.json      what one model answered: labels of real texts by variety, and which rewrites
                        and controls changed its answer; no texts
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import torch

from litotes.core.json_text import read_as
from litotes.core.progress import Watch
from litotes.core.storage import write_json
from litotes.core.values import Example
from litotes.data.corpus import Corpus
from litotes.data.rewrites import REWRITES
from litotes.data.rewrites.control import control_of
from litotes.data.sources import load
from litotes.evaluation.evaluate import predict_corpus
from litotes.prediction.predictor import Predictor
from litotes.training.recipe import Recipe
from litotes.training.run import train

VARIETIES = ("en-AU", "en-IN", "en-UK")
SOURCE = "Reddit"
_CHUNK = 512


@dataclass(frozen=True)
class Case:
    """A text under one rewrite, and its control where there is one."""

    rewrite: str
    text: str
    rewritten: str
    control: str | None


@dataclass(frozen=True)
class CaseJob:
    """All cases of one rewrite, written into a file of their own: rewriting takes a core a minute,
    and there are several cores.
    """

    rewrite: str
    source: str
    n_texts: int
    file: Path


@dataclass(frozen=True)
class VarietyJob:
    """One model: what it is trained on (`recipe`), and the folder of all runs."""

    encoder: str
    task: str
    trained_on: str
    is_augmented: bool
    seed: int
    recipe: Recipe
    folder: Path
    n_threads: int
    device: str | None

    @property
    def name(self) -> str:
        kind = "augmented" if self.is_augmented else "plain"
        return f"{self.encoder}-{self.task}-{self.trained_on}-{kind}-{self.seed}"

    @property
    def file(self) -> Path:
        return self.folder / "runs" / f"{self.name}.json"


def studied_rewrites() -> dict[str, tuple[str, ...]]:
    """The features that eWAVE calls common in one of our varieties, each with those varieties."""
    found = {}
    for name, rewrite in REWRITES.items():
        common = tuple(tag for tag in VARIETIES if tag in rewrite.common_in())
        if common:
            found[name] = common
    return found


def foreign_rewrites(variety: str) -> list[str]:
    """Features that are common in another of our varieties."""
    return [name for name, common in studied_rewrites().items() if set(common) - {variety}]


def real_texts(source: str, task: str | None = None) -> Corpus:
    """The real texts that models are tested on and whose rewrites they answer."""
    return load(source).where(split="valid", source=SOURCE, task=task)


def make_cases(job: CaseJob, watch: Watch) -> None:
    """Texts in an order that is the same for all rewrites, the first `n_texts` it applies to."""
    texts = sorted({example.text for example in real_texts(job.source)})
    Random(0).shuffle(texts)
    rewrite, cases = REWRITES[job.rewrite], []
    for number, text in enumerate(texts):
        watch("rewriting", number, len(texts), job.rewrite)
        rewritten = rewrite(text, seed=0)
        if rewritten != text:
            control = control_of(text, rewritten, seed=0)
            cases.append(asdict(Case(job.rewrite, text, rewritten, control)))
        if len(cases) == job.n_texts:
            break
    write_json(job.file, cases)


def read_cases(file: Path) -> list[Case]:
    return read_as(file, list[Case], advice="Delete it and start again.")


def run_variety_job(job: VarietyJob, watch: Watch) -> None:
    """Trains, tests, stresses; the model itself goes."""
    if job.file.is_file():
        return
    torch.set_num_threads(job.n_threads)
    model = job.folder / "models" / job.name
    begun = time.monotonic()
    run = train(job.recipe, model, device=job.device, resume=True, watch=watch)
    trained = time.monotonic()
    predictor = Predictor(*run.models, device=job.device)
    tests = dict(_test(predictor, job))
    cases = read_cases(job.folder / "cases.json")
    effects = _stress(predictor, cases, job.task)
    seconds = {"training": trained - begun, "answering": time.monotonic() - trained}
    content = {
        **{key: getattr(job, key) for key in ("encoder", "task", "trained_on", "seed")},
        "is_augmented": job.is_augmented,
        "n_rewritten": len(job.recipe.data.rewrites),
        "recipe": _shareable(job),
        "notes": list(run.notes),
        "tests": tests,
        "cases": hash_of_cases(cases),
        "stress": effects,
        "seconds": seconds,
    }
    write_json(job.file, content)
    shutil.rmtree(model, ignore_errors=True)


def hash_of_cases(cases: Sequence[Case]) -> str:
    lines = [f"{case.rewrite}\t{case.text}\t{case.rewritten}\t{case.control}" for case in cases]
    return sha256("\n".join(lines).encode()).hexdigest()[:16]


def _shareable(job: VarietyJob) -> dict[str, Any]:
    """The recipe without paths of this machine."""
    named = job.recipe.changed(data__source="besstie", model__encoder=job.encoder)
    return named.model_dump(mode="json")


def _test(predictor: Predictor, job: VarietyJob) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the model answers to real texts, by variety."""
    corpus = real_texts(job.recipe.data.source, job.task)
    result = predict_corpus(predictor, corpus)[job.task]
    for variety in VARIETIES:
        part = result.only([example.variety == variety for example in result.examples])
        yield (
            variety,
            {
                "labels": list(part.task.labels),
                "texts": _hash_of_texts(part.examples),
                "gold": part.gold().tolist(),
                "answers": part.predicted().tolist(),
                "probability": [round(answer.probability or 0.0, 6) for answer in part.answers],
            },
        )


def _hash_of_texts(examples: Sequence[Example]) -> str:
    return sha256("\n".join(example.text for example in examples).encode()).hexdigest()[:16]


def _stress(predictor: Predictor, cases: Sequence[Case], task: str) -> dict[str, list[Any]]:
    """For each case whether rewrite and control change the label (null: no control), and the change
    of the probability of the label first given.
    """
    asked: dict[str, None] = {}
    for case in cases:
        asked |= dict.fromkeys(filter(None, (case.text, case.rewritten, case.control)))
    texts = sorted(asked, key=lambda text: (len(text), text))
    answers: dict[str, Mapping[str, float]] = {}
    labels: dict[str, str] = {}
    for start in range(0, len(texts), _CHUNK):
        chunk = texts[start : start + _CHUNK]
        for text, prediction in zip(chunk, predictor.predict(chunk), strict=True):
            answer = prediction.answers[task]
            answers[text], labels[text] = answer.probabilities, str(answer.label)
    found: dict[str, list[Any]] = {"flips": [], "control_flips": [], "change": []}
    found["control_change"] = []
    for case in cases:
        first = labels[case.text]
        for kind, text in (("", case.rewritten), ("control_", case.control)):
            flip, change = None, None
            if text is not None:
                flip = int(labels[text] != first)
                change = round(answers[text][first] - answers[case.text][first], 5)
            found[f"{kind}flips"].append(flip)
            found[f"{kind}change"].append(change)
    return found
