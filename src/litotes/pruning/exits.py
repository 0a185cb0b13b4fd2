"""Early exits for a trained model: taught by its own last layer, calibrated, and a threshold that
keeps a promise.

texts  →  one pass of the whole model: what exits read, what they should say
       →  exits taught  →  how sure each is  →  a threshold tested on other texts
       →  measured on others again  →  model folder, exits.json
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import bdtr, betaincinv, expit

from litotes.core.errors import UserError
from litotes.core.machine import machine
from litotes.core.numbers import Counts, Floats, counted
from litotes.core.progress import TimedAction, Watch, ignore_progress, time_in_turns
from litotes.core.storage import make_folder, write_json
from litotes.core.text import one_line
from litotes.core.values import Example
from litotes.data.corpus import components, example_key, ties_of
from litotes.data.sources import load_with_test_part, source_names
from litotes.data.tables import read_rows
from litotes.encoder.packing import encode_examples
from litotes.encoder.tokenizer import Pieces
from litotes.evaluation.reliability import reliability
from litotes.model.checkpoint import Model, load_model, save_model
from litotes.model.classifier import EarlyExits
from litotes.model.exits import Exits, Promise, Sureness, label_margins
from litotes.model.folder import (
    ModelFolder,
    is_model_folder,
    open_model,
    read_trained_texts,
    text_hash,
    write_trained_texts,
)
from litotes.model.runtime import compute_outputs
from litotes.pruning.cost import flops
from litotes.pruning.exit_teaching import Lessons, fit_sureness, read_lessons, teach, teach_table

RESULT = "exits.json"
COLUMN = "text"
"""Of a file of texts without labels."""
MOST_TAUGHT = 20_000
"""Texts; more teach linear heads nothing new."""
N_CANDIDATES = 200
_PARTS = {"taught": 0.3, "fitted": 0.2, "tested": 0.5}
_MEASURED = 0.25
"""The share of new texts that is only measured where there is no test split to measure."""
_N_TIMED = 256


@dataclass(frozen=True)
class ExitSettings:
    """layers: after how many layers texts may leave; empty: after each of the middle ones. static:
    also before the first of them, by a table over pieces; the same as 0 among the layers.

    differ: the share of texts that may be answered otherwise than by the whole model. confidence:
    of that promise. seed: of how texts are divided. n_rounds: of the measurement of speed.
    """

    layers: tuple[int, ...] = ()
    differ: float = 0.01
    confidence: float = 0.95
    seed: int = 0
    n_rounds: int = 5
    static: bool = False


@dataclass(frozen=True)
class ExitRow:
    """One exit, or the end of the model, on the texts that were only measured.

    share: of texts answered there. differ: of these, answered otherwise than by the whole model;
    None where there are none.
    agrees: of all texts, had all been answered there. ece: of how sure it is of each task, by task.
    """

    layer: int
    share: float
    differ: float | None
    agrees: float
    ece: dict[str, float]


@dataclass(frozen=True)
class ExitsResult:
    """All of it on n texts by which nothing was chosen.

    differ, interval: the share answered otherwise than by the whole model, with its 95 % interval.
    flops_ratio: times fewer operations; speed_ratio: times as fast, by torch, taking turns.
    worst_ratio: times as slow where no text leaves.
    """

    model: Model
    settings: ExitSettings
    rows: tuple[ExitRow, ...]
    n: int
    differ: float
    interval: tuple[float, float]
    flops_ratio: float
    speed_ratio: float
    worst_ratio: float
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return one_line(
            self,
            layers=[row.layer for row in self.rows],
            differ=self.differ,
            flops_ratio=self.flops_ratio,
        )

    def as_json(self) -> dict[str, Any]:
        content = asdict(self)
        del content["model"], content["settings"]
        rule = _exits_of(self.model).rule
        settings = asdict(self.settings) | {"layers": list(rule.layers)}
        return {"machine": machine(), "settings": settings, "exits": rule.as_json(), **content}


def add_exits(
    model: str | Path,
    data: str,
    out: str | Path,
    *,
    unlabelled: Sequence[str | Path] = (),
    settings: ExitSettings | None = None,
    watch: Watch = ignore_progress,
) -> ExitsResult:
    """Gives a model exits: texts leave early, and few are answered otherwise (`settings.differ`).

    data: texts like those to come; their labels are not used. unlabelled: files of more such texts,
    one a line or in the column `text`. The model with exits is in `out`.
    """
    folder, out = open_model(model), Path(out)
    if is_model_folder(out):
        raise UserError(f"{out} already holds a model. Choose another --out.")
    whole = _load(folder)
    settings = with_layers(whole, settings or ExitSettings())
    n_tested = n_needed(allowed=settings.differ, confidence=settings.confidence)
    texts = choose_texts(folder, data, unlabelled, n_tested=n_tested, seed=settings.seed)
    read = partial(_read, whole, texts, settings.layers, watch)
    lessons = {part: read(part) for part in _PARTS}
    made = teach_and_test(whole, lessons, settings, watch)
    result = _measure(made, read("measured"), texts.notes, settings, watch)
    _save(result, folder, texts, out)
    return result


def _load(folder: ModelFolder) -> Model:
    model = load_model(folder)
    if model.exits is not None:
        raise UserError(f"{folder} has exits already. Give the model it was made from.")
    for task in model.classifier.tasks.values():
        if not task.is_choice:
            kind = "several labels" if task.multi_label else "a number"
            raise UserError(
                f"{folder} answers {task.name} with {kind}, of which an exit cannot be sure."
                " Choose a model whose tasks have labels."
            )
    return model


def with_layers(model: Model, settings: ExitSettings) -> ExitSettings:
    """Settles the layers: those that were asked for; if none, those in the middle. Before a third
    of the layers hardly any text is sure, and after two thirds there is little left to save.
    """
    n_layers, layers = len(model.classifier.encoder.spec.walk), settings.layers
    if n_layers < 2:
        raise UserError("A model of one layer has no exits. Choose a deeper one.")
    if not layers:
        first = max(n_layers // 3, 1)
        layers = tuple(range(first, max(2 * n_layers // 3, first) + 1))
    for layer in layers:
        if not 0 <= layer < n_layers:
            raise UserError(
                f"There is no exit after layer {layer}: this model has {n_layers} layers, so choose"
                f" --layers from 0, which is a table before the first, to {n_layers - 1}."
            )
    found = tuple(sorted({*layers, *([0] if settings.static else [])}))
    return replace(settings, layers=found, static=found[0] == 0)


@dataclass(frozen=True)
class ExitTexts:
    """No text is in two parts, nor is a group of texts where they are drawn into parts.

    taught: exits learn from them. fitted: they show how sure exits are. tested: the threshold is
    chosen by them. measured: nothing is chosen by them.
    """

    taught: Sequence[Example]
    fitted: Sequence[Example]
    tested: Sequence[Example]
    measured: Sequence[Example]
    notes: tuple[str, ...]


def choose_texts(
    model: ModelFolder, source: str, unlabelled: Sequence[str | Path], *, n_tested: int, seed: int
) -> ExitTexts:
    """Divides the texts. n_tested: the fewest to test a threshold on.

    Texts that the model was trained on teach: of them it is surer than of others, so they tell
    nothing about how often an exit will disagree. All others are drawn into parts. The test split
    of a source is only measured, unless there are too few texts without it.
    """
    corpus = load_with_test_part(source)
    trained, notes = _trained_texts(model, source), list(corpus.notes)
    if trained is None:
        notes.append(
            "The model does not say which texts it was trained on: those of the train split are"
            " taken for them."
        )
    split = corpus.test_split() if len(corpus.splits()) > 1 else None
    more = [Example(row.text(COLUMN), {}) for path in unlabelled for row in _rows(Path(path))]
    once: dict[str, Example] = {}
    # of texts alike the one of the test split is kept
    for example in sorted([*corpus, *more], key=lambda example: example.split != split):
        once.setdefault(example_key(example), example)
    parts: dict[str, list[Example]] = {"old": [], "new": [], "test": []}
    for example in once.values():
        is_old = example.split == "train" and bool(example.labels)
        if trained is not None:
            is_old = text_hash(example) in trained
        is_test = split is not None and example.split == split
        parts["old" if is_old else "test" if is_test else "new"].append(example)
    generator = random.Random(seed)
    for part in parts.values():
        generator.shuffle(part)
    return _divide(parts, notes, corpus.name, n_tested)


def _trained_texts(model: ModelFolder, source: str) -> frozenset[str] | None:
    """The hashes of the texts that a model has learned; None: they may be any of this source."""
    recipe = model.description.get("facts", {}).get("recipe")
    trained = read_trained_texts(model)
    if trained is None and recipe is not None:
        # it lists no texts, but its recipe may name other sources
        is_known = source_names(source) & source_names(recipe["data"]["source"])
        trained = None if is_known else frozenset()
    return trained


_rows = partial(read_rows, needs=(COLUMN,))


def _divide(
    parts: dict[str, list[Example]], notes: list[str], name: str, n_tested: int
) -> ExitTexts:
    old, new, test = parts["old"], parts["new"], parts["test"]
    n_new, n_enough = len(new) + len(test), n_tested / _PARTS["tested"]
    if len(new) < n_enough or not test:
        if test:
            notes.append(
                "There are too few new texts besides the test split, so most of it was used to"
                " choose the threshold: do not score the model on it."
            )
        new = [*new, *test]
        test, new = _take(new, int(_MEASURED * len(new)))
    n_taught, n_fitted = (int(_PARTS[part] * len(new)) for part in ("taught", "fitted"))
    taught, new = _take(new, n_taught)
    fitted, tested = _take(new, n_fitted)
    if len(tested) < n_tested or not test or not fitted:
        raise UserError(
            f"{name} has {n_new} texts that the model was not trained on;"
            f" {round(n_enough / (1 - _MEASURED))} are needed for this promise. Give more with"
            " --unlabelled FILE, or allow more with --max-disagreement."
        )
    return ExitTexts([*taught, *old][:MOST_TAUGHT], fitted, tested, test, tuple(notes))


def _take(examples: Sequence[Example], n: int) -> tuple[list[Example], list[Example]]:
    """The first n or a few more, and the rest: what a split keeps together stays together."""
    blocks: dict[int, list[Example]] = {}
    ties = components(tuple(ties_of(example)) for example in examples)
    for block, example in zip(ties, examples, strict=True):
        blocks.setdefault(block, []).append(example)
    taken: list[Example] = []
    rest: list[Example] = []
    for own in blocks.values():
        (taken if len(taken) < n else rest).extend(own)
    return taken, rest


def _read(
    model: Model, texts: ExitTexts, layers: Sequence[int], watch: Watch, part: str
) -> Lessons:
    """Reads a part of the texts for exits after any of these layers to learn from."""
    pieces = encode_examples(model.tokenizer, getattr(texts, part))
    inner = [layer for layer in layers if layer]
    return read_lessons(model, pieces, inner, what=f"reading texts ({part})", watch=watch)


def teach_and_test(
    model: Model, lessons: Mapping[str, Lessons], settings: ExitSettings, watch: Watch
) -> Model:
    """Teaches exits after the layers of the settings, which have been read, and tests thresholds
    until one keeps the promise.
    """
    exits = _teach(model, lessons["taught"], lessons["fitted"], settings, watch)
    fitted, tested = (
        rehearse(exits.rule, ask_exits(model, exits, lessons[part]))
        for part in ("fitted", "tested")
    )
    cuts = candidate_cuts(fitted.log_odds)
    cut = choose_cut(tested, cuts, allowed=settings.differ, confidence=settings.confidence)
    if cut is None:
        n_left = int((tested.places(cuts[0]) < len(tested.agrees)).sum())
        raise UserError(
            f"No threshold keeps the promise: of {counted(tested.n_texts, 'text')} tested,"
            f" {int(tested.differs(cuts[0]).sum())} of the {n_left} that leave under the strictest"
            f" differ. Allow more than {100 * settings.differ:g} % with --max-disagreement, choose"
            " later --layers, or give more texts with --unlabelled FILE."
        )
    # a cut beyond what a float can tell from 1 lets no text leave
    rule = replace(exits.rule, threshold=float(expit(cut)))
    n_differ = int(tested.differs(rule.cut).sum())
    promise = replace(rule.promise, n=tested.n_texts, n_differ=n_differ)
    return replace(model, exits=replace(exits, rule=replace(rule, promise=promise)))


def _teach(
    model: Model, taught: Lessons, checked: Lessons, settings: ExitSettings, watch: Watch
) -> EarlyExits:
    """Exits that have learned their answers and how sure they are; no text may leave yet."""
    classifier, layers = model.classifier, settings.layers
    untested = Promise(settings.differ, settings.confidence, 0, 0)
    never = {layer: dict.fromkeys(classifier.tasks, Sureness(0, 0)) for layer in layers}
    torch.manual_seed(settings.seed)
    exits = EarlyExits.for_classifier(classifier, Exits(layers, never, 1.0, untested))
    temperatures = {task: model.calibration_of(task).temperature for task in classifier.tasks}
    teach(exits.heads, taught, checked, temperatures, watch=watch)
    if settings.static:
        n_pieces = classifier.encoder.spec.n_vocabulary
        table = teach_table(taught, checked, temperatures, n_pieces=n_pieces, watch=watch)
        exits = replace(exits, table=table)
    sureness = {}
    for layer, said in ask_exits(model, exits, checked).items():
        sureness[layer] = {task: fit_sureness(*own) for task, own in said.items()}
    return replace(exits, rule=replace(exits.rule, sureness=sureness))


Said = Mapping[int, Mapping[str, tuple[Floats, NDArray[np.bool_]]]]
"""What exits say of some texts: the margins of their labels, and whether these are the whole
model's, (text,) each. {layer: {task: (margins, agrees)}}
"""


@torch.no_grad()
def ask_exits(model: Model, exits: EarlyExits, lessons: Lessons) -> Said:
    found = {}
    for layer in exits.rule.layers:
        if layer:
            heads, vectors = exits.heads.outputs(layer), lessons.vectors[layer]
            logits = {task: own(vectors).numpy() for task, own in heads.items()}
        else:
            assert exits.table is not None
            logits = exits.table.logits(lessons.texts)
        found[layer] = {
            task: (label_margins(own, model.calibration_of(task)), agree(model, lessons, task, own))
            for task, own in logits.items()
        }
    return found


def agree(
    model: Model, lessons: Lessons, task: str, logits: NDArray[np.float32]
) -> NDArray[np.bool_]:
    """Finds the texts to which these logits give the label of the whole model. (text,)"""
    calibration = model.calibration_of(task)
    labels, whole = (calibration.apply(own)[0] for own in (logits, lessons.logits[task].numpy()))
    return np.asarray(labels == whole)


@dataclass(frozen=True)
class Rehearsal:
    """The answers that every exit would give to some texts.

    log_odds: how sure it is, of the task it is least sure of, (exit, text).
    agrees: whether its labels are those of the whole model, (exit, text).
    """

    log_odds: Floats
    agrees: NDArray[np.bool_]

    @property
    def n_texts(self) -> int:
        return self.agrees.shape[1]

    def places(self, cut: float) -> Counts:
        """The exit by which each text leaves, by its place; the number of exits: none. (text,)"""
        is_sure = self.log_odds >= cut
        return np.where(is_sure.any(0), is_sure.argmax(0), len(is_sure))

    def differs(self, cut: float) -> NDArray[np.bool_]:
        """Marks texts that leave with another answer than that of the whole model. (text,)"""
        last = np.ones((1, self.n_texts), dtype=np.bool_)  # the whole model agrees with itself
        answers = np.concatenate([self.agrees, last])
        return ~answers[self.places(cut), np.arange(self.n_texts)]


def rehearse(rule: Exits, said: Said) -> Rehearsal:
    log_odds, agrees = [], []
    for layer, by_task in said.items():
        sureness = rule.sureness[layer]
        odds = [sureness[task].log_odds(margins) for task, (margins, _) in by_task.items()]
        log_odds.append(np.minimum.reduce(odds))
        agrees.append(np.logical_and.reduce([own for _, own in by_task.values()]))
    return Rehearsal(np.stack(log_odds), np.stack(agrees))


def candidate_cuts(log_odds: Floats) -> list[float]:
    """Proposes thresholds as log-odds, the strictest first, each letting about as many more texts
    leave.

    log_odds: of texts that are not tested on, (exit, text)
    """
    shares = np.linspace(1, 0, N_CANDIDATES + 1)[1:]
    return np.unique(np.quantile(log_odds.max(0), shares))[::-1].tolist()


def choose_cut(
    rehearsal: Rehearsal, cuts: Sequence[float], *, allowed: float, confidence: float
) -> float | None:
    """Chooses the mildest threshold that keeps the promise; None: not even the strictest does.

    cuts: in the order in which they are tested, from the strictest to the mildest, fixed before any
    of the texts tested on was looked at. allowed: the share of texts that may differ. Of a
    threshold λ under which k of n texts differ, the null hypothesis "more than a share α differs"
    has the p-value

        p(λ) = P(Binomial(n, α) ≤ k)

    and is rejected where p(λ) ≤ δ. The last threshold before the first that is not rejected is
    taken: fixed sequence testing, with which a share 1 − δ of all such choices keeps the promise,
    whatever the model and however the risk depends on λ (Angelopoulos et al. 2021, Learn then Test,
    arXiv 2110.01052, §2 and §2.3; for exits: Schuster et al. 2022, CALM, arXiv 2207.07061, §4).
    """
    chosen = None
    for cut in cuts:
        n_differ = int(rehearsal.differs(cut).sum())
        if bdtr(n_differ, rehearsal.n_texts, allowed) > 1 - confidence:
            break
        chosen = cut
    return chosen


def n_needed(*, allowed: float, confidence: float) -> int:
    """The fewest texts with which a promise can be made at all: none of them may differ."""
    return math.ceil(math.log(1 - confidence) / math.log(1 - allowed))


def _measure(
    model: Model, lessons: Lessons, notes: tuple[str, ...], settings: ExitSettings, watch: Watch
) -> ExitsResult:
    """Measures what exits save and change, on texts by which nothing was chosen."""
    pieces = lessons.texts
    outputs, n = compute_outputs(model, pieces), len(pieces)
    assert outputs.layers is not None
    agrees = [agree(model, lessons, task, own) for task, own in outputs.logits.items()]
    n_differ = int((~np.logical_and.reduce(agrees)).sum())
    saved = operations_ratio(model, [len(text.ids) for text in pieces], outputs.layers)
    rows, interval = _exit_rows(model, lessons), share_interval(n_differ, n)
    ratios = _speed_ratios(model, pieces[:_N_TIMED], n_rounds=settings.n_rounds, watch=watch)
    return ExitsResult(model, settings, rows, n, n_differ / n, interval, saved, *ratios, notes)


def _exits_of(model: Model) -> EarlyExits:
    assert model.exits is not None
    return model.exits


def _exit_rows(model: Model, lessons: Lessons) -> tuple[ExitRow, ...]:
    """A row for every exit, and one for the end."""
    exits = _exits_of(model)
    rule, said = exits.rule, ask_exits(model, exits, lessons)
    rehearsal, rows = rehearse(rule, said), []
    places, differs = rehearsal.places(rule.cut), rehearsal.differs(rule.cut)
    for place, (layer, by_task) in enumerate(said.items()):
        here, ece = places == place, {}
        for task, (margins, agrees) in by_task.items():
            sure = expit(rule.sureness[layer][task].log_odds(margins))
            ece[task] = reliability(sure, agrees).ece_equal_mass
        differ = float(differs[here].mean()) if here.any() else None
        agreed = float(rehearsal.agrees[place].mean())
        rows.append(ExitRow(layer, float(here.mean()), differ, agreed, ece))
    n_layers, stayed = len(model.classifier.encoder.spec.walk), float((places == len(said)).mean())
    return (*rows, ExitRow(n_layers, stayed, 0.0 if stayed else None, 1.0, {}))


def share_interval(n_hit: int, n: int) -> tuple[float, float]:
    """The exact 95 % interval of a share (Clopper and Pearson 1934)."""
    low = betaincinv(n_hit, n - n_hit + 1, 0.025) if n_hit else 0.0
    high = betaincinv(n_hit + 1, n - n_hit, 0.975) if n_hit < n else 1.0
    return float(low), float(high)


def operations_ratio(model: Model, lengths: Sequence[int], layers: Counts) -> float:
    """Computes how many times fewer operations exits cost: those of the encoder, and of the exits
    themselves (4 · width · classes for each text that comes to one, of the table classes for each
    piece). layers: where each text is answered.
    """
    classifier, rule = model.classifier, _exits_of(model).rule
    n_classes = sum(task.n_outputs for task in classifier.tasks.values())
    cost = partial(flops, classifier.encoder, firsts_only=classifier.firsts_only)
    spent = sum(lengths) * n_classes if rule.has_table else 0
    for layer in np.unique(layers).tolist():
        own = [length for length, at in zip(lengths, layers, strict=True) if at == layer]
        if layer:
            own_cost = cost(own)
            spent += own_cost.embeddings + sum(one.total for one in own_cost.layers[:layer])
        n_passed = sum(passed <= layer for passed in rule.inner_layers)
        spent += len(own) * n_passed * 4 * classifier.encoder.spec.width * n_classes
    return cost(lengths).total / spent


def _speed_ratios(
    model: Model, texts: Sequence[Pieces], *, n_rounds: int, watch: Watch
) -> tuple[float, float]:
    """Measures how many times as fast the texts are answered with exits, and how many times as slow
    where no text may leave; by torch, in turns.
    """
    exits = _exits_of(model)
    stuck = replace(exits, rule=replace(exits.rule, threshold=1.0))
    models = {
        "whole": replace(model, exits=None),
        "early": model,
        "none leave": replace(model, exits=stuck),
    }

    def action(one: Model) -> TimedAction:
        return TimedAction(lambda _: compute_outputs(one, texts))

    actions = {name: action(one) for name, one in models.items()}
    times = time_in_turns(actions, what="measuring speed", n_rounds=n_rounds, watch=watch)
    whole, early, none_leave = map(statistics.median, times.values())
    return whole / early, none_leave / whole


def _save(result: ExitsResult, folder: ModelFolder, texts: ExitTexts, out: Path) -> None:
    """The folder's own card is kept, and says one thing more."""
    written = folder.path / "README.md"
    card = written.read_text("utf-8", errors="replace") if written.is_file() else ""
    make_folder(out)
    write_json(out / RESULT, result.as_json())
    trained = read_trained_texts(folder)
    if trained is not None:
        chosen_by = [*texts.taught, *texts.fitted, *texts.tested]
        write_trained_texts(out, chosen_by, more=trained)
    save_model(result.model, out, card=f"{card.rstrip()}\n\n{_card(result)}".lstrip())


CARD = (
    "## Early exits\n\nTexts may leave after layers {layers}.{table} The promise: {promise}. On"
    " {0.n} other texts {0.differ:.2%} differ (95 % interval {0.interval[0]:.2%} to"
    " {0.interval[1]:.2%}); answered: {shares}; {0.flops_ratio:.2f} times fewer operations. It"
    " holds for texts like those it was tested on. Scores above are of the whole model. On a GPU"
    " {on_gpu} goes to the end.\n"
)


def _card(result: ExitsResult) -> str:
    rule = _exits_of(result.model).rule
    shares = ", ".join(f"{row.share:.0%} after layer {row.layer}" for row in result.rows)
    table = " Layer 0 is a table of pieces, before the first layer." if rule.has_table else ""
    on_gpu = "every text that the table leaves" if rule.has_table else "every text"
    return CARD.format(
        result,
        layers=", ".join(map(str, rule.layers)),
        table=table,
        promise=rule.promise.in_words(),
        shares=shares,
        on_gpu=on_gpu,
    )
