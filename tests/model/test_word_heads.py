"""The contract of heads that answer words, on pruned input too."""

from __future__ import annotations

import pytest
import torch

from litotes.core.errors import UserError
from litotes.core.values import Task
from litotes.encoder import pretrained
from litotes.encoder.packing import pack_windows, read_whole
from litotes.encoder.pretrained import Pretrained
from litotes.model.classifier import WordModel
from litotes.model.heads import WORD_HEADS

TEXTS = [
    ["the", "queue", "is", "not", "great", "and", "tea", "is", "bad"],
    ["love"],
    ["a", "tea", ",", "a", "tea"],
]
TASK = Task("kind", ("x", "y", "z"))
SCHEDULE = {"schedule": [0.7, 0.4], "restore": True}


@pytest.fixture(params=sorted(WORD_HEADS))
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def make_model(folder: str, kind: str, *, pruned: bool) -> WordModel:
    choices = {"pruning": "cascade", "pruning_options": SCHEDULE} if pruned else {}
    encoder = pretrained.load(folder, dropout=0.0, attention_dropout=0.0, **choices).encoder
    torch.manual_seed(0)
    return WordModel(encoder, TASK, kind=kind, dropout=0.0)


@pytest.mark.parametrize("pruned", [False, True], ids=["dense", "pruned"])
@pytest.mark.parametrize("mode", [True, False], ids=["training", "evaluation"])
def test_a_text_alone_equals_the_text_in_a_batch(
    shared_tiny: Pretrained, kind: str, pruned: bool, mode: bool
) -> None:
    model = make_model(shared_tiny.name, kind, pruned=pruned).train(mode)
    windows = read_whole(shared_tiny.tokenizer, TEXTS)
    with torch.no_grad():
        together = model(pack_windows(windows, with_first=model.reads_first))
        alone = [model(pack_windows([one], with_first=model.reads_first)) for one in windows]
    n_words = sum(map(len, TEXTS)) + len(TEXTS) * model.reads_first
    assert together.shape == (n_words, 2 if kind == "span" else 3)  # every word has its answer
    torch.testing.assert_close(together, torch.cat(alone), atol=1e-5, rtol=1e-5)


def test_a_word_is_the_mean_of_its_pieces(shared_tiny: Pretrained, kind: str) -> None:
    model = make_model(shared_tiny.name, kind, pruned=False).eval()
    (window,) = read_whole(shared_tiny.tokenizer, [["tea", "abc"]])
    batch = pack_windows([window], with_first=model.reads_first)
    with torch.no_grad():
        hidden = model.encoder(batch.batch).hidden  # [CLS] tea a ##b ##c [SEP]
        output = model.heads["kind"].output  # type: ignore[union-attr]
        wanted = output(hidden[2:5].mean(0))  # type: ignore[operator]
        torch.testing.assert_close(model(batch)[-1], wanted, atol=1e-5, rtol=1e-5)


def test_pruning_without_restoring_is_refused(shared_tiny: Pretrained, kind: str) -> None:
    options = {"schedule": [0.7, 0.4]}
    encoder = pretrained.load(shared_tiny.name, pruning="cascade", pruning_options=options).encoder
    with pytest.raises(UserError, match="restore = true"):
        WordModel(encoder, TASK, kind=kind, dropout=0.0)


def test_gradients_reach_the_whole_encoder(shared_tiny: Pretrained, kind: str) -> None:
    model = make_model(shared_tiny.name, kind, pruned=True).train()
    windows = read_whole(shared_tiny.tokenizer, TEXTS)
    model(pack_windows(windows, with_first=model.reads_first)).square().sum().backward()
    gradients = [one.grad for one in model.encoder.blocks.parameters()]
    assert all(one is not None and one.abs().sum() > 0 for one in gradients if one is not None)
    assert model.encoder.embeddings.piece.weight.grad is not None
