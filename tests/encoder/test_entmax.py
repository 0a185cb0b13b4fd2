"""entmax equals the `entmax` package, in value and gradient, where that is right; and is right
where that is not.
"""

from __future__ import annotations

import math

import pytest
import torch

from litotes.core.errors import UserError
from litotes.encoder import simplex
from litotes.encoder.attention.entmax import Entmax
from litotes.encoder.simplex import entmax

package = pytest.importorskip("entmax")

ALPHAS = [1.01, 1.05, 1.2, 1.3, 1.5, 1.7, 1.9, 1.99, 2.0]


def rows(
    n_keys: int, *, spread: float, n_rows: int = 100, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    return (
        torch.randn(n_rows, n_keys, generator=torch.Generator().manual_seed(n_keys), dtype=dtype)
        * spread
    )


def truth(affinity: torch.Tensor, alpha: float) -> torch.Tensor:
    """The package's answer in float64: exact for 1.5 and 2, by bisection to the last digit else."""
    exact = {1.5: package.entmax15, 2.0: package.sparsemax}.get(alpha)
    return (
        exact(affinity.double(), dim=-1)
        if exact
        else package.entmax_bisect(affinity.double(), alpha=alpha, n_iter=80)
    )


@pytest.mark.parametrize("alpha", ALPHAS)
def test_weights_equal_the_package(alpha: float) -> None:
    for n_keys in (1, 2, 7, 256):
        for spread, offset in ((0.0, 3.0), (1e-3, 0), (0.3, 0), (2.0, 1e3), (3.0, -1e3), (1e4, 0)):
            affinity = rows(n_keys, spread=spread, n_rows=20) + offset
            found, precise = entmax(affinity, alpha), entmax(affinity.double(), alpha)
            expected = truth(affinity, alpha)
            torch.testing.assert_close(found.double(), expected, atol=1e-6, rtol=0)
            torch.testing.assert_close(precise, expected, atol=1e-12, rtol=0)
    assert entmax(torch.tensor([[0.0, 3e38, -3e38]]), alpha).tolist() == [[0.0, 1.0, 0.0]]


def test_one_alpha_per_attention_head_is_each_alpha_by_itself() -> None:
    affinity = rows(20, spread=2.0, n_rows=2 * 9 * 5).view(2, 9, 5, 20)
    together = entmax(affinity, torch.tensor(ALPHAS).view(1, 9, 1, 1))
    for head, alpha in enumerate(ALPHAS):
        torch.testing.assert_close(
            together[:, head], entmax(affinity[:, head], alpha), atol=1e-6, rtol=0
        )


def test_chunks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    affinity, alpha = (
        rows(30, spread=2.0, dtype=torch.float64).view(2, 5, 10, 30),
        torch.linspace(1.1, 1.9, 5).double().view(1, 5, 1, 1),
    )
    found = []
    for size in (2**18, 70):  # all 100 rows at once, 2 at a time
        monkeypatch.setattr(simplex, "CHUNK", size)
        inputs = affinity.clone().requires_grad_(), alpha.clone().requires_grad_()
        weights = entmax(*inputs)
        found.append((weights, *torch.autograd.grad((weights**2).sum(), inputs)))
    for whole, parts in zip(*found, strict=True):
        torch.testing.assert_close(whole, parts, atol=1e-12, rtol=0)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_gradients_equal_the_packages(alpha: float) -> None:
    """In α too, in float32 and next to 1, where the published formula cancels."""
    affinity, pull = rows(40, spread=2.0), rows(40, spread=1.0)
    mine, theirs = affinity.clone().requires_grad_(), affinity.double().requires_grad_()
    (entmax(mine, alpha) * pull).sum().backward()
    (truth(theirs, alpha) * pull).sum().backward()
    torch.testing.assert_close(mine.grad.double(), theirs.grad, atol=5e-6, rtol=0)
    if alpha == 2.0:
        return  # the package's bisection has none there
    own = torch.tensor([[alpha]], requires_grad=True)
    other = torch.full((100, 1), alpha, dtype=torch.float64, requires_grad=True)
    (entmax(affinity, own) * pull).sum().backward()
    (package.entmax_bisect(affinity.double(), alpha=other, n_iter=80) * pull).sum().backward()
    torch.testing.assert_close(
        own.grad.double().item(), other.grad.sum().item(), rtol=2e-3, atol=2e-4
    )


@pytest.mark.parametrize("shape", [(2, 3, 1, 1), (3, 1, 1)])
def test_gradient_in_alpha_has_its_shape(shape: tuple[int, ...]) -> None:
    affinity = rows(6, spread=1.0, n_rows=24, dtype=torch.float64).view(2, 3, 4, 6)
    alpha = torch.linspace(1.05, 1.9, math.prod(shape), dtype=torch.float64).view(shape)
    assert torch.autograd.gradcheck(entmax, (affinity.requires_grad_(), alpha.requires_grad_()))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("alpha", [1.01, 1.5, 2.0])
def test_half_precision_is_the_nearest_half_of_the_truth(alpha: float, dtype: torch.dtype) -> None:
    """The package gives NaN here (its issue 30)."""
    affinity = rows(100, spread=4.0).to(dtype).requires_grad_()
    weights = entmax(affinity, alpha)
    torch.testing.assert_close(
        weights.double(), truth(affinity.detach(), alpha).to(dtype).double(), atol=1e-3, rtol=1e-2
    )
    weights.square().sum().backward()
    assert affinity.grad.isfinite().all()


def test_a_learned_alpha_starts_as_chosen_and_moves_each_head_by_itself() -> None:
    weighting = Entmax(3, alpha="learned", start=1.4)
    torch.testing.assert_close(weighting.alpha, torch.full((3,), 1.4))
    affinity = rows(8, spread=5.0, n_rows=3 * 8).view(1, 3, 8, 8)
    weighting(affinity)[:, 1].square().sum().backward()
    assert (weighting.a.grad != 0).tolist() == [False, True, False]
    with torch.no_grad():
        weighting.a[:] = torch.tensor([-100.0, 0.0, 100.0])
    assert weighting.alpha.tolist() == pytest.approx([1.01, 1.5, 1.99], abs=1e-3)
    assert weighting(affinity).isfinite().all()
    fixed = Entmax(2, alpha=1.7)
    assert not list(fixed.parameters())
    assert fixed.alpha.tolist() == pytest.approx([1.7, 1.7])


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"alpha": 1.0}, "above 1"),
        ({"alpha": 2.5}, "above 1"),
        ({"alpha": "lerned"}, "learned"),
        ({"alpha": "learned", "start": 1.0}, "start"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], named: str) -> None:
    with pytest.raises(UserError, match=named):
        Entmax(2, **options)
