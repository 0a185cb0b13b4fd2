"""Seconds of a training step of every head, dense and pruned by the authors' schedule: tables I and
II of the paper on a GPU.

Nespolo et al., "Figurative Language Understanding": batches of 8, BERT-base. CrossTalk learns with
PCGrad, as theirs does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch

from bench.batching import split
from bench.gpu.context import GpuBench
from bench.gpu.models import copy_to
from bench.gpu.training import our_steps, time_steps
from bench.gpu.turns import GpuGroup
from bench.lines import BenchResult, Candidate, Line
from bench.train import tasks_of
from litotes.encoder.tokenizer import Pieces
from litotes.model.classifier import Classifier
from litotes.model.heads import HEADS

BATCH = 8
N_BATCHES = 16
"""Steps of a round, each of other lengths."""
KINDS = ("dense", "cascade")
REFERENCE = "dense-linear"


def training_heads(bench: GpuBench) -> GpuGroup:
    """The large encoder, a head after the other: a dozen models with their optimizers at once would
    not fit small GPUs.
    """
    parts = split(bench.pieces[: BATCH * N_BATCHES], BATCH)
    attempts = bench.attempts()
    lines: list[Line] = []
    for head in HEADS:
        makers: dict[str, Callable[[], Candidate]] = {
            f"{kind}-{head}": partial(_steps_of, bench, kind, head, parts) for kind in KINDS
        }
        lines += time_steps(bench, "training-heads", makers, parts, attempts)
    result = BenchResult(REFERENCE, tuple(lines), attempts.left_out, ms_of=f"a batch of {BATCH}")
    return GpuGroup(result, attempts.failed)


def _steps_of(
    bench: GpuBench, kind: str, head: str, parts: Sequence[Sequence[Pieces]]
) -> Candidate:
    encoder = copy_to(bench.large[kind], bench.device).classifier.encoder
    torch.manual_seed(0)
    classifier = Classifier(encoder, tasks_of(head), head=head, dropout=0.1)
    classifier = classifier.to(bench.device).train()
    balancing = "pcgrad" if head == "crosstalk" else "sum"
    against = REFERENCE if kind == "dense" else f"dense-{head}"
    act = our_steps(classifier, parts, bench.device, balancing=balancing)
    return Candidate(act, against=() if f"{kind}-{head}" == REFERENCE else (against,))
