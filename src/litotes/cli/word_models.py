"""What `train`, `predict`, `evaluate` and `explain` do with a model that answers words."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litotes.core.errors import UserError, require_extra

if TYPE_CHECKING:
    from litotes.core.values import WordPrediction
    from litotes.training.tagging.tagger import Tagger

_NOT_FOR_WORDS = {
    "on": "--on",
    "variety": "--variety",
    "pair": "--pair",
    "columns": "--columns",
    "key": "--key",
    "prefix": "--prefix",
    "no_text": "--no-text",
    "keep_formulas": "--keep-formulas",
    "against": "--against",
    "by": "--by",
    "slices": "--slices",
    "probabilities": "--probabilities",
    "precision": "--precision",
    "verbose": "--verbose",
    "address": "--address",
    "workers": "--workers",
    "rows_per_part": "--rows-per-part",
    "task": "--task",
    "method": "--method",
}
"""Options that a model of words has no use for, by the names they are parsed to."""


def train(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, print_lines, progress, say
    from litotes.cli.train import out_of
    from litotes.training.recipe import WordRecipe
    from litotes.training.run import train

    recipe = WordRecipe.read(options.recipe, changes=options.set)
    if options.seed is not None:
        recipe = recipe.changed(seed=options.seed)
    with progress() as watch:
        result = train(
            recipe, out_of(options), device=options.device, resume=options.resume, watch=watch
        )
    say(result.notes)
    if options.json:
        notes = list(result.notes)
        print_json({"model": str(result.folder), "scores": result.scores, "notes": notes})
        return
    if result.scores:
        print_word_scores(result.scores)
    ask = f'litotes predict --model {result.folder} "…"'
    print_lines(f"The model is in {result.folder}. Ask it: {ask}")


def predict(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, say
    from litotes.cli.streams import write_out
    from litotes.core.json_text import to_json
    from litotes.core.storage import write_text

    refuse_options(options)
    if options.format in ("csv", "parquet"):
        raise UserError(
            f"--format {options.format}: a label for every word has no column. Write jsonl."
        )
    tagger = load_tagger(options)
    found = _predictions(tagger, options)
    if options.json:
        content = [one.as_json() for one in found]
        if options.out is None:
            print_json(content)
        else:
            write_text(Path(options.out), to_json(content, indent=2) + "\n")
        return
    as_lines = options.format == "jsonl"
    lines = (to_json(one.as_json()) if as_lines else _block(one) for one in found)
    if options.out is None:
        for line in lines:
            write_out(f"{line}\n")
        return
    write_text(Path(options.out), "".join(f"{line}\n" for line in lines))
    say([f"Written to {options.out}."])


def evaluate(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, progress, say
    from litotes.core.storage import write_json
    from litotes.training.tagging.answers import evaluate_words, fair_words

    refuse_options(options)
    if options.where:
        raise UserError("--where chooses texts of classifiers; words have no varieties. Leave it.")
    tagger = load_tagger(options)
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
        return
    print_word_scores(scores.as_json())


def explain(options: argparse.Namespace) -> None:
    """The text with the words that the model found marked."""
    from litotes.cli.display import print_json, print_lines, say
    from litotes.core.storage import write_json, write_text
    from litotes.explanation.marked_words import marked_page

    refuse_options(options)
    if options.highlight_model is not None:
        raise UserError("--highlight-model adds to a classifier: leave it out.")
    out = None if options.out is None else Path(options.out)
    if out is not None and out.suffix.lower() not in (".html", ".json"):
        raise UserError(f"{out}: marked words are written as .html or .json, e.g. words.html.")
    found = mark_words(options, options.model)
    if out is not None and out.suffix.lower() == ".html":
        write_text(out, marked_page(found, model=Path(options.model).name))
    elif out is not None:
        write_json(out, found.as_json())
    if out is not None:
        say([f"Written to {options.out}."])
    if options.json:
        print_json(found.as_json())
    elif out is None:
        print_lines(*marked_lines(found))


def mark_words(options: argparse.Namespace, model: str) -> WordPrediction:
    """What a model of words finds in the text to explain."""
    if options.out is not None and Path(options.out).suffix.lower() in (".svg", ".png"):
        raise UserError("Marked words are drawn on a page: end the name of --out in .html.")
    return load_tagger(options, model).predict(options.text)


def marked_lines(found: WordPrediction) -> list[str]:
    from litotes.explanation.marked_words import marked_line, notes_of, title_of

    return [f"{title_of(found)}:", f"  {marked_line(found)}", *notes_of(found)]


def load_tagger(options: argparse.Namespace, model: str | None = None) -> Tagger:
    require_extra("train", "A model that answers words")
    from litotes.training.tagging.tagger import Tagger

    if getattr(options, "runtime", None) == "onnx":
        raise UserError("A model that answers words has no ONNX file: leave --runtime out.")
    return Tagger.load(model or options.model, device=options.device)


def refuse_options(options: argparse.Namespace) -> None:
    """An option that would do nothing is refused rather than passed over."""
    for name, written in _NOT_FOR_WORDS.items():
        if getattr(options, name, None):
            raise UserError(f"{written} is not for a model that answers words: leave it out.")


def print_word_scores(scores: Mapping[str, Any]) -> None:
    """A row for each score with its interval, then one for each label."""
    from litotes.cli.display import print_table

    rows = []
    for name, key, bounds in (
        ("word accuracy", "accuracy", "interval"),
        ("macro-F1 of words", "macro_f1", "macro_f1_interval"),
        ("entity F1", "entity_f1", "entity_f1_interval"),
        ("exact match", "exact_match", "exact_match_interval"),
        ("overlap F1", "overlap_f1", "overlap_f1_interval"),
    ):
        if scores.get(key) is not None:
            rows.append((name, f"{scores[key]:.3f}", _bounds(scores[bounds])))
    kind = "exact match of none" if "exact_match" in scores else "accuracy of the commonest label"
    rows.append((f"majority: {kind}", f"{scores['majority']:.3f}", ""))
    for found in scores.get("baselines", {}).values():
        name = "each word's most frequent tag: accuracy"
        rows.append((name, f"{found['accuracy']:.3f}", _bounds(found["interval"])))
    n_words = f", {scores['n_words']:,} words" if "n_words" in scores else ""
    title = f"{scores['task']}: {scores['n_texts']:,} texts{n_words}"
    print_table(("score", "", "95 % interval"), rows, title=title)
    if scores.get("labels"):
        print_table(
            ("label", "n", "precision", "recall", "F1", "95 % interval"),
            [
                (
                    one["label"],
                    str(one["n"]),
                    f"{one['precision']:.3f}",
                    f"{one['recall']:.3f}",
                    f"{one['f1']:.3f}",
                    _bounds(one["f1_interval"]),
                )
                for one in scores["labels"]
            ],
        )


def _bounds(interval: Iterable[float]) -> str:
    low, high = interval
    return f"{low:.3f}–{high:.3f}"


def _predictions(tagger: Tagger, options: argparse.Namespace) -> Iterator[WordPrediction]:
    from litotes.cli.predict import typed_rows
    from litotes.cli.table_options import table_request

    if options.file is None:
        rows = typed_rows(options)
    else:
        request = table_request(options)
        rows = request.input_rows(request.rows(), None)
    # a person who types an empty text wants to know
    bad_texts = "stop" if options.texts or options.bad_rows == "stop" else "empty"
    asked = (row.asked for row in rows)
    for found in tagger.predict_stream(asked, bad_texts=bad_texts):
        if found.problem is None or options.bad_rows != "skip":
            yield found


def _block(found: WordPrediction) -> str:
    """The text, then a line for each word, or one for the span."""
    from litotes.cli.display import visible
    from litotes.core.values import UNREADABLE_NOTE

    lines = [found.text]
    if found.kind == "tagging":
        widest = max((len(word.written) for word in found.words), default=0)
        for word in found.words:
            share = "" if word.probability is None else f"{word.probability:6.1%}"
            lines.append(f"  {word.written:<{widest}}  {word.label or '(not read)':<10} {share}")
        lines += [f"  {one.kind}: {one.written}" for one in found.stretches]
    elif found.problem is None:
        share = f"{found.probability or 0:.1%}"
        answer = f"“{found.span.written}”" if found.span else "none"
        lines.append(f"  {found.task}: {answer}  {share}")
    if found.truncated:
        lines.append("  (a part of the text was not read: it is longer than the model reads)")
    if found.unreadable:
        lines.append(f"  ({UNREADABLE_NOTE})")
    if found.problem is not None:
        lines.append(f"  (no answer: {found.problem})")
    return "\n".join(map(visible, lines))
