"""The commands as functions: names, paths and strings in, the values of the package out.

Each function turns what people have at hand (the name of a corpus, the path of a recipe) into the
value its plain counterpart works on, and calls that; docs/reference/api.md shows them at work.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.core.errors import UserError, require_extra
from litotes.core.progress import Watch, ignore_progress
from litotes.data.corpus import Corpus
from litotes.data.sources import load_corpus
from litotes.evaluation import evaluate as scoring
from litotes.evaluation.evaluate import CellScores, select_fair_texts
from litotes.evaluation.unsure import UnsureResult, calibrate_folder, folder_to_calibrate
from litotes.model.folder import read_trained_texts
from litotes.model.hub import OnHub, pull_model, push_model
from litotes.prediction.predictor import Predictor
from litotes.training.recipe import Recipe, read_recipe

if TYPE_CHECKING:  # these import torch, which answering does without
    from litotes.encoder.pretrained import Pretrained
    from litotes.exporting.export import ExportResult
    from litotes.training.course import Run
    from litotes.training.recipe import WordRecipe
    from litotes.training.tagging.scores import WordScores

ModelLike = Predictor | str | Path
"""A loaded predictor, a model folder, or the name of a built-in model."""
CorpusLike = Corpus | str
"""A corpus, or a source such as `sampler`, `besstie:PATH` or `table:FILE?label.mood=column`."""


def load_encoder(name: str = "minilm", *, max_pieces: int | None = None) -> Pretrained:
    """Reads a pretrained encoder: one of `litotes encoders list`, a Hugging Face folder, or
    OWNER/NAME@REVISION.

    max_pieces: where texts are cut; None: at the longest the encoder can read, at most 512.

    >>> load_encoder().encoder.spec.n_layers
    6
    """
    require_extra("train", "An encoder")
    from litotes.encoder import pretrained

    return pretrained.load(name, max_pieces=max_pieces)


def train(
    recipe: Recipe | str | Path,
    out: str | Path,
    *,
    corpus: Corpus | None = None,
    changes: Sequence[str] = (),
    device: str | None = None,
    resume: bool = False,
    watch: Watch = ignore_progress,
) -> Run:
    """Trains one classifier into the model folder `out` and tests it, as `litotes train` does.

    recipe: a `Recipe`, or the path of a recipe file, with `changes` such as "training.epochs=3".
    corpus: texts to use in place of the recipe's `data.source`.
    resume: continues a run that was stopped, or returns the one that is finished.
    """
    require_extra("train", "Training")
    from litotes.training import run

    if not isinstance(recipe, Recipe):
        recipe = read_recipe(Path(recipe), changes=changes)
    elif changes:
        raise TypeError("changes are for a recipe file; change a Recipe with recipe.changed(…)")
    return run.train(recipe, Path(out), corpus=corpus, device=device, resume=resume, watch=watch)


def train_words(
    recipe: WordRecipe | str | Path,
    out: str | Path,
    *,
    changes: Sequence[str] = (),
    device: str | None = None,
    resume: bool = False,
    watch: Watch = ignore_progress,
) -> Run:
    """Trains a model that answers words (`kind = "tagging"` or `"span"`), as `litotes train` does.

    `Tagger.load(out)` asks it. The arguments are those of `train`.
    """
    require_extra("train", "Training")
    from litotes.training.recipe import WordRecipe
    from litotes.training.run import train as train_any

    if not isinstance(recipe, WordRecipe):
        recipe = WordRecipe.read(Path(recipe), changes=changes)
    elif changes:
        raise TypeError("changes are for a recipe file; change a WordRecipe with .changed(…)")
    return train_any(recipe, Path(out), device=device, resume=resume, watch=watch)


def evaluate_words(
    model: str | Path,
    data: str,
    *,
    seed: int = 0,
    device: str | None = None,
    watch: Watch = ignore_progress,
) -> WordScores:
    """Scores a model that answers words, with 95 % intervals over texts.

    data: a source of words such as `ud-ewt:PATH`. Its test split is scored, or, without one, the
    texts that the model was not trained on, with a warning that says so.
    """
    require_extra("train", "A model that answers words")
    from litotes.training.tagging import answers
    from litotes.training.tagging.tagger import Tagger

    tagger, corpus = Tagger.load(model, device=device), answers.fair_words(data, model)
    for note in corpus.notes:
        warnings.warn(note, stacklevel=2)
    network, tokenizer = tagger.network, tagger.model.tokenizer
    return answers.evaluate_words(network, tokenizer, corpus, seed=seed, watch=watch)


def evaluate(
    model: ModelLike,
    data: CorpusLike,
    *,
    seed: int = 0,
    device: str | None = None,
    runtime: str | None = None,
    watch: Watch = ignore_progress,
) -> tuple[CellScores, ...]:
    """Scores a model, each with its 95 % interval: over all texts first, then by cell.

    A source is scored on its test split, or, without one, on the texts that the model of a folder
    was not trained on, with a warning that says so; a `Corpus` on all of its texts.

    >>> rows = evaluate("builtin", load_corpus("sampler").where(variety="en-UK", split="test"))
    >>> rows[0].cell, rows[0].scores.task
    ('all', 'sentiment')
    """
    predictor = _predictor(model, device=device, runtime=runtime)
    if isinstance(data, str):
        data = _fair_texts(data, model)
    return scoring.evaluate(predictor, data, seed=seed, watch=watch)


def calibrate(
    model: str | Path,
    data: CorpusLike,
    *,
    coverage: float = 0.9,
    by_variety: bool = False,
    out: str | Path | None = None,
    device: str | None = None,
    runtime: str | None = None,
    watch: Watch = ignore_progress,
) -> UnsureResult:
    """Lets a model answer "unsure": from then on `Answer.labels` holds the truth with a probability
    of `coverage`, on texts like these; with `by_variety`, in each variety that has enough texts.

    The bounds are written into the model folder, or into a copy (`out`), and are read when it is
    loaded the next time. Of a source, the texts that `evaluate` would score are used.
    """
    if isinstance(data, str):
        data = _fair_texts(data, model)
    with folder_to_calibrate(model, None if out is None else Path(out)) as folder:
        predictor = Predictor.load(folder, device=device, runtime=runtime)
        return calibrate_folder(
            folder, predictor, data, coverage=coverage, by_variety=by_variety, watch=watch
        )


def export(
    model: str | Path,
    *,
    int8: bool = False,
    int16: bool = False,
    data: str | None = None,
    allowed: float | None = None,
    out: str | Path | None = None,
    watch: Watch = ignore_progress,
) -> list[ExportResult]:
    """Writes `model.onnx` into a model folder (or into a copy, `out`) and measures what it changes.

    int8: a quarter of the size, and faster. int16: half the size, computed in 32 bits. data: texts
    to measure on; None: texts the model was trained with, held out. allowed: the share of labels
    that may change; None: none, 0.5 % with int16, 1 % with int8. A result for each model inside.
    """
    if int8 and int16:
        raise UserError("An export has one precision: int8 or int16, not both.")
    require_extra("train", "An export")
    from litotes.exporting.export import export_models, working_copy

    precision = "int8" if int8 else ("int16" if int16 else "float32")
    with working_copy(model, None if out is None else str(out)) as folder:
        return export_models(folder, precision=precision, source=data, allowed=allowed, watch=watch)


def push(model: str | Path, name: str, *, private: bool = True) -> OnHub:
    """Pushes a model folder with its card to the Hugging Face Hub, as one commit.

    name: OWNER/NAME, which is made, private or not, if it is not there.
    """
    return push_model(model, name, private=private)


def pull(name: str, out: str | Path, *, watch: Watch = ignore_progress) -> OnHub:
    """Pulls a model folder from the Hugging Face Hub into a new folder, and checks it.

    name: OWNER/NAME, or OWNER/NAME@REVISION.
    """
    return pull_model(name, out, watch=watch)


def _fair_texts(source: str, model: ModelLike) -> Corpus:
    """What the caller's caller should know is a warning there."""
    trained_on = None if isinstance(model, Predictor) else read_trained_texts(model)
    corpus = select_fair_texts(load_corpus(source), trained_on)
    for note in corpus.notes:
        warnings.warn(note, stacklevel=3)
    return corpus


def _predictor(model: ModelLike, *, device: str | None, runtime: str | None) -> Predictor:
    if isinstance(model, Predictor):
        return model
    return Predictor.load(model, device=device, runtime=runtime)
