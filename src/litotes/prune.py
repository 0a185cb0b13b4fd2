"""From a dense model to the fastest pruned one within a loss: fewer attention heads, budgets learned, searched, settled, measured.

dense model → heads that its answers hang on least leave for good → training with budgets drawn at every step (length drop), the dense
model as teacher → for each target a search for the best shares per layer → a few epochs with just those → loss on the held-out texts
with its interval, time beside the dense model → the fastest one within the loss → model folder, frontier.json
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from litotes.card import model_card
from litotes.checkpoint import DESCRIPTION, Model, load_model, save_model
from litotes.classifier import Classifier
from litotes.data.packing import TextSet, text_set
from litotes.device import choose_device
from litotes.encoders.reshaping import compacted, rebuilt
from litotes.encoders.weights import read_tensors
from litotes.errors import UserError
from litotes.evaluation.bench.lines import machine
from litotes.evaluation.cost import flops
from litotes.evaluation.evaluate import CellScores, evaluate
from litotes.evaluation.frontier.points import Loss, Point, loss_of, speed_ratios
from litotes.evaluation.frontier.search import N_CHANGES, POWERS, Found, Search, first_texts, pruning_of
from litotes.flow import Example
from litotes.predictor import Predictor
from litotes.preparation import Prepared, prepare
from litotes.progress import Watch, prefixed, unwatched
from litotes.recipe import Recipe, recipe_of
from litotes.storage import locked, remove_folder, write_bytes, write_json
from litotes.training.feeding import all_logits, feeder
from litotes.training.held_out import calibrations, held_out_score
from litotes.training.loop import Loop, Surroundings
from litotes.training.processes import Processes
from litotes.training.sensitivity import head_sensitivity, least_needed
from litotes.training.teacher import Teacher

LOWEST = 0.03
"""Share of the pieces that the boldest budgets of the exploring phase leave after the last layer."""


@dataclass(frozen=True)
class PruneSettings:
    """What may be lost, and how hard to try.

    loss: macro-F1 points. sure: how often the loss must be within that in a bootstrap over the held-out texts.
    targets: times fewer operations than dense, each a point of the frontier. heads: share of the attention heads kept for good.
    epochs: with budgets drawn at every step; settle_epochs: with those of a target. teacher: how much the dense model's answers count.
    n_searched: training texts on which shares are tried. options: of the pruning `learned`.
    """

    loss: float = 0.5
    sure: float = 0.8
    targets: tuple[float, ...] = (1.5, 2.0, 2.5, 3.0)
    heads: float = 0.67
    epochs: int = 6
    settle_epochs: int = 4
    teacher: float = 0.9
    n_searched: int = 192
    options: dict[str, Any] = field(default_factory=lambda: {"importance": "value", "fuse": True, "restore": True})


@dataclass(frozen=True)
class Pruned:
    """The frontier, and the model chosen from it with its scores on the test split; None where no point is within the loss."""

    settings: PruneSettings
    points: tuple[Point, ...]
    model: Model | None
    scores: tuple[CellScores, ...]
    notes: tuple[str, ...] = ()

    @property
    def chosen(self) -> Point | None:
        return next((point for point in self.points if point.chosen), None)

    def refusal(self) -> str:
        """Why nothing was chosen, and what to do."""
        best = min(self.points, key=lambda point: point.loss.points)
        low, high = best.loss.interval
        return (
            f"No setting loses at most {self.settings.loss:g} points with a certainty of {self.settings.sure:g}: the best, "
            f"{best.flops_ratio:.1f} times fewer operations, loses {best.loss.points:.1f} ({low:.1f} to {high:.1f}). "
            "Allow more with --loss, be less --sure, try milder --targets, or hold more texts out; what is trained is kept."
        )

    def as_json(self) -> dict[str, Any]:
        budget = {"loss": self.settings.loss, "sure": self.settings.sure}
        points = [point.as_json() for point in self.points]
        return {"machine": machine(), "budget": budget, "points": points, "notes": list(self.notes)}


@dataclass(frozen=True)
class Work:
    """All that the phases share."""

    settings: PruneSettings
    recipe: Recipe
    prepared: Prepared
    dense: Model
    train: TextSet
    held_out: TextSet
    teacher: Teacher
    device: torch.device
    folder: Path
    watch: Watch

    def key(self, *more: object) -> str:
        """A name for what a phase depends on: a phase found under it need not be done again."""
        chosen_by = {"loss", "sure", "targets", "settle_epochs"}  # what the phases themselves do not depend on
        settings = {name: value for name, value in vars(self.settings).items() if name not in chosen_by}
        parts = (self.recipe.key(), self.prepared.fingerprint(), self.dense.facts["key"], settings, more)
        return sha256(repr(parts).encode()).hexdigest()[:12]


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
        start = _explored(work)
        settled = [(target, *_settled(work, start, target)) for target in sorted(set(settings.targets))]
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


def _explored(work: Work) -> Classifier:
    """The dense classifier without the heads it needs least, trained to bear budgets of all kinds."""
    classifier = deepcopy(work.dense.classifier)
    if work.settings.heads < 1:
        source = feeder(work.train, classifier, work.device, freeze_below=0)
        kept = least_needed(head_sensitivity(classifier, source), work.settings.heads)
        classifier.encoder = compacted(classifier.encoder, kept)
    n_layers = len(classifier.encoder.spec.walk)
    lowest = [max(1 - (1 - LOWEST) * (layer + 1) / n_layers, LOWEST) for layer in range(n_layers)]
    options = {**work.settings.options, "shares": lowest, "explore": 1.0}
    classifier.encoder = rebuilt(classifier.encoder, pruning="learned", pruning_options=options)
    return _trained(work, classifier, "explore", work.settings.epochs, validated=False)


def _settled(work: Work, start: Classifier, target: float) -> tuple[Found, Classifier]:
    """The best shares for a target, and the classifier trained with just those."""
    classifier = deepcopy(start)
    found = _found(work, classifier, target)
    options = {**work.settings.options, "shares": list(found.shares)}
    classifier.encoder = rebuilt(classifier.encoder, pruning_options=options)
    return found, _trained(work, classifier, f"settle-{target:g}", work.settings.settle_epochs, validated=True)


def _found(work: Work, classifier: Classifier, target: float) -> Found:
    """The shares for a target; those of a search that was done before are read back."""
    file = work.folder / "phases" / f"search-{target:g}-{work.key(target)}.json"
    if file.is_file():
        content = json.loads(file.read_text("utf-8"))
        return Found(tuple(content["shares"]), content["divergence"])
    some = feeder(first_texts(work.train, work.settings.n_searched), classifier, work.device, freeze_below=0)
    search = Search(classifier, some, work.teacher, dense=work.dense.classifier, seed=work.recipe.seed)
    found = search.for_target(target, watch=partial(_searching, work.watch, target))
    write_json(file, asdict(found))
    return found


def _searching(watch: Watch, target: float, n_tried: int) -> None:
    watch(f"search {target:g}x", n_tried, len(POWERS) + N_CHANGES, "")


def _trained(work: Work, classifier: Classifier, phase: str, epochs: int, *, validated: bool) -> Classifier:
    """Trains with the teacher; a phase that was done before is read back."""
    key = work.key(phase, epochs, pruning_of(classifier).shares)
    folder = work.folder / "phases" / f"{phase}-{key}"
    weights = folder / "weights.safetensors"
    if weights.is_file():
        classifier.load_state_dict(read_tensors(weights))
        return classifier.eval()
    training = work.recipe.training.model_copy(update={"epochs": epochs, "patience": epochs})
    held = feeder(work.held_out, classifier, work.device, freeze_below=0)
    validate = partial(held_out_score, classifier, held, worst_group=training.selection == "worst_group") if validated else None
    around = Surroundings(work.device, folder, key, Processes(), prefixed(work.watch, phase))
    folder.mkdir(parents=True, exist_ok=True)
    texts = feeder(work.train, classifier, work.device, freeze_below=0)
    loop = Loop(classifier, texts, training, seed=work.recipe.seed, surroundings=around, validate=validate, teacher=work.teacher)
    loop.resume()
    loop.run()
    write_bytes(weights, _as_bytes(classifier))
    loop.checkpoints.clear()
    return classifier.eval()


def _as_bytes(classifier: Classifier) -> bytes:
    from safetensors.torch import save

    return save({name: tensor.detach().cpu().contiguous() for name, tensor in classifier.state_dict().items()})


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
