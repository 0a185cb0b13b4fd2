"""The contract of every weighting: a new entry of the table is tested before its author writes a
test.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # asked for before Triton is imported

from made_weightings import SETTINGS, make_weighting, name_of
from tiny_exports import encoder_of, model_of, session_of, text_of

from litotes.core.errors import UserError
from litotes.core.registry import build, options_of
from litotes.encoder.attention import WEIGHTINGS, Weighting
from litotes.encoder.attention.top_k import BlockTopK, SelectiveSoftmax, TopK
from litotes.encoder.layout import Layout
from litotes.encoder.operations import TORCH, Rows
from litotes.encoder.packing import pack
from litotes.kernels import encode as encoding_by
from litotes.kernels.encode import uses_kernels

HEADS = 3


@pytest.fixture(params=SETTINGS, ids=name_of)
def weighting(request: pytest.FixtureRequest) -> Weighting:
    return make_weighting(request.param, HEADS)


@pytest.fixture(params=[True, False], ids=["training", "evaluation"])
def mode(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def affinity_of(
    *shape: int, dtype: torch.dtype = torch.float32, scale: float = 3.0
) -> torch.Tensor:
    return (
        torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(
            dtype
        )
        * scale
    )


def live_keys(lengths: list[int], n_keys: int) -> torch.Tensor:
    return (torch.arange(n_keys) < torch.tensor(lengths)[:, None])[:, None, None, :]


def test_weights_are_a_distribution_over_live_keys(weighting: Weighting, mode: bool) -> None:
    """Dead keys change nothing; in local layers live ones differ from query to query."""
    weighting.train(mode)
    apart = (torch.arange(16)[:, None] - torch.arange(16)).abs()
    near = (apart <= torch.arange(16)[:, None] % 3)[None, None]  # here and there only itself
    for live in (live_keys([1, 4, 16], 16), near):
        weights = weighting(affinity_of(3, HEADS, 16, 16), live)
        assert (weights >= 0).all()
        torch.testing.assert_close(weights.sum(-1), torch.ones(3, HEADS, 16))
        assert (weights[~live.expand_as(weights)] == 0).all()
    affinity = affinity_of(1, HEADS, 4, 9)
    masked = weighting(affinity, live_keys([6], 9))
    torch.testing.assert_close(masked[..., :6], weighting(affinity[..., :6]))
    assert (weighting(affinity, live_keys([0], 9)) == 0).all()


def test_gradients(weighting: Weighting) -> None:
    weighting.double()
    affinity = affinity_of(2, HEADS, 2, 5, dtype=torch.float64, scale=1.0)
    live = live_keys([4, 5], 5)
    inputs = (affinity.clone().requires_grad_(),)
    assert torch.autograd.gradcheck(lambda x: weighting(x, live), inputs)
    for name, parameter in weighting.named_parameters():

        def weights(values: torch.Tensor, name: str = name) -> torch.Tensor:
            return torch.func.functional_call(weighting, {name: values}, (affinity, live))

        assert torch.autograd.gradcheck(weights, (parameter.detach().clone().requires_grad_(),))


def test_some_attention_heads_are_weighted_as_among_all(weighting: Weighting, mode: bool) -> None:
    """Each text may have kept other heads."""
    weighting.train(mode)
    affinity, live = affinity_of(2, HEADS, 4, 6), live_keys([6, 5], 6)
    heads = torch.tensor([[0, 2], [1, 2]])
    texts = torch.arange(2)[:, None]
    torch.testing.assert_close(
        weighting(affinity[texts, heads], live, heads), weighting(affinity, live)[texts, heads]
    )


def test_rows_alone_are_what_they_are_among_all(weighting: Weighting, mode: bool) -> None:
    """The encoder computes only the first in its last layer where a head reads nothing else. A
    decoder computes them one by one: none may depend on those after it, or it says so.
    """
    weighting.train(mode)
    affinity = affinity_of(3, HEADS, 9, 9)
    before = torch.ones(9, 9, dtype=torch.bool).tril()[None, None]
    for live in (live_keys([9, 4, 1], 9).expand(-1, -1, 9, -1), before):
        weights = weighting(affinity, live)
        for row in range(9 if weighting.rows_alone else live is not before):
            only = slice(row, row + 1)
            torch.testing.assert_close(
                weighting(affinity[:, :, only], live[:, :, only]), weights[:, :, only]
            )


@pytest.mark.parametrize(("name", "options"), SETTINGS)
def test_attention_heads_come_first_in_its_parameters(name: str, options: dict[str, Any]) -> None:
    """Where heads are removed for good, their part of a parameter is found by this axis."""
    few, many = (build(WEIGHTINGS, name, "weighting", n, options=options) for n in (3, 4))
    for of_few, of_many in zip(few.parameters(), many.parameters(), strict=True):
        if of_few.shape != of_many.shape:
            assert of_few.shape[0] == 3
            assert of_many.shape == (4, *of_few.shape[1:])


def test_kernels_are_told_by_the_class_that_defines_it(weighting: Weighting) -> None:
    """A subclass with a `forward` of its own would inherit a rule that computes another weighting,
    and only a GPU would show it.
    """
    defined_by = {}
    for name in ("forward", "row_rule"):
        defined_by[name] = next(kind for kind in type(weighting).__mro__ if name in vars(kind))
    assert defined_by["row_rule"] in (defined_by["forward"], Weighting)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_finite_in_half_precision(weighting: Weighting, dtype: torch.dtype) -> None:
    weights = weighting(affinity_of(2, HEADS, 4, 6, dtype=dtype, scale=100.0), live_keys([2, 6], 6))
    assert weights.isfinite().all()
    torch.testing.assert_close(weights.float().sum(-1), torch.ones(2, HEADS, 4), atol=2e-2, rtol=0)


def test_attend_equals_its_definition(weighting: Weighting, mode: bool) -> None:
    """A fused `attend` must be what `forward` says, with and without bias and dead keys."""
    weighting.train(mode)
    query, key, value = (affinity_of(2, HEADS, 6, 8, scale=s) for s in (1.0, 1.3, 0.7))
    live, bias = live_keys([3, 6], 6), affinity_of(1, HEADS, 6, 6)
    for case in ({}, {"live": live}, {"bias": bias}, {"live": live, "bias": bias}):
        expected = Weighting.attend(weighting, query, key, value, **case)
        torch.testing.assert_close(
            weighting.attend(query, key, value, **case), expected, atol=1e-5, rtol=1e-5
        )


def test_the_weighting_seen_by_a_text_does_not_depend_on_its_batch_mates(
    weighting: Weighting, mode: bool
) -> None:
    weighting.train(mode)
    lengths = (5, 1, 3, 14)
    packed = affinity_of(sum(lengths), HEADS, 8)
    alone = Rows(Layout.of(lengths), apart=True)
    together = Rows(Layout.of(lengths), apart=False)
    mixed = []
    for rows in (alone, together):
        blocks = zip(rows.split(packed), rows.live, strict=True)
        mixed.append(
            rows.join([weighting.attend(block, block, block, live=live) for block, live in blocks])
        )
    torch.testing.assert_close(mixed[0], mixed[1], atol=1e-5, rtol=1e-5)


class Sharper(Weighting):
    """A newcomer's own, with operations alone and no rule for the kernels."""

    def forward(self, affinity, live=None, heads=None, *, ops=TORCH):
        return ops.softmax(ops.where(affinity > 0.0, affinity * 2.0, affinity * 0.5), live)


@torch.no_grad()
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:Conversion of an array")
@pytest.mark.parametrize("elsewhere", ["triton", "onnx"])
@pytest.mark.parametrize("setting", [*SETTINGS, ("newcomer", {})], ids=name_of)
def test_it_weighs_the_same_everywhere(
    setting: tuple[str, dict[str, Any]],
    elsewhere: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By torch, by the kernels and in an ONNX file, from a text of one piece on; what has no kernel
    is torch's.
    """
    encoder = encoder_of(pruning="cascade")
    for block in encoder.blocks:
        is_new = setting[0] == "newcomer"
        block.attention.weighting = Sharper(4) if is_new else make_weighting(setting, 4)
    model = model_of(encoder, head="mean")
    texts = [text_of(length) for length in (1, 5, 18)]
    wanted = model.classifier(pack(texts))
    if elsewhere == "onnx":
        session = session_of(model, tmp_path)
        rows = [session.logits([text]) for text in texts]
        found = {task: np.concatenate([row[task] for row in rows]) for task in wanted}
    else:
        pytest.importorskip("triton", reason="Triton is not installed: pip install -e .[kernels]")
        monkeypatch.setattr(encoding_by, "kernels_wanted", lambda device: True)
        has_rule = encoder.block(0).attention.weighting.row_rule(encoder.device) is not None
        assert uses_kernels(encoder) == has_rule
        found = model.classifier(pack(texts))
    for task, values in wanted.items():
        torch.testing.assert_close(torch.as_tensor(found[task]), values, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("name", WEIGHTINGS)
def test_its_page_names_it_and_its_options(name: str) -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "weightings.md"
    rows = [line for line in page.read_text("utf-8").splitlines() if line.startswith(f"| `{name}`")]
    assert len(rows) == 1
    _, _, _, options, _ = rows[0].split("|")
    for option in options_of(WEIGHTINGS[name]):
        assert f"`{option}`" in options


# Which keys are kept, how many, and when


def n_kept(weights: torch.Tensor) -> set[int]:
    return set((weights > 0).sum(-1).flatten().tolist())


@pytest.mark.parametrize(
    ("sparsity", "kept"), [(0.0, 20), (0.5, 10), (0.79, 5), (0.8, 4), (0.95, 1)]
)
def test_each_query_keeps_its_share_of_the_keys(sparsity: float, kept: int) -> None:
    assert n_kept(TopK(HEADS, sparsity=sparsity)(affinity_of(3, HEADS, 5, 20))) == {kept}


def test_the_best_of_the_live_keys_are_kept_and_share_as_in_softmax() -> None:
    weights = TopK(1, sparsity=0.5)(torch.tensor([[[[1.0, 4.0, 2.0, 3.0]]]]))
    more, less = torch.tensor([4.0, 3.0]).softmax(0).tolist()
    assert weights.flatten().tolist() == pytest.approx([0.0, more, 0.0, less])
    alike = TopK(1, sparsity=0.5)(torch.ones(1, 1, 1, 40))  # of equals the earlier ones
    assert (alike > 0).flatten().tolist() == [True] * 20 + [False] * 20
    weights = TopK(HEADS, sparsity=0.5)(affinity_of(3, HEADS, 4, 10), live_keys([10, 5, 1], 10))
    assert [n_kept(text) for text in weights] == [{5}, {3}, {1}]


@pytest.mark.parametrize("kind", [TopK, BlockTopK])
def test_the_sparsity_rises_over_the_ramp_in_training_alone(kind: type[SelectiveSoftmax]) -> None:
    weighting = kind(HEADS, sparsity=0.8, ramp=0.5).train()
    risen = []
    for weighting.progress in (0.0, 0.25, 0.5, 1.0):
        risen.append(weighting.sparsity_now)
    assert risen == pytest.approx([0.0, 0.4, 0.8, 0.8])
    weighting.progress = 0.0
    assert n_kept(weighting(affinity_of(1, HEADS, 4, 20))) == {20}
    weighting.eval()
    assert weighting.sparsity_now == 0.8
    assert n_kept(weighting(affinity_of(1, HEADS, 4, 20))) == {4}


def test_blocks_are_kept_or_left_whole() -> None:
    weights = BlockTopK(HEADS, sparsity=0.5, block=4)(affinity_of(2, HEADS, 13, 16))
    kept = weights > 0
    assert n_kept(weights) == {8}
    by_block = kept.unflatten(-1, (4, 4))  # (text, attention_head, query, key_block, key)
    assert (by_block.all(-1) == by_block.any(-1)).all()
    for first in (1, 5, 9):  # the first query is a block of its own
        assert (kept[:, :, first : first + 4] == kept[:, :, first : first + 1]).all()


def test_a_block_is_judged_by_the_weight_of_all_its_queries() -> None:
    affinity = torch.zeros(1, 1, 3, 4)
    affinity[..., 1, 0] = 3.0  # one query is keen on the first two keys
    affinity[..., 1:, 2] = 2.5  # both are fairly keen on the last two
    kept = BlockTopK(1, sparsity=0.5, block=2)(affinity) > 0
    assert kept[0, 0, 1:].tolist() == [[False, False, True, True]] * 2
    affinity = torch.tensor([[[[0.0, 0.0, 0.0, 0.0, 5.0]]]])  # a last block may be short
    weights = BlockTopK(1, sparsity=0.6, block=4)(affinity)
    assert weights.flatten().tolist() == [0.0, 0.0, 0.0, 0.0, 1.0]


def test_padding_has_no_say_in_the_choice() -> None:
    """Rows past a text's end fall into the last block of its queries."""
    weighting = BlockTopK(HEADS, sparsity=0.5, block=4)
    affinity = affinity_of(1, HEADS, 8, 8)
    live = (torch.arange(8) < 6)[None, None, None, :]
    loud = affinity.clone()
    loud[:, :, 6:, :2] += 50
    alone = weighting(affinity[:, :, :6, :6])
    for padded in (affinity, loud):
        torch.testing.assert_close(weighting(padded, live)[:, :, :6, :6], alone)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"sparsity": 0.96}, "0.95"),
        ({"sparsity": -0.1}, "0.95"),
        ({"ramp": 2}, "ramp"),
        ({"block": 0}, "block"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(UserError, match=named):
        BlockTopK(HEADS, **options)
