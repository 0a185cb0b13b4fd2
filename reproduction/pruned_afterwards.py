"""The authors' schedule put on a model that is trained already, which then teaches the pruned one.

    python -m reproduction.pruned_afterwards OUT --set sources.besstie=besstie:PATH
        --set sources.twitter=twitter:PATH --set "sources.bicodemix=bicodemix:PATH?classes=2"
        [--set recipe.model.encoder=FOLDER] [--workers 5] [--device cuda]

`study_pruning_base.toml` trains with the schedule from the first step, plain and fused. Here every
dense run of that file is trained, and then for `EPOCHS` more as each of `VARIANTS`, with the dense
model's answers for most of the labels, as `litotes prune` does. One variant is dense: what training
on gains by itself is not due to pruning. All are tested on the cells of figures 8 to 10.

OUT/runs/NAME.json: macro-F1 by variant and cell; what is there is not run again. OUT/summary.json:
means of an experiment's cells, variants less dense, paired by seed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from litotes.core.jobs import run_jobs, threads_per_worker
from litotes.core.machine import choose_device, sleep_while_waiting
from litotes.core.progress import Watch, prefix_watch
from litotes.core.storage import write_json
from litotes.encoder.packing import make_text_set
from litotes.encoder.reshaping import rebuild_encoder
from litotes.evaluation.evaluate import evaluate
from litotes.evaluation.scores import Scores
from litotes.model.checkpoint import Model
from litotes.prediction.predictor import Predictor
from litotes.study.plan import TestedOn, read_study
from litotes.study.runs import plan_jobs, select_test_texts
from litotes.training.classification import train_classifier
from litotes.training.held_out import fit_calibrations, held_out_score
from litotes.training.inputs import PieceInputs, all_logits
from litotes.training.processes import Processes
from litotes.training.recipe import Recipe
from litotes.training.run import train
from litotes.training.teacher import Teacher
from litotes.training.trainer import RunContext
from litotes.training.training_data import prepare
from reproduction.printed_progress import PrintedProgress
from reproduction.translation_numbers import over_seeds

STUDY = Path(__file__).parent / "study_pruning_base.toml"
DENSE = "dense"
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {"pruning": "cascade"},
    "fused": {
        "pruning": "cascade",
        "pruning_options": {"fuse": True, "importance": "value"},
    },
    "trained on": {},
}
"""What is changed in the dense encoder. The last is the control."""
EPOCHS = 4
TEACHER_SHARE = 0.9
"""As `litotes prune` has it."""
SOURCES = ("Google", "Reddit")


@dataclass(frozen=True)
class AfterJob:
    """A dense run of the study, and what is made of its model."""

    experiment: str
    recipe: Recipe
    tests: Mapping[str, TestedOn]
    file: Path
    epochs: int
    n_threads: int
    device: str | None


def main(words: Sequence[str] | None = None) -> None:
    options = _parse(words)
    sleep_while_waiting()
    out = options.out.resolve()
    jobs = plan(options, out)
    todo = {name: job for name, job in jobs.items() if not job.file.is_file()}
    failed = []
    for outcome in run_jobs(
        todo, run_after_job, n_workers=options.workers, watch=PrintedProgress()
    ):
        if outcome.error is not None:
            failed.append(outcome.name)
            print(f"failed: {outcome.name}: {outcome.error}", file=sys.stderr)
    files = [job.file for job in jobs.values() if job.file.is_file()]
    write_json(out / "summary.json", summarize([json.loads(file.read_text()) for file in files]))
    print(out / "summary.json")
    if failed:
        raise SystemExit(f"{len(failed)} of {len(jobs)} runs failed; start again to try them.")


def plan(options: argparse.Namespace, out: Path) -> dict[str, AfterJob]:
    """By name; a seed is whole before the next."""
    study = read_study(STUDY, changes=options.set)
    dense = [one for one in study.experiments if one.settings.name.endswith(f", {DENSE}")]
    names = {one.settings.name for one in dense}
    planned = plan_jobs(replace(study, experiments=tuple(dense)), out).values()
    jobs = {}
    for job in sorted(planned, key=lambda job: job.recipe.seed):
        experiment = next(name for name in names if job.name.startswith(name))
        jobs[job.name] = AfterJob(
            experiment=experiment.removesuffix(f", {DENSE}"),
            recipe=job.recipe,
            tests=job.tests,
            file=out / "runs" / f"{job.name.replace(', ', '-').replace(' ', '-')}.json",
            epochs=options.epochs,
            n_threads=threads_per_worker(options.workers),
            device=options.device,
        )
    return jobs


def run_after_job(job: AfterJob, watch: Watch) -> None:
    """Trains the dense model, then every variant of it; keeps scores and no weights."""
    torch.set_num_threads(job.n_threads)
    work = job.file.with_suffix("")
    run = train(job.recipe, work / DENSE, device=job.device, resume=True, watch=watch)
    scores = {DENSE: score_cells(run.model, job)}
    for name, choices in VARIANTS.items():
        model = train_on(run.model, choices, job, work / name, prefix_watch(watch, name))
        scores[name] = score_cells(model, job)
    content = {"experiment": job.experiment, "seed": job.recipe.seed, "scores": scores}
    content["trained_on"] = job.recipe.data.where.variety or job.recipe.data.source
    write_json(job.file, content)
    shutil.rmtree(work)


def train_on(
    dense: Model, choices: Mapping[str, Any], job: AfterJob, folder: Path, watch: Watch
) -> Model:
    """The dense model with these choices, trained with its own answers before."""
    device, data = choose_device(job.device), prepare(job.recipe)
    assert data.held_out is not None  # the study's recipe holds texts out
    settings = job.recipe.training.model_copy(update={"epochs": job.epochs, "patience": job.epochs})
    tokenize = partial(
        make_text_set, tasks=list(dense.classifier.tasks.values()), tokenizer=dense.tokenizer
    )
    inputs = PieceInputs(tokenize(data.train.examples), device)
    held_out = PieceInputs(tokenize(data.held_out.examples), device)
    answers = all_logits(inputs, dense.classifier.to(device))
    classifier = deepcopy(dense.classifier)
    classifier.encoder = rebuild_encoder(classifier.encoder, **choices)
    folder.mkdir(parents=True, exist_ok=True)
    train_classifier(
        classifier,
        inputs,
        settings,
        seed=job.recipe.seed,
        context=RunContext(device, folder, job.recipe.key(), Processes(), watch),
        validate=partial(held_out_score, classifier, held_out, worst_group=False),
        teacher=Teacher(answers, TEACHER_SHARE),
    )
    calibration = fit_calibrations(classifier, held_out, settings)
    return replace(dense, classifier=classifier.eval(), calibration=calibration)


def score_cells(model: Model, job: AfterJob) -> dict[str, float]:
    """Macro-F1 by cell, such as `en-AU Google`."""
    predictor, found = Predictor(model, device=job.device), {}
    for test in job.tests.values():
        chosen = select_test_texts(test, job.recipe, list(predictor.tasks))
        for row in evaluate(predictor, chosen, seed=0):
            if row.cell != "all":
                assert isinstance(row.scores, Scores)
                found[row.cell] = round(row.scores.macro_f1, 4)
    return found


def summarize(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row for each experiment and source tested on: means of its cells by seed."""
    found = []
    for experiment in dict.fromkeys(row["experiment"] for row in rows):
        own = [row for row in rows if row["experiment"] == experiment]
        for source in SOURCES:
            by_seed = {name: list(_means(own, name, source)) for name in (DENSE, *VARIANTS)}
            if by_seed[DENSE]:
                less = {name: _difference(by_seed[name], by_seed[DENSE]) for name in VARIANTS}
                found.append(
                    {
                        "experiment": experiment,
                        "tested_on": source,
                        "by_seed": by_seed,
                        "less_dense": less,
                    }
                )
    return found


def _means(rows: Sequence[Mapping[str, Any]], variant: str, source: str) -> Iterator[float]:
    """Of every seed the mean over the cells of this source, whatever was trained on."""
    for seed in sorted({row["seed"] for row in rows}):
        cells = [
            score
            for row in rows
            if row["seed"] == seed
            for cell, score in row["scores"][variant].items()
            if cell.endswith(source)
        ]
        if cells:
            yield statistics.mean(cells)


def _difference(own: Sequence[float], dense: Sequence[float]) -> dict[str, Any]:
    """In points, paired by seed."""
    points = [100 * (one - other) for one, other in zip(own, dense, strict=True)]
    return {"points": statistics.mean(points), "interval": over_seeds(points)}


def _parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="after the dense ones")
    parser.add_argument("--device")
    return parser.parse_args(words)


if __name__ == "__main__":
    main()
