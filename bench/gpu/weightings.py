"""Weightings: attention of 64 texts with 12 attention heads of width 64, forward and with backward,
against torch's sdpa, AdaSplash and the `entmax` package; and our errors against float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from bench.gpu.context import GpuBench
from bench.gpu.inputs import N_ATTENTION_HEADS, Inputs
from bench.gpu.turns import GpuGroup, time_in_guarded_turns
from bench.lines import BenchResult, Candidate
from litotes.encoder.attention.entmax import Entmax
from litotes.encoder.attention.top_k import BlockTopK, TopK
from litotes.encoder.attention.weighting import Softmax, Weighting, affinities

if TYPE_CHECKING:
    from litotes.encoder.attention.weighting import RowRule

LENGTHS = (128, 512)
N_TEXTS = 64
N_CALLS = 10
"""Of a round; each takes the next set of inputs."""
SETS = {128: 8, 512: 3}
"""Sets of inputs that take turns: together far more than the 50 MB of an H200's cache."""
N_COMPARED = 2
"""Texts whose attention is compared with float64."""
SPARSITY, BLOCK = 0.5, 4
ALPHAS = (1.1, 1.9)
"""The learned α of the first attention head and of the last; the others lie between."""


@dataclass(frozen=True)
class Bound:
    """An attention with its inputs. leaves: what a backward pass gives a gradient to."""

    attend: Callable[[], Tensor]
    leaves: tuple[Tensor, ...]

    def forward(self) -> Tensor:
        with torch.no_grad():
            return self.attend()

    def forward_backward(self) -> None:
        for leaf in self.leaves:
            leaf.grad = None
        self.attend().backward(self.leaves[0].detach())  # any gradient of that shape will do


Bind = Callable[[Inputs], Bound]


@dataclass(frozen=True)
class Ours:
    """The definition of a weighting, and what our kernels are told to compute."""

    plain: Weighting
    rule: Callable[[torch.device], RowRule]
    block: int = 1

    def bind(self, inputs: Inputs) -> Bound:
        """Tiles and boundaries lie on the device already, as they do in a pass."""
        from litotes.kernels.attention import Wanted, packed_attention

        inputs, rule = inputs.with_gradients(), self.rule(inputs.query.device)
        by_trains = {
            trains: inputs.packed(self.block, rule.name, trains=trains) for trains in (False, True)
        }

        def attend() -> Tensor:
            packed = by_trains[torch.is_grad_enabled()]
            return packed_attention(packed, rule, wanted=Wanted(), dropout=0.0, seed=None).mixed

        learned = () if rule.alpha is None else (rule.alpha,)
        return Bound(attend, (*inputs.all, *learned))


def our_weightings() -> dict[str, Ours]:
    learned = Entmax(N_ATTENTION_HEADS, alpha="learned")
    learned.a.data = torch.logit(torch.linspace(*ALPHAS, N_ATTENTION_HEADS) - 1)
    top_k = TopK(N_ATTENTION_HEADS, sparsity=SPARSITY)
    block_top_k = BlockTopK(N_ATTENTION_HEADS, sparsity=SPARSITY, block=BLOCK)
    return {
        "softmax": Ours(Softmax(N_ATTENTION_HEADS), partial(_rule, "softmax")),
        "entmax-1.5": Ours(Entmax(N_ATTENTION_HEADS, alpha=1.5), partial(_rule, "squares")),
        "entmax-learned": Ours(learned, partial(_rule, "powers", alpha=learned.alpha.detach())),
        "top_k": Ours(top_k, partial(_choosing_rule, "top_k", 1)),
        "block_top_k": Ours(block_top_k, partial(_choosing_rule, "block_top_k", BLOCK), BLOCK),
    }


def _rule(name: str, device: torch.device, alpha: Tensor | None = None) -> RowRule:
    from litotes.encoder.attention.weighting import RowRule

    if alpha is None:
        return RowRule(name)
    return RowRule(name, alpha=alpha.to(device).clone().requires_grad_())


def _choosing_rule(name: str, block: int, device: torch.device) -> RowRule:
    from litotes.encoder.attention.weighting import RowRule, kept_counts

    return RowRule(name, kept=kept_counts(1 - SPARSITY, device), block=block)


def weightings(bench: GpuBench) -> GpuGroup:
    """All weightings at two lengths; of ours the errors too."""
    lengths = LENGTHS[:1] if bench.is_quick else LENGTHS
    makers: dict[str, Callable[[], Candidate]] = {}
    for length in lengths:
        for ending, run in {"": Bound.forward, "-backward": Bound.forward_backward}.items():
            for name, bind in _all_attentions().items():
                makers[f"{name}-n{length}{ending}"] = partial(
                    _candidate, bench, bind, run, length, ending
                )
    attempts = bench.attempts()
    lines = time_in_guarded_turns(
        "weightings",
        makers,
        attempts,
        n_texts=N_TEXTS * N_CALLS,
        n_batches=N_CALLS,
        n_rounds=bench.n_rounds,
        watch=bench.watch,
        clock=bench.clock,
    )
    facts: dict[str, dict[str, float]] = {}
    for length in lengths:
        for name, ours in our_weightings().items():
            key = f"litotes-{name}-n{length}"
            found = attempts.attempt(key, partial(errors, ours, length, bench.device, bench.dtype))
            facts |= {} if found is None else {key: found}
    result = BenchResult(
        f"sdpa-n{lengths[0]}",
        lines,
        attempts.left_out,
        ms_of=f"{N_TEXTS} texts, by the GPU's clock",
    )
    return GpuGroup(result, attempts.failed, facts)


def _candidate(
    bench: GpuBench, bind: Bind, run: Callable[[Bound], object], length: int, ending: str
) -> Candidate:
    draw = partial(Inputs.draw, [length] * N_TEXTS, device=bench.device, dtype=bench.dtype)
    sets = [bind(draw(seed=seed)) for seed in range(SETS.get(length, 1))]
    against = tuple(f"{name}-n{length}{ending}" for name in OPPONENTS)

    def act(_: object) -> None:
        for bound in islice(cycle(sets), N_CALLS):
            run(bound)

    return Candidate(act, against=against)


def _all_attentions() -> dict[str, Bind]:
    """By the beginnings of their lines' names. Opponents that tune themselves at length come last:
    where time is up, theirs are the lines that are missing.
    """
    ours = {f"litotes-{name}": ours.bind for name, ours in our_weightings().items()}
    return {"sdpa": _sdpa} | ours | OPPONENTS


def _in_rows(inputs: Inputs, attend: Callable[..., Tensor]) -> Bound:
    """For those that take (text, attention_head, piece, head_width)."""
    rows = tuple(tensor.contiguous().detach().requires_grad_() for tensor in inputs.rows())
    return Bound(partial(attend, *rows), rows)


def _sdpa(inputs: Inputs) -> Bound:
    return _in_rows(inputs, functional.scaled_dot_product_attention)


def _adasplash(inputs: Inputs) -> Bound:
    from adasplash import adasplash  # type: ignore[import-not-found]

    return _in_rows(inputs, partial(adasplash, alpha=1.5, is_causal=False))


def _entmax_package(inputs: Inputs) -> Bound:
    from entmax import entmax15

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return entmax15(affinities(query, key), dim=-1) @ value

    return _in_rows(inputs, attend)


OPPONENTS: dict[str, Bind] = {
    "sdpa": _sdpa,
    "adasplash": _adasplash,
    "entmax-package": _entmax_package,
}


def errors(ours: Ours, length: int, device: torch.device, dtype: torch.dtype) -> dict[str, float]:
    """|ours − exact| / |exact|, in float32 and in `dtype`; exact: float64 from the same inputs."""
    found = {}
    for kind in dict.fromkeys((torch.float32, dtype)):
        inputs = Inputs.draw([length] * N_COMPARED, 0, device, kind)
        with torch.no_grad():
            mixed = ours.bind(inputs).attend().double()
            rows = [tensor.double() for tensor in inputs.rows()]
            exact = ours.plain.to(device).double().attend(*rows).transpose(1, 2).flatten(0, 1)
        error = ((mixed - exact).norm() / exact.norm()).item()
        found[f"error_{str(kind).removeprefix('torch.')}"] = float(f"{error:.3g}")
    return found
