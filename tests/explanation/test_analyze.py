"""A corpus in, results out, whatever the batches; memory does not grow with the texts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import SENTIMENT, model_of

from litotes.core.errors import UserError
from litotes.core.values import Example, Task
from litotes.data.corpus import Corpus
from litotes.encoder import pretrained
from litotes.encoder.encoder import Encoder
from litotes.explanation import observation as observing
from litotes.explanation.analyses import ANALYSES
from litotes.explanation.analyses.analyze import Subject, analyze, report_html
from litotes.explanation.analyses.token_types import TokenTypesAnalysis
from litotes.explanation.observation import in_batches
from litotes.model.checkpoint import Model

CHEAP = {name: ANALYSES[name] for name in ("effective", "diversity", "trace")}


def corpus_of(n: int, *, task: Task = SENTIMENT, pair: str | None = None) -> Corpus:
    words = ("great", "bad", "tea", "queue", "love", "the", "not")
    texts = [
        " ".join(words[(n * 7 + m * 3) % len(words)] for m in range(3 + n % 9)) + f" {n}"
        for n in range(n)
    ]
    label = 1.5 if task.is_regression else task.labels[0]
    return Corpus(
        "made",
        tuple(Example(text, {task.name: label}, pair=pair, split="test") for text in texts),
        {task.name: task},
    )


def test_batches_do_not_matter(dense: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = corpus_of(12)
    together = analyze(Subject("m", dense), corpus, CHEAP).as_json()
    monkeypatch.setattr(observing, "_MOST_SQUARES", 1)  # every text alone
    alone = analyze(Subject("m", dense), corpus, CHEAP).as_json()
    assert json.dumps(together)[:80] == json.dumps(alone)[:80]
    for name in CHEAP:
        assert together["results"][name].keys() == alone["results"][name].keys()
    assert together["results"]["diversity"]["divergence"] == pytest.approx(
        alone["results"]["diversity"]["divergence"], abs=1e-5
    )
    assert together["results"]["effective"]["mean_null_share"] == pytest.approx(
        alone["results"]["effective"]["mean_null_share"], abs=1e-5
    )


def test_texts_are_drawn_by_the_seed(dense: Model) -> None:
    shares = {
        seed: analyze(Subject("m", dense), corpus_of(40), CHEAP, n_texts=5, seed=seed).as_json()
        for seed in (0, 1)
    }
    again = analyze(Subject("m", dense), corpus_of(40), CHEAP, n_texts=5, seed=1).as_json()
    assert shares[1] == again
    assert shares[0]["results"] != shares[1]["results"]
    assert shares[0]["n_texts"] == 5


def test_what_needs_the_base_is_left_out_with_a_word(
    dense: Model, tiny: pretrained.Pretrained
) -> None:
    without = analyze(Subject("m", dense), corpus_of(9), {"change": ANALYSES["change"], **CHEAP})
    assert without.left_out == {"change": "needs --tuned-from"}
    with_base = analyze(
        Subject("m", dense, tiny.encoder), corpus_of(3), {"change": ANALYSES["change"]}
    )
    assert set(with_base.results) == {"change"}


def test_what_short_texts_cannot_say_is_left_out_with_a_word(dense: Model) -> None:
    texts = ("great tea", "bad tea", "a queue", "i love it", "not bad", "the tea")
    examples = tuple(Example(text, {}, split="test") for text in texts)
    found = analyze(
        Subject("m", dense),
        Corpus("short", examples, {}),
        {name: ANALYSES[name] for name in ("effective", "patterns", "diversity", "token_types")},
    )
    assert found.left_out["effective"].startswith("says nothing of texts so short: with at most 8")
    assert found.left_out["patterns"] == "says nothing of texts so short: a pattern needs 8 pieces"
    assert set(found.results) == {"diversity", "token_types"}
    said = " ".join(found.results["token_types"].findings())
    assert "effective" not in said  # both maps are one
    assert "most to [" not in said
    page = report_html(found, {})
    assert "effective was left out: it says nothing of texts so short" in page
    assert "0e+00" not in page


def test_a_page_of_nothing_says_why(dense: Model) -> None:
    examples = (Example("great tea", {}, split="test"),)
    corpus = Corpus("short", examples, {})
    found = analyze(Subject("m", dense), corpus, {"effective": ANALYSES["effective"]})
    page = report_html(found, {})
    abstract = page[page.index('id="found"') : page.index("</section>")]
    assert "effective was left out" in abstract
    assert "1 text of short" in page
    assert "1 texts" not in page


def test_a_base_of_another_size_is_refused(dense: Model) -> None:
    other = Encoder(replace(dense.classifier.encoder.spec, n_layers=3))
    with pytest.raises(UserError, match="n_layers = 3"):
        analyze(Subject("m", dense, other), corpus_of(3), CHEAP)


def test_pairs_and_numbers_are_looked_at_like_the_rest(tiny: pretrained.Pretrained) -> None:
    task = Task("similarity", ())
    model = model_of(tiny, task, head="linear")
    analysed = analyze(
        Subject("m", model, tiny.encoder), corpus_of(6, task=task, pair="the tea"), ANALYSES
    )
    assert set(analysed.results) == set(ANALYSES)
    json.dumps(analysed.as_json(), allow_nan=False)


def test_truncated_texts_are_counted(dense: Model) -> None:
    corpus = Corpus(
        "made",
        (Example("the " * 300, {"sentiment": "negative"}, split="test"),),
        {"sentiment": SENTIMENT},
    )
    assert analyze(Subject("m", dense), corpus, CHEAP).n_truncated == 1


def test_unreadable_texts_are_counted(dense: Model) -> None:
    examples = [
        Example(text, {"sentiment": "negative"}, split="test") for text in ("😀", "\u200b", "tea")
    ]
    corpus = Corpus("made", tuple(examples), {"sentiment": SENTIMENT})
    analysed = analyze(Subject("m", dense), corpus, CHEAP)
    assert (analysed.n_truncated, analysed.n_unreadable) == (0, 2)
    assert analysed.as_json()["n_unreadable"] == 2


def test_an_empty_corpus_is_told(dense: Model) -> None:
    with pytest.raises(UserError, match="nothing to analyse"):
        analyze(Subject("m", dense), Corpus("made", (), {"sentiment": SENTIMENT}), CHEAP)


def test_memory_does_not_grow_with_the_texts(dense: Model) -> None:
    """An analysis keeps sums, not maps."""

    def kept(n: int) -> int:
        analyses = [analysis(dense) for analysis in CHEAP.values()]
        for observation in observing.observe(
            dense, dense.tokenizer.read(["a great tea, not a bad queue"] * n)
        ):
            for analysis in analyses:
                analysis.add(observation)
        return sum(tensor.numel() for analysis in analyses for tensor in _tensors(vars(analysis)))

    assert 0 < kept(2) == kept(30)


def _tensors(thing: object) -> Iterator[torch.Tensor]:
    """RunTensors reachable from an analysis, its model aside."""
    if isinstance(thing, torch.Tensor | np.ndarray):
        yield torch.as_tensor(thing)
    elif isinstance(thing, dict):
        yield from (tensor for part in thing.values() for tensor in _tensors(part))
    elif isinstance(thing, list | tuple):
        yield from (tensor for part in thing for tensor in _tensors(part))
    elif not isinstance(thing, Model) and hasattr(thing, "__dict__"):
        yield from _tensors(vars(thing))


def test_a_package_that_is_not_there_costs_one_analysis(
    dense: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        TokenTypesAnalysis, "missing_package", classmethod(lambda cls: "needs a package")
    )
    chosen = {name: ANALYSES[name] for name in ("token_types", "trace")}
    assert analyze(Subject("m", dense), corpus_of(2), chosen).left_out == {
        "token_types": "needs a package"
    }
    with pytest.raises(UserError, match="token_types needs a package"):
        analyze(Subject("m", dense), corpus_of(2), {"token_types": ANALYSES["token_types"]})


def test_texts_are_observed_together_while_their_squares_fit() -> None:
    """Rows are as long as the longest: of n texts of at most k pieces n · k² are kept at a time."""
    lengths = [96, 96, 96, 96, 10, 192, 10, 500, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64]
    texts: Any = [SimpleNamespace(pieces=SimpleNamespace(ids=range(n))) for n in lengths]
    batches = [[len(text.pieces.ids) for text in batch] for batch in in_batches(texts)]
    assert batches == [[96] * 4, [10], [192], [10], [500], [64] * 9, [64]]
    assert not list(in_batches([]))
