"""The contract of every head, in training and in evaluation mode."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from litotes.flow import Encoding
from litotes.heads import HEADS, Head
from litotes.heads.convolution import Convolution
from litotes.layout import Layout

WIDTH = 16
LENGTHS = (5, 1, 8, 2)


@pytest.fixture(params=sorted(HEADS))
def head(request: pytest.FixtureRequest) -> Head:
    torch.manual_seed(0)
    return HEADS[request.param](WIDTH, 3, dropout=0.0)


def encoding(lengths: tuple[int, ...] = LENGTHS, seed: int = 0) -> Encoding:
    hidden = torch.randn(sum(lengths), WIDTH, generator=torch.Generator().manual_seed(seed))
    return Encoding(hidden, Layout.of(lengths))


def alone(whole: Encoding) -> list[Encoding]:
    return [Encoding(part, Layout.of([len(part)])) for part in whole.hidden.split(whole.layout.lengths)]


@pytest.mark.parametrize("mode", [True, False], ids=["training", "evaluation"])
def test_a_text_alone_equals_the_text_in_a_batch(head: Head, mode: bool) -> None:
    head.train(mode)
    together = head(encoding())
    assert together.shape == (len(LENGTHS), 3)
    torch.testing.assert_close(together, torch.cat([head(one) for one in alone(encoding())]))


def test_reads_first_pieces_alone_when_it_says_so(head: Head) -> None:
    whole = encoding()
    firsts = Encoding(whole.hidden[whole.layout.starts], whole.layout.firsts)
    same = torch.allclose(head(whole), head(firsts), atol=1e-6)
    assert same == head.firsts_only


def test_every_piece_matters_to_the_others(head: Head) -> None:
    """A head that claims to read all pieces has a gradient at all of them."""
    whole = encoding()
    whole.hidden.requires_grad_()
    head(whole).square().sum().backward()
    touched = whole.hidden.grad.abs().sum(-1) > 0
    assert touched.all() != head.firsts_only


def test_learns_eight_examples_by_heart(head: Head) -> None:
    lengths = (3, 6, 2, 9, 4, 1, 7, 5)
    texts, targets = encoding(lengths), torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])
    head.train()
    optimizer = torch.optim.Adam(head.parameters(), lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        nn.functional.cross_entropy(head(texts), targets).backward()
        optimizer.step()
    assert head(texts).argmax(-1).equal(targets)


def test_saves_and_loads(head: Head) -> None:
    torch.manual_seed(99)
    other = type(head)(WIDTH, 3, dropout=0.0)
    assert not torch.equal(other(encoding()), head(encoding()))
    other.load_state_dict(head.state_dict())
    assert torch.equal(other(encoding()), head(encoding()))


def test_convolution_equals_torch_conv1d_on_every_text() -> None:
    """The outside truth: a padded Conv1d of kernel 3."""
    head = Convolution(WIDTH, 2, dropout=0.0)
    conv = nn.Conv1d(WIDTH, WIDTH, 3, padding=1)
    with torch.no_grad():
        conv.weight.copy_(head.filters.weight.view(WIDTH, 3, WIDTH).permute(0, 2, 1))
        conv.bias.copy_(head.filters.bias)
    for one, read in zip(alone(encoding()), head.read(encoding()), strict=True):
        expected = conv(one.hidden.T[None]).relu().mean(-1)[0]
        torch.testing.assert_close(read, expected, atol=1e-6, rtol=1e-5)


def test_bilstm_reads_the_first_position_of_each_text() -> None:
    head = HEADS["bilstm"](WIDTH, 2, dropout=0.0)
    for one, read in zip(alone(encoding()), head.read(encoding()), strict=True):
        states, _ = head.lstm(one.hidden)
        torch.testing.assert_close(read, states[0])
