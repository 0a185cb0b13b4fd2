"""attention: what pruning saves of inference, pieces to hidden states.

Hugging Face padded, litotes packed: dense, cascade, learned.

Each line is compared with Hugging Face and, apart from that, with our own dense encoder: what
packing gains is no merit of pruning.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from bench import hugging_face
from bench.batching import split
from bench.lines import BenchResult, Candidate, time_lines
from litotes.core.progress import Watch, ignore_progress
from litotes.encoder import pretrained
from litotes.encoder.encoder import Encoder
from litotes.encoder.layout import Batch
from litotes.encoder.packing import pack
from litotes.encoder.reshaping import rebuild_encoder
from litotes.encoder.tokenizer import Pieces
from litotes.pruning.cost import flops

BATCH = 32
PADDED = "hf-padded-32"
COMPARED = {"dense": "none", "cascade": "cascade", "learned": "learned"}
"""Names of lines and the prunings they stand for, each as it is without options: cascade with its
authors' schedule.
"""
READERS = {"": False, "-linear": True}
"""How names end, and whether first pieces alone are read: by a head such as mean, which wants all
pieces, or by the head linear.
"""


def attention(
    texts: Sequence[str],
    *,
    encoder: str = "minilm",
    n_rounds: int = 5,
    watch: Watch = ignore_progress,
) -> BenchResult:
    """All texts in batches of 32, in their order; tokenizing, packing and padding are not timed."""
    loaded = pretrained.load(encoder)
    parts = split(loaded.tokenizer.encode(texts), BATCH)
    candidates: dict[str, Candidate] = {}
    left_out = {}
    try:
        candidates[PADDED] = _padded(encoder, loaded.encoder, parts)
    except ImportError:
        left_out[PADDED] = "transformers"
    candidates |= _packed(loaded.encoder, parts)
    with torch.inference_mode():
        lines = time_lines(
            "attention", candidates, n_texts=len(texts), n_rounds=n_rounds, watch=watch
        )
    return BenchResult(PADDED, lines, left_out)


def _padded(name: str, encoder: Encoder, parts: Sequence[Sequence[Pieces]]) -> Candidate:
    reference = hugging_face.encoder_of(name)
    batches = [hugging_face.padded(part, encoder.spec.padding_piece) for part in parts]
    lengths = [length for part in parts for length in hugging_face.padded_lengths(part)]
    return Candidate(
        lambda _: [reference(**batch) for batch in batches],
        against=(),
        flops=flops(encoder, lengths).total,
    )


def _packed(encoder: Encoder, parts: Sequence[Sequence[Pieces]]) -> dict[str, Candidate]:
    batches = [pack(part) for part in parts]
    encoders = {}
    for name, pruning in COMPARED.items():
        encoders[name] = rebuild_encoder(encoder, pruning=pruning)
    candidates = {}
    for ending, firsts_only in READERS.items():
        for name, own in encoders.items():
            against = (PADDED,) if name == "dense" else (PADDED, f"litotes-dense{ending}")
            candidate = _candidate(own, batches, firsts_only=firsts_only, against=against)
            candidates[f"litotes-{name}{ending}"] = candidate
    return candidates


def _candidate(
    encoder: Encoder, batches: Sequence[Batch], *, firsts_only: bool, against: tuple[str, ...]
) -> Candidate:
    lengths = [length for batch in batches for length in batch.layout.lengths]
    cost = flops(encoder, lengths, firsts_only=firsts_only)
    return Candidate(
        lambda _: [encoder(batch, firsts_only=firsts_only) for batch in batches],
        against=against,
        flops=cost.total,
    )
