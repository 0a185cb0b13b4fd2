"""States and relations of a teacher, whatever its width."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from litotes.encoder import pretrained
from litotes.encoder.encoder import Encoder
from litotes.encoder.layout import Layout
from litotes.encoder.packing import pack
from litotes.encoder.torch_operations import Rows
from litotes.training.distillation.imitation import IMITATIONS, Relations

TEXTS = ["great tea", "a bad queue, is it not?", "a"]


@pytest.fixture
def large(tiny: pretrained.Pretrained) -> Encoder:
    torch.manual_seed(3)
    spec = replace(
        tiny.encoder.spec, width=48, n_attention_heads=6, n_layers=4, attention_dropout=0.0
    )
    encoder = Encoder(spec).eval()
    for parameter in encoder.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.2)
    return encoder


@pytest.mark.parametrize("name", IMITATIONS)
def test_a_student_comes_nearer_to_a_wider_and_deeper_teacher(
    name: str, tiny: pretrained.Pretrained, large: Encoder
) -> None:
    torch.manual_seed(0)
    batch = pack(tiny.tokenizer.encode(TEXTS))
    imitation = IMITATIONS[name](tiny.encoder.spec, large.spec)
    wanted = [one.detach() for one in imitation.look(large, batch)]
    parameters = [*tiny.encoder.parameters(), *imitation.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=3e-3)
    distances = []
    for _ in range(30):
        distance = imitation(imitation.look(tiny.encoder, batch), wanted, batch.layout)
        optimizer.zero_grad()
        distance.backward()
        optimizer.step()
        distances.append(distance.item())
    assert distances[0] > 0
    assert distances[-1] < 0.7 * distances[0]


@pytest.mark.parametrize("name", ["values", "relations"])
def test_a_teacher_is_no_distance_from_itself(
    name: str, large: Encoder, tiny: pretrained.Pretrained
) -> None:
    batch = pack(tiny.tokenizer.encode(TEXTS))
    imitation = IMITATIONS[name](large.spec, large.spec)
    found = imitation.look(large, batch)
    assert imitation(found, found, batch.layout).abs() < 1e-6


def test_the_relation_is_that_of_the_paper() -> None:
    """KL of softmax(V Vᵀ / √d), mean over pieces and relation heads, text by text."""
    torch.manual_seed(0)
    layout = Layout.of([3, 2])
    mine, theirs = torch.randn(5, 2, 4), torch.randn(5, 2, 6)
    expected = []
    for start, end in ((0, 3), (3, 5)):
        for head in range(2):
            p, q = (
                (part[start:end, head] @ part[start:end, head].T / part.shape[-1] ** 0.5).softmax(
                    -1
                )
                for part in (theirs, mine)
            )
            expected.append((p * (p / q).log()).sum(-1))
    imitation = Relations.__new__(Relations)
    torch.nn.Module.__init__(imitation)
    imitation.n_heads = 2
    found = imitation([mine], [theirs], layout)
    torch.testing.assert_close(found, torch.cat(expected).mean())


def test_rows_with_padding_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, where all texts are one block."""
    torch.manual_seed(0)
    layout = Layout.of([3, 1, 2])
    mine, theirs = [torch.randn(6, 2, 4)], [torch.randn(6, 2, 4)]
    imitation = Relations.__new__(Relations)
    torch.nn.Module.__init__(imitation)
    imitation.n_heads = 2
    apart = imitation(mine, theirs, layout)
    monkeypatch.setattr(Rows, "of", classmethod(lambda cls, layout: cls(layout, apart=False)))
    torch.testing.assert_close(imitation(mine, theirs, layout), apart)


def test_pieces_of_queries_keys_and_values_are_those_attention_uses(
    large: Encoder, tiny: pretrained.Pretrained
) -> None:
    batch = pack(tiny.tokenizer.encode(TEXTS))
    imitation = Relations(large.spec, large.spec)
    assert imitation.n_heads == 6
    seen: dict[int, torch.Tensor] = {}
    large(batch, observer=lambda trace: seen.update({trace.layer: trace.attention.value}))
    _, _, value = imitation.look(large, batch)
    torch.testing.assert_close(value, seen[3])
