"""Effective attention equals its definition by singular vectors, on made heads of every kind and on
the bundled encoder's own.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from litotes.data.sources import load
from litotes.encoder import pretrained
from litotes.encoder.packing import pack
from litotes.encoder.walk import LayerTrace, TextAttention
from litotes.explanation.effective_attention import effective_attention, effective_attentions

N_EACH = 20
"""Heads of a kind, in float32 and again in float64."""


def by_definition(weights: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """A − A N Nᵀ in float64, N all left singular vectors whose singular value is 0 beside the
    largest; and how many they are.
    """
    zero = max(value.shape[-2:]) * torch.finfo(value.dtype).eps
    maps, n_null = [], []
    for a, v in zip(weights.double(), value.double(), strict=True):
        left, singular, _ = torch.linalg.svd(v, full_matrices=True)
        rank = int((singular > zero * singular.max()).sum())
        lost = left[:, rank:]
        maps.append(a - (a @ lost) @ lost.mT)
        n_null.append(len(v) - rank)
    return torch.stack(maps), torch.tensor(n_null)


def random_sizes(generator: torch.Generator) -> tuple[int, int]:
    """Pieces 1 to 512 and head_width 1 to 128, small ones as often as large ones."""
    n_keys, head_width = (
        (torch.rand(2, generator=generator, dtype=torch.float64) * torch.tensor([9.0, 7.0]))
        .exp2()
        .int()
        .tolist()
    )
    return n_keys, head_width


def plain(n_keys: int, head_width: int, generator: torch.Generator) -> Tensor:
    return torch.randn(n_keys, head_width, generator=generator, dtype=torch.float64)


def deficient(n_keys: int, head_width: int, generator: torch.Generator) -> Tensor:
    rank = max(1, min(n_keys, head_width) // 2)
    return plain(n_keys, rank, generator) @ plain(rank, head_width, generator)


def ill_conditioned(n_keys: int, head_width: int, generator: torch.Generator) -> Tensor:
    left, _, right = torch.linalg.svd(plain(n_keys, head_width, generator), full_matrices=False)
    return left * torch.logspace(0, -7, left.shape[-1], dtype=torch.float64) @ right


def uneven(n_keys: int, head_width: int, generator: torch.Generator) -> Tensor:
    """Hardly steady enough for the Gram matrix, or hardly not."""
    left, _, right = torch.linalg.svd(plain(n_keys, head_width, generator), full_matrices=False)
    least = torch.rand(1, generator=generator).item() * 3 + 2
    return left * torch.logspace(0, -least, left.shape[-1], dtype=torch.float64) @ right


def twins(n_keys: int, head_width: int, generator: torch.Generator) -> Tensor:
    value = plain(n_keys, head_width, generator)
    value[-1] = value[0]
    return value


def outlier(n_keys: int, head_width: int, generator: torch.Generator) -> Tensor:
    """One piece a thousand times as long as the others, as separators can be."""
    value = plain(n_keys, head_width, generator)
    value[n_keys // 2] *= 1000
    return value


def zero(n_keys: int, head_width: int, generator: torch.Generator) -> Tensor:
    return torch.zeros(n_keys, head_width, dtype=torch.float64)


KINDS: dict[str, Callable[[int, int, torch.Generator], Tensor]] = {
    made.__name__: made
    for made in (plain, deficient, ill_conditioned, uneven, twins, outlier, zero)
}


def made_head(kind: str, seed: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Weights, value and mixed of one attention head, values scaled by 1e-6 to 1e6."""
    generator = torch.Generator().manual_seed(seed)
    n_keys, head_width = random_sizes(generator)
    scale = 10 ** (torch.rand(1, generator=generator).item() * 12 - 6)
    value = (KINDS[kind](n_keys, head_width, generator) * scale).to(dtype)[None]
    sharpness = torch.rand(1, generator=generator).item() * 5
    weights = (
        (torch.randn(1, n_keys, n_keys, generator=generator) * sharpness).softmax(-1).to(dtype)
    )
    return weights, value, weights @ value


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_equals_the_definition(kind: str, dtype: torch.dtype) -> None:
    for seed in range(N_EACH):
        weights, value, mixed = made_head(kind, seed, dtype)
        found = effective_attention(weights, value, mixed)
        maps, n_null = by_definition(weights, value)
        assert found.maps.dtype == dtype
        torch.testing.assert_close(found.maps.double(), maps, atol=1e-6, rtol=0)
        assert found.n_null.tolist() == n_null.tolist()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_is_the_part_that_reaches_the_output(kind: str) -> None:
    for seed in range(N_EACH):
        weights, value, mixed = made_head(kind, seed, torch.float64)
        maps = effective_attention(weights, value, mixed).maps
        torch.testing.assert_close(
            maps @ value, mixed, atol=1e-8 * float(value.abs().max()), rtol=0
        )
        # Each lost row is orthogonal to all columns of V, and each row that is left lies among
        # them.
        torch.testing.assert_close(
            (weights - maps) @ maps.mT, torch.zeros_like(weights), atol=1e-7, rtol=0
        )
        again = effective_attention(maps, value, maps @ value).maps
        torch.testing.assert_close(again, maps, atol=1e-7, rtol=0)


def test_nothing_is_lost_of_short_texts() -> None:
    torch.manual_seed(0)
    weights, value = torch.rand(12, 40, 40).softmax(-1), torch.randn(12, 40, 64)
    found = effective_attention(weights, value, weights @ value)
    assert found.maps is weights
    assert (found.n_null == 0).all()


def test_one_piece() -> None:
    weights, value = torch.ones(2, 1, 1), torch.tensor([[[0.5, 2.0]], [[0.0, 0.0]]])
    found = effective_attention(weights, value, weights @ value)
    assert found.maps.flatten().tolist() == [1.0, 0.0]
    assert found.n_null.tolist() == [0, 1]


def test_no_attention_head_and_no_text() -> None:
    found = effective_attention(torch.ones(0, 9, 9), torch.ones(0, 9, 4), torch.ones(0, 9, 4))
    assert found.maps.shape == (0, 9, 9)
    assert found.n_null.shape == (0,)
    assert effective_attentions([]) == ()


def test_together_as_each_alone() -> None:
    attended = [made(n_keys) for n_keys in (5, 100, 20, 5, 16, 1, 40)]
    for together, one in zip(effective_attentions(attended), attended, strict=True):
        alone = effective_attention(*one)
        torch.testing.assert_close(together.maps, alone.maps, atol=1e-7, rtol=0)
        assert together.n_null.tolist() == alone.n_null.tolist()


def test_singular_vectors_are_for_bad_cases_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        torch.linalg,
        "svd",
        lambda value, svd=torch.linalg.svd, **options: asked.append(value) or svd(value, **options),
    )
    for n_keys in (5, 20, 100):
        effective_attention(*made(n_keys))
    assert not asked
    weights, value, _ = made(100)
    value[2, :, 0] = value[2, :, 1]
    assert effective_attention(weights, value, weights @ value).n_null.tolist() == [84, 84, 85]
    assert [v.shape for v in asked] == [(1, 100, 16)]  # of the one attention head that needs them


def test_a_failed_factor_is_never_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    attended = made(40)
    expected = effective_attention(*attended)
    monkeypatch.setattr(
        torch.linalg,
        "cholesky_ex",
        lambda gram: (torch.eye(16).double().expand_as(gram), torch.ones(len(gram))),
    )
    found = effective_attention(*attended)
    torch.testing.assert_close(found.maps, expected.maps, atol=1e-6, rtol=0)
    assert found.n_null.tolist() == expected.n_null.tolist()


def test_wants_no_gradient() -> None:
    weights, value, mixed = (part.requires_grad_() for part in made(40))
    assert not effective_attention(weights, value, mixed).maps.requires_grad


@pytest.mark.slow
def test_real_heads_equal_the_definition() -> None:
    views = [view for view in real_views() if view.layer in (0, 3, 5)]
    assert {len(view.origin) <= 32 for view in views} == {True, False}
    assert len({len(view.origin) for view in views}) >= 5
    assert sum(len(view.weights) for view in views) >= 100
    for view, found in zip(
        views,
        effective_attentions([(view.weights, view.value, view.mixed) for view in views]),
        strict=True,
    ):
        maps, n_null = by_definition(view.weights, view.value)
        torch.testing.assert_close(found.maps.double(), maps, atol=1e-6, rtol=0)
        assert found.n_null.tolist() == n_null.tolist()


def made(n_keys: int) -> tuple[Tensor, Tensor, Tensor]:
    """Three attention heads with values 16 wide."""
    generator = torch.Generator().manual_seed(n_keys)
    value = torch.randn(3, n_keys, 16, generator=generator)
    weights = torch.randn(3, n_keys, n_keys, generator=generator).softmax(-1)
    return weights, value, weights @ value


def real_views(pruning: str = "none") -> list[TextAttention]:
    """Texts of the built-in corpus in the bundled encoder, whose attention heads are 32 wide:
    shorter, a little longer, much longer.
    """
    texts = [example.text for example in load("sampler")]
    joined = [
        " ".join(texts[:1]).split(".")[0],
        *(" ".join(texts[:n_joined]) for n_joined in (1, 2, 3, 4)),
    ]
    loaded = pretrained.load("minilm", pruning=pruning)
    traces: list[LayerTrace] = []
    with torch.inference_mode():
        loaded.encoder(pack(loaded.tokenizer.encode(joined)), observer=traces.append)
    return [view for trace in traces for view in trace.by_text()]
