"""The contract of every pruning with every weighting: order kept, [CLS] stays, nothing comes back,
removal equals masking.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import tiny_exports
import torch
from masked_walk import masked_walk
from tiny_exports import KINDS, SPEC

from litotes.core.errors import UserError
from litotes.core.registry import options_of
from litotes.encoder.attention import PRUNINGS, WEIGHTINGS
from litotes.encoder.attention.pruning import Plan
from litotes.encoder.encoder import Encoder
from litotes.encoder.layout import Batch
from litotes.encoder.operations import FUSED, TORCH, Rows
from litotes.encoder.packing import pack
from litotes.encoder.tokenizer import Pieces
from litotes.encoder.walk import LayerTrace, TextAttention, second_half

SHARES = [0.9, 0.7, 0.5, 0.3]
DENSE: dict[str, dict[str, Any]] = {
    "none": {},
    "cascade": {"schedule": [1.0] * 4},
    "learned": {"shares": [1.0] * 4},
}
SETTINGS: dict[str, dict[str, Any]] = {
    "none": {},
    "authors": {"pruning": "cascade"},
    "shares": {"pruning": "cascade", "pruning_options": {"schedule": SHARES}},
    "value": {"pruning": "cascade", "pruning_options": {"schedule": SHARES, "importance": "value"}},
    "few": {
        "pruning": "cascade",
        "pruning_options": {"schedule": "geometric", "final": 0.05, "final_heads": 0.3},
    },
    "learned": {"pruning": "learned", "pruning_options": {"restore": False}},
    "scorer": {
        "pruning": "learned",
        "pruning_options": {"shares": SHARES, "importance": "scorer", "restore": False},
    },
    "explore": {"pruning": "learned", "pruning_options": {"explore": 1.0, "restore": False}},
    "linear": {
        "pruning": "cascade",
        "pruning_options": {"schedule": "linear", "final": 0.25, "final_heads": 0.5},
    },
}
# A new entry of the table is tested before its author names options worth a test of their own.
for new in PRUNINGS.keys() - DENSE.keys():
    restores = "restore" in options_of(PRUNINGS[new])
    SETTINGS[new] = {"pruning": new, "pruning_options": {"restore": False} if restores else {}}
LENGTHS = (1, 2, 9, 40, 17, 3)


def encoder_of(seed: int = 0, **choices: Any) -> Encoder:
    """Exact, for weights that tell attention heads apart blow rounding up."""
    plain = {"n_layers": 4, "n_segments": 0, "dropout": 0.0, "attention_dropout": 0.0}
    return tiny_exports.encoder_of(seed, **plain | choices).double().eval()


def batch_of(lengths: tuple[int, ...] = LENGTHS, seed: int = 0) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    texts = [torch.randint(0, 60, (length,), generator=generator).tolist() for length in lengths]
    return pack([Pieces(text, [0] * len(text), False) for text in texts])


@pytest.fixture(params=sorted(SETTINGS))
def setting(request: pytest.FixtureRequest) -> dict[str, Any]:
    return SETTINGS[request.param]


@pytest.fixture(params=sorted(WEIGHTINGS))
def weighting(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def assert_removal_is_masking(encoder: Encoder, batch: Batch) -> None:
    """Of each text by itself: its answer cannot depend on its batch mates either. So the padded
    rows of an accelerator remove the same pieces, too.
    """
    with pytest.MonkeyPatch.context() as patch:
        for _ in range(2):
            torch.manual_seed(7)
            encoding = encoder(batch)
            torch.manual_seed(7)
            expected = masked_walk(encoder, batch)
            assert encoding.layout.lengths == tuple(len(text.hidden) for text in expected)
            assert encoding.origin.tolist() == [place for one in expected for place in one.origin]
            torch.testing.assert_close(
                encoding.hidden, torch.cat([text.hidden for text in expected]), atol=5e-5, rtol=0
            )
            patch.setattr(Rows, "of", classmethod(lambda cls, layout: cls(layout, apart=False)))


def test_every_pruning_is_tested() -> None:
    assert {setting.get("pruning", "none") for setting in SETTINGS.values()} == set(PRUNINGS)
    assert set(DENSE) <= set(PRUNINGS)


@pytest.mark.parametrize("name", SETTINGS)
def test_removal_equals_masking(name: str) -> None:
    assert_removal_is_masking(encoder_of(**SETTINGS[name]), batch_of())


@pytest.mark.slow
def test_removal_equals_masking_with_every_weighting(
    setting: dict[str, Any], weighting: str
) -> None:
    encoder = encoder_of(weighting=weighting, **setting)
    assert_removal_is_masking(encoder, batch_of())
    assert_removal_is_masking(encoder.train(), batch_of())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_removal_equals_masking_at_all_lengths(seed: int) -> None:
    lengths = torch.randint(1, 513, (5,), generator=torch.Generator().manual_seed(seed)).tolist()
    options = {"schedule": SHARES, "final_heads": 0.5}
    encoder = encoder_of(seed, pruning="cascade", pruning_options=options)
    assert_removal_is_masking(encoder, batch_of((*lengths, 1, 512), seed))


@pytest.mark.parametrize(
    "family",
    [
        KINDS["mpnet"] | {"n_relative_buckets": 8},
        KINDS["albert"] | {"n_layer_groups": 2},
        KINDS["deberta-v2"]
        | {"n_distance_buckets": 8, "farthest": 40, "shares_projections": False},
        KINDS["modernbert"],
        KINDS["modernbert"] | {"weighting": "entmax"},
        KINDS["modernbert"] | {"weighting": "top_k"},
    ],
    ids=lambda choices: f"{choices['family']} {choices.get('weighting', '')}",
)
@pytest.mark.parametrize("name", ["shares", "few", "value"])
def test_removal_equals_masking_in_other_families(family: dict[str, Any], name: str) -> None:
    """A bias by distance must go by where pieces stood, not by where they have moved up to."""
    encoder = encoder_of(**family, **SETTINGS[name])
    if encoder.relative_bias is not None:
        torch.nn.init.normal_(encoder.relative_bias.by_bucket.weight, std=2.0)
    assert_removal_is_masking(encoder, batch_of())


def test_order_is_kept_the_first_piece_stays_and_nothing_comes_back(
    setting: dict[str, Any],
) -> None:
    encoder, batch = encoder_of(**setting), batch_of()
    plan = encoder.pruning.plan()
    before = [set(range(n)) for n in LENGTHS]
    for stop in range(1, 5):
        encoding = encoder.walk(encoder.embeddings(batch), batch.layout, stop=stop)
        now = [origin.tolist() for origin in encoding.origin.split(encoding.layout.lengths)]
        assert all(text[0] == 0 and text == sorted(set(text)) for text in now)
        assert all(set(text) <= earlier for text, earlier in zip(now, before, strict=True))
        assert [len(text) for text in now] == plan.counts(stop - 1, LENGTHS)
        before = [set(text) for text in now]


@pytest.mark.parametrize("pruning", sorted(PRUNINGS))
@pytest.mark.parametrize("more", [{}, {"restore": True}, {"fuse": True}])
def test_keeping_all_is_dense(
    pruning: str, more: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    takes_more = more.keys() <= options_of(PRUNINGS[pruning]).keys()
    options = DENSE.get(pruning, {}) | (more if takes_more else {})
    encoder = encoder_of(pruning=pruning, pruning_options=options)
    if pruning not in DENSE:  # whatever its options are called: its plan keeps all
        monkeypatch.setattr(encoder.pruning, "plan", lambda: Plan((1.0,) * 4, (1.0,) * 4))
    kept = encoder(batch_of())
    dense = encoder_of()(batch_of())
    assert kept.layout.lengths == dense.layout.lengths
    torch.testing.assert_close(kept.hidden, dense.hidden, atol=1e-6, rtol=0)


def test_first_piece_alone_equals_the_first_of_all(weighting: str) -> None:
    """The last layer's shortcut for heads that read [CLS] only; what leaves there would not have
    been read.
    """
    options = {"schedule": [0.9, 0.7, 0.5, 0.5], "final_heads": 0.6}
    encoder = encoder_of(weighting=weighting, pruning="cascade", pruning_options=options)
    whole, firsts = encoder(batch_of()), encoder(batch_of(), firsts_only=True)
    torch.testing.assert_close(firsts.hidden, whole.hidden[whole.layout.starts], atol=1e-5, rtol=0)
    assert firsts.origin.tolist() == [0] * len(LENGTHS)


def test_restored_pieces_keep_the_state_they_left_in() -> None:
    options = {"schedule": SHARES}
    plain, restoring = (
        encoder_of(pruning="cascade", pruning_options=options | more)
        for more in ({}, {"restore": True})
    )
    batch = batch_of()
    kept, restored = plain(batch), restoring(batch)
    assert restored.layout.lengths == LENGTHS
    starts = batch.layout.starts[kept.layout.texts]
    torch.testing.assert_close(restored.hidden[starts + kept.origin], kept.hidden)
    layers = [plain.embeddings(batch)]
    states, last = layers[0].clone(), {}
    for stop in range(1, 5):  # the last layer a piece was whole in
        walked = plain.walk(layers[0], batch.layout, stop=stop)
        places = (batch.layout.starts[walked.layout.texts] + walked.origin).tolist()
        last |= dict(zip(places, walked.hidden, strict=True))
    for place, hidden in last.items():
        states[place] = hidden
    torch.testing.assert_close(restored.hidden, states, atol=1e-6, rtol=0)


def test_fusing_is_a_mean_by_importance() -> None:
    """It stands last. After one layer in which pieces leave, it is the layer's second half applied
    to the weighted means.
    """
    options = {"schedule": SHARES, "fuse": True}
    fused = encoder_of(pruning="cascade", pruning_options=options)(batch_of())
    for length, origin in zip(LENGTHS, fused.origin.split(fused.layout.lengths), strict=True):
        n_kept = max(1, int(0.3 * length))
        assert len(origin) == n_kept + (n_kept < length)
        assert (origin[-1] == FUSED) == (n_kept < length)
        assert (origin[:n_kept].diff() > 0).all()
    options["schedule"] = [0.5, 0.5, 0.5, 0.5]
    encoder, batch = encoder_of(pruning="cascade", pruning_options=options), batch_of((8,))
    encoding = encoder.walk(encoder.embeddings(batch), batch.layout, stop=1)
    dense, block = encoder.embeddings(batch), encoder.blocks[0]
    traces: list[LayerTrace] = []
    encoder(batch, observer=traces.append)
    mixed, importance = traces[0].attention.mixed, traces[0].attention.received.sum(-1)
    gone = [place for place in range(8) if place not in encoding.origin.tolist()]
    share = (importance[gone] / importance[gone].sum())[:, None]
    means = [(rows[gone] * share).sum(0, keepdim=True) for rows in (dense, mixed)]
    expected = second_half(TORCH, block, *means)
    torch.testing.assert_close(encoding.hidden[-1:], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "more", [{}, {"restore": True}, {"fuse": True}, {"restore": True, "fuse": True}]
)
def test_every_weight_gets_a_gradient(more: dict[str, bool], weighting: str) -> None:
    encoder = encoder_of(
        weighting=weighting, pruning="cascade", pruning_options={"schedule": SHARES, **more}
    ).train()
    encoder(batch_of()).hidden.pow(2).sum().backward()
    without = [name for name, parameter in encoder.named_parameters() if parameter.grad is None]
    assert not without


def test_importance_is_what_the_paper_says() -> None:
    """Σ over attention heads, queries and layers of the weights; heads by the magnitude of their
    output.
    """
    options = {"schedule": [1.0, 1.0, 0.5, 0.5]}
    encoder, batch = encoder_of(pruning="cascade", pruning_options=options), batch_of((12,))
    hidden, total = encoder.embeddings(batch), torch.zeros(12)
    for block in encoder.blocks[:3]:
        query, key, value = block.attention.qkv(hidden).view(12, 3, 4, 8).permute(1, 2, 0, 3)
        weights = (query @ key.transpose(-1, -2) / 8**0.5).softmax(-1)
        total += weights.sum((0, 1))
        hidden = second_half(TORCH, block, hidden, (weights @ value).transpose(0, 1).flatten(1))
    total[0] = torch.inf
    expected = sorted(total.argsort(descending=True)[:6].tolist())
    assert encoder.walk(encoder.embeddings(batch), batch.layout, stop=3).origin.tolist() == expected


def test_the_authors_schedule() -> None:
    encoder = Encoder(replace(SPEC, n_layers=12, pruning="cascade"))
    plan = encoder.pruning.plan()
    assert plan.pieces[0] == plan.heads[0] == 1.0
    assert plan.pieces[1] == plan.pieces[2] == 0.9
    assert plan.pieces[-1] == pytest.approx(0.53, abs=0.005)
    assert plan.heads[-1] == pytest.approx(0.83, abs=0.005)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"schedule": "square"}, "authors, linear, geometric"),
        ({"schedule": [0.5, 0.5]}, "2 shares for 4 layers"),
        ({"schedule": [0.5, 0.6, 0.5, 0.5]}, "never rise"),
        ({"schedule": [0.5, 0.5, 0.5, 0.0]}, "above 0"),
        ({"final": 0.0}, "final = 0"),
        ({"final": 0.3}, "goes with the schedules linear and geometric"),
        ({"final_heads": 0.3}, "authors"),
        ({"schedule": 0.5}, "schedule"),
        ({"restore": "no"}, "restore"),
        ({"importance": "norm"}, "importance"),
        ({"finale": 0.5}, "Did you mean 'final'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        encoder_of(pruning="cascade", pruning_options=options)


def test_only_what_matters_later_is_looked_at() -> None:
    """The authors' schedule on twelve heads: one leaves after layer 1; those that would leave after
    the last layer do not matter.
    """
    sizes = {"n_layers": 6, "n_attention_heads": 12, "width": 48}
    plan = Encoder(replace(SPEC, **sizes, pruning="cascade")).pruning.plan()
    firsts, layers = plan.for_firsts_only(), range(6)
    assert [plan.needs_head_importance(n, 12) for n in layers] == [True] * 2 + [False] * 4
    assert [plan.needs_importance(n, 12) for n in layers] == [True] * 6
    assert [firsts.needs_importance(n, 12) for n in layers] == [True] * 4 + [False] * 2


def test_a_single_layer_can_be_pruned() -> None:
    encoder = encoder_of(
        n_layers=1, pruning="cascade", pruning_options={"schedule": [0.5], "final_heads": 0.5}
    )
    whole, firsts = encoder(batch_of()), encoder(batch_of(), firsts_only=True)
    assert whole.layout.lengths == (1, 1, 4, 20, 8, 1)
    torch.testing.assert_close(firsts.hidden, whole.hidden[whole.layout.starts])


# Observing changes nothing, and the traces show what was computed


def traces_of(**choices: Any) -> list[list[TextAttention]]:
    """What is seen of each text in each layer; the walk gives what an unobserved walk gives."""
    encoder, batch = encoder_of(**choices), batch_of()
    for firsts_only in (True, False):
        traces: list[LayerTrace] = []
        with torch.no_grad():
            watched = encoder(batch, firsts_only=firsts_only, observer=traces.append)
            alone = encoder(batch, firsts_only=firsts_only)
        torch.testing.assert_close(watched.hidden, alone.hidden, rtol=0, atol=1e-9)
    return [list(trace.by_text()) for trace in traces]


@pytest.mark.parametrize("weighting", sorted(WEIGHTINGS))
@pytest.mark.parametrize("setting", ["none", "few", "shares", "scorer"])
def test_traces_show_live_pieces_alone(
    setting: str, weighting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = traces_of(weighting=weighting, **SETTINGS[setting])
    assert len(traces) == 4
    n_gone = 0
    for views in zip(*traces, strict=True):  # of one text
        gone: set[int] = set()
        for view in views:
            n_heads, n = len(view.heads), len(view.origin)
            assert view.weights.shape == (n_heads, n, n)
            torch.testing.assert_close(view.weights.sum(-1), torch.ones(n_heads, n).double())
            torch.testing.assert_close(view.weights @ view.value, view.mixed)
            origin, stayed = set(view.origin.tolist()), set(view.stayed.tolist())
            assert stayed <= origin
            assert not origin & gone
            gone |= origin - stayed
        n_gone += len(gone)
    assert n_gone == 0 if setting == "none" else n_gone > len(LENGTHS)
    last = traces[-1][3]  # attention heads that left are not shown
    assert len(last.heads) == (1 if setting == "few" else 4)
    assert last.mixed.abs().sum(dim=(1, 2)).min() > 0
    monkeypatch.setattr(Rows, "of", classmethod(lambda cls, layout: cls(layout, apart=False)))
    for layer, padded in zip(
        traces, traces_of(weighting=weighting, **SETTINGS[setting]), strict=True
    ):
        for one, other in zip(layer, padded, strict=True):
            assert one.heads == other.heads
            torch.testing.assert_close(one.weights, other.weights)


def test_heads_keep_their_first_numbers() -> None:
    kept = [[0, 2], [1], [0, 1, 2, 3], [3]]
    shown = [[list(view.heads) for view in views] for views in traces_of(heads_kept=kept)]
    assert shown == [[heads] * len(LENGTHS) for heads in kept]
