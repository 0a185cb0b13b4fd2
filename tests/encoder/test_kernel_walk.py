"""The walk by kernels against the encoder's own, in Triton's interpreter: in a bucket, batch by
batch with gradients, and with every head.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton", reason="Triton is not installed: pip install -e .[kernels]")

from tiny_exports import KINDS, PRUNED, encoder_of

from litotes.core.values import Task
from litotes.encoder.encoder import Encoder
from litotes.encoder.layout import Batch, Layout
from litotes.kernels import encode as encoding_by
from litotes.kernels import triton_operations
from litotes.kernels.encode import encode, encode_on_device
from litotes.kernels.route import RoutePlan, Sizes
from litotes.kernels.triton_operations import (
    TritonOperations,
    has_kernels,
    route_options,
    walk_route,
)
from litotes.model.classifier import Classifier
from litotes.model.heads import HEADS

# rows of nobody hold whatever was in memory
pytestmark = pytest.mark.filterwarnings(
    "ignore::RuntimeWarning", "ignore:Conversion of an array:DeprecationWarning"
)

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
LENGTHS = (2, 21, 40)


def make_encoder(**options: Any) -> Encoder:
    return encoder_of(**options).eval().to(DEVICE)


WALKED: dict[str, dict[str, Any]] = PRUNED | {
    "entmax": {"weighting": "entmax", **PRUNED["authors"]},
    "learned alpha": {"weighting": "entmax", "weighting_options": {"alpha": "learned"}},
    "top_k": {"weighting": "top_k"},
    "block_top_k": {"weighting": "block_top_k", **PRUNED["authors"]},
    "mpnet": KINDS["mpnet"] | PRUNED["restored"],
    "albert": KINDS["albert"],
}


def make_batch() -> Batch:
    draw = torch.Generator().manual_seed(1)
    n_pieces = sum(LENGTHS)
    pieces = torch.randint(0, 50, (n_pieces,), generator=draw)
    segments = torch.randint(0, 2, (n_pieces,), generator=draw)
    return Batch(pieces.to(DEVICE), segments.to(DEVICE), Layout.of(LENGTHS, DEVICE))


def walk_in_bucket(encoder: Encoder, batch: Batch) -> torch.Tensor:
    """Hidden states of the texts alone, by the kernels."""
    options = route_options(encoder, firsts_only=False, trains=False)
    plan = RoutePlan.for_bucket(options, Sizes(72, 4, 64))
    numbers = np.empty(plan.n_numbers, np.int32)
    as_numbers = [part.cpu().numpy().astype(np.int32) for part in (batch.pieces, batch.segments)]
    plan.write(*as_numbers, np.array(LENGTHS, np.int32), numbers)
    route = plan.read(torch.from_numpy(numbers).to(DEVICE))
    with torch.inference_mode():
        walked = walk_route(encoder, TritonOperations(route, fused=True))
    return walked.hidden[: int(walked.layout.bounds[len(LENGTHS)])]


@pytest.mark.parametrize("kind", WALKED)
def test_walks_as_the_encoder_does(kind: str) -> None:
    """In a bucket, and batch by batch for heads that read the first piece alone."""
    encoder, batch = make_encoder(**WALKED[kind]), make_batch()
    assert has_kernels(encoder)
    with torch.inference_mode():
        whole, expected = encoder(batch), encoder(batch, firsts_only=True)
    found = walk_in_bucket(encoder, batch)
    torch.testing.assert_close(found, whole.hidden, atol=1e-4, rtol=1e-4)
    with torch.no_grad():
        firsts = encode_on_device(encoder, batch, firsts_only=True)
    torch.testing.assert_close(firsts.hidden, expected.hidden, atol=1e-4, rtol=1e-4)
    assert firsts.layout.lengths == expected.layout.lengths
    assert torch.equal(firsts.origin, expected.origin)


@pytest.mark.parametrize(
    "limits",
    [
        {"FEWER_LEAVE": 10**9},
        {"FEWER_LEAVE": -1, "FEW_LEAVE": 10**9},
        {"FEWER_LEAVE": -1, "FEW_LEAVE": -1, "MOST_STAY": 0.0},
        {"FEWER_LEAVE": -1, "FEW_LEAVE": -1, "MOST_STAY": 2.0},
    ],
    ids=["after the layer", "after the product: few leave", "most stay", "before the product"],
)
def test_rows_are_gathered_early_or_late(
    limits: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, limit in limits.items():
        monkeypatch.setattr(triton_operations, name, limit)
    encoder, batch = make_encoder(**WALKED["value"]), make_batch()
    with torch.inference_mode():
        expected = encoder(batch).hidden
    hidden = walk_in_bucket(encoder, batch)
    torch.testing.assert_close(hidden, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", ["none", "scorer", "fused and restored", "learned alpha", "mpnet"])
def test_gradients_are_the_encoders(kind: str) -> None:
    """Without dropout, which each way draws for itself."""
    encoder, batch = make_encoder(**WALKED[kind], dropout=0.0, attention_dropout=0.0), make_batch()
    encoder.train()
    pull = torch.randn(sum(LENGTHS), 32, generator=torch.Generator().manual_seed(2)).to(DEVICE)
    gradients = []
    for hidden in (
        encoder(batch).hidden,
        encode_on_device(encoder, batch, firsts_only=False).hidden,
    ):
        encoder.zero_grad()
        (hidden * pull[: len(hidden)]).sum().backward()
        gradients.append({name: p.grad for name, p in encoder.named_parameters()})
    for name, expected in gradients[0].items():
        if expected is None:
            assert gradients[1][name] is None or not gradients[1][name].any()
            continue
        scale = expected.abs().max().clamp(min=1e-6)
        difference = (gradients[1][name] - expected).abs().max() / scale
        assert difference < 2e-4, (name, difference)


@pytest.mark.parametrize(
    "choice",
    [
        {"position_terms": ("c2p", "p2c"), "farthest": 64},
        {"has_positions": False},
        {"rotary_base": 100.0},
        {"window": 8, "global_every": 2},
        {"norm_first": True},
        {"is_gated": True},
        {"attention_bias": False},
        {"feed_forward_bias": False},
        {"norm_bias": False},
    ],
    ids=lambda choice: next(iter(choice)),
)
def test_newer_layers_are_left_to_the_encoder_itself(choice: dict[str, Any]) -> None:
    assert has_kernels(make_encoder())
    assert not has_kernels(make_encoder(**choice))


def test_affinities_are_halves_where_autocast_makes_them() -> None:
    """The gradient of a bias by distance looks at whole rows, which are not."""
    encoder, biased = make_encoder(), make_encoder(**WALKED["mpnet"])
    assert not route_options(encoder, firsts_only=False, trains=True).halves
    with torch.autocast(DEVICE.type, torch.bfloat16):
        assert route_options(encoder, firsts_only=False, trains=True).halves
        assert route_options(biased, firsts_only=False, trains=False).halves
        assert not route_options(biased, firsts_only=False, trains=True).halves
    # float16 tells ten times as much as rows of powers then would
    powers = make_encoder(weighting="entmax", weighting_options={"alpha": "learned"})
    for dtype, halves in ((torch.bfloat16, True), (torch.float16, False)):
        options = route_options(powers.to(dtype), firsts_only=False, trains=False)
        assert options.halves == halves


# Batch by batch

TASKS = [Task("mood", ("bad", "good")), Task("irony", ("no", "yes"))]


@pytest.fixture
def with_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding_by, "kernels_wanted", lambda device: True)


@pytest.mark.usefixtures("with_kernels")
@pytest.mark.parametrize("head", HEADS)
def test_every_head_reads_what_kernels_make(head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, batch = make_encoder(pruning="cascade"), make_batch()
    classifier = Classifier(encoder, TASKS, head=head, dropout=0.0).to(DEVICE).eval()
    with torch.no_grad():
        found = classifier(batch)
        monkeypatch.setattr(encoding_by, "kernels_wanted", lambda device: False)
        expected = classifier(batch)
    for task in expected:
        torch.testing.assert_close(found[task], expected[task], atol=1e-4, rtol=1e-4)


@pytest.mark.usefixtures("with_kernels")
def test_a_plan_drawn_in_training_is_drawn_once() -> None:
    options = {"explore": 1.0, "restore": False}
    encoder, batch = make_encoder(pruning="learned", pruning_options=options), make_batch()
    encoder.train()
    drawn = []
    original = encoder.pruning.plan
    encoder.pruning.plan = lambda: drawn.append(original()) or drawn[-1]  # type: ignore[method-assign]
    encoding = encode(encoder, batch)
    assert len(drawn) == 1
    assert list(encoding.layout.lengths) == drawn[0].counts(-1, batch.layout.lengths)


@pytest.mark.usefixtures("with_kernels")
def test_torchs_seed_decides_dropout_in_attention() -> None:
    encoder, batch = (
        make_encoder(n_layers=1, attention_dropout=0.5, dropout=0.0).train(),
        make_batch(),
    )

    def hidden(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return encode(encoder, batch).hidden

    assert torch.equal(hidden(1), hidden(1))
    assert not torch.equal(hidden(1), hidden(2))
    encoder.eval()
    assert torch.equal(hidden(1), hidden(2))
