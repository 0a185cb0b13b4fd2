"""Early exits: texts, teaching, thresholds that keep a promise, a table before the first layer."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import expit
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression
from tiny_models import SENTIMENT, model_of

from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.core.progress import ignore_progress
from litotes.core.values import Example, Task
from litotes.data.sources import load
from litotes.encoder import pretrained
from litotes.encoder.tokenizer import Pieces
from litotes.model.checkpoint import save_model
from litotes.model.folder import open_model, read_trained_texts, text_hash, write_trained_texts
from litotes.model.heads import ExitHeads
from litotes.prediction.predictor import Predictor
from litotes.pruning.choice import PruneSettings
from litotes.pruning.cost import flops
from litotes.pruning.exit_teaching import Lessons, fit_sureness, read_lessons, teach, teach_table
from litotes.pruning.exits import (
    ExitSettings,
    ExitsResult,
    ExitTexts,
    Rehearsal,
    _divide,
    add_exits,
    candidate_cuts,
    choose_cut,
    choose_texts,
    n_needed,
    operations_ratio,
    share_interval,
)
from litotes.pruning.plan import plan_pruning

MILD = ExitSettings(differ=0.05, confidence=0.5, n_rounds=1)
WORDS = ("great", "bad", "tea", "love", "hate", "queue", "not", "is", "it", "the", "a")


def write_texts(file: Path, n: int, *, first: int = 0) -> None:
    """Different texts, a quarter of them to test on, those of the train split first."""
    rows = ["text,mood,split"]
    for number in range(first, first + n):
        drawn = np.random.default_rng(number).choice(WORDS, size=2 + number % 9)
        split = "test" if number % 4 == 0 else "train"
        rows.append(f"{' '.join(drawn)} {number},{SENTIMENT.labels[number % 2]},{split}")
    file.write_text("\n".join(rows) + "\n")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("exits")


@pytest.fixture(scope="module")
def source(place: Path) -> str:
    write_texts(place / "texts.csv", 120)
    return f"table:{place / 'texts.csv'}?label.sentiment=mood&split=split"


@pytest.fixture(scope="module")
def folder(tiny_folder: Path, source: str, place: Path) -> Path:
    """A random model that says it was trained on the first 20 texts."""
    write_trained_texts(place / "whole", load(source).where(split="train").examples[:20])
    save_model(model_of(pretrained.load(str(tiny_folder))), place / "whole", card="# Mine\n")
    return place / "whole"


@pytest.fixture(scope="module")
def result(folder: Path, source: str, place: Path) -> ExitsResult:
    """The model with exits is in the folder `early`."""
    return add_exits(folder, source, place / "early", settings=MILD)


def test_exits_are_added_saved_and_answer(result: ExitsResult, source: str, place: Path) -> None:
    out = place / "early"
    assert [row.layer for row in result.rows] == [1, 2]
    assert sum(row.share for row in result.rows) == pytest.approx(1)
    assert result.rows[0].share > 0
    assert result.n == 30
    assert 0 <= result.interval[0] <= result.differ <= result.interval[1] <= 1
    assert min(result.flops_ratio, result.speed_ratio, result.worst_ratio) > 0
    content = json.loads((out / "exits.json").read_text())
    assert content["exits"] == json.loads((out / "litotes.json").read_text())["exits"]
    card = (out / "README.md").read_text()
    assert card.startswith("# Mine")
    assert "at most 5 %" in card
    # what was measured is what the saved model does
    measured = load(source).where(split="test")
    answers = Predictor.load(out, runtime="torch").predict([one.text for one in measured])
    share = np.mean([one.answered_at_layer == 1 for one in answers])
    assert share == pytest.approx(result.rows[0].share, abs=0.05)


@pytest.mark.usefixtures("result")
def test_nothing_is_chosen_by_what_is_measured(folder: Path, source: str, place: Path) -> None:
    known, before = read_trained_texts(place / "early"), read_trained_texts(folder)
    assert known is not None
    assert before is not None
    assert before < known
    for example in load(source):
        assert (text_hash(example) in known) == (example.split == "train")


def test_texts_it_was_trained_on_only_teach(folder: Path, source: str) -> None:
    texts = choose_texts(open_model(folder), source, [], n_tested=5, seed=0)
    trained = read_trained_texts(folder)
    assert trained is not None
    parts = (texts.taught, texts.fitted, texts.tested, texts.measured)
    hashes = [{text_hash(example) for example in part} for part in parts]
    assert trained <= hashes[0]
    assert not any(trained & others for others in hashes[1:])
    assert sum(map(len, hashes)) == len(set.union(*hashes)) == 120


def test_too_few_texts_are_refused_and_more_help(folder: Path, source: str, tmp_path: Path) -> None:
    strict = ExitSettings(differ=0.02, confidence=0.9, n_rounds=1)
    with pytest.raises(UserError, match=r"has 100 texts .* needed .* --unlabelled FILE"):
        add_exits(folder, source, tmp_path / "early", settings=strict)
    write_texts(tmp_path / "more.csv", 300, first=1000)
    texts = choose_texts(
        open_model(folder), source, [str(tmp_path / "more.csv")], n_tested=114, seed=0
    )
    assert len(texts.tested) >= 114
    assert len(texts.measured) == 30


def test_a_test_split_that_is_needed_is_named(folder: Path, source: str) -> None:
    texts = choose_texts(open_model(folder), source, [], n_tested=36, seed=0)
    assert any("do not score the model on it" in note for note in texts.notes)
    assert len(texts.measured) == 25


def test_what_cannot_be_promised_is_refused(
    folder: Path, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("litotes.pruning.exits.choose_cut", lambda *_, **__: None)
    with pytest.raises(UserError, match="No threshold keeps the promise: of 35 texts tested"):
        add_exits(folder, source, tmp_path / "early", settings=MILD)
    assert not (tmp_path / "early").exists()


@pytest.mark.usefixtures("result")
def test_a_number_and_a_second_time_are_refused(
    tiny: pretrained.Pretrained, folder: Path, source: str, place: Path, tmp_path: Path
) -> None:
    save_model(model_of(tiny, Task("warmth", ())), tmp_path / "number", card="")
    with pytest.raises(UserError, match="warmth with a number"):
        add_exits(tmp_path / "number", source, tmp_path / "early")
    early = place / "early"
    with pytest.raises(UserError, match="has exits already"):
        add_exits(early, source, tmp_path / "again")
    with pytest.raises(UserError, match=r"has exits\. Prune the model it was made from"):
        plan_pruning(early, source, tmp_path / "pruned", settings=PruneSettings())
    with pytest.raises(UserError, match="already holds a model"):
        add_exits(folder, source, early)
    with pytest.raises(UserError, match="from 0, which is a table before the first, to 1"):
        add_exits(folder, source, tmp_path / "early", settings=ExitSettings(layers=(2,)))


def test_exits_learn_what_the_last_layer_says(tiny: pretrained.Pretrained) -> None:
    """Of a model whose answer lies open after the first layer, an exit learns it all."""
    torch.manual_seed(0)
    vectors, direction = torch.randn(400, 16), torch.randn(16, 2)
    lessons = Lessons({1: vectors}, {"sentiment": vectors @ direction * 2})
    heads = ExitHeads(8, {"sentiment": 2}, (1,))
    teach(heads, lessons, lessons, {"sentiment": 2.0}, watch=ignore_progress)
    said = heads.outputs(1)["sentiment"](vectors)
    found, wanted = ((own / 2).softmax(1) for own in (said, lessons.logits["sentiment"]))
    assert (found - wanted).abs().max() < 0.05


def test_lessons_come_in_the_order_of_the_texts(tiny: pretrained.Pretrained) -> None:
    model = model_of(tiny)
    texts = ["a great tea and it is not bad", "bad", "the queue is great", "love"]
    pieces = model.tokenizer.encode(texts)
    together = read_lessons(model, pieces, (1,), what="", watch=ignore_progress)
    for place, text in enumerate(pieces):
        alone = read_lessons(model, [text], (1,), what="", watch=ignore_progress)
        for own, one in ((together.vectors[1], alone.vectors[1]),):
            torch.testing.assert_close(own[place], one[0])
        torch.testing.assert_close(
            together.logits["sentiment"][place], alone.logits["sentiment"][0]
        )


def test_operations_are_those_of_the_layers_that_ran(result: ExitsResult) -> None:
    encoder, lengths = result.model.classifier.encoder, [5, 9, 12]
    layers = [one.total for one in flops(encoder, lengths).layers]
    exits = 3 * 4 * encoder.spec.width * 2
    for at, spent in ((1, layers[0]), (2, sum(layers))):
        found = operations_ratio(result.model, lengths, np.array([at] * 3))
        assert found == pytest.approx(sum(layers) / (spent + exits))


def test_the_command(
    folder: Path, source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "early")
    asked = ["--model", str(folder), "--data", source, "--layers", "1", "--out", out, "--json"]
    assert main(["exits", *asked, "--max-disagreement", "5", "--confidence", "0.5"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["differ"] == pytest.approx(0.05)
    assert main(["predict", "the tea is bad", "--model", out, "--format", "jsonl"]) == 0
    assert json.loads(capsys.readouterr().out)["answered_at_layer"] in (1, 2)


def lessons_of(n: int, n_pieces: int, seed: int) -> tuple[Lessons, np.ndarray]:
    """Texts whose answer is a sum over their pieces; the weights of these."""
    weights = np.random.default_rng(0).normal(size=(n_pieces, 2)) * 2
    drawn = np.random.default_rng(seed)
    texts, logits = [], []
    for _ in range(n):
        ids = drawn.integers(0, n_pieces, drawn.integers(1, 12)).tolist()
        texts.append(Pieces(ids, [0] * len(ids), False))
        logits.append(weights[ids].sum(0) / len(ids) ** 0.5)
    said = torch.tensor(np.array(logits), dtype=torch.float32)
    return Lessons({}, {"mood": said}, texts), weights


def test_a_table_learns_a_model_that_is_one() -> None:
    (taught, _), (other, _) = (lessons_of(n, 12, seed) for n, seed in ((600, 1), (100, 2)))
    table = teach_table(taught, other, {"mood": 1.5}, n_pieces=12, watch=ignore_progress)
    said, wanted = table.logits(other.texts)["mood"], other.logits["mood"].numpy()
    found, expected = (own[:, 1] - own[:, 0] for own in (said, wanted))
    assert np.corrcoef(found, expected)[0, 1] > 0.995
    assert ((found > 0) == (expected > 0)).mean() > 0.97
    assert np.abs(found - expected).mean() < 0.15 * np.abs(expected).mean()


def test_texts_that_leave_before_the_first_layer(
    tiny_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_texts(tmp_path / "texts.csv", 160)
    model = model_of(pretrained.load(str(tiny_folder)))
    save_model(model, tmp_path / "whole", card="# Mine\n")
    source = f"table:{tmp_path / 'texts.csv'}?label.sentiment=mood&split=split"
    asked = ["--model", str(tmp_path / "whole"), "--data", source, "--piece-table"]
    mild = ["--max-disagreement", "20", "--confidence", "0.5", "--layers", "1"]
    assert main(["exits", *asked, *mild, "--out", str(tmp_path / "early"), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [row["layer"] for row in content["rows"]] == [0, 1, 2]
    assert content["exits"]["layers"] == [0, 1]
    assert content["rows"][0]["share"] > 0
    card = (tmp_path / "early" / "README.md").read_text()
    assert "Layer 0 is a table" in card
    assert "On a GPU every text that the table leaves goes to the end." in card
    answers = Predictor.load(tmp_path / "early").predict(["bad queue", "the great tea is not bad"])
    assert all(one.answered_at_layer in (0, 1, 2) for one in answers)
    alone = ["--max-disagreement", "30", "--confidence", "0.5", "--layers", "0"]
    assert main(["exits", *asked[:-1], *alone, "--out", str(tmp_path / "table")]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows if row and row[0].isdigit()] == ["0", "2"]
    early = Predictor.load(tmp_path / "early", runtime="torch").runtimes[0].model()
    encoder, lengths = early.classifier.encoder, [5, 9]
    whole = flops(encoder, lengths).total
    # the table adds two numbers for each piece; no layer is computed
    found = operations_ratio(early, lengths, np.array([0, 0]))
    assert found == pytest.approx(whole / (2 * sum(lengths)))


ALLOWED, CONFIDENCE = 0.05, 0.9
N_TEXTS, N_TRIALS = 400, 200


def world(generator: np.random.Generator, n: int) -> Rehearsal:
    """Two exits that are less often right than they say: only a test of the threshold helps."""
    log_odds = generator.normal(1.5, 2.0, size=(2, n))
    agrees = generator.random((2, n)) < expit(0.6 * log_odds)
    return Rehearsal(log_odds, agrees)


CUTS = candidate_cuts(world(np.random.default_rng(1), 2000).log_odds)[::8]
MANY = world(np.random.default_rng(2), 50_000)
RISKS = {cut: float(MANY.differs(cut).mean()) for cut in CUTS}
"""Nearly the truth: of very many texts."""


@cache
def chosen_risks(allowed: float, confidence: float) -> np.ndarray:
    """The true share of texts that differ, for thresholds chosen from different texts."""
    risks = []
    for seed in range(N_TRIALS):
        tested = world(np.random.default_rng(100 + seed), N_TEXTS)
        cut = choose_cut(tested, CUTS, allowed=allowed, confidence=confidence)
        risks.append(0.0 if cut is None else RISKS[cut])
    return np.array(risks)


def test_the_promise_is_kept_as_often_as_stated() -> None:
    broken = int((chosen_risks(ALLOWED, CONFIDENCE) > ALLOWED).sum())
    # more would come by chance once in ten thousand times
    assert broken <= binom.ppf(0.9999, N_TRIALS, 1 - CONFIDENCE)


def test_the_promise_is_not_kept_by_promising_too_little() -> None:
    """With half the confidence it is broken more often than one in ten, and thresholds let as many
    texts differ as they may, roughly.
    """
    risks = chosen_risks(ALLOWED, 0.5)
    assert (risks > ALLOWED).mean() > 1 - CONFIDENCE
    assert 0.6 * ALLOWED < np.median(chosen_risks(ALLOWED, CONFIDENCE)) < ALLOWED


def test_testing_ends_at_the_first_failure() -> None:
    """A milder threshold that looks good by chance is not reached behind one that failed."""
    log_odds = np.concatenate([np.full(100, 3.0), np.full(100, 2.0), np.full(1000, 1.0)])[None]
    agrees = np.ones(1200, dtype=bool)
    agrees[100:200] = False
    rehearsal = Rehearsal(log_odds, agrees[None])
    options = {"allowed": 0.09, "confidence": 0.5}
    assert choose_cut(rehearsal, [3.0], **options) == 3.0
    assert choose_cut(rehearsal, [1.0], **options) == 1.0
    assert choose_cut(rehearsal, [3.0, 2.0, 1.0], **(options | {"allowed": 0.05})) == 3.0
    assert choose_cut(rehearsal, [2.0, 3.0], **(options | {"allowed": 0.05})) is None


@pytest.mark.parametrize(("allowed", "confidence"), [(0.01, 0.95), (0.1, 0.9), (0.02, 0.5)])
def test_the_fewest_texts_for_a_promise(allowed: float, confidence: float) -> None:
    n = n_needed(allowed=allowed, confidence=confidence)
    for size, is_enough in ((n, True), (n - 1, False)):
        faultless = Rehearsal(np.zeros((1, size)), np.ones((1, size), dtype=bool))
        cut = choose_cut(faultless, [0.0], allowed=allowed, confidence=confidence)
        assert (cut is not None) == is_enough


def test_a_text_leaves_by_the_first_exit_that_is_sure() -> None:
    log_odds = np.array([[2.0, 0.0, 0.0, 2.0], [2.0, 2.0, 0.0, 0.0]])
    agrees = np.array([[True, False, False, False], [False, False, False, True]])
    rehearsal = Rehearsal(log_odds, agrees)
    assert rehearsal.places(1.0).tolist() == [0, 1, 2, 0]
    assert rehearsal.differs(1.0).tolist() == [False, True, False, True]


def test_sureness_equals_a_logistic_regression() -> None:
    generator = np.random.default_rng(0)
    margins = generator.exponential(2.0, 20_000)
    agrees = generator.random(20_000) < expit(-0.5 + 1.2 * margins)
    found = fit_sureness(margins, agrees)
    expected = LogisticRegression(C=np.inf).fit(margins[:, None], agrees)
    assert found.offset == pytest.approx(expected.intercept_[0], abs=0.02)
    assert found.slope == pytest.approx(expected.coef_[0, 0], abs=0.02)


@pytest.mark.parametrize("n", [1, 30])
def test_texts_that_all_agree_make_no_exit_certain(n: int) -> None:
    found = fit_sureness(np.linspace(1, 2, n), np.ones(n, dtype=bool))
    assert expit(found.log_odds(np.array([2.0])))[0] == pytest.approx((n + 1) / (n + 2), abs=1e-3)


def test_a_margin_that_misleads_is_not_used() -> None:
    margins = np.linspace(0, 4, 400)
    found = fit_sureness(margins, margins < 2)
    assert found.slope == 0
    assert expit(found.offset) == pytest.approx(0.5, abs=0.02)


def test_intervals_are_those_of_clopper_and_pearson() -> None:
    low, high = share_interval(4, 100)
    assert binom.sf(3, 100, low) == pytest.approx(0.025)
    assert binom.cdf(4, 100, high) == pytest.approx(0.025)
    assert share_interval(0, 10)[0] == 0
    assert share_interval(10, 10)[1] == 1


def parts_of(found: ExitTexts) -> list[tuple[Example, ...]]:
    return [found.taught, found.fitted, found.tested, found.measured]


@pytest.mark.parametrize("n_a_group", [1, 4])
def test_no_group_is_in_two_parts(n_a_group: int) -> None:
    """Or an exit is tested on sentences of a review whose others have taught it."""
    examples = [Example(f"t{n}", {}, group=f"g{n // n_a_group}") for n in range(200)]
    random.Random(0).shuffle(examples)
    found = _divide({"old": [], "new": examples, "test": []}, [], "made", 20)
    groups = [{example.group for example in part} for part in parts_of(found)]
    assert sum(map(len, groups)) == len(set().union(*groups)) == 200 / n_a_group
    for part, n in zip(parts_of(found), (45, 30, 75, 50), strict=True):
        assert len(part) == pytest.approx(n, abs=0 if n_a_group == 1 else 6)
