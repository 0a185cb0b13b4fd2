"""From a trained model to the same model with exits.

texts  →  one pass of the whole model: what exits read, what they should say
       →  exits taught  →  how sure each is  →  a threshold tested on other texts
       →  measured on others again  →  model folder, exits.json
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from scipy.special import expit

from litotes.core.errors import UserError
from litotes.core.numbers import counted
from litotes.core.progress import Watch, ignore_progress
from litotes.core.storage import make_folder, write_json
from litotes.encoder.packing import encode_examples
from litotes.model.calibration import Calibration
from litotes.model.checkpoint import Model, load_model, save_model
from litotes.model.classifier import EarlyExits
from litotes.model.exits import Exits, Promise, Sureness, label_margins
from litotes.model.folder import (
    ModelFolder,
    is_model_folder,
    open_model,
    read_trained_texts,
    write_trained_texts,
)
from litotes.model.runtime import compute_outputs
from litotes.pruning.exits.control import Rehearsal, candidate_cuts, choose_cut, n_needed
from litotes.pruning.exits.measure import (
    agreements,
    exit_logits,
    exit_rows,
    operations_ratio,
    rehearse,
    share_interval,
    speed_ratios,
)
from litotes.pruning.exits.result import ExitSettings, ExitsResult
from litotes.pruning.exits.static import teach_table
from litotes.pruning.exits.sureness import fit_sureness
from litotes.pruning.exits.teaching import Lessons, read_lessons, teach
from litotes.pruning.exits.texts import ExitTexts, choose_texts

RESULT = "exits.json"
_CARD = "## Early exits"
_N_TIMED = 256


def add_exits(
    model: Path | str,
    source: str,
    out: Path,
    *,
    unlabelled: Sequence[str] = (),
    settings: ExitSettings | None = None,
    watch: Watch = ignore_progress,
) -> ExitsResult:
    """Gives the model of a folder exits for texts like those of `source`, and writes it to `out`.

    unlabelled: files of more such texts, one a line or in the column `text`.
    """
    settings = settings or ExitSettings()
    folder = open_model(model)
    whole = _load(folder, out)
    settings = with_layers(whole, settings)
    n_tested = n_needed(allowed=settings.differ, confidence=settings.confidence)
    texts = choose_texts(folder, source, unlabelled, n_tested=n_tested, seed=settings.seed)
    lessons = read_parts(whole, texts, settings.layers, watch)
    made = teach_and_test(whole, lessons, settings, watch)
    result = _measure(made, texts, settings, watch)
    _save(result, folder, texts, out)
    return result


def _load(folder: ModelFolder, out: Path) -> Model:
    if is_model_folder(out):
        raise UserError(f"{out} already holds a model. Choose another --out.")
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
    """With the layers that were asked for; if none, those in the middle: before a third of the
    layers hardly any text is sure, and after two thirds there is little left to save.
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
    found = tuple(sorted({*layers, *((0,) if settings.static else ())}))
    return replace(settings, layers=found, static=found[0] == 0)


def read_parts(
    model: Model, texts: ExitTexts, layers: Sequence[int], watch: Watch
) -> dict[str, Lessons]:
    """What exits after any of these layers learn from, by the part of the texts."""
    lessons = {}
    for part in ("taught", "fitted", "tested"):
        pieces = encode_examples(model.tokenizer, getattr(texts, part))
        what = f"reading texts ({part})"
        lessons[part] = read_lessons(model, pieces, _inner(layers), what=what, watch=watch)
    return lessons


def teach_and_test(
    model: Model, lessons: Mapping[str, Lessons], settings: ExitSettings, watch: Watch
) -> Model:
    """The model with exits after the layers of the settings, which have been read."""
    untested = Promise(settings.differ, settings.confidence, 0, 0)
    always = {
        layer: dict.fromkeys(model.classifier.tasks, Sureness(0, 0)) for layer in settings.layers
    }
    torch.manual_seed(settings.seed)
    exits = EarlyExits.for_classifier(
        model.classifier, Exits(settings.layers, always, 1.0, untested)
    )
    temperatures = {task: model.calibration_of(task).temperature for task in model.classifier.tasks}
    taught, checked = lessons["taught"], lessons["fitted"]
    teach(exits.heads, taught, checked, temperatures, watch=watch)
    if settings.static:
        n_pieces = model.classifier.encoder.spec.n_vocabulary
        table = teach_table(taught, checked, temperatures, n_pieces=n_pieces, watch=watch)
        exits = replace(exits, table=table)
    rule = Exits(settings.layers, _fit_sureness(model, exits, checked), 1.0, untested)
    exits = replace(exits, rule=rule)
    fitted, tested = (rehearse(model, exits, own) for own in (checked, lessons["tested"]))
    cut = choose_cut(
        tested,
        candidate_cuts(fitted.log_odds),
        allowed=settings.differ,
        confidence=settings.confidence,
    )
    if cut is None:
        raise _refusal(tested, fitted, settings)
    # a cut beyond what a float can tell from 1 lets nobody leave
    chosen = replace(rule, threshold=float(expit(cut)))
    promise = replace(untested, n=tested.n_texts, n_differ=int(tested.differs(chosen.cut).sum()))
    return replace(model, exits=replace(exits, rule=replace(chosen, promise=promise)))


def _inner(layers: Sequence[int]) -> list[int]:
    """The layers of the encoder that exits read."""
    return [layer for layer in layers if layer]


def _fit_sureness(
    model: Model, exits: EarlyExits, lessons: Lessons
) -> dict[int, dict[str, Sureness]]:
    """{layer: {task: …}}"""
    found: dict[int, dict[str, Sureness]] = {}
    for layer in exits.rule.layers:
        logits = exit_logits(exits, layer, lessons)
        agrees = agreements(model, lessons, logits)
        found[layer] = {}
        for task, own in logits.items():
            margins = label_margins(own, model.calibration.get(task, Calibration()))
            found[layer][task] = fit_sureness(margins, agrees[task])
    return found


def _refusal(tested: Rehearsal, fitted: Rehearsal, settings: ExitSettings) -> UserError:
    strictest = candidate_cuts(fitted.log_odds)[0]
    n_left = int((tested.places(strictest) < len(tested.agrees)).sum())
    return UserError(
        f"No threshold keeps the promise: of {counted(tested.n_texts, 'text')} tested,"
        f" {int(tested.differs(strictest).sum())} of the {n_left} that leave under the strictest"
        f" differ. Allow more than {100 * settings.differ:g} % with --differ, choose later"
        " --layers, or give more texts with --unlabelled FILE."
    )


def _measure(model: Model, texts: ExitTexts, settings: ExitSettings, watch: Watch) -> ExitsResult:
    assert model.exits is not None
    pieces = encode_examples(model.tokenizer, texts.measured)
    lessons = read_lessons(
        model, pieces, _inner(settings.layers), what="reading texts (measured)", watch=watch
    )
    outputs = compute_outputs(model, pieces)
    assert outputs.layers is not None
    agrees = agreements(model, lessons, outputs.logits)
    n_differ = sum(not all(own) for own in zip(*agrees.values(), strict=True))
    lengths = [len(text.ids) for text in pieces]
    timed = pieces[:_N_TIMED]
    speed, worst = speed_ratios(model, timed, n_rounds=settings.n_rounds, watch=watch)
    return ExitsResult(
        model,
        settings,
        exit_rows(model, lessons),
        n=len(pieces),
        differ=n_differ / len(pieces),
        interval=share_interval(n_differ, len(pieces)),
        flops_ratio=operations_ratio(model, lengths, outputs.layers),
        speed_ratio=speed,
        worst_ratio=worst,
        notes=texts.notes,
    )


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


def _card(result: ExitsResult) -> str:
    assert result.model.exits is not None
    rule = result.model.exits.rule
    low, high = result.interval
    shares = ", ".join(f"{row.share:.0%} after layer {row.layer}" for row in result.rows)
    table = " Layer 0 is a table of pieces, before the first layer." if rule.has_table else ""
    on_gpu = "every text that the table leaves" if rule.has_table else "every text"
    return (
        f"{_CARD}\n\nTexts may leave after layers {', '.join(map(str, rule.layers))}.{table} The"
        f" promise: {rule.promise.in_words()}. On {result.n} other texts {result.differ:.2%} differ"
        f" (95 % interval {low:.2%} to {high:.2%}); answered: {shares};"
        f" {result.flops_ratio:.2f} times fewer operations. It holds for texts like those it was"
        f" tested on. Scores above are of the whole model. On a GPU {on_gpu} goes to the end.\n"
    )
