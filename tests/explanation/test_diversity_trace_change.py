"""What the measures say of cases whose answer is known."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import t
from tiny_models import KINDS, SENTIMENT, model_of, observations_of

from litotes.encoder import pretrained
from litotes.encoder.reshaping import keep_heads
from litotes.explanation.analyses.analysis import RunningMean
from litotes.explanation.analyses.change import ChangeAnalysis, _shared_part
from litotes.explanation.analyses.diversity import DiversityAnalysis, _at_offset, divergence_between
from litotes.explanation.analyses.effective import EffectiveAnalysis
from litotes.explanation.analyses.patterns import segments_of
from litotes.explanation.analyses.trace import TraceAnalysis
from litotes.explanation.observation import Observation, observe, trace_of
from litotes.model.checkpoint import Model
from litotes.model.classifier import Classifier

LONG = ("it is not the great love of tea and it is not the hate of a queue, is it? i love it!",)


def with_weights(observation: Observation, weights: torch.Tensor) -> Observation:
    """The observation as if every layer had weighed so."""
    return replace(
        observation,
        layers=tuple(
            replace(view, weights=weights, mixed=weights @ view.value)
            for view in observation.layers
        ),
    )


def test_divergence_is_the_mean_distance_from_the_mean_head() -> None:
    same = torch.full((4, 3, 3), 1 / 3)
    assert float(divergence_between(same)) == pytest.approx(0, abs=1e-6)
    apart = torch.eye(4)[:, None, :].expand(4, 5, 4)  # every head looks at a piece of its own
    assert float(divergence_between(apart)) == pytest.approx(2.0)  # log₂ 4


def test_positional_heads_are_named(dense: Model) -> None:
    observation = observations_of(dense, LONG)[0]
    n = len(observation.read.written)
    previous = torch.roll(torch.eye(n), 1, dims=0)  # piece q looks at q − 1
    uniform = torch.full((n, n), 1 / n)
    analysis = DiversityAnalysis(dense)
    analysis.add(
        with_weights(observation, torch.stack([previous, previous.T, torch.eye(n), uniform]))
    )
    result = analysis.result()
    jobs = {(head.layer, head.attention_head): head.job for head in result.named}
    assert [jobs.get((0, head)) for head in range(4)] == [
        "previous piece",
        "next piece",
        "same piece",
        None,
    ]
    assert result.density[0][3] == 1.0
    assert result.entropy[0][3] == pytest.approx(math.log2(n))
    assert result.confidence[0][0] == 1.0


def test_heads_that_join_the_pieces_of_a_word_are_named(dense: Model) -> None:
    # letters: queue is known, s is not
    observation = observations_of(dense, ("queues greatly",))[0]
    words = observation.read.word_of()
    n = len(words)
    join = torch.zeros(n, n)
    for q in range(n):
        mates = [k for k in range(n) if k != q and words[k] is not None and words[k] == words[q]]
        join[q, mates or [q]] = 1 / max(len(mates), 1)
    assert any(len(word.pieces) > 1 for word in observation.read.words)
    analysis = DiversityAnalysis(dense)
    analysis.add(with_weights(observation, join.expand(4, n, n)))
    result = analysis.result()
    assert result.merging[0][0] == pytest.approx(1.0)
    assert "pieces of a word" in {head.job for head in result.named}


def test_alpha_is_told_by_layer_and_head(tiny: pretrained.Pretrained) -> None:
    model = model_of(tiny, **KINDS["sparse"], heads_kept=[[0, 2], [3]])
    with torch.no_grad():
        model.classifier.encoder.attentions[1].weighting.a.fill_(0.0)  # α = 1.5
    analysis = DiversityAnalysis(model)
    analysis.add(observations_of(model)[0])
    alpha = analysis.result().alpha
    assert alpha[0] == [pytest.approx(1.2), None, pytest.approx(1.2), None]
    assert alpha[1] == [None, None, None, 1.5]


def test_a_trace_names_the_layer_each_piece_left_after(tiny: pretrained.Pretrained) -> None:
    model = model_of(tiny, **KINDS["cascade"])
    trace = trace_of(observations_of(model, LONG)[0])
    n = len(trace.written)
    assert trace.left_after[0] is None
    assert trace.there(0) == trace.written
    assert len(trace.there(1)) == math.floor(0.6 * n)
    assert sum(left is None for left in trace.left_after) == math.floor(0.3 * n)
    # the second layer is the last: what leaves after it does not count
    assert [len(heads) for heads in trace.heads] == [4, 4]


def test_the_layer_that_changed_is_found(dense: Model, tiny: pretrained.Pretrained) -> None:
    before = model_of(tiny).classifier.encoder
    with torch.no_grad():
        dense.classifier.encoder.attentions[1].qkv.weight.add_(
            torch.randn(96, 32, generator=torch.Generator().manual_seed(3))
        )
    analysis = ChangeAnalysis(dense)
    for observation in observations_of(dense, base=before):
        analysis.add(observation)
    result = analysis.result()
    assert result.by_layer["standard"][0] == pytest.approx(1.0)
    assert result.by_layer["standard"][1] < 0.95
    assert "changed most in layer 2" in result.findings()[0]


def test_short_texts_hide_nothing_and_long_ones_do(dense: Model) -> None:
    head_width = dense.classifier.encoder.spec.head_width  # 8
    short, long = EffectiveAnalysis(dense), EffectiveAnalysis(dense)
    short.add(observations_of(dense, ("a bad tea",))[0])
    long.add(observations_of(dense, LONG)[0])
    assert short.result().same == 1.0
    assert f"at most {head_width} pieces" in short.result().findings()[0]
    result = long.result()
    n = len(observations_of(dense, LONG)[0].read.written)
    assert result.same == 0.0
    assert result.n_null[0][0] == n - head_width
    assert 0.01 < result.mean_null_share < 1
    assert result.error < 1e-4


def test_running_means_equal_those_over_all_values() -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(50, 2, 3, generator=generator, dtype=torch.float64) + 1e6
    values[torch.rand(50, 2, 3, generator=generator) < 0.3] = math.nan
    values[:, 1, 2] = math.nan
    running = RunningMean(2, 3)
    for value in values:
        running.add(value)
    np.testing.assert_allclose(running.mean, values.nanmean(0).numpy())
    column = values[:, 0, 0][~values[:, 0, 0].isnan()]
    assert float(running.half_width[0, 0]) == pytest.approx(
        t.ppf(0.975, len(column) - 1) * float(column.std()) / len(column) ** 0.5
    )
    assert running.n[1, 2] == 0


def test_the_traces_of_a_corpus_count_what_each_layer_sees(tiny: pretrained.Pretrained) -> None:
    model = model_of(tiny, **KINDS["cascade"])
    analysis = TraceAnalysis(model)
    observation = observations_of(model, ("tea tea tea tea tea tea tea queue, " * 2,))[0]
    analysis.add(observation)
    result, n = analysis.result(), len(observation.read.written)
    assert result.kept == [1.0, pytest.approx(math.floor(0.6 * n) / n)]
    stays = {word.word: word for word in result.first_to_leave}
    left = [
        trace_of(observation).left_after[word.pieces[0]]
        for word in observation.read.words
        if word.written == "tea"
    ]
    assert stays["tea"].n == len(left) == 14
    assert stays["tea"].share == pytest.approx(
        sum(0.5 if layer == 0 else 1.0 for layer in left) / 14
    )


def test_no_word_leaves_first_and_last_and_marks_are_no_words(tiny: pretrained.Pretrained) -> None:
    model = model_of(tiny, **KINDS["cascade"])
    analysis = TraceAnalysis(model)
    for observation in observations_of(model, ("tea, great. bad, queue. love it.",) * 5):
        analysis.add(observation)
    result = analysis.result()
    first = {word.word for word in result.first_to_leave}
    last = {word.word for word in result.last_to_leave}
    assert first | last == {"tea", "great", "bad", "queue", "love", "it"}
    assert not first & last
    assert result.ranks_words


def test_a_layer_of_two_pieces_gives_no_head_a_role(dense: Model) -> None:
    analysis = DiversityAnalysis(dense)
    for observation in observations_of(dense, LONG):
        two = tuple(
            replace(view, origin=view.origin[:2], weights=view.weights[:, :2, :2])
            for view in observation.layers[1:]
        )
        analysis.add(replace(observation, layers=(observation.layers[0], *two)))
    result = analysis.result()
    assert result.divergence[0] is not None
    assert result.divergence[1] is None
    assert {head.layer for head in result.named} <= {0}
    assert "layer 2" not in " ".join(result.findings())


def test_heads_taken_away_for_good_are_compared_by_their_numbers(dense: Model) -> None:
    whole = dense.classifier.encoder
    small = replace(
        dense,
        classifier=Classifier(
            keep_heads(whole, [[1, 3], [0]]), [SENTIMENT], head="mean", dropout=0.0
        ).eval(),
    )
    analysis = ChangeAnalysis(small)
    for observation in observations_of(small, base=whole):
        analysis.add(observation)
    first = analysis.result().similarity["standard"][0]
    assert [first[1], first[3]] == pytest.approx([1.0, 1.0])
    assert first[0] is None


def test_segments_follow_the_pieces_that_stay(dense: Model) -> None:
    (read,) = dense.tokenizer.read(["a tea"], ["bad queue"])
    (observation,) = observe(dense, [read])
    view = replace(observation.layers[0], origin=torch.tensor([0, 4, 5, -1]))
    assert segments_of(view, observation).tolist() == [0, 1, 1, 0]
    assert segments_of(observation.layers[0], observations_of(dense)[0]) is None


def test_a_fused_piece_is_nobodys_neighbour(tiny: pretrained.Pretrained) -> None:
    model = model_of(tiny, **KINDS["fused"])
    view = replace(
        observations_of(model)[2].layers[1],
        origin=torch.tensor([0, 5, -1]),
        heads=(0,),
        weights=torch.eye(3)[None],
    )
    assert _at_offset(view, -1).isnan().all()


def test_one_fused_for_one_gone_is_not_nothing_gone(dense: Model) -> None:
    """As many pieces as before, one of them another."""
    before = torch.rand(4, 6, 6)
    view = replace(observations_of(dense)[0].layers[0], origin=torch.tensor([0, 1, 2, 3, 5, -1]))
    after, past = _shared_part(view, torch.rand(4, 6, 6), before)
    assert after.shape == past.shape == (4, 5, 5)
    torch.testing.assert_close(past, before[:, [0, 1, 2, 3, 5]][:, :, [0, 1, 2, 3, 5]])


def test_heads_shown_fill_their_own_columns(dense: Model) -> None:
    seen = observations_of(dense)[0]
    pruned = replace(seen, layers=tuple(replace(view, heads=(1, 3)) for view in seen.layers))
    found = TraceAnalysis(dense).by_head(pruned, [{"x": torch.tensor([0.1, 0.3])}] * 2)
    row, _ = found["x"].tolist()
    assert [row[1], row[3]] == pytest.approx([0.1, 0.3])
    assert math.isnan(row[0])
    assert math.isnan(row[2])
