"""From a dense model to the fastest pruned one within a loss: fewer attention heads, budgets
learned, searched, settled, measured.

dense model → heads that its answers hang on least leave for good → training with budgets drawn at
every step (length drop), the dense model as teacher → for each target a search for the best shares
per layer → a few epochs with just those → loss on texts held out, with its interval, time beside
the dense model → the fastest one within the loss → model folder, frontier.json

The dense model's epoch was chosen by its held-out texts, so it looks better on them than it is, and
every loss on them too large. Texts that its training never saw (`training.reserved`) judge fairly;
they do where there are any.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from litotes.core.device import choose_device
from litotes.core.errors import UserError
from litotes.core.progress import Watch, unwatched
from litotes.core.storage import LOCK, is_staged, locked, remove_folder, write_json
from litotes.core.values import Example
from litotes.data.keys import example_key
from litotes.evaluation.evaluate import evaluate
from litotes.model.checkpoint import Model, load_model, save_model
from litotes.model.classifier import Classifier
from litotes.model.folder import is_model_folder
from litotes.predict.predictor import Predictor
from litotes.prune.cost import flops
from litotes.prune.frontier import Loss, Point, measure_loss, speed_ratios
from litotes.prune.phases import PruneContext, explore, search, settle
from litotes.prune.result import PruneResult, PruneSettings
from litotes.prune.search import FoundShares, first_texts
from litotes.text.packing import TextSet, make_text_set
from litotes.training.card import model_card
from litotes.training.held_out import fit_calibrations
from litotes.training.inputs import all_logits, make_inputs
from litotes.training.recipe import Recipe, recipe_of
from litotes.training.teacher import Teacher
from litotes.training.training_data import TrainingData, prepare


def prune(
    run: Path,
    source: str,
    out: Path,
    *,
    settings: PruneSettings | None = None,
    device: str | None = None,
    watch: Watch = unwatched,
) -> PruneResult:
    """Prunes the model of the folder `run` for the texts of `source` into `out`; a stopped one goes
    on where it was.
    """
    settings = settings or PruneSettings()
    dense = _dense_model(run)
    _check_folder(out)
    recipe = _recipe(dense, source)
    prepared = prepare(recipe)
    _check_tasks(dense, prepared)
    with locked(out):
        context = _work(settings, recipe, prepared, dense, choose_device(device), out, watch)
        start = explore(context)
        found = {target: search(context, start, target) for target in sorted(set(settings.targets))}
        # targets out of reach end in the same shares
        different = {one.shares: target for target, one in reversed(found.items())}
        settled = [
            (target, found[target], settle(context, start, target, found[target]))
            for target in sorted(different.values())
        ]
        return _finish(context, settled)


def _dense_model(run: Path) -> Model:
    model = load_model(run)
    if model.classifier.encoder.spec.pruning != "none":
        raise UserError(
            f"{run} is pruned already ({model.classifier.encoder.spec.pruning}). Prune the dense"
            " model it came from."
        )
    if all(task.is_regression for task in model.classifier.tasks.values()):
        raise UserError(
            "All tasks of this model are answered with a number; a pruning is chosen by macro-F1."
            " Choose a classifier."
        )
    return model


def _check_folder(out: Path) -> None:
    if is_model_folder(out):
        raise UserError(f"{out} already holds a model. Choose another --out.")
    ours = {
        "phases",
        "frontier.json",
        "frontier.svg",
        "scores.json",
        "model.safetensors",
        "tokenizer.json",
        "README.md",
        LOCK,
    }
    strange = (
        [path.name for path in out.iterdir() if path.name not in ours and not is_staged(path)]
        if out.is_dir()
        else []
    )
    if strange:
        raise UserError(
            f"{out} holds files that are not of a pruning ({strange[0]}). Choose an empty or a new"
            " folder for --out."
        )


def _check_tasks(dense: Model, prepared: TrainingData) -> None:
    """The source must ask what the model answers, in the same words."""
    for name, task in dense.classifier.tasks.items():
        there = prepared.train.tasks.get(name)
        if there is None:
            raise UserError(
                f"{prepared.train.name} has no labels for {name}, which this model answers. Choose"
                " another source."
            )
        if there.labels != task.labels:
            raise UserError(
                f"{prepared.train.name} answers {name} with"
                f" {', '.join(there.labels) or 'a number'}, the model with"
                f" {', '.join(task.labels) or 'a number'}. Choose a source with the same labels."
            )


def _recipe(dense: Model, source: str) -> Recipe:
    """The recipe of the dense run, on the texts of `source`; for the same source the same texts are
    held out, by the same seed.
    """
    recipe = recipe_of(dict(dense.facts["recipe"]), "the model's recipe").changed(
        data__source=source
    )
    return recipe if recipe.training.held_out else recipe.changed(training__held_out=0.1)


def _work(
    settings: PruneSettings,
    recipe: Recipe,
    prepared: TrainingData,
    dense: Model,
    device: torch.device,
    out: Path,
    watch: Watch,
) -> PruneContext:
    dense.classifier.to(device)
    tasks = list(dense.classifier.tasks.values())
    assert prepared.held_out is not None  # _recipe saw to it
    learned_from, validated_by = (
        [*prepared.train.examples, *_unlabelled(prepared)],
        list(prepared.held_out.examples),
    )
    judged_by = validated_by if prepared.reserved is None else list(prepared.reserved.examples)

    def shuffled(examples: Sequence[Example]) -> TextSet:
        # files are sorted by cell; the first texts shall stand for all
        order = random.Random(recipe.seed).sample(examples, len(examples))
        return make_text_set(order, tasks, dense.tokenizer, group_by=recipe.training.group_by)

    train, held_out, judged = map(shuffled, (learned_from, validated_by, judged_by))
    answers = all_logits(
        make_inputs(train, dense.classifier, device, freeze_below=0),
        dense.classifier,
        watch=watch,
        what="teacher",
    )
    teacher = Teacher(answers, settings.teacher)
    return PruneContext(
        settings, recipe, prepared, dense, train, held_out, judged, teacher, device, out, watch
    )


def _unlabelled(prepared: TrainingData) -> list[Example]:
    """Other training texts of the source: without a label for these tasks, or outside the
    selection. The teacher has an answer to them.
    """
    assert prepared.held_out is not None
    kept_back = [] if prepared.reserved is None else prepared.reserved.examples
    known = [
        *prepared.train,
        *prepared.held_out,
        *kept_back,
        *(example for example in prepared.whole if example.split != "train"),
    ]
    keys, groups = (
        {example_key(example) for example in known},
        {example.group for example in known if example.group is not None},
    )
    others = {
        example_key(example): replace(example, labels={})
        for example in prepared.whole
        if example.split == "train"
        and example_key(example) not in keys
        and example.group not in groups
    }
    return list(others.values())


def _finish(
    context: PruneContext, settled: Sequence[tuple[float, FoundShares, Classifier]]
) -> PruneResult:
    points = _points(context, settled)
    within = [point for point in points if point.loss.chance_within >= context.settings.sure]
    if not within:
        pruned = PruneResult(context.settings, points, None, (), _notes(context, points))
        write_json(context.folder / "frontier.json", pruned.as_json())
        return pruned
    # time follows operations, and its noise must not choose
    best = max(within, key=lambda point: point.flops_ratio)
    points = tuple(replace(point, chosen=point is best) for point in points)
    (classifier,) = [classifier for target, _, classifier in settled if target == best.target]
    model = _model(context, classifier, replace(best, chosen=True))
    test = context.prepared.test
    rows = (
        evaluate(
            Predictor(model, device=str(context.device)),
            test,
            seed=context.recipe.seed,
            watch=context.watch,
        )
        if test is not None
        else ()
    )
    pruned = PruneResult(context.settings, points, model, rows, _notes(context, points))
    write_json(context.folder / "frontier.json", pruned.as_json())
    write_json(context.folder / "scores.json", [row.as_json() for row in rows])
    save_model(model, context.folder, card=model_card(model, rows))
    remove_folder(context.folder / "phases")
    return pruned


def _notes(context: PruneContext, points: Sequence[Point]) -> tuple[str, ...]:
    """What the user should know about the texts the choice was made by, and about what could not be
    reached.
    """
    notes = []
    trained = recipe_of(dict(context.dense.facts["recipe"]), "the model's recipe")
    if (
        context.prepared.reserved is None
        and not trained.training.held_out
        and context.dense.facts["data"]["sha256"] == context.prepared.whole.fingerprint()
    ):
        notes.append(
            "The dense model was trained with held_out = 0, so it has learned the very texts that"
            " are chosen by, and losses on them come out too large. Train it with --set"
            " training.held_out=0.1."
        )
    highest = max(point.flops_ratio for point in points)
    if highest < 0.95 * max(context.settings.targets):
        notes.append(
            f"More than {highest:.1f} times fewer operations cannot be reached by removing pieces"
            " from this model."
        )
    notes.extend(
        f"{point.flops_ratio:.1f} times fewer operations were no faster here"
        f" ({point.speed_ratio:.2f} times dense): the texts or the model are too small for it to"
        " matter."
        for point in points
        if point.chosen and point.speed_ratio < 1
    )
    return tuple(notes)


def _points(
    context: PruneContext, settled: Sequence[tuple[float, FoundShares, Classifier]]
) -> tuple[Point, ...]:
    dense, tasks = context.dense.classifier, list(context.dense.classifier.tasks.values())
    test = (
        make_text_set(context.prepared.test.examples, tasks, context.dense.tokenizer)
        if context.prepared.test is not None
        else None
    )
    speeds = speed_ratios(
        dense,
        [one for *_, one in settled],
        first_texts(context.judged, 128),
        n_rounds=3,
        watch=context.watch,
    )
    expected = {
        part: _logits(context, dense, texts)
        for part, texts in (("judged", context.judged), ("test", test))
        if texts is not None
    }
    points = []
    for (target, found, classifier), speed in zip(settled, speeds, strict=True):
        lose = partial(_loss, context, classifier)
        ratio = _operations(dense, context.judged) / _operations(classifier, context.judged)
        n_heads = sum(attention.n_heads for attention in classifier.encoder.attentions)
        test_loss = lose(test, expected["test"]) if test is not None else None
        losses = (lose(context.judged, expected["judged"]), test_loss)
        points.append(Point(target, found.shares, n_heads, ratio, speed, *losses, found.divergence))
    return tuple(points)


def _loss(
    context: PruneContext, classifier: Classifier, texts: TextSet, dense: dict[str, Tensor]
) -> Loss:
    return measure_loss(
        classifier, texts, dense, _logits(context, classifier, texts), budget=context.settings.loss
    )


def _logits(context: PruneContext, classifier: Classifier, texts: TextSet) -> dict[str, Tensor]:
    return all_logits(make_inputs(texts, classifier, context.device, freeze_below=0), classifier)


def _operations(classifier: Classifier, texts: TextSet) -> int:
    return flops(classifier.encoder, texts.lengths, firsts_only=classifier.firsts_only).total


def _model(context: PruneContext, classifier: Classifier, point: Point) -> Model:
    training = context.recipe.training
    held = make_inputs(context.held_out, classifier, context.device, freeze_below=0)
    by_group = training.selection == "worst_group"
    with_threshold = training.calibration == "full"
    fitted = (
        fit_calibrations(classifier, held, with_threshold=with_threshold, by_group=by_group)
        if training.calibration != "none"
        else {}
    )
    spec = classifier.encoder.spec
    recipe = context.recipe.changed(
        model__pruning=spec.pruning, model__pruning_options=dict(spec.pruning_options)
    )
    facts = {
        # not the dense run's: training must not take this for it
        "key": f"pruned-{context.key(point.target)}",
        "recipe": recipe.model_dump(mode="json"),
        "data": {
            "name": context.prepared.whole.name,
            "sha256": context.prepared.whole.fingerprint(),
            "n_train": len(context.train),
        },
        "dense": context.dense.facts["key"],
        "pruned": point.as_json(),
        "notes": [*context.prepared.notes, _in_words(point)],
        "versions": {"torch": torch.__version__},
    }
    return replace(context.dense, classifier=classifier.eval(), calibration=fitted, facts=facts)


def _in_words(point: Point) -> str:
    low, high = point.loss.interval
    return (
        f"Pruned: {point.flops_ratio:.1f} times fewer operations than the dense model,"
        f" {point.n_heads} attention heads left in all; it lost {point.loss.points:.1f} points of"
        f" macro-F1 on texts kept apart (95 % interval {low:.1f} to {high:.1f})."
    )
