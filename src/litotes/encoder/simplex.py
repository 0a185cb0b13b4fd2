"""α-entmax: from affinities to weights many of which are exactly 0, and the exact gradient.

    w_k = [(α − 1) a_k − τ]₊^β,   β = 1 / (α − 1),   τ such that Σ_k w_k = 1

α → 1 is softmax, α = 2 is sparsemax (Peters, Niculae & Martins 2019, arXiv 1905.05702, §3). The
same, measured from the row's best key:

    w_k ∝ v_k^β,   v_k = [1 − gap_k / reach]₊,   gap_k = max a − a_k,
    reach such that (reach / β) (Σ_k v_k^β)^{1/β} = 1

so `reach` is how far behind the best a key may lie and still get weight. That last norm is convex
in the reach for every α in (1, 2] and nearly straight for small α: Newton's steps on it, from reach
= β downwards, never overshoot and end after 3 to 6 rounds; bisection needs 24.

Everything is computed in float32 at least, whatever the affinities are. On a CPU some rows are done
at a time, few enough to stay in the cache, so that memory is read once and written once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

CHUNK = 2**18
"""Affinities done at a time on a CPU, 1 MB: with fewer the time goes into starting operations, with
more they leave the cache.
"""

MOST_ROUNDS = 30
"""Far more than needed: reached only when the last digit of a very long row does not settle."""


def entmax(affinity: Tensor, alpha: float | Tensor = 1.5) -> Tensor:
    """Weights over the last axis, in the shape and type of `affinity`; differentiable in both
    arguments.

    alpha: in (1, 2]; a number, or a tensor that broadcasts to (text, attention_head, query, 1).
    """
    return _Entmax.apply(affinity, alpha)


class _Entmax(torch.autograd.Function):
    """The gradient needs nothing but the weights (Correia, Niculae & Martins 2019, arXiv
    1909.00015, Proposition 1).

    With s_k = w_k^{2−α}, g what comes in and q = Σ s_k g_k / Σ s_k:

        ∂a_k = s_k (g_k − q)
        ∂α   = −Σ_k w_k (g_k − q) (e^{y_k} − 1 − y_k) / (α − 1)²,   y_k = −(α − 1) log w_k

    The second is theirs minus Σ_k s_k (g_k − q) / (α − 1)² = 0: like this nothing cancels as α → 1.
    """

    @staticmethod
    def forward(ctx: Any, affinity: Tensor, alpha: float | Tensor) -> Tensor:
        precise = torch.promote_types(affinity.dtype, torch.float32)
        rows = affinity.reshape(-1, affinity.shape[-1])  # (row, key)
        weights = torch.empty(rows.shape, dtype=precise, device=rows.device)
        ctx.curve = _curve(alpha, affinity.shape, like=weights)
        ctx.alpha_shape = alpha.shape if isinstance(alpha, Tensor) else None
        for some in _chunks(rows):
            _solve(rows[some].to(precise), ctx.curve.of(some), out=weights[some])
        ctx.save_for_backward(weights)
        return weights.view(affinity.shape).to(affinity.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None]:
        (weights,) = ctx.saved_tensors
        incoming = gradient.reshape(weights.shape)  # (row, key)
        to_affinity = torch.empty_like(weights)
        to_alpha = weights.new_empty(len(weights), 1)
        for some in _chunks(weights):
            curve = ctx.curve.of(some)
            pulled = incoming[some].to(weights.dtype)
            mean = _pull(weights[some], pulled, curve, out=to_affinity[some])
            if ctx.needs_input_grad[1]:
                to_alpha[some] = _pull_on_alpha(weights[some], pulled - mean, curve.alpha)
        back = to_affinity.view(gradient.shape).to(gradient.dtype)
        if not ctx.needs_input_grad[1]:
            return back, None
        return back, to_alpha.view(*gradient.shape[:-1], 1).sum_to_size(ctx.alpha_shape)


def _chunks(rows: Tensor) -> Iterator[slice]:
    """Takes as many rows as fit the cache; all at once on an accelerator, where each chunk would
    cost another launch.
    """
    n_rows, n_keys = rows.shape
    size = max(1, CHUNK // max(1, n_keys)) if rows.device.type == "cpu" else max(1, n_rows)
    return (slice(start, start + size) for start in range(0, n_rows, size))


def _solve(affinity: Tensor, curve: Curve, *, out: Tensor) -> None:
    """Weights of some rows (row, key), written to `out`."""
    behind = affinity - affinity.amax(-1, keepdim=True)  # −gap (row, key)
    reach = torch.zeros_like(behind[:, :1]).add_(curve.beta)  # (row, 1)
    close = curve.close(torch.finfo(out.dtype).eps)
    for _ in range(MOST_ROUNDS):
        excess, step = curve.measure(behind, reach, out)
        reach -= step
        if bool((excess <= close).all()):
            break
    curve.weigh(behind, reach, out)


def _pull(weights: Tensor, incoming: Tensor, curve: Curve, *, out: Tensor) -> Tensor:
    """The gradient s (g − q), written to `out` (row, key); gives q. (row, 1)"""
    slope = curve.slope(weights)
    mean = torch.mul(slope, incoming, out=out).sum(-1, keepdim=True) / slope.sum(-1, keepdim=True)
    out.addcmul_(slope, mean, value=-1)
    return mean


def _pull_on_alpha(weights: Tensor, centred: Tensor, alpha: Tensor) -> Tensor:
    """∂α of each row from g − q. (row, 1)"""
    y = (1 - alpha) * _log(weights)  # (row, key)
    return -(weights * centred * (y.expm1() - y)).sum(-1, keepdim=True) / (alpha - 1) ** 2


def _log(weights: Tensor) -> Tensor:
    """The logarithm, finite where w = 0: there it only ever meets a factor w."""
    return weights.clamp(min=torch.finfo(weights.dtype).tiny).log()


class Curve:
    """The curve for α, one per row (row, 1): the power β of v, and all that is computed with it.

    By logarithms: for small α v is near 1, and log1p keeps the digits that v^β needs.
    """

    beta: Any  # a number where α is one

    def __init__(self, alpha: Tensor) -> None:
        self.alpha = alpha
        self.beta = 1 / (alpha - 1)

    def of(self, some: slice) -> Curve:
        """The curve of some of the rows."""
        return Curve(self.alpha[some])

    def measure(self, behind: Tensor, reach: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
        """Measures the norm's excess over its goal, and the step that the reach should shrink by.

        (row, 1) each; `out` is scratch paper.

        With A = Σ_k v_k^β and B = Σ_k v_k^{β−1} the excess is E = (reach / β) A^{1/β} − 1, Newton's
        step β E A^{1−1/β} / B.
        """
        lower, total = self._sums(behind, reach, out)
        norm = total ** (1 / self.beta)
        excess = reach / self.beta * norm - 1
        return excess, self.beta * excess * total / (norm * lower)

    def weigh(self, behind: Tensor, reach: Tensor, out: Tensor) -> None:
        """v^β / Σ v^β, written to `out`. (row, key)"""
        _, total = self._sums(behind, reach, out)
        out.div_(total)

    def _sums(self, behind: Tensor, reach: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
        """B and A, (row, 1) each; leaves v^β in `out`."""
        v = torch.div(behind, reach).clamp_(min=-1)  # minus 1 (row, key)
        # The exponent stays off 0 × −∞ and off what makes denormals, which are slow; where v = 0
        # the product with v is 0 all the same.
        lowest = math.log(torch.finfo(out.dtype).tiny) / 2
        # v^(β−1)
        torch.log1p(v, out=out).mul_((self.beta - 1).clamp(min=1e-30)).clamp_(min=lowest).exp_()
        lower = out.sum(-1, keepdim=True)
        return lower, out.mul_(v.add_(1)).sum(-1, keepdim=True)

    def close(self, epsilon: float) -> float | Tensor:
        """The excess that one more step takes away: a step raises what is left to the power min(β,
        2).
        """
        return 4 * epsilon ** (1 / self.beta.clamp(max=2))

    def slope(self, weights: Tensor) -> Tensor:
        """w^{2−α} where there is weight, 0 elsewhere. (row, key)"""
        return weights * ((1 - self.alpha) * _log(weights)).exp_()


class Fixed(Curve):
    """One α for all rows."""

    def __init__(self) -> None:
        """Its numbers stand in its formulas."""

    def of(self, _: slice) -> Curve:
        return self


class Squares(Fixed):
    """α = 1.5, without a logarithm or a power."""

    beta = 2.0

    def measure(self, behind: Tensor, reach: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
        torch.add(behind, reach, out=out).relu_()  # reach × v (row, key)
        norm = torch.linalg.vector_norm(out, dim=-1, keepdim=True)
        excess = norm - 2  # twice E
        return excess, excess * norm / out.sum(-1, keepdim=True)

    def weigh(self, behind: Tensor, reach: Tensor, out: Tensor) -> None:
        torch.add(behind, reach, out=out).relu_()
        out.div_(torch.linalg.vector_norm(out, dim=-1, keepdim=True)).square_()

    def close(self, epsilon: float) -> float:
        return 4 * math.sqrt(epsilon)

    def slope(self, weights: Tensor) -> Tensor:
        return weights.sqrt()


class Lines(Fixed):
    """α = 2: each step is exact as soon as no more keys fall out of reach."""

    beta = 1.0

    def measure(self, behind: Tensor, reach: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
        excess = torch.add(behind, reach, out=out).relu_().sum(-1, keepdim=True) - 1
        return excess, excess / out.sign_().sum(-1, keepdim=True)

    def weigh(self, behind: Tensor, reach: Tensor, out: Tensor) -> None:
        torch.add(behind, reach, out=out).relu_()
        out.div_(out.sum(-1, keepdim=True))

    def close(self, epsilon: float) -> float:
        return 4 * epsilon

    def slope(self, weights: Tensor) -> Tensor:
        return weights.sign()


SHORTER: dict[float, Curve] = {1.5: Squares(), 2.0: Lines()}


def _curve(alpha: float | Tensor, shape: torch.Size, *, like: Tensor) -> Curve:
    """The cheapest curve for this α, for all rows of affinities of that shape."""
    if isinstance(alpha, float) and alpha in SHORTER:
        return SHORTER[alpha]
    alpha = torch.as_tensor(alpha, dtype=like.dtype, device=like.device).detach()
    return Curve(alpha.expand(*shape[:-1], 1).reshape(-1, 1))
