"""Batches by kernels against the encoder itself, in Triton's interpreter."""

from __future__ import annotations

import os

import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton", reason="Triton is not installed: pip install -e .[kernels]")

from litotes.core.values import Task
from litotes.encoder.encoder import Encoder
from litotes.encoder.layout import Batch, Layout
from litotes.encoder.walk import Encoding
from litotes.kernels import encode as encoding_by
from litotes.kernels.encode import encode, encode_on_device, kernels_wanted
from litotes.model.classifier import Classifier
from litotes.model.heads import HEADS
from tests.encoder.test_kernel_walk import DEVICE, KINDS, make_encoder

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

LENGTHS = (2, 9, 12)
TASKS = [Task("mood", ("bad", "good")), Task("irony", ("no", "yes"))]


def make_batch() -> Batch:
    pieces = torch.arange(sum(LENGTHS), device=DEVICE)
    return Batch(pieces, pieces % 2, Layout.of(LENGTHS, DEVICE))


@pytest.fixture
def with_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding_by, "kernels_wanted", lambda device: True)


def assert_same(found: Encoding, expected: Encoding) -> None:
    torch.testing.assert_close(found.hidden, expected.hidden, atol=1e-4, rtol=1e-4)
    assert found.layout.lengths == expected.layout.lengths
    assert torch.equal(found.origin, expected.origin)


@pytest.mark.parametrize("kind", ["dense", "cascade", "fuse", "fuse and restore"])
@pytest.mark.parametrize("firsts_only", [False, True])
def test_encodes_as_the_encoder_does(kind: str, firsts_only: bool) -> None:
    encoder, batch = make_encoder(**KINDS[kind]), make_batch()
    with torch.no_grad():
        expected = encoder(batch, firsts_only=firsts_only)
        assert_same(encode_on_device(encoder, batch, firsts_only=firsts_only), expected)


@pytest.mark.usefixtures("with_kernels")
@pytest.mark.parametrize("head", HEADS)
def test_every_head_reads_what_kernels_make(head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, batch = make_encoder(pruning="cascade"), make_batch()
    classifier = Classifier(encoder, TASKS, head=head, dropout=0.0).to(DEVICE).eval()
    n_passes = []
    original = encode_on_device

    def counting(*arguments: object, **options: object) -> Encoding:
        n_passes.append(1)
        return original(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(encoding_by, "encode_on_device", counting)
    with torch.no_grad():
        found = classifier(batch)
        assert n_passes
        monkeypatch.setattr(encoding_by, "kernels_wanted", lambda device: False)
        expected = classifier(batch)
    for task in expected:
        torch.testing.assert_close(found[task], expected[task], atol=1e-4, rtol=1e-4)


@pytest.mark.usefixtures("with_kernels")
def test_an_observer_watches_the_encoder_itself() -> None:
    traces: list[object] = []
    encode(make_encoder(), make_batch(), observer=traces.append)
    assert len(traces) == 3


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


def test_kernels_are_for_cuda_and_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LITOTES_KERNELS", raising=False)
    assert kernels_wanted(torch.device("cuda"))
    assert not kernels_wanted(torch.device("cpu"))
    monkeypatch.setenv("LITOTES_KERNELS", "off")
    assert not kernels_wanted(torch.device("cuda"))


def test_half_precision_is_the_callers_choice() -> None:
    """The interpreter multiplies float16 well, bfloat16 badly."""
    encoder: Encoder = make_encoder()
    batch = make_batch()
    with torch.no_grad():
        expected = encoder(batch).hidden
        with torch.autocast(DEVICE.type, torch.float16):
            found = encode_on_device(encoder, batch, firsts_only=False).hidden
    torch.testing.assert_close(found.float(), expected, atol=0.03, rtol=0.03)
