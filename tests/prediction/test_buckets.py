"""Texts into buckets, without a GPU: passes that answer each text with its first piece."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton", reason="Triton is not installed: pip install -e .[kernels]")

from litotes.encoder.tokenizer import Pieces
from litotes.kernels.route import RoutePlan
from litotes.kernels.tiles import Numbers
from litotes.model.classifier import Classifier
from litotes.prediction import cuda_runtime
from litotes.prediction.cuda_runtime import Buckets
from tests.tiny_models import model_of


class FakePass:
    """Stands for a recorded pass: the logits of a text are its first piece and its segments."""

    def __init__(self, classifier: Classifier, plan: RoutePlan, *shared: object) -> None:
        self.plan = plan
        self.n_batches = 0

    def start(self, pieces: Numbers, segments: Numbers | None, lengths: Numbers) -> Any:
        self.n_batches += 1
        starts = np.cumsum(lengths) - lengths
        logits = torch.zeros(self.plan.sizes.n_texts, 2)
        logits[: len(lengths), 0] = torch.from_numpy(pieces[starts]).float()
        if segments is not None:
            ends = starts + lengths - 1
            logits[: len(lengths), 1] = torch.from_numpy(segments[ends]).float()
        return SimpleNamespace(done=SimpleNamespace(synchronize=lambda: None), logits=logits)


@pytest.fixture
def make_buckets(monkeypatch: pytest.MonkeyPatch, tiny: Any) -> Any:
    monkeypatch.setattr(cuda_runtime, "CapturedPass", FakePass)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: (0, 0))

    def make(**options: Any) -> Buckets:
        return Buckets(model_of(tiny, head="linear").classifier, **options)

    return make


def text_of(number: int, length: int, segment: int = 0) -> Pieces:
    return Pieces([number] * length, [0] * (length - 1) + [segment], False)


def test_every_text_is_answered_once_and_in_order(make_buckets: Any) -> None:
    draw = np.random.default_rng(1)
    texts = [text_of(number, int(draw.integers(2, 60))) for number in range(700)]
    made = make_buckets(largest=4096)
    logits = made.logits(texts)
    assert logits[:, 0].tolist() == list(range(700))
    assert sum(one.n_batches for one in made.passes.values()) > 3


def test_few_texts_take_the_smallest_bucket(make_buckets: Any) -> None:
    made = make_buckets()
    made.logits([text_of(1, 20), text_of(2, 30)])
    assert [size for size, _ in made.passes] == [256]


def test_short_texts_get_a_bucket_with_room_for_more_of_them(make_buckets: Any) -> None:
    made = make_buckets(largest=1024)
    made.logits([text_of(1, 60)] * 40)
    assert {per_text for _, per_text in made.passes} == {cuda_runtime.PIECES_PER_TEXT[0]}
    made.logits([text_of(1, 16)] * 128)
    assert made.passes[1024, cuda_runtime.PIECES_PER_TEXT[1]].n_batches == 2


def test_pairs_have_their_segments(make_buckets: Any) -> None:
    logits = make_buckets().logits([text_of(1, 5), text_of(2, 7, segment=1)])
    assert logits[:, 1].tolist() == [0, 1]


def test_between_batches_work_can_end(make_buckets: Any) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_buckets().logits([text_of(1, 5)], between=stop)
