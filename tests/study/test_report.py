"""What a study reports: every sentence, table and page is checked against systems whose scores are
known, without training.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html import escape, unescape
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from made_study import LABELS, PUBLISHED, answers, results_of, score_table, square, study_of

from litotes.core.errors import UserError
from litotes.core.figures import render_figure, stacked_figure
from litotes.core.progress import ignore_progress
from litotes.data.coverage import Coverage
from litotes.evaluation import gaps, significance
from litotes.evaluation.significance import Difference, Estimate
from litotes.model.calibration import Calibration
from litotes.study import confidence
from litotes.study.confidence import check_confidence, uncalibrate
from litotes.study.figures import bands_of, draw_bands
from litotes.study.plan import CoverageSettings, read_study
from litotes.study.report import (
    Report,
    corpora_of,
    draw_pictures,
    make_report,
    report_html,
    setup_sentences,
    shareable,
    time_steps,
)
from litotes.study.runs import CellAnswers
from litotes.study.tables import (
    Comparison,
    ScoreTable,
    home_less_elsewhere,
    less_published,
    mean_of,
    weighted_sum,
)
from litotes.study.vocabulary import Vocabulary, count_vocabularies
from litotes.training.recipe import Recipe

MADE = '[[experiment]]\nname = "Made"\ngrid = { "data.where.variety" = ["en-AU", "en-UK"] }\n'
HEADS = """
[[experiment]]
name = "Heads"
grid = { "model.head" = ["linear", "mean"], "data.where.variety" = ["en-AU", "en-UK"] }
compare = "model.head"
"""
PAPER = {("en-AU", "en-AU"): 0.9, ("en-AU", "en-UK"): 0.95, ("en-UK", "en-AU"): 0.6}


@pytest.fixture(autouse=True, scope="module")
def few_draws() -> Iterator[None]:
    """Drawing and dealing texts takes long, and is tested elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gaps, "_N_DEALS", 20)
        for module in (significance, confidence):
            patch.setattr(module, "N_RESAMPLES", 300)
        yield


def report_of(folder: Path, text: str, *tables: ScoreTable, **changes: object) -> Report:
    study = study_of(folder, text)
    name = study.experiments[0].settings.name
    (found,) = results_of(study, {name: list(tables)})
    return make_report(study, [replace(found, **changes)], (), n_runs=0, failures={})  # type: ignore[arg-type]


def words(folder: Path, what: str, *tables: ScoreTable, **changes: object) -> tuple[str, ...]:
    text = HEADS if what == "comparisons" else MADE
    return report_of(folder, text, *tables, **changes).sections[0].words[what]


def has(text: str | tuple[str, ...], *parts: str) -> None:
    """Holds every part."""
    whole = text if isinstance(text, str) else " ".join(text)
    assert [part for part in parts if part not in whole] == []


def heads(first: float, second: float, **options: object) -> list[ScoreTable]:
    return [
        square(home, 0.6, values={"model.head": head}, **options)
        for head, home in (("linear", first), ("mean", second))
    ]


# Sums over cells


def test_a_mean_over_cells_knows_more_than_a_cell() -> None:
    one = square(0.9, 0.6)
    low, high = mean_of(one).interval
    assert mean_of(one).value == pytest.approx(0.75)
    assert low < 0.75 < high
    assert high - low < min(cell.interval[1] - cell.interval[0] for cell in one.matrix.cells)
    gap = home_less_elsewhere(one)
    assert gap is not None
    assert gap.value == pytest.approx(0.3)
    assert gap.interval[0] > 0
    apart = less_published(square(0.9, 0.6, published=PAPER))
    assert apart is not None
    assert apart.value == pytest.approx((0.9 + 0.6 + 0.6 - 0.9 - 0.95 - 0.6) / 3)


def test_what_is_hard_for_both_cancels_and_seeds_that_differ_widen() -> None:
    better, worse = answers(0.8, "x"), answers(0.7, "x")
    together = weighted_sum([(1.0, better), (-1.0, worse)])
    apart = weighted_sum([(1.0, better), (-1.0, replace(worse, texts="y"))])
    assert [together.value, apart.value] == pytest.approx([0.1, 0.1])
    width, width_apart = (one.interval[1] - one.interval[0] for one in (together, apart))
    assert width < 0.75 * width_apart
    same = weighted_sum([(1.0, better), (-1.0, better)])
    assert (same.value, same.interval) == (0, (0, 0))
    assert together.is_clear
    seeds = answers(0.8, "x", by_seed=(-0.1, 0, 0.1))
    assert not weighted_sum([(1.0, seeds), (-1.0, worse)]).is_clear


def test_a_sign_is_said_where_it_is_known() -> None:
    for sign, word in ((-1, "lower"), (1, "higher")):
        known = Estimate(0.1 * sign, tuple(sorted((0.05 * sign, 0.2 * sign))))  # type: ignore[arg-type]
        assert known.beside("theirs") == f"0.100 {word} than theirs (0.050 to 0.200)"
    unknown = Estimate(0.1, (-0.05, 0.2)).beside("theirs")
    assert unknown == "not clearly higher or lower than theirs: +0.100 (−0.050 to +0.200)"


# In words


def test_words_about_tables_and_the_paper(tmp_path: Path) -> None:
    one = square(0.9, 0.6, published=PAPER)
    section = report_of(tmp_path, MADE, one).sections[0]
    (clear,), (paper,) = section.words["tables"], section.words["paper"]
    has(clear, mean_of(one).text(), "0.900 at home, 0.600 elsewhere, a gap of +0.3")
    assert "not significant" not in clear
    low, high = one.matrix.cells[1].interval
    theirs = f"en-AU → en-UK by +0.350 (paper 0.950, ours 0.600, {low:.3f} to {high:.3f})."
    has(paper, "inside our interval in 2 of 3 cells.", theirs, "0.117 lower than the paper's")
    has(words(tmp_path, "tables", square(0.7, 0.7)), "a gap of +0.000", "not significant")
    constant = answers(0.5, "x")
    constant = replace(constant, answers=np.ones_like(constant.answers))
    one_class = replace(answers(0.9, "y"), gold=np.zeros(200, dtype=np.int64))
    cells = {("a", "x"): constant, ("b", "x"): answers(0.8, "x"), ("b", "y"): one_class}
    useless = words(tmp_path, "tables", score_table(cells))
    has(useless, "Not clearly above the majority line: a on x.", "3 of 3 models give one")
    has(useless, "All sentiment texts of y carry the same label")
    missing = words(tmp_path, "tables", failed={"linear, en-AU": "There is no tea."})
    assert missing[1:] == ("linear, en-AU is missing: There is no tea.",)


def test_words_about_comparisons(tmp_path: Path) -> None:
    section = report_of(tmp_path, HEADS, *heads(0.6, 0.9)).sections[0]
    has(section.words["comparisons"], "2 of 4 differences between heads are significant")
    assert "holds 0" not in section.words["comparisons"][0]
    has(section.words["overall"], "is +0.150 (")
    section = report_of(tmp_path, HEADS, *heads(0.6, 0.6)).sections[0]
    has(section.words["comparisons"], "None of the 4 differences")
    has(section.words["overall"], "+0.000 (+0.000 to +0.000), not significant")
    found = Difference(0.2, (-0.1, 0.5), 0.001, 200, (3, 3))
    other = Comparison("mean", "Other", "sentiment", "", "a", "b", found, 0.01, "Other")
    found = Difference(-0.05, (-0.2, 0.1), 0.1, 200, (3, 3))
    own = Comparison("mean", "linear", "sentiment", "", "c", "b", found, 1.0)
    within, against = words(tmp_path, "comparisons", comparisons=(other, own))
    has(within, "The difference between heads is not", "over all 2 comparisons here")
    has(within, "c → b, sentiment: −0.050 (−0.200 to +0.100)")
    has(against, "1 of 1 difference from 'Other' is significant", "an interval that holds 0")


def test_the_abstract_counts(tmp_path: Path) -> None:
    study = study_of(tmp_path, HEADS)
    first, second = heads(0.6, 0.9)
    paper = {place: PAPER[place] for place in (("en-AU", "en-AU"), ("en-AU", "en-UK"))}
    results = results_of(study, {"Heads": [first, replace(second, published=paper)]})
    made = make_report(study, results, (), n_runs=12, failures={"one": "no tea"})
    runs, beside, travel, tests, *_ = made.abstract
    has(runs, "12 runs, of which 1 failed: 1 experiment, 3 seeds each")
    has(beside, "inside our 95 % interval in 1 of 2 cells; clearly apart from it", "Heads −0.175 (")
    has(travel, "sentiment 0.150 (")
    assert tests.endswith("2 of 4 between heads.")


def test_why_the_paper_may_differ(tmp_path: Path) -> None:
    single, crossed = (
        f'[[experiment]]\nname = "{name}"\nfigure = "{figure}"\ngrid = {{ {grid}'
        ' "data.where.variety" = ["en-AU", "en-UK"] }\n'
        for name, figure, grid in (
            ("Single", 3, ""),
            ("Crossed", 5, '"data.leaks" = ["drop", "keep"],'),
        )
    )
    study = study_of(tmp_path, single + crossed)
    note, _, everywhere, somewhere = setup_sentences(study.experiments[1], study)
    has(note, "Single runs")
    has(everywhere, "the encoder: minilm (the paper: bert-base-uncased)", "adamw (the paper: adam)")
    has(somewhere, "Only with leaks dropped: ", "dropped (the paper: kept)")
    assert not any("leak" in one for one in setup_sentences(study.experiments[0], study))
    plain = study_of(tmp_path, HEADS)
    assert setup_sentences(plain.experiments[0], plain) == ()


NAMES = [f"{place} sentiment" for place in ("en-AU Shop", "en-UK Shop", "en-AU Forum", "Twitter")]


def test_vocabularies_stand_beside_the_papers(tmp_path: Path) -> None:
    groups = ("Shop sentiment", "Shop sentiment", "Forum sentiment", "Twitter sentiment")
    matrix = ((1.0, 0.9, 0.5, 0.4), (0.9, 1.0, 0.7, 0.5), (0.5, 0.7, 1.0, 0.3), (0.4,) * 4)
    counted = Coverage("pieces", 1, tuple(NAMES), groups, (1,) * 4, (1,) * 4, matrix)
    paper = {(NAMES[0], NAMES[1]): 0.8, (NAMES[0], NAMES[2]): 0.51, (NAMES[1], NAMES[2]): 0.72}
    settings = CoverageSettings(name="Shared", data=[], figure="1")
    found = Vocabulary(settings, counted, paper)
    assert found.deviations() == pytest.approx({groups[:2]: 0.1, groups[1:3]: 0.02})
    assert found.extremes() == ((tuple(NAMES[:2]), 0.9), (tuple(NAMES[2:]), 0.3))
    has(found.words, "1 of 2 groups of shares agree to within 0.03", "Shop sentiment 0.100")
    beside = found.as_json()["beside"][0]
    assert beside == {"of": NAMES[0], "among": NAMES[1], "share": 0.9, "paper": 0.8}
    (tmp_path / "published.json").write_text(json.dumps(PUBLISHED))
    file = tmp_path / "coverage.toml"
    file.write_text(
        'name = "x"\npublished = "published.json"\n[sources]\nown = "sampler"\n'
        '[[coverage]]\nname = "Shared"\ndata = ["own"]\nfigure = "1"\n'
    )
    (found,) = count_vocabularies(read_study(file))
    assert found.coverage.names[0] == "en-AU forum sentiment"
    assert (found.published, len(found.words)) == ({}, 1)  # the paper knows no such parts


def test_published_rows_that_look_exchanged_are_called_so() -> None:
    """Both groups of a row fit ours better the other way round, in their worst share."""
    names = (*NAMES[:3], "en-UK Forum sentiment", NAMES[3])
    groups = (*["Shop sentiment"] * 2, *["Forum sentiment"] * 2, NAMES[3])
    matrix = (*[(1.0,) * 5] * 4, (0.4, 0.42, 0.6, 0.58, 1.0))
    counted = Coverage("pieces", 1, names, groups, (1,) * 5, (1,) * 5, matrix)

    def vocabulary(*printed: float) -> Vocabulary:
        paper = {(names[4], among): share for among, share in zip(names, printed, strict=False)}
        return Vocabulary(CoverageSettings(name="Shared", data=[], figure="1"), counted, paper)

    found = vocabulary(0.61, 0.58, 0.41, 0.42)
    (row,) = found.exchanges()
    assert (row.of, row.groups) == (names[4], ("Shop sentiment", "Forum sentiment"))
    assert (row.as_printed, row.exchanged) == (pytest.approx(0.21), pytest.approx(0.01))
    has(found.words, "look exchanged", "by up to 0.210", "by up to 0.010")
    for agreeing in ((0.41, 0.42, 0.61, 0.58), (0.9, 0.9, 0.9, 0.9), (0.61, 0.58, 0.41)):
        assert not list(vocabulary(*agreeing).exchanges())


# Confidence


def test_uncalibrated_answers_are_those_of_the_logits() -> None:
    generator = np.random.default_rng(0)
    logits, gold = generator.normal(size=(2, 50, 2)), generator.integers(0, 2, 50)
    calibrations = [Calibration(2.5, threshold=0.3), Calibration(0.4)]
    given = [calibration.apply(one) for calibration, one in zip(calibrations, logits, strict=True)]
    labels = np.stack([labels for labels, _ in given])
    probability = np.stack([shares[np.arange(50), own] for own, shares in given])
    made = CellAnswers(gold, labels, probability.round(6), np.array([2.5, 0.4]), LABELS, "x")
    before = [Calibration().apply(one) for one in logits]
    found_labels, found = uncalibrate(made)
    assert (found_labels == np.stack([labels for labels, _ in before])).all()
    assert found == pytest.approx(np.stack([shares.max(1) for _, shares in before]), abs=1e-3)


def test_confidence_is_pooled_by_task(tmp_path: Path) -> None:
    places = (("a", 0.7), ("b", 0.6))
    sure = score_table({(row, "x"): answers(one, "x", probability=0.9) for row, one in places})
    report = report_of(tmp_path, MADE, sure, square(0.7, 0.7, task="sarcasm"))
    sentiment, sarcasm = report.confidences
    assert (sentiment.task, sarcasm.task) == ("sentiment", "sarcasm")
    after = sentiment.after
    assert after.reliability.n == 2 * 3 * 200
    assert (after.reliability.ece, after.excess.value) == pytest.approx((0.25, 0.25))
    # by text both rows together exceed by −0.1, 0.4 or 0.9 on average
    spread = np.sqrt(0.6 * 0.35**2 + 0.1 * 0.15**2 + 0.3 * 0.65**2)
    low, high = after.excess.interval
    assert high - low == pytest.approx(2 * 1.96 * spread / np.sqrt(200), rel=0.1)
    said = report.as_json()["experiments"][0]["calibration"][0]["words"]
    has(tuple(said), "0.250 before calibration, 0.250 after", "No temperature was fitted.")
    has(report.abstract, "0.250 in sentiment")
    three = replace(answers(0.6, "x"), labels=("a", "b", "c"))
    (found,) = results_of(study_of(tmp_path, MADE), {"Made": [score_table({("a", "x"): three})]})
    assert check_confidence(found) == ()  # one of three says nothing about the others


@pytest.mark.parametrize(("after", "is_worse"), [(0.6, False), (0.99, True)])
def test_a_temperature_that_makes_it_worse_is_said(
    tmp_path: Path, after: float, is_worse: bool
) -> None:
    """Is right in 0.6 of the texts; said 0.52 before where it says 0.6 now."""
    cell = replace(answers(0.6, "x", probability=after), temperature=np.full(3, 0.2))
    (one,) = report_of(tmp_path, MADE, score_table({("a", "x"): cell})).confidences
    assert (one.before.reliability.ece < one.after.reliability.ece) == is_worse
    assert any("made it worse" in sentence for sentence in one.words) == is_worse
    if not is_worse:
        assert one.before.reliability.ece == pytest.approx(0.08, abs=0.001)


# Times, recipes, published numbers


def test_times_stand_beside_the_papers(tmp_path: Path) -> None:
    study = study_of(
        tmp_path,
        '[[experiment]]\nname = "Made"\nfigure = "3"\n'
        'set = { "data.tasks" = ["sentiment"], "data.where.source" = "Reddit" }\n'
        'grid = { "model.head" = ["linear", "mean"], "data.where.variety" = ["en-AU", "en-UK"] }\n',
    )
    first, second = time_steps(study, results_of(study, {"Made": []})).rows
    assert (first.seconds, first.fastest, first.slowest) == (pytest.approx(0.2), 0.1, 0.3)
    assert (first.ratio, second.ratio, first.n_runs) == (1.0, pytest.approx(2.0), 2)
    assert (first.paper_seconds, first.paper_ratio) == (0.2907, 1.0)
    assert second.paper_seconds is None  # the paper has no such head
    both = {"data__tasks": ["sentiment", "sarcasm"], "model__head": "crosstalk"}
    assert study.published is not None
    recipe = Recipe().changed(data__source="besstie:x", **both)
    assert study.published.seconds_for(recipe) == 0.3163


def test_a_recipe_is_told_without_paths(tmp_path: Path, tiny_folder: Path) -> None:
    mine = "besstie:/secret/place?x=1"
    study = study_of(tmp_path, f'[sources]\nmine = "{mine}"\n{MADE}')
    recipe = Recipe().changed(data__source=mine, model__encoder=str(tiny_folder))
    told = shareable(recipe, study)
    assert (told.data.source, told.model.encoder) == ("mine", tiny_folder.name)
    other = recipe.changed(data__source="table:/other/place.csv?label=x")
    assert shareable(other, study).data.source == "table:place.csv"
    assert set(corpora_of(study)) == {"sampler"}


TABLE = '"figure": "1", "task": "x", "rows": ["a"], "columns": ["b"]'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "numbers.json: not readable"),
        ("{", "numbers.json: not readable"),
        ('{"tabels": []}', "Did you mean 'tables'"),
        (f'{{"tables": [{{{TABLE}, "macro_f1": [[0.5, 0.6]]}}]}}', "a number for every cell"),
        ('{"seconds_per_batch": {"hardware": "T4", "rows": {"mean": [1]}}}', "1 times for 0"),
    ],
)
def test_mistakes_in_published_numbers_are_told(
    content: str | None, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "published.toml"
    file.write_text(f'name = "x"\npublished = "numbers.json"\n{MADE}')
    if content is not None:
        (tmp_path / "numbers.json").write_text(content)
    with pytest.raises(UserError, match=message):
        read_study(file)
    file.write_text(f'name = "x"\n{MADE}figure = "3"\n')
    with pytest.raises(UserError, match="figure 3"):
        read_study(file)


def test_a_single_row_is_compared_with_every_other(tmp_path: Path) -> None:
    text = """
[[experiment]]
name = "Dense"
grid = { "model.weighting" = [WEIGHTINGS] }
rows = "model.weighting"
[[experiment]]
name = "Sparse"
grid = { "model.head" = ["linear", "mean"] }
rows = "model.head"
compare = "model.head"
against = ["Dense"]
"""
    study = study_of(tmp_path, text.replace("WEIGHTINGS", '"softmax"'))
    dense = score_table({("softmax", "all"): answers(0.9, "all")})
    rows = {"linear": 0.8, "mean": 0.7}
    sparse = score_table({(row, "all"): answers(share, "all") for row, share in rows.items()})
    _, found = results_of(study, {"Dense": [dense], "Sparse": [sparse]})
    pairs = {(one.row, one.baseline): one.difference.difference for one in found.comparisons}
    expected = {("mean", "linear"): -0.1, ("linear", "Dense"): -0.1, ("mean", "Dense"): -0.2}
    assert pairs == pytest.approx(expected)
    with pytest.raises(UserError, match=r"'Sparse' is compared with 'Dense', but has no row of it"):
        study_of(tmp_path, text.replace("WEIGHTINGS", '"softmax", "entmax"'))


# The page and the figures

ODD = HEADS.replace('"Heads"', '"Heads & <tails>"\nfigure = "3"\nabout = "About <b>bold</b>."')


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    paper = {("en-AU", "en-AU"): 0.95, ("en-AU", "en-UK"): 0.6}
    scores = (("en-AU", 0.9), ("en-UK", 0.62))
    cells = {("en-AU", column): answers(score, f"{column} sentiment") for column, score in scores}
    why = {"en-UK": "There is <no> tea."}
    holed = score_table(cells, values={"model.head": "mean"}, published=paper, failed=why)
    tables = [square(0.6, 0.6, values={"model.head": "linear"}, published=paper), holed]
    study = study_of(tmp_path_factory.mktemp("study"), ODD)
    found = results_of(study, {"Heads & <tails>": tables}, failed={"mean, en-UK": why["en-UK"]})
    failures = {"mean, en-UK, seed 0": why["en-UK"]}
    return make_report(study, found, (), n_runs=12, failures=failures)


def test_json_has_everything_and_no_paths_or_times(report: Report) -> None:
    text = json.dumps(report.as_json())
    content = json.loads(text)
    (experiment,) = content["experiments"]
    first, second = experiment["tables"]
    assert first["cells"][0]["by_seed"] == pytest.approx([0.6] * 3)
    assert second["failed"] == {"en-UK": "There is <no> tea."}
    place = {"trained_on": "en-AU", "tested_on": "en-AU"}
    assert second["paper"][0] == {**place, "macro_f1": 0.95, "inside": False}
    assert {one["significant"] for one in experiment["comparisons"]} == {True, False}
    assert [one["n_cells"] for one in experiment["overall"]] == [2]
    assert len(experiment["recipes"]) == 4
    assert experiment["calibration"][0]["after"]["reliability"]["bins"]
    assert content["failures"] == {"mean, en-UK, seed 0": "There is <no> tea."}
    assert "/tmp" not in text
    assert "seconds" not in text.replace("checkpoint_seconds", "")


@pytest.mark.slow
def test_the_page_shows_everything_and_escapes_what_others_wrote(
    report: Report, tmp_path: Path
) -> None:
    pictures = draw_pictures(report, tmp_path, ignore_progress)
    results = [section.results for section in report.sections]
    page = report_html(report, time_steps(report.study, results), pictures)
    for outside in ("<script", "<link", "@import", 'src="http', "url(http", "javascript:"):
        assert outside not in page
    addresses = set(re.findall(r'(?:href|src)="([^"]*)"', page))
    assert all(address.startswith(("#", "data:image/png;base64,")) for address in addresses)
    for written in ("<tails>", "<b>bold", "<no>", "<note>", "Made <up>"):
        assert written not in page
        assert escape(written) in page
    has(page, "failed: There is &lt;no&gt; tea.", "1 of 12 runs have no result", '="outside"')
    grey = re.findall(r"<tr class=unsure>.*?</tr>", page, re.DOTALL)
    black = [row for row in re.findall(r"<tr>.*?</tr>", page, re.DOTALL) if "significant" in row]
    assert {"not significant" in row for row in grey} == {True}
    assert {"not significant" in row for row in black} == {False}
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids)) > 20
    targets = {*re.findall(r'href="#([^"]+)"', page), *re.findall(r"url\(#([^)]+)\)", page)}
    assert targets <= set(ids)
    names = {file.name for file in tmp_path.iterdir()}
    assert {f"heads-tails.{kind}" for kind in ("svg", "png", "json")} <= names
    notebook = report._repr_html_()
    for one in report.sections[0].results.tables:
        for cell in one.matrix.cells:
            low, high = cell.interval
            assert f"{cell.macro_f1:.3f}<small>{low:.3f} to {high:.3f}</small>" in page
            assert cell.text() in notebook
    assert all(sentence in unescape(page) for sentence in report.abstract)
    assert "<tails>" not in notebook


@pytest.mark.slow
@pytest.mark.parametrize(("n_panels", "n_columns"), [(1, 1), (2, 3), (4, 1), (6, 3)])
def test_nothing_overlaps_in_a_figure(n_panels: int, n_columns: int) -> None:
    columns = [f"en-{place}" for place in range(n_columns)]
    rows = ("a convolution of convolutions", "b")
    cells = {(row, column): answers(0.7, column) for row in rows for column in columns}
    made = []
    for number in range(n_panels):
        values = {"model.head": f"a rather long name of head {number}"}
        made.append(score_table(cells, values=values, published=dict.fromkeys(cells, number / 10)))
    picture = draw_bands(list(bands_of(made, row_label="head")))
    picture.draw_without_rendering()
    texts = [
        text
        for ax in picture.axes
        for text in (ax.title, *ax.get_yticklabels(), *ax.get_xticklabels(), *ax.texts)
        if text.get_text()
    ]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
    for (one, box), (other, other_box) in combinations(boxes, 2):
        assert not box.shrunk(0.98, 0.98).overlaps(other_box), f"{one!r} and {other!r}"


def test_a_figure_shows_both_sides_and_holes_and_is_the_same_twice(report: Report) -> None:
    bands = list(bands_of(report.sections[0].results.tables, row_label="trained on"))
    svg = render_figure(draw_bands(bands), "svg").decode()
    has(svg, "ours: linear", "0.600", "0.950", "not printed", "failed", "trained on")
    assert svg == render_figure(draw_bands(bands), "svg").decode()
    # the colour bar is the last
    *heatmaps, _ = stacked_figure([one for band in bands for one in band]).axes
    assert len(heatmaps) == 3  # ours, ours, the paper's
    assert len({round(ax.get_position().x0, 2) for ax in heatmaps}) == 1


@pytest.mark.parametrize(("n_ours", "n_papers"), [(1, 0), (2, 1), (3, 1), (2, 2), (4, 4), (3, 3)])
def test_published_tables_stand_once_below_or_beside_ours(n_ours: int, n_papers: int) -> None:
    papers = [{place: value / (1 + n) for place, value in PAPER.items()} for n in range(n_papers)]
    made = [
        square(
            0.6, 0.6, values={"model.head": head}, published=papers[n % n_papers] if papers else {}
        )
        for n, head in enumerate(("linear", "mean", "x", "y")[:n_ours])
    ]
    bands = list(bands_of(made, row_label=""))
    titles = [one.title.partition(":")[0] for band in bands for one in band]
    assert titles == ["ours"] * n_ours + ["the paper's"] * n_papers
    assert max(map(len, bands)) <= 3
    if n_papers > 1:
        above, below = bands[: len(bands) // 2], bands[len(bands) // 2 :]
        assert [len(band) for band in above] == [len(band) for band in below]
