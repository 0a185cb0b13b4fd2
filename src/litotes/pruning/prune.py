"""From a dense model to the fastest pruned one within a loss: fewer attention heads, budgets learned, searched, settled, measured.

dense model → heads that its answers hang on least leave for good → training with budgets drawn at every step (length drop), the dense
model as teacher → for each target a search for the best shares per layer → a few epochs with just those → loss on the held-out texts
with its interval, time beside the dense model → the fastest one within the loss → model folder, frontier.json
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from litotes.card import model_card
from litotes.checkpoint import DESCRIPTION, Model, load_model, save_model
from litotes.classifier import Classifier
from litotes.data.packing import TextSet, text_set
from litotes.device import choose_device
from litotes.errors import UserError
from litotes.evaluation.cost import flops
from litotes.evaluation.evaluate import evaluate
from litotes.evaluation.frontier.points import Loss, Point, loss_of, speed_ratios
from litotes.evaluation.frontier.search import Found, first_texts
from litotes.flow import Example
from litotes.predictor import Predictor
from litotes.preparation import Prepared, prepare
from litotes.progress import Watch, unwatched
from litotes.pruning.phases import Work, explored, settle
from litotes.pruning.result import Pruned, PruneSettings
from litotes.recipe import Recipe, recipe_of
from litotes.storage import locked, remove_folder, write_json
from litotes.training.feeding import all_logits, feeder
from litotes.training.held_out import calibrations
from litotes.training.teacher import Teacher


def prune(
    run: Path, source: str, out: Path, *, settings: PruneSettings | None = None, device: str | None = None, watch: Watch = unwatched
) -> Pruned:
    """Prunes the model of the folder `run` for the texts of `source` into `out`; a stopped one goes on where it was."""
    settings = settings or PruneSettings()
    dense = _dense_model(run)
    if (out / DESCRIPTION).is_file():
        raise UserError(f"{out} already holds a model. Choose another --out.")
    recipe = _recipe(dense, source)
    prepared = prepare(recipe)
    if prepared.held_out is None:
        raise UserError("There are no held-out texts to choose by. Give a source with more training texts.")
    with locked(out):
        work = _work(settings, recipe, prepared, dense, choose_device(device), out, watch)
        start = explored(work)
        settled = [(target, *settle(work, start, target)) for target in sorted(set(settings.targets))]
        return _finish(work, settled)


def _dense_model(run: Path) -> Model:
    model = load_model(run)
    if model.classifier.encoder.spec.pruning != "none":
        raise UserError(f"{run} is pruned already ({model.classifier.encoder.spec.pruning}). Prune the dense model it came from.")
    return model


def _recipe(dense: Model, source: str) -> Recipe:
    """The recipe of the dense run, on the texts of `source`; the same seed holds the same texts out."""
    recipe = recipe_of(dict(dense.facts["recipe"]), "the model's recipe").changed(data__source=source, training__freeze_below=0)
    missing = set(dense.classifier.tasks) - set(prepare(recipe).train.tasks)
    if missing:
        raise UserError(f"{source} has no labels for {', '.join(sorted(missing))}, which this model answers. Choose another source.")
    return recipe if recipe.training.held_out else recipe.changed(training__held_out=0.1)


def _work(settings: PruneSettings, recipe: Recipe, prepared: Prepared, dense: Model, device: torch.device, out: Path, watch: Watch) -> Work:
    dense.classifier.to(device)
    tasks = list(dense.classifier.tasks.values())
    learned_from = [*prepared.train.examples, *_unlabelled(prepared)]
    train = text_set(learned_from, tasks, dense.tokenizer, group_by=recipe.training.group_by)
    assert prepared.held_out is not None
    held_out = text_set(prepared.held_out.examples, tasks, dense.tokenizer, group_by=recipe.training.group_by)
    answers = all_logits(feeder(train, dense.classifier, device, freeze_below=0), dense.classifier, watch=watch, what="teacher")
    teacher = Teacher(answers, settings.teacher)
    return Work(settings, recipe, prepared, dense, train, held_out, teacher, device, out, watch)


def _unlabelled(prepared: Prepared) -> list[Example]:
    """Other training texts of the source: without a label for these tasks, or outside the selection. The teacher has an answer to them."""
    assert prepared.held_out is not None
    known = {example.text for part in (prepared.train, prepared.held_out) for example in part}
    known |= {example.text for example in prepared.whole if example.split != "train"}
    others = {example.text: example for example in prepared.whole if example.split == "train" and example.text not in known}
    return [replace(example, labels={}) for example in others.values()]


def _finish(work: Work, settled: Sequence[tuple[float, Found, Classifier]]) -> Pruned:
    points = _points(work, settled)
    within = [point for point in points if point.loss.chance_within >= work.settings.sure]
    if not within:
        pruned = Pruned(work.settings, points, None, (), _notes(work))
        write_json(work.folder / "frontier.json", pruned.as_json())
        return pruned
    best = max(within, key=lambda point: point.speed_ratio)
    points = tuple(replace(point, chosen=point is best) for point in points)
    (classifier,) = [classifier for target, _, classifier in settled if target == best.target]
    model = _model(work, classifier, replace(best, chosen=True))
    test = work.prepared.test
    rows = evaluate(Predictor(model, device=str(work.device)), test, seed=work.recipe.seed, watch=work.watch) if test is not None else ()
    pruned = Pruned(work.settings, points, model, rows, _notes(work))
    write_json(work.folder / "frontier.json", pruned.as_json())
    write_json(work.folder / "scores.json", [row.as_json() for row in rows])
    save_model(model, work.folder, card=model_card(model, rows))
    remove_folder(work.folder / "phases")
    return pruned


def _notes(work: Work) -> tuple[str, ...]:
    """What the user should know about the texts the choice was made by."""
    trained = recipe_of(dict(work.dense.facts["recipe"]), "the model's recipe")
    if trained.training.held_out or trained.data.source != work.recipe.data.source:
        return ()
    return (
        "The dense model was trained with held_out = 0, so it has learned the very texts that are chosen by, and losses on them come out "
        "too large. Train it with --set training.held_out=0.1.",
    )


def _points(work: Work, settled: Sequence[tuple[float, Found, Classifier]]) -> tuple[Point, ...]:
    dense, tasks = work.dense.classifier, list(work.dense.classifier.tasks.values())
    test = text_set(work.prepared.test.examples, tasks, work.dense.tokenizer) if work.prepared.test is not None else None
    speeds = speed_ratios(dense, [one for *_, one in settled], first_texts(work.held_out, 128), n_rounds=3, watch=work.watch)
    expected = {part: _logits(work, dense, texts) for part, texts in (("held out", work.held_out), ("test", test)) if texts is not None}
    points = []
    for (target, found, classifier), speed in zip(settled, speeds, strict=True):
        lose = partial(_loss, work, classifier)
        ratio = _operations(dense, work.held_out) / _operations(classifier, work.held_out)
        n_heads = sum(attention.n_heads for attention in classifier.encoder.attentions)
        test_loss = lose(test, expected["test"]) if test is not None else None
        losses = (lose(work.held_out, expected["held out"]), test_loss)
        points.append(Point(target, found.shares, n_heads, ratio, speed, *losses, found.divergence))
    return tuple(points)


def _loss(work: Work, classifier: Classifier, texts: TextSet, dense: dict[str, Tensor]) -> Loss:
    return loss_of(classifier, texts, dense, _logits(work, classifier, texts), budget=work.settings.loss)


def _logits(work: Work, classifier: Classifier, texts: TextSet) -> dict[str, Tensor]:
    return all_logits(feeder(texts, classifier, work.device, freeze_below=0), classifier)


def _operations(classifier: Classifier, texts: TextSet) -> int:
    return flops(classifier.encoder, texts.lengths, firsts_only=classifier.firsts_only).total


def _model(work: Work, classifier: Classifier, point: Point) -> Model:
    training = work.recipe.training
    held = feeder(work.held_out, classifier, work.device, freeze_below=0)
    by_group = training.selection == "worst_group"
    with_threshold = training.calibration == "full"
    fitted = calibrations(classifier, held, with_threshold=with_threshold, by_group=by_group) if training.calibration != "none" else {}
    facts = {**work.dense.facts, "pruned": point.as_json(), "recipe": work.recipe.model_dump(mode="json")}
    return replace(work.dense, classifier=classifier.eval(), calibration=fitted, facts=facts)
