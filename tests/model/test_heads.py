"""The contract of every head, of texts and of words, in training and in evaluation mode."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from litotes.core.errors import UserError
from litotes.core.values import Task
from litotes.encoder import pretrained
from litotes.encoder.layout import Layout
from litotes.encoder.operations import TORCH, read_both_at_once
from litotes.encoder.packing import pack_windows, read_whole
from litotes.encoder.pretrained import Pretrained
from litotes.encoder.walk import Encoding
from litotes.model.classifier import WordModel
from litotes.model.heads import HEADS, WORD_HEADS, Convolution

WIDTH = 16
LENGTHS = (5, 1, 8, 2)


TASKS = {"sentiment": 3, "sarcasm": 2}


@pytest.fixture(params=sorted(HEADS))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def head(name: str) -> nn.Module:
    """The heads of two tasks."""
    torch.manual_seed(0)
    return HEADS[name].for_tasks(WIDTH, TASKS, dropout=0.0)


def both(logits: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.cat([logits[task] for task in TASKS], dim=-1)  # (text, 3 + 2)


def encoding(lengths: tuple[int, ...] = LENGTHS, seed: int = 0) -> Encoding:
    hidden = torch.randn(sum(lengths), WIDTH, generator=torch.Generator().manual_seed(seed))
    return Encoding(hidden, Layout.of(lengths), Layout.of(lengths).positions)


def alone(whole: Encoding) -> list[Encoding]:
    return [
        Encoding(part, Layout.of([len(part)]), torch.arange(len(part)))
        for part in whole.hidden.split(whole.layout.lengths)
    ]


@pytest.mark.parametrize("mode", [True, False], ids=["training", "evaluation"])
def test_a_text_alone_equals_the_text_in_a_batch(head: nn.Module, mode: bool) -> None:
    head.train(mode)
    together = head(encoding())
    assert {task: logits.shape for task, logits in together.items()} == {
        task: (len(LENGTHS), n) for task, n in TASKS.items()
    }
    torch.testing.assert_close(
        both(together), torch.cat([both(head(one)) for one in alone(encoding())])
    )


def test_reads_first_pieces_alone_when_it_says_so(head: nn.Module, name: str) -> None:
    whole = encoding()
    firsts = Encoding(
        whole.hidden[whole.layout.starts], whole.layout.firsts, whole.layout.firsts.positions
    )
    same = torch.allclose(both(head(whole)), both(head(firsts)), atol=1e-6)
    assert same == HEADS[name].firsts_only
    whole.hidden.requires_grad_()  # one that reads all pieces has a gradient at all of them
    both(head(whole)).square().sum().backward()
    assert (whole.hidden.grad.abs().sum(-1) > 0).all() != same


@pytest.mark.slow
def test_learns_eight_examples_of_two_tasks_by_heart(head: nn.Module) -> None:
    lengths = (3, 6, 2, 9, 4, 1, 7, 5)
    targets = {
        "sentiment": torch.tensor([0, 1, 2, 0, 1, 2, 0, 1]),
        "sarcasm": torch.tensor([0, 0, 0, 1, 1, 1, 0, 1]),
    }
    texts = encoding(lengths)
    head.train()
    optimizer = torch.optim.Adam(head.parameters(), lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        logits = head(texts)
        sum(
            nn.functional.cross_entropy(logits[task], gold) for task, gold in targets.items()
        ).backward()
        optimizer.step()
    assert all(head(texts)[task].argmax(-1).equal(gold) for task, gold in targets.items())


def test_saves_and_loads(head: nn.Module, name: str) -> None:
    torch.manual_seed(99)
    other = HEADS[name].for_tasks(WIDTH, TASKS, dropout=0.0)
    assert not torch.equal(both(other(encoding())), both(head(encoding())))
    other.load_state_dict(head.state_dict())
    assert torch.equal(both(other(encoding())), both(head(encoding())))


def test_crosstalk_lets_a_task_hear_the_other() -> None:
    """A task's answer depends on the other task's projection; in separate heads nothing does."""
    head = HEADS["crosstalk"].for_tasks(WIDTH, TASKS, dropout=0.0)
    head(encoding())["sentiment"].sum().backward()
    assert head.projections["sarcasm"].weight.grad.abs().sum() > 0
    assert head.fusions["sarcasm"].weight.grad is None
    assert head.outputs["sarcasm"].weight.grad is None
    with pytest.raises(UserError, match="convolution"):
        HEADS["crosstalk"].for_tasks(WIDTH, {"sentiment": 2}, dropout=0.0)


def test_convolution_equals_torch_conv1d_on_every_text() -> None:
    """The outside truth: a padded Conv1d of kernel 3."""
    head = Convolution(WIDTH, 2, dropout=0.0)
    conv = nn.Conv1d(WIDTH, WIDTH, 3, padding=1)
    with torch.no_grad():
        conv.weight.copy_(head.filters.weight.view(WIDTH, 3, WIDTH).permute(0, 2, 1))
        conv.bias.copy_(head.filters.bias)
    for one, read in zip(alone(encoding()), head.read(encoding(), TORCH), strict=True):
        expected = conv(one.hidden.T[None]).relu().mean(-1)[0]
        torch.testing.assert_close(read, expected, atol=1e-6, rtol=1e-5)


def test_bilstm_reads_and_learns_as_if_it_had_read_both_ways_to_the_end() -> None:
    head = HEADS["bilstm"](WIDTH, 2, dropout=0.0)
    gradients = []
    rows = [one.hidden for one in alone(encoding())]
    for row, read in zip(rows, head.read(encoding(), TORCH), strict=True):
        torch.testing.assert_close(read, head.lstm(row)[0][0])
    for read in (
        lambda: head.read(encoding(), TORCH),
        lambda: read_both_at_once(head.lstm, rows),
    ):
        head.zero_grad()
        read().square().sum().backward()
        gradients.append({name: weight.grad for name, weight in head.lstm.named_parameters()})
    torch.testing.assert_close(*gradients)


# Heads that answer words, on pruned input too


TEXTS = [
    ["the", "queue", "is", "not", "great", "and", "tea", "is", "bad"],
    ["love"],
    ["a", "tea", ",", "a", "tea"],
]
KIND = Task("kind", ("x", "y", "z"))
SCHEDULE = {"schedule": [0.7, 0.4], "restore": True}


@pytest.fixture(params=sorted(WORD_HEADS))
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def make_model(folder: str, kind: str, *, pruned: bool) -> WordModel:
    choices = {"pruning": "cascade", "pruning_options": SCHEDULE} if pruned else {}
    encoder = pretrained.load(folder, dropout=0.0, attention_dropout=0.0, **choices).encoder
    torch.manual_seed(0)
    return WordModel(encoder, KIND, kind=kind, dropout=0.0)


@pytest.mark.parametrize("pruned", [False, True], ids=["dense", "pruned"])
@pytest.mark.parametrize("mode", [True, False], ids=["training", "evaluation"])
def test_words_alone_equal_the_words_in_a_batch(
    shared_tiny: Pretrained, kind: str, pruned: bool, mode: bool
) -> None:
    model = make_model(shared_tiny.name, kind, pruned=pruned).train(mode)
    windows = read_whole(shared_tiny.tokenizer, TEXTS)
    with torch.no_grad():
        together = model(pack_windows(windows, with_first=model.reads_first))
        alone = [model(pack_windows([one], with_first=model.reads_first)) for one in windows]
    if pruned and mode:  # every weight of the encoder learns
        model(pack_windows(windows, with_first=model.reads_first)).square().sum().backward()
        gradients = [one.grad for one in model.encoder.blocks.parameters() if one.grad is not None]
        assert len(gradients) > 20
        assert all(one.abs().sum() > 0 for one in gradients)
        options = {"schedule": [0.7, 0.4]}
        other = pretrained.load(shared_tiny.name, pruning="cascade", pruning_options=options)
        with pytest.raises(UserError, match="restore = true"):
            WordModel(other.encoder, KIND, kind=kind, dropout=0.0)
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
