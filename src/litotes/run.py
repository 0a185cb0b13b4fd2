"""One run: a recipe becomes a trained, tested model folder.

corpus → no leaks → train / held out → texts as pieces → loop → model folder → scores on the test split
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from litotes.card import model_card
from litotes.checkpoint import DESCRIPTION, Model, load_model, save_model
from litotes.classifier import Classifier
from litotes.data.corpus import Corpus
from litotes.data.packing import TextSet, text_set
from litotes.data.sources import load
from litotes.device import choose_device
from litotes.encoders import pretrained
from litotes.errors import UserError
from litotes.evaluation.evaluate import CellScores, evaluate, warnings_of
from litotes.evaluation.scores import confusion, macro_f1, pearson
from litotes.predictor import Predictor
from litotes.progress import Watch, unwatched
from litotes.recipe import Recipe
from litotes.storage import LOCK, is_staged, locked, write_json
from litotes.training.feeding import Feeder, all_logits, feeder, freeze
from litotes.training.loop import Loop, Surroundings
from litotes.training.processes import joined
from litotes.training.run_state import Checkpoints, RunState

OUR_FILES = ("recipe.json", "history.jsonl", "checkpoints", "tensorboard", LOCK)
"""What a run that was killed before its first checkpoint may have left."""

LAST_FILES = ("scores.json", "model.safetensors", "tokenizer.json", "README.md", "config.json")
"""What one that was killed in its very last moments may have left beside them: litotes.json comes after these."""


@dataclass(frozen=True)
class Prepared:
    """A corpus ready for training: the texts to learn from, those to choose the epoch by, those to test on.

    notes: sentences the user should read.
    """

    whole: Corpus
    train: Corpus
    held_out: Corpus | None
    test: Corpus | None
    notes: tuple[str, ...]

    def fingerprint(self) -> str:
        """A hash of the texts learned from, chosen by and tested on."""
        parts = [part.fingerprint() if part is not None else "" for part in (self.train, self.held_out, self.test)]
        return sha256("".join(parts).encode()).hexdigest()


@dataclass(frozen=True)
class Run:
    """What a finished run leaves behind."""

    folder: Path
    model: Model
    scores: tuple[CellScores, ...]
    notes: tuple[str, ...] = field(default=())


def train(recipe: Recipe, out: Path, *, device: str | None = None, resume: bool = False, watch: Watch = unwatched) -> Run:
    """Trains one classifier into the folder `out`; with `resume` goes on where a stopped run was."""
    chosen = choose_device(device)
    with joined(chosen.type) as processes, ExitStack() as stack:
        started = time.monotonic()
        prepared = prepare(recipe)
        key = f"{recipe.key()}-{prepared.fingerprint()[:16]}"  # the same file name may hold other texts today
        if processes.is_first:
            stack.enter_context(locked(out))
        checkpoints = Checkpoints(out / "checkpoints", key=key)
        if _is_finished(key, out, checkpoints, resume=resume):
            return finished_run(out, checkpoints)
        source = pretrained.load(recipe.model.encoder, weighting=recipe.model.weighting, max_pieces=recipe.model.max_pieces)
        torch.manual_seed(recipe.seed)  # the heads' first weights
        tasks = list(prepared.train.tasks.values())
        classifier = Classifier(source.encoder, tasks, head=recipe.model.head, dropout=recipe.model.dropout).to(chosen)
        texts = text_set(prepared.train.examples, tasks, source.tokenizer)
        if processes.is_first:
            write_json(out / "recipe.json", recipe.model_dump(mode="json"))
        around = Surroundings(chosen, out, key, processes, watch)
        state = _fit(recipe, classifier, texts, _held_out_texts(prepared, source), around, resume=resume)
        notes = (*prepared.notes, *_truncation_note(texts))
        facts = _facts(recipe, prepared, state, key=key, notes=notes, seconds=time.monotonic() - started)
        model = Model(classifier.eval(), source.tokenizer, source.name, source.sha256, facts)
        return _finish(recipe, model, prepared, around, checkpoints)


def prepare(recipe: Recipe) -> Prepared:
    """Loads the corpus, drops leaks, selects, and holds a slice of train out."""
    whole = load(recipe.data.source)
    notes = []
    clean, n_leaks = whole.without_leaks()
    if n_leaks and recipe.data.leaks == "drop":
        notes.append(
            f"{n_leaks} training texts also sit in another split (under this or another task) and were dropped. "
            "Keep them with --set data.leaks=keep."
        )
        whole = clean
    elif n_leaks:
        notes.append(f"WARNING: {n_leaks} training texts also sit in another split and were kept, as told: scores on it will be too high.")
    where = recipe.data.where
    chosen = whole.where(variety=where.variety, source=where.source, task=recipe.data.tasks)
    if "train" not in chosen.splits():
        raise UserError(f"{recipe.data.source} has no training texts for this selection, only {', '.join(chosen.splits())}.")
    training = chosen.where(split="train", task=list(chosen.tasks))  # only texts with a label can teach
    share = recipe.training.held_out
    rest, held_out = training.hold_out(share, seed=recipe.seed) if share else (training, None)
    _check_classes(rest)
    test = _test_part(chosen)
    if test is None:
        notes.append("There is no labelled test split: the model is not tested.")
    return Prepared(whole, rest, held_out, test, tuple(notes))


def finished_run(folder: Path, checkpoints: Checkpoints) -> Run:
    """A run that was trained before, read back."""
    model = load_model(folder)
    checkpoints.clear()  # left behind when the run was killed just after its last file
    rows = tuple(CellScores.from_json(row) for row in json.loads((folder / "scores.json").read_text("utf-8")))
    return Run(folder, model, rows, tuple(model.facts["notes"]))


def _test_part(chosen: Corpus) -> Corpus | None:
    """The labelled part of the test split; None where there is none."""
    if not any(example.labels for example in chosen if example.split != "train"):
        return None
    return chosen.where(split=chosen.test_split(), task=list(chosen.tasks))


def _fit(
    recipe: Recipe, classifier: Classifier, texts: TextSet, held_out: TextSet | None, around: Surroundings, *, resume: bool
) -> RunState:
    settings = recipe.training
    freeze(classifier, settings.freeze_below)
    source = feeder(texts, classifier, around.device, freeze_below=settings.freeze_below, watch=around.watch)
    validate = None
    if held_out is not None:
        validate = _validation(classifier, feeder(held_out, classifier, around.device, freeze_below=settings.freeze_below))
    loop = Loop(classifier, source, settings, seed=recipe.seed, surroundings=around, validate=validate)
    if resume:
        loop.resume()
    around.processes.wait()
    return loop.run()


def _validation(classifier: Classifier, source: Feeder) -> Callable[[], float]:
    """The mean over tasks of macro-F1 (Pearson's r for a regression) on the held-out texts."""

    def validate() -> float:
        values = []
        for name, logits in all_logits(source, classifier).items():
            task, gold = classifier.tasks[name], source.texts.targets[name]
            labelled = ~gold.isnan() if task.is_regression else gold >= 0
            if not labelled.any():
                continue
            if task.is_regression:
                values.append(float(pearson(gold[labelled].numpy(), logits[labelled].squeeze(-1).numpy())))
            else:
                counts = confusion(gold[labelled].numpy(), logits[labelled].argmax(-1).numpy(), len(task.labels))
                values.append(float(macro_f1(counts)))
        return sum(values) / max(len(values), 1)

    return validate


def _finish(recipe: Recipe, model: Model, prepared: Prepared, around: Surroundings, checkpoints: Checkpoints) -> Run:
    """Tests the model and writes the folder; the first process does it for all."""
    predictor = Predictor(model, device=str(around.device))
    rows = evaluate(predictor, prepared.test, seed=recipe.seed, watch=around.watch) if prepared.test is not None else ()
    notes = (*model.facts["notes"], *warnings_of(rows))
    model = replace(model, facts={**model.facts, "notes": list(notes)})
    if around.processes.is_first:
        write_json(around.folder / "scores.json", [row.as_json() for row in rows])
        save_model(model, around.folder, card=model_card(model, rows))
        checkpoints.clear()
    around.processes.wait()
    return Run(around.folder, model, rows, notes)


def _is_finished(key: str, out: Path, checkpoints: Checkpoints, *, resume: bool) -> bool:
    """Whether `out` already holds this very run; anything else in the way is a mistake to be told before work starts."""
    found = checkpoints.key_found()
    if (out / DESCRIPTION).is_file():
        if not resume:
            raise UserError(f"{out} already holds a trained model. Choose another --out, or take it as it is with --resume.")
        found = str(load_model(out).facts.get("key"))
    elif found is not None and not resume:
        raise UserError(f"{out} holds a run that was stopped. Go on with --resume, or choose another --out.")
    elif found is None and _holds_strange_files(out):
        raise UserError(f"{out} holds files that are not of a run. Choose an empty or a new folder for --out.")
    if found is not None and found != key:
        raise UserError(f"{out} holds a run of another recipe or on other data. Choose another --out, or start it as it was started.")
    return (out / DESCRIPTION).is_file()


def _holds_strange_files(out: Path) -> bool:
    names = {path.name for path in out.iterdir() if not is_staged(path)}
    ours = {*OUR_FILES, *LAST_FILES} if "recipe.json" in names else {*OUR_FILES}
    return not names <= ours


def _held_out_texts(prepared: Prepared, source: pretrained.Pretrained) -> TextSet | None:
    if prepared.held_out is None:
        return None
    return text_set(prepared.held_out.examples, prepared.train.tasks.values(), source.tokenizer)


def _truncation_note(texts: TextSet) -> list[str]:
    if not texts.n_truncated:
        return []
    return [
        f"{texts.n_truncated} of {len(texts)} training texts are longer than the encoder reads and were cut at {max(texts.lengths)} pieces."
    ]


def _check_classes(corpus: Corpus) -> None:
    for name, task in corpus.tasks.items():
        present = {example.labels[name] for example in corpus if name in example.labels}
        if not task.is_regression and len(present) < 2:
            only = f"only {next(iter(present))!r}" if present else "none"
            raise UserError(
                f"The training texts of {corpus.name} carry {only} of the {name} labels {', '.join(task.labels)}: nothing to learn."
            )


def _facts(recipe: Recipe, prepared: Prepared, state: RunState, *, key: str, notes: tuple[str, ...], seconds: float) -> dict[str, Any]:
    return {
        "key": key,
        "recipe": recipe.model_dump(mode="json"),
        "data": {"name": prepared.whole.name, "sha256": prepared.whole.fingerprint(), "n_train": len(prepared.train)},
        "best_epoch": state.best_epoch,
        "history": state.history,
        "notes": list(notes),
        "versions": {"torch": torch.__version__},
        "seconds": round(seconds, 1),
    }
