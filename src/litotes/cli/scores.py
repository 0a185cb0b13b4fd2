"""Scores as tables: a line for each column, with the attribute that stands in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from litotes.cli.display import print_lines
from litotes.cli.tables import print_rows
from litotes.evaluation.scores import RegressionScores, Scores, SeveralScores

if TYPE_CHECKING:
    from litotes.evaluation.evaluate import CellScores, ModelDifference
    from litotes.evaluation.gaps import Gaps
    from litotes.evaluation.unsure import SetCoverage

_PLACE = """\
task: {0.scores.task}
cell: {0.cell}
n: {0.scores.n}
"""
SCORES = """\
macro-F1: {0.scores.macro_f1:.3f}
95 % interval: {0.scores.interval:.3f}
majority: {0.scores.majority:.3f}
accuracy: {0.scores.accuracy:.3f}
Matthews: {0.scores.matthews:.3f}
calibration error: {0.scores.calibration_error:.3f}
risk area: {0.scores.risk_area:.3f}
"""
SEVERAL_LABELS = """\
macro-F1: {0.scores.macro_f1:.3f}
95 % interval: {0.scores.interval:.3f}
majority: {0.scores.majority:.3f}
micro-F1: {0.scores.micro_f1:.3f}
95 % interval: {0.scores.micro_interval:.3f}
subset accuracy: {0.scores.subset_accuracy:.3f}
"""
NUMBERS = """\
Pearson r: {0.scores.pearson:.3f}
95 % interval: {0.scores.interval:.3f}
RMSE: {0.scores.root_mean_squared_error:.3f}
Spearman ρ: {0.scores.spearman:.3f}
"""


def print_scores(rows: Sequence[CellScores]) -> None:
    """Scores, each with its interval and its majority baseline; a table for each kind of task."""
    kinds = {Scores: SCORES, SeveralScores: SEVERAL_LABELS, RegressionScores: NUMBERS}
    for kind, columns in kinds.items():
        found = [row for row in rows if isinstance(row.scores, kind)]
        if found:
            print_rows(_PLACE + columns, found)


LABEL_SETS = """\
task: {0.task}
cell: {0.cell}
n: {0.coverage.n}
guaranteed: {0.promised:g}
true label included: {0.coverage.value:.3f}
95 % interval: {0.coverage.interval:.3f}
unsure: {0.unsure.value:.3f}
accuracy of the rest: {0.accuracy.value:.3f}
95 % interval: {0.accuracy.interval:.3f}
"""


def print_set_coverages(rows: Sequence[SetCoverage]) -> None:
    """Prints how often sets of labels hold the true one."""
    print_rows(LABEL_SETS, rows, title="Labels given by a model that may be unsure")


DIFFERENCES = """\
task: {0.task}
cell: {0.cell}
n: {0.difference.n}
difference: {0.difference.difference:+z.3f}
95 % interval: {0.difference.interval:+z.3f}
p: {0.difference.p:.4f}
p corrected: {0.adjusted_p:.4f}
: {0.is_significant:significant|not significant}
"""


def print_comparison(rows: Sequence[ModelDifference], model: str, other: str) -> None:
    title = f"Macro-F1 of {model} minus that of {other}, on the same texts"
    print_rows(DIFFERENCES, rows, title=title)
    print_lines(
        "One model each: p and interval are about other texts, not about other seeds. Holm's"
        " correction over all rows."
    )


GROUPS = """\
task: {0.task}
by: {0.column}
group: {0.name}
n: {0.n}
macro-F1: {0.macro_f1:.3f}
95 % interval: {0.interval:.3f}
accuracy: {0.accuracy:.3f}
recall: {0.recall:.2f}
calibration error: {0.ece:.3f}
by chance: {0.ece_by_chance:.3f}
κ: {0.kappa:.2f}
κ of people: {0.annotators:.2f}
"""
GAPS = """\
task: {0.task}
by: {0.column}
group: {0.name}
measure: {0.measure}
n / rest: {0.n[0]} / {0.n[1]}
minus the rest: {0.difference:+z.3f}
95 % interval: {0.interval:+z.3f}
p: {0.p:.4f}
p corrected: {0.adjusted_p:.4f}
power: {0.power:.2f}
: {0.is_significant:significant|not significant}
"""


def print_gaps(found: Gaps, *, visible: float) -> None:
    """Prints how groups of texts differ. Recalls are tested too; only the significant of those are
    printed, the JSON has all. visible: the gap that the power is about.
    """
    print_rows(GROUPS, found.groups, title="Groups of texts")
    shown = [
        replace(gap, measure=gap.measure.replace("macro_f1", "macro-F1"))
        for gap in found.gaps
        if gap.is_significant or " " not in gap.measure
    ]
    print_rows(GAPS, shown, title="Each group minus all other texts")
    for one in found.spreads:
        print_lines(
            f"{one.task} by {one.column}: worst {one.worst}, best {one.best}, macro-F1"
            f" {one.spread:.3f} apart; random groups of these sizes are"
            f" {one.spread_by_chance:.3f} apart (p = {one.spread_p:.3f})."
        )
    print_lines(
        f"Power: the chance to detect a gap of {100 * visible:g} points with so many texts, at 0.05"
        f" and without correction. Holm's correction is over all {len(found.gaps)} tests, recalls"
        " included; those that are not significant are left out here."
    )


INTERVALS = """\
score: {0[name]}
: {0[value]:.3f}
95 % interval: {0[interval]:.3f}
"""
WORD_LABELS = """\
label: {0[label]}
n: {0[n]}
precision: {0[precision]:.3f}
recall: {0[recall]:.3f}
F1: {0[f1]:.3f}
95 % interval: {0[f1_interval]:.3f}
"""
WORD_SCORES = {
    "accuracy": "word accuracy",
    "macro_f1": "macro-F1 of words",
    "entity_f1": "entity F1",
    "exact_match": "exact match",
    "overlap_f1": "overlap F1",
}


def print_word_scores(scores: Mapping[str, Any]) -> None:
    """A row for each score of `WordScores.as_json` with its interval, then one for each label."""
    rows = []
    for key, name in WORD_SCORES.items():
        interval = scores.get("interval" if key == "accuracy" else f"{key}_interval")
        if scores.get(key) is not None:
            rows.append({"name": name, "value": scores[key], "interval": interval})
    kind = "exact match of none" if "exact_match" in scores else "accuracy of most frequent label"
    rows.append({"name": f"majority: {kind}", "value": scores["majority"], "interval": None})
    for found in scores.get("baselines", {}).values():
        name = "each word's most frequent tag: accuracy"
        rows.append({"name": name, "value": found["accuracy"], "interval": found["interval"]})
    n_words = f", {scores['n_words']:,} words" if "n_words" in scores else ""
    print_rows(INTERVALS, rows, title=f"{scores['task']}: {scores['n_texts']:,} texts{n_words}")
    if scores.get("labels"):
        print_rows(WORD_LABELS, scores["labels"])


TRANSLATION_SCORES = """\
score: {0[name]}
value: {0[value]:.1f}
95 % interval: {0[interval]:.1f}
texts: {0[n]}
"""


def print_translation_scores(scores: Mapping[str, Any]) -> None:
    """BLEU and chrF, of `TranslationScores.as_json`."""
    names = {"bleu": "BLEU", "chrf": "chrF"}
    rows = [{"name": name, "n": scores["n"], **scores[key]} for key, name in names.items()]
    print_rows(TRANSLATION_SCORES, rows, title="Test texts")
