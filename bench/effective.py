"""effective: attention weights to effective maps.

The full SVD of the paper against ours; then what a user waits for in all.

Sun and Marasović 2021 (arXiv 2105.08855, §2 and table 3): with an SVD of every value matrix their
evaluation takes twice as long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from bench.batching import split
from bench.lines import BenchResult, Candidate, time_lines
from litotes.core.progress import Watch, ignore_progress
from litotes.encoder import pretrained
from litotes.encoder.encoder import Encoder
from litotes.encoder.layout import Batch
from litotes.encoder.packing import pack
from litotes.encoder.walk import LayerTrace
from litotes.explanation.effective_attention import (
    Attended,
    effective_attention,
    effective_attentions,
)

LENGTHS = (64, 128, 256, 512)
N_ATTENTION_HEADS = 12
HEAD_WIDTH = 64
"""As in BERT."""
MOST_TEXTS = 4
BATCH = 32


def effective(
    texts: Sequence[str],
    *,
    encoder: str = "minilm",
    most_texts: int = MOST_TEXTS,
    n_rounds: int = 5,
    watch: Watch = ignore_progress,
) -> BenchResult:
    """`svd-…` and `litotes-…`: one layer of 12 attention heads for up to 4 texts, 64 to 512 pieces
    long, normal values.

    `maps-standard` and `maps-effective`: the encoder over all texts in batches of 32 with the maps
    of every layer; tokenizing and packing are not timed.
    """
    n_texts = min(len(texts), most_texts)
    candidates: dict[str, Candidate] = {}
    for length in LENGTHS:
        candidates |= _layer(length, n_texts)
    with torch.inference_mode():
        lines = time_lines("effective", candidates, n_texts=n_texts, n_rounds=n_rounds, watch=watch)
        lines += time_lines(
            "effective", _walks(texts, encoder), n_texts=len(texts), n_rounds=n_rounds, watch=watch
        )
    return BenchResult(f"svd-n{LENGTHS[0]}", lines, {})


def by_svd(weights: Tensor, value: Tensor) -> Tensor:
    """A − A N Nᵀ with N, the left singular vectors of V whose singular value is 0.

    (attention_head, query, key)
    """
    # (attention_head, key, key), (attention_head, size)
    left, singular, _ = torch.linalg.svd(value, full_matrices=True)
    zero = max(value.shape[-2:]) * torch.finfo(value.dtype).eps * singular[:, :1]
    # as long as all attention heads have the same rank
    lost = left[:, :, int((singular > zero).sum(-1).min()) :]
    return weights - (weights @ lost) @ lost.mT


def _layer(length: int, n_texts: int) -> dict[str, Candidate]:
    generator = torch.Generator().manual_seed(0)
    attended = [_attended(length, generator) for _ in range(n_texts)]
    baseline = f"svd-n{length}"
    return {
        baseline: Candidate(
            lambda _: [by_svd(weights, value) for weights, value, _ in attended], against=()
        ),
        f"litotes-n{length}": Candidate(
            lambda _: [effective_attention(*one) for one in attended], against=(baseline,)
        ),
    }


def _attended(length: int, generator: torch.Generator) -> Attended:
    weights = torch.randn(N_ATTENTION_HEADS, length, length, generator=generator).softmax(-1)
    value = torch.randn(N_ATTENTION_HEADS, length, HEAD_WIDTH, generator=generator)
    return weights, value, weights @ value


def _walks(texts: Sequence[str], name: str) -> dict[str, Candidate]:
    loaded = pretrained.load(name)
    batches = [pack(part) for part in split(loaded.tokenizer.encode(texts), BATCH)]
    standard = Candidate(
        lambda _: [_maps(loaded.encoder, batch, _standard) for batch in batches], against=()
    )
    effective = Candidate(
        lambda _: [_maps(loaded.encoder, batch, _effective) for batch in batches],
        against=("maps-standard",),
    )
    return {"maps-standard": standard, "maps-effective": effective}


def _maps(encoder: Encoder, batch: Batch, of: Callable[[LayerTrace], list[Tensor]]) -> int:
    """The maps of all texts and layers, layer by layer; returns how many there are, for those of
    all batches would not fit into memory.
    """
    maps: list[Tensor] = []
    encoder(batch, observer=lambda trace: maps.extend(of(trace)))
    return len(maps)


def _standard(trace: LayerTrace) -> list[Tensor]:
    return [view.weights for view in trace.by_text()]


def _effective(trace: LayerTrace) -> list[Tensor]:
    return [
        text.maps
        for text in effective_attentions(
            [(view.weights, view.value, view.mixed) for view in trace.by_text()]
        )
    ]
