"""`train`, `predict`, `evaluate` and `explain` with a model that answers words."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from litotes.cli.display import print_json, print_lines, progress, say, visible, write_out
from litotes.cli.predict import note_lines, table_request, typed_rows
from litotes.cli.scores import print_word_scores
from litotes.core.errors import UserError
from litotes.core.json_text import to_json
from litotes.core.storage import write_json, write_text
from litotes.core.values import WordPrediction
from litotes.explanation.marked_words import marked_line, marked_page, notes_of, title_of
from litotes.training.tagging.answers import evaluate_words, fair_words
from litotes.training.tagging.tagger import Tagger

_NOT_FOR_WORDS = (
    "on",
    "variety",
    "pair",
    "columns",
    "key",
    "prefix",
    "no_text",
    "keep_formulas",
    "against",
    "by",
    "slices",
    "probabilities",
    "precision",
    "verbose",
    "address",
    "workers",
    "rows_per_part",
    "task",
    "method",
)
"""Options that a model of words has no use for."""


def load_tagger(options: argparse.Namespace, model: str) -> Tagger:
    """The model; an option that would do nothing is refused rather than passed over."""
    if model == options.model:
        for name in _NOT_FOR_WORDS:
            if getattr(options, name, None):
                flag = f"--{name.replace('_', '-')}"
                raise UserError(f"{flag} is not for a model that answers words: leave it out.")
    if getattr(options, "runtime", None) == "onnx":
        raise UserError("A model that answers words has no ONNX file: leave --runtime out.")
    return Tagger.load(model, device=options.device)


def predict(options: argparse.Namespace) -> None:
    if options.format in ("csv", "parquet"):
        raise UserError(
            f"--format {options.format}: a label for every word has no column. Write jsonl."
        )
    found = _predictions(load_tagger(options, options.model), options)
    if options.json:
        text = iter([to_json([one.as_json() for one in found], indent=2)])
    elif options.format == "jsonl":
        text = (to_json(one.as_json()) for one in found)
    else:
        text = map(_block, found)
    if options.out is None:
        for part in text:
            write_out(f"{part}\n")
        return
    write_text(Path(options.out), "".join(f"{part}\n" for part in text))
    say([] if options.json else [f"Written to {options.out}."])


def _predictions(tagger: Tagger, options: argparse.Namespace) -> Iterator[WordPrediction]:
    if options.file is None:
        rows = typed_rows(options)
    else:
        request = table_request(options)
        rows = request.input_rows(request.rows(), None)
    # a person who types an empty text wants to know
    bad_texts = "stop" if options.texts or options.bad_rows == "stop" else "empty"
    for found in tagger.predict_stream((row.asked for row in rows), bad_texts=bad_texts):
        if found.problem is None or options.bad_rows != "skip":
            yield found


def _block(found: WordPrediction) -> str:
    """The text, then a line for each word, or one for the span."""
    lines = [found.text]
    if found.kind == "tagging":
        widest = max((len(word.written) for word in found.words), default=0)
        for word in found.words:
            share = "" if word.probability is None else f"{word.probability:6.1%}"
            lines.append(f"  {word.written:<{widest}}  {word.label or '(not read)':<10} {share}")
        lines += [f"  {one.kind}: {one.written}" for one in found.stretches]
    elif found.problem is None:
        answer = f"“{found.span.written}”" if found.span else "none"
        lines.append(f"  {found.task}: {answer}  {found.probability or 0:.1%}")
    cut = "a part of the text was not read: it is longer than the model reads"
    return "\n".join(map(visible, [*lines, *note_lines(found, cut=cut)]))


def evaluate(options: argparse.Namespace) -> None:
    if options.where:
        raise UserError("--where chooses texts of classifiers; words have no varieties. Leave it.")
    tagger = load_tagger(options, options.model)
    corpus = fair_words(options.data, options.model)
    say(corpus.notes)
    with progress() as watch:
        scores = evaluate_words(
            tagger.network, tagger.model.tokenizer, corpus, seed=options.seed or 0, watch=watch
        )
    if options.out:
        write_json(Path(options.out) / "scores.json", scores.as_json())
    if options.json:
        print_json(scores.as_json())
    else:
        print_word_scores(scores.as_json())


def explain(options: argparse.Namespace) -> None:
    """The text with the words that the model found marked."""
    if options.highlight_model is not None:
        raise UserError("--highlight-model adds to a classifier: leave it out.")
    out = None if options.out is None else Path(options.out)
    if out is not None and out.suffix.lower() not in (".html", ".json"):
        raise UserError(f"{out}: marked words are written as .html or .json, e.g. words.html.")
    found = mark_words(options, options.model)
    if out is not None:
        if out.suffix.lower() == ".html":
            write_text(out, marked_page(found, model=Path(options.model).name))
        else:
            write_json(out, found.as_json())
        say([f"Written to {options.out}."])
    if options.json:
        print_json(found.as_json())
    elif out is None:
        print_lines(*marked_lines(found))


def mark_words(options: argparse.Namespace, model: str) -> WordPrediction:
    """Marks what a model of words finds in the text to explain."""
    if options.out is not None and Path(options.out).suffix.lower() in (".svg", ".png"):
        raise UserError("Marked words are drawn on a page: end the name of --out in .html.")
    return load_tagger(options, model).predict(options.text)


def marked_lines(found: WordPrediction) -> list[str]:
    return [f"{title_of(found)}:", f"  {marked_line(found)}", *notes_of(found)]
