"""One run: a recipe becomes a trained, tested model of words.

texts of words → train / held out → windows of pieces → loop → model folder → scores on the test
split, beside the most frequent tag of each word
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from litotes.core.json_text import read_as
from litotes.core.machine import choose_device
from litotes.core.progress import Watch, ignore_progress
from litotes.core.registry import check_options
from litotes.core.storage import write_json
from litotes.core.text import one_line
from litotes.core.values import Example, Task
from litotes.data.words import load_words
from litotes.encoder import pretrained
from litotes.encoder.attention import PRUNINGS, WEIGHTINGS
from litotes.model.checkpoint import SavedWordModel, load_word_model, save_word_model
from litotes.model.classifier import WordModel
from litotes.model.folder import write_trained_texts
from litotes.training.checkpoints import Checkpoints, RunState
from litotes.training.epoch_loop import RunContext
from litotes.training.processes import hold_folder, join_processes
from litotes.training.run_folder import find_finished_model
from litotes.training.tagging.baselines import most_frequent_tags
from litotes.training.tagging.card import word_card
from litotes.training.tagging.evaluate import evaluate_words
from litotes.training.tagging.loop import WordLoop, score_name
from litotes.training.tagging.preparing import WordData, prepare_words
from litotes.training.tagging.recipe import WordRecipe
from litotes.training.tagging.scores import TagScores, score_tags
from litotes.training.tagging.word_set import make_word_set

FREQUENT = "most_frequent_tag"


@dataclass(frozen=True)
class WordRun:
    """What a finished run leaves behind. scores: what `scores.json` holds, {} without a test."""

    folder: Path
    model: SavedWordModel
    scores: Mapping[str, Any]

    def __repr__(self) -> str:
        return one_line(self, folder=str(self.folder), model=self.model)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self.model.facts["notes"])


def train_words(
    recipe: WordRecipe,
    out: Path,
    *,
    device: str | None = None,
    resume: bool = False,
    watch: Watch = ignore_progress,
) -> WordRun:
    """Trains one model into the folder `out`; with `resume` goes on where a stopped run was."""
    model = recipe.model
    check_options(WEIGHTINGS, model.weighting, "weighting", model.weighting_options)
    check_options(PRUNINGS, model.pruning, "pruning", model.pruning_options)
    chosen = choose_device(device)
    data = prepare_words(recipe, load_words(recipe.data.source))
    key = f"{recipe.key()}-{data.fingerprint()[:16]}"
    checkpoints = Checkpoints(out / "checkpoints", key=key)
    with join_processes(chosen.type) as processes, hold_folder(out, processes):
        finished = find_finished_model(out, key, checkpoints, resume=resume, load=load_word_model)
        if finished is not None:
            checkpoints.clear()  # left behind when the run was killed just after its last file
            advice = "Choose another --out."
            scores = read_as(out / "scores.json", dict[str, Any], advice=advice)
            return WordRun(out, finished, scores)
        context = RunContext(chosen, out, key, processes, watch)
        trained = _train(recipe, data, context, resume=resume)
        return _test_and_save(recipe, trained, data, context, checkpoints)


def _train(
    recipe: WordRecipe, data: WordData, context: RunContext, *, resume: bool
) -> SavedWordModel:
    started = time.monotonic()
    source = pretrained.load(
        recipe.model.encoder,
        max_pieces=recipe.model.max_pieces,
        **recipe.model.attention_choices(),
    )
    task = Task(data.train.task, data.labels)
    torch.manual_seed(recipe.seed)  # the head's first weights
    network = WordModel(source.encoder, task, kind=recipe.kind, dropout=recipe.model.dropout)
    network.to(context.device)
    words = make_word_set(data.train.examples, task, source.tokenizer, recipe.kind)
    if context.processes.is_first:
        write_json(context.folder / "recipe.json", recipe.model_dump(mode="json"))
    validate = None
    if data.held_out is not None:
        judge = partial(evaluate_words, network, source.tokenizer, data.held_out)
        validate = partial(_held_out_score, judge, recipe)
    loop = WordLoop(network, words, recipe, context=context, validate=validate)
    if resume:
        loop.resume()
    context.processes.wait()
    state = loop.run()
    notes = list(data.notes)
    if words.n_cut:
        notes.append(
            f"{words.n_cut} of {len(data.train)} training texts hold more than the encoder reads at"
            f" once and were cut at {max(words.lengths)} pieces."
        )
    facts = _facts(recipe, data, state, key=context.key, notes=notes)
    facts["seconds"] = round(time.monotonic() - started, 1)
    return SavedWordModel(
        network.eval(), source.tokenizer, source.name, source.sha256, data.train.cutting, facts
    )


def _held_out_score(judge: Any, recipe: WordRecipe) -> float:
    scores = judge()
    names = {"accuracy": "accuracy", "macro-F1": "macro_f1", "overlap F1": "overlap_f1"}
    return float(getattr(scores, names[score_name(recipe)]))


def _facts(
    recipe: WordRecipe, data: WordData, state: RunState, *, key: str, notes: list[str]
) -> dict[str, Any]:
    train = data.train
    return {
        "key": key,
        "recipe": recipe.model_dump(mode="json"),
        "data": {"name": train.name, "sha256": data.fingerprint(), "n_train": len(train)},
        "best_epoch": state.best_epoch,
        "history": state.history,
        "notes": notes,
        "versions": {"torch": torch.__version__},
        "seconds_per_step": state.seconds / max(state.step, 1),
    }


def _test_and_save(
    recipe: WordRecipe,
    model: SavedWordModel,
    data: WordData,
    context: RunContext,
    checkpoints: Checkpoints,
) -> WordRun:
    """Tests the model and writes the folder; the first process does it for all."""
    scores: dict[str, Any] = {}
    if data.test is not None:
        tested = evaluate_words(
            model.network, model.tokenizer, data.test, seed=recipe.seed, watch=context.watch
        )
        scores = tested.as_json()
        if isinstance(tested, TagScores):
            scores["baselines"] = {FREQUENT: _frequent_scores(data, model.network.task)}
    if context.processes.is_first:
        write_json(context.folder / "scores.json", scores)
        write_trained_texts(context.folder, [Example(one.text, {}) for one in data.seen()])
        save_word_model(model, context.folder, card=word_card(model, scores))
        checkpoints.clear()
    context.processes.wait()
    return WordRun(context.folder, model, scores)


def _frequent_scores(data: WordData, task: Task) -> dict[str, Any]:
    """What each word's most frequent tag in training scores on the test texts."""
    assert data.test is not None
    gold = [one.tags or () for one in data.test]
    answers = most_frequent_tags([*data.train, *(data.held_out or ())], data.test.examples)
    found = score_tags(task.name, task.labels, gold, answers)
    content = replace(found, labels=()).as_json()
    del content["labels"]
    return content
