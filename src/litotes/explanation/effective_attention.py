"""Effective attention: the part of the attention weights that reaches the output.

An attention head gives O = A V. Whatever part of a row of A lies in the left null space of V, {x :
xᵀ V = 0}, is lost in that product:

    A = A∥ + A⊥,   A∥ V = 0,   A⊥ = A V V⁺ = O (Vᵀ V)⁻¹ Vᵀ

A⊥ is the effective attention. Brunner et al. 2020 (arXiv 1908.04211, §3) define it; Sun and
Marasović 2021 (arXiv 2105.08855, §2) compute it by a full SVD of V (key, head_width), which gives
(key, key) singular vectors for every attention head. None of them is needed: with the Cholesky
factor L Lᵀ = Vᵀ V, a matrix of (head_width, head_width), V L⁻ᵀ is an orthonormal basis of V's
columns, and

    A⊥ = (A V L⁻ᵀ) (V L⁻ᵀ)ᵀ = (O L⁻ᵀ) (V L⁻ᵀ)ᵀ

Rows of A⊥ need not sum to 1 and may be negative. Where V has as many independent rows as there are
pieces, nothing is lost and A⊥ = A.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Attended = tuple[Tensor, Tensor, Tensor]
"""Weights (attention_head, query, key), value (attention_head, key, head_width) and mixed = weights
· value of one text's live pieces.
"""

_STEADY = 1e4
"""The largest spread a basis by Cholesky is trusted with: squared in the Gram matrix, it leaves 8
of the 16 digits of float64.
"""
_TELLING = 1e6
"""The same where nothing but full rank is read off the Gram matrix."""
_CALM = 10.0
"""How much larger the rounding errors of an output may become in its coefficients before those are
worked out from the weights.
"""
_LONG = 3
"""From this many pieces per head_width on, coefficients are cheaper from the output than from the
weights.
"""


@dataclass(frozen=True)
class EffectiveAttention:
    """The effective maps of a layer for one text.

    maps: (attention_head, query, key). n_null: the dimension of the left null space of V, keys −
    rank(V). (attention_head,)
    """

    maps: Tensor
    n_null: Tensor


def effective_attention(weights: Tensor, value: Tensor, mixed: Tensor) -> EffectiveAttention:
    """A⊥ of one text's live pieces, all attention heads of a layer at once, in the precision of the
    weights (float32 or float64).

    weights: (attention_head, query, key); value: (attention_head, key, head_width); mixed = weights
    · value: (attention_head, query, head_width). The rank of V is that of
    `torch.linalg.matrix_rank`: singular values up to max(key, head_width) · ε of the largest are
    zero, with the ε of the precision `value` came in.
    """
    return effective_attentions([(weights, value, mixed)])[0]


@torch.no_grad()
def effective_attentions(attended: Sequence[Attended]) -> tuple[EffectiveAttention, ...]:
    """The same of several texts or layers, whatever their lengths: their small matrices are
    factored together, which saves a third.
    """
    places_by_size: dict[int, list[int]] = {}
    for place, (_, value, _) in enumerate(attended):
        places_by_size.setdefault(min(value.shape[-2:]), []).append(place)
    found: dict[int, EffectiveAttention] = {}
    for places in places_by_size.values():
        factors = _factors([attended[place][1] for place in places])
        for place, factor in zip(places, factors, strict=True):
            found[place] = _project(*attended[place], factor)
    return tuple(found[place] for place in range(len(attended)))


@dataclass(frozen=True)
class _Factor:
    """A factor of the smaller Gram matrix, G = L Lᵀ = V Vᵀ or Vᵀ V, of each attention head.

    exact: V in float64, (attention_head, key, head_width). inverse: L⁻¹, (attention_head, size,
    size).
    spreads: √(trace G · trace G⁻¹) by attention head, which is never below V's condition number nor
    above size times that; infinite or no number where G is singular.
    """

    exact: Tensor
    inverse: Tensor
    spreads: tuple[float, ...]


def _factors(values: Sequence[Tensor]) -> list[_Factor]:
    """Factors the Gram matrices of values, all of one size: they are so small that a call costs as
    much as several of them.
    """
    exact = [value.double() for value in values]
    n_heads = [len(value) for value in exact]
    inverse, spreads = _inverse_roots(_gram_matrices(exact, n_heads))
    factors, start = [], 0
    for value, part in zip(exact, inverse.split(n_heads), strict=True):
        factors.append(_Factor(value, part, tuple(spreads[start : start + len(part)])))
        start += len(part)
    return factors


def _inverse_roots(gram: Tensor) -> tuple[Tensor, list[float]]:
    """L⁻¹, (attention_head, size, size), and the spread of each attention head."""
    root, failed = torch.linalg.cholesky_ex(gram)
    one = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device).expand_as(gram)
    inverse = torch.linalg.solve_triangular(root, one, upper=False)
    length = gram.diagonal(dim1=-2, dim2=-1).sum(-1).sqrt()
    return inverse, (length * _norm(inverse)).masked_fill(failed != 0, torch.inf).tolist()


def _gram_matrices(values: Sequence[Tensor], n_heads: Sequence[int]) -> Tensor:
    """V Vᵀ or Vᵀ V, whichever is smaller, of all attention heads. (attention_head, size, size)"""
    size = min(values[0].shape[-2:])
    gram = values[0].new_empty(sum(n_heads), size, size)
    for value, room in zip(values, gram.split(list(n_heads)), strict=True):
        if value.shape[1] == size:
            torch.bmm(value, value.mT, out=room)
        else:
            torch.bmm(value.mT, value, out=room)
    return gram


def _project(weights: Tensor, value: Tensor, mixed: Tensor, factor: _Factor) -> EffectiveAttention:
    n_keys, head_width = value.shape[-2:]
    zero = max(n_keys, head_width) * torch.finfo(value.dtype).eps  # of the largest singular value
    limit = min(1 / zero, _TELLING if n_keys <= head_width else _STEADY)
    maps = weights if n_keys <= head_width else _by_factor(weights, value, mixed, factor)
    n_null = torch.full((len(weights),), max(n_keys - head_width, 0), device=weights.device)
    # no number is not below it either
    shaky = [head for head, spread in enumerate(factor.spreads) if not spread < limit]
    if shaky:
        maps = maps.clone()
        maps[shaky], n_null[shaky] = _by_svd(weights[shaky], factor.exact[shaky], zero)
    return EffectiveAttention(maps, n_null)


def _by_factor(weights: Tensor, value: Tensor, mixed: Tensor, factor: _Factor) -> Tensor:
    """More keys than head_width, full rank. (attention_head, query, key)

    The output carries rounding errors of ε ‖v‖, which L⁻¹ may enlarge: in long texts little, in
    those hardly longer than head_width a lot.
    """
    n_keys, head_width = value.shape[-2:]
    if n_keys > _LONG * head_width and _is_calm(value, factor):
        inverse = factor.inverse.mT.to(weights.dtype)
        return (mixed @ inverse) @ (value @ inverse).mT
    # Here the matrices are small: bmm asks less than @ before it starts, and is twice as fast where
    # both sides lie in rows.
    basis = torch.bmm(factor.exact, factor.inverse.mT)  # (attention_head, key, head_width)
    basis = basis.to(weights.dtype)
    return torch.bmm(torch.bmm(weights, basis), basis.mT.contiguous())


def _is_calm(value: Tensor, factor: _Factor) -> bool:
    longest = torch.linalg.vector_norm(value, dim=-1).amax(-1)  # (attention_head,)
    return bool((longest * _norm(factor.inverse) < _CALM).all())


def _norm(matrices: Tensor) -> Tensor:
    """‖·‖ of Frobenius. (attention_head,)"""
    return torch.linalg.vector_norm(matrices, dim=(-2, -1))


def _by_svd(weights: Tensor, exact: Tensor, zero: float) -> tuple[Tensor, Tensor]:
    """Any V, one after the other.

    The maps (attention_head, query, key), and the dimension of the null space (attention_head,)
    """
    # (attention_head, key, size), (attention_head, size)
    left, singular, _ = torch.linalg.svd(exact, full_matrices=False)
    counts = singular > zero * singular[:, :1]
    n_null = exact.shape[1] - counts.sum(-1)
    basis = (left * counts[:, None]).to(weights.dtype)
    maps = (weights @ basis) @ basis.mT
    return torch.where((n_null == 0)[:, None, None], weights, maps), n_null
