"""faithfulness: which explanation deserves belief."""

from __future__ import annotations

from litotes.core.html import row, table
from litotes.explanation.analyses.faithfulness.measure import Mean, MethodScore, Ranking
from litotes.explanation.analyses.section import Section
from litotes.explanation.attribution import CONTROL

SCORES = ("comprehensiveness", "sufficiency_loss", "lead", "over_random", "behind_best")


def write_section(result: Ranking) -> Section:
    return Section(
        title="Which explanation deserves belief",
        asked=(
            (
                "An explanation marks some words as important. Is it right about the model? That"
                " can be tried: take the marked words away, and if the model needed them, its"
                " answer falters; keep nothing but the marked words, and if they were enough, the"
                " answer holds. Words marked by chance are the yardstick. A method that does no"
                " better has explained nothing."
            ),
            (
                "In a formula: comprehensiveness is the mean fall of the answer’s probability over"
                " growing shares of the most important words taken away; sufficiency loss is the"
                " mean fall with only those words kept. The first should be high, the second low;"
                " the lead is the first less the second."
            ),
        ),
        paper="DeYoung et al. 2020, arXiv 1911.03429",
        caption=(
            "Above: mean probability of the answer; the band is its 95 % interval, drawn for the"
            " first of the ranking and for random words. Below: the lead of every method, and how"
            " far it is ahead of random words on the same texts."
        ),
        shows=(
            f"Curves of the answer’s probability for {len(result.methods)} methods as words leave"
            " or stay, and the methods’ scores with their intervals."
        ),
        believed=(
            (
                f"Measured on {result.n_texts:,} of {result.n_seen:,} texts with words, for the"
                f" task {result.task}. Intervals are by bootstrap over texts; differences are taken"
                " text by text."
            ),
            (
                "A text without some of its words is unlike the texts a model has learned from, and"
                " an answer may falter at the strangeness alone. Random words suffer that too,"
                " which is why they are the yardstick."
            ),
            (
                "The first of several methods is partly first by chance: see how far the others are"
                " behind."
            ),
        ),
        tables=table(
            ["method", *(name.replace("_", " ") for name in SCORES)],
            (_row(one) for one in result.methods),
            caption="Scores in probability of the answer, with 95 % intervals",
        ),
        first=result.findings()[:1],
    )


def _row(one: MethodScore) -> str:
    scores = [_format_mean(getattr(one, name)) for name in SCORES]
    is_unsure = one.method != CONTROL and not one.over_random.is_above_0
    return row([one.method], scores, unsure=is_unsure)


def _format_mean(mean: Mean) -> str:
    if mean.low is None or mean.high is None:
        return f"{mean.value:.3f}"
    return f"{mean.value:.3f} ({mean.low:.3f} to {mean.high:.3f})"
