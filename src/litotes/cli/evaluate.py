"""`litotes evaluate`: scores of a model; `litotes calibrate`: lets it abstain."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from litotes.cli.display import print_json, print_lines, progress, say
from litotes.cli.inputs import for_kind, load_predictors, parse_where
from litotes.cli.scores import (
    print_comparison,
    print_gaps,
    print_scores,
    print_set_coverages,
)
from litotes.cli.tables import draws_figures, print_rows, write_figure
from litotes.core.storage import write_json
from litotes.data.corpus import Corpus
from litotes.data.sources import load
from litotes.evaluation.evaluate import (
    TaskPredictions,
    compare_models,
    map_labels_as_trained,
    predict_corpus,
    score_cells,
    score_warnings,
    select_fair_texts,
    warn_of_trained_texts,
)
from litotes.evaluation.gaps import VISIBLE, check_columns, find_gaps
from litotes.evaluation.reliability import draw_reliability, draw_risk_coverage
from litotes.evaluation.slices import Slices, find_slices, findings, write_slices
from litotes.evaluation.unsure import (
    SetCoverage,
    UnsureResult,
    calibrate_folder,
    folder_to_calibrate,
    set_coverages,
)
from litotes.model.folder import ModelFolder, open_model, read_trained_texts


def evaluate(options: argparse.Namespace) -> None:
    evaluate_other_kind = for_kind(options)
    if evaluate_other_kind is not None:
        evaluate_other_kind(options)
        return
    where = parse_where(options.where)
    columns = None if options.by is None else check_columns(options.by)
    folders = [options.model, *filter(None, [options.against])]
    models = load_predictors(options, folders)
    corpus = select_texts(options.data, where, folders)
    corpus = map_labels_as_trained(corpus, open_model(options.model))
    seed = options.seed or 0
    with progress() as watch:
        predictions, *others = [predict_corpus(model, corpus, watch=watch) for model in models]
    rows, more = score_cells(predictions, corpus, seed=seed), dict[str, Any]()
    if others:
        more["against"] = compare_models(predictions, others[0], corpus, seed=seed)
    if columns is not None:
        more["gaps"] = find_gaps(predictions, columns, corpus=corpus.name, seed=seed)
    if options.slices:
        more["slices"] = find_slices(predictions, seed=seed)
    if sets := set_coverages(predictions, corpus):
        more["unsure"] = sets
    content = as_json(rows)
    if more:
        content = {"scores": content, **{name: as_json(one) for name, one in more.items()}}
    if options.out:
        _write(content, predictions, more.get("slices"), Path(options.out))
    say([*score_warnings(rows), *(more["gaps"].notes if columns is not None else ())])
    if options.json:
        print_json(content)
        return
    print_scores(rows)
    for name, print_found in PRINTERS.items():
        if name in more:
            print_found(more[name])
    if others:
        print_comparison(more["against"], options.model, options.against)


def as_json(found: Any) -> Any:
    return [one.as_json() for one in found] if isinstance(found, Sequence) else found.as_json()


def select_texts(
    source: str, where: Mapping[str, Sequence[str]], models: Sequence[str | ModelFolder]
) -> Corpus:
    """The texts of a source that `where` selects, of the test split unless it names another one;
    of a source without a split, those that none of the models was trained on.

    Prints on stderr what the user should know about them.
    """
    stated = [read_trained_texts(model) for model in models]
    trained_on = None if None in stated else frozenset().union(*filter(None, stated))
    corpus = load(source).where(**where)
    choose = warn_of_trained_texts if "split" in where else select_fair_texts
    chosen = choose(corpus, trained_on)
    say(chosen.notes)
    return chosen


def _write(
    content: Any, predictions: Mapping[str, TaskPredictions], slices: Slices | None, out: Path
) -> None:
    """The scores, how reliable the probabilities of each classification are, and how many mistakes
    remain when the least confident answers are left out; slices where they were searched. Without
    matplotlib only their numbers.
    """
    write_json(out / "scores.json", content)
    if draws_figures() and slices is not None:
        write_slices(slices, out)
    elif slices is not None:
        write_json(out / "slices.json", slices.as_json())
    kept = {task: one for task, one in predictions.items() if one.task.is_choice}
    curves = {task: one.reliability() for task, one in kept.items()}
    risks = {task: one.risk_coverage() for task, one in kept.items()}
    if kept:
        write_figure(out / "reliability", _numbers(curves), lambda: draw_reliability(curves))
        write_figure(out / "risk_coverage", _numbers(risks), lambda: draw_risk_coverage(risks))


def _numbers(found: Mapping[str, Any]) -> dict[str, Any]:
    return {task: one.as_json() for task, one in found.items()}


SLICES = """\
task: {0.task}
slice: {0.kind} {0.name}
n / others: {0.n[0]} / {0.n[1]}
error: {0.error:.3f}
elsewhere: {0.error_elsewhere:.3f}
first half: {0.searched:+z.3f}
second half: {0.difference:+z.3f}
95 % interval: {0.interval:+z.3f}
p: {0.p:.4f}
p corrected: {0.adjusted_p:.4f}
matched: {0.matched:+z.3f}
95 % interval: {0.matched_interval:+z.3f}
: {0.verdict}
"""


def _print_slices(found: Slices) -> None:
    if found.slices:
        title = "Slices with more mistakes, found on one half and tested on the other"
        print_rows(SLICES, found.slices, title=title)
    print_lines(*findings(found), *found.notes)


PRINTERS: dict[str, Callable[[Any], None]] = {
    "unsure": print_set_coverages,
    "gaps": partial(print_gaps, visible=VISIBLE),
    "slices": _print_slices,
}
"""The printers of what was found besides the scores, in the order in which it is shown."""


def calibrate(options: argparse.Namespace) -> None:
    out = None if options.out is None else Path(options.out)
    with folder_to_calibrate(options.model, out) as target:
        corpus = select_texts(options.data, parse_where(options.where), [options.model])
        corpus = map_labels_as_trained(corpus, open_model(options.model))
        result, rows = _calibrate(target, corpus, options)
    say(result.notes)
    if options.json:
        content = {"folder": str(target), **result.as_json()}
        if options.check is not None:
            content["check"] = as_json(rows)
        print_json(content)
        return
    _print_bounds(result)
    if rows:
        print_set_coverages(rows)
    print_lines(
        f"{target} now answers with a label, with several, or with none. The guarantee is about"
        " texts like these: it does not cover other sources and other times."
    )


def _calibrate(
    target: ModelFolder, corpus: Corpus, options: argparse.Namespace
) -> tuple[UnsureResult, tuple[SetCoverage, ...]]:
    checked = None
    if options.check is not None:
        corpus, checked = corpus.hold_out(options.check, seed=options.seed or 0)
    (predictor,) = load_predictors(options, [str(target.path)])
    with progress() as watch:
        result = calibrate_folder(
            target,
            predictor,
            corpus,
            coverage=options.coverage,
            by_variety=options.by == "variety",
            watch=watch,
        )
        if checked is None:
            return result, ()
        (calibrated,) = load_predictors(options, [str(target.path)])  # with the new bounds
        return result, set_coverages(predict_corpus(calibrated, checked), checked)


BOUNDS = """\
task: {0[task]}
of: {0[name]}
n: {0[bound].n}
least share of a label: {0[bound].least:.3f}
"""


def _print_bounds(result: UnsureResult) -> None:
    rows = [
        {"task": task, "name": name, "bound": bound}
        for task, sets in result.label_sets.items()
        for name, bound in {"all texts": sets.overall, **sets.varieties}.items()
    ]
    coverage = next(iter(result.label_sets.values())).coverage
    print_rows(BOUNDS, rows, title=f"The labels given include the true one in {coverage:.1%}")
