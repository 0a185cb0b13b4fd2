"""Seconds of a training step at batch 32: forward, loss, backward, clipping, optimizer, in
bfloat16 under autocast, with dropout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_
from torch.optim import AdamW, Optimizer

from bench import hugging_face
from bench.batching import split
from bench.gpu.classify import KINDS
from bench.gpu.context import GpuBench
from bench.gpu.models import copy_to
from bench.gpu.turns import Attempts, GpuGroup, Makers, time_in_guarded_turns
from bench.lines import BenchResult, Candidate, Line
from bench.train import PADDED, PASSES
from litotes.data.corpus import SENTIMENT
from litotes.encoder import pretrained
from litotes.encoder.packing import TextSet
from litotes.encoder.tokenizer import Pieces
from litotes.model.checkpoint import Model
from litotes.model.classifier import Classifier
from litotes.pruning.cost import flops
from litotes.training.classification import Classification
from litotes.training.inputs import Inputs
from litotes.training.objective import RunContext
from litotes.training.recipe import TrainingSettings

BATCH = 32
N_BATCHES = 8
"""Steps of a round, each of other lengths."""


def training(bench: GpuBench) -> GpuGroup:
    """The large encoder."""
    return _timed(bench, "training", bench.large)


def training_minilm(bench: GpuBench) -> GpuGroup:
    """The small one."""
    return _timed(bench, "training-minilm", bench.small)


def _timed(bench: GpuBench, group: str, models: Mapping[str, Model]) -> GpuGroup:
    parts = split(bench.pieces[: BATCH * N_BATCHES], BATCH)
    makers: dict[str, Callable[[], Candidate]] = {
        PADDED: partial(_padded, bench, models["dense"], parts)
    }
    for kind in KINDS:
        makers[f"litotes-{kind}"] = partial(_own, bench, models[kind], kind, parts)
    attempts = bench.attempts()
    lines = time_steps(bench, group, makers, parts, attempts)
    result = BenchResult(PADDED, lines, attempts.left_out, ms_of=f"a batch of {BATCH}")
    return GpuGroup(result, attempts.failed)


def time_steps(
    bench: GpuBench,
    group: str,
    makers: Makers,
    parts: Sequence[Sequence[Pieces]],
    attempts: Attempts,
) -> tuple[Line, ...]:
    """A line for each candidate, which takes a step for each part."""
    return time_in_guarded_turns(
        group,
        makers,
        attempts,
        n_texts=sum(map(len, parts)),
        n_batches=len(parts),
        n_rounds=bench.n_rounds,
        watch=bench.watch,
    )


def _own(bench: GpuBench, model: Model, kind: str, parts: Sequence[Sequence[Pieces]]) -> Candidate:
    classifier = copy_to(model, bench.device).classifier.train()
    act = our_steps(classifier, parts, bench.device)
    against = (PADDED,) if kind == "dense" else (PADDED, "litotes-dense")
    lengths = [len(text.ids) for part in parts for text in part]
    cost = flops(classifier.encoder, lengths, firsts_only=classifier.firsts_only).total
    return Candidate(act, against=against, flops=PASSES * cost // len(parts))


def our_steps(
    classifier: Classifier,
    parts: Sequence[Sequence[Pieces]],
    device: torch.device,
    *,
    balancing: str = "sum",
) -> Callable[[object], Tensor]:
    """OUR STEP, and the only place that makes it: a step for each batch, as training takes it;
    gives the last loss.
    """
    pieces = [text for part in parts for text in part]
    # any labels will do: the time does not depend on them
    labels = {task: torch.arange(len(pieces)) % 2 for task in classifier.tasks}
    groups = torch.zeros(len(pieces), dtype=torch.long)
    texts = TextSet(pieces, labels, groups, ("all",))
    settings = TrainingSettings(batch_texts=len(parts[0]), balancing=balancing)
    inputs = Inputs(texts, device)
    objective = Classification(classifier, inputs, settings, RunContext(device, Path()), seed=0)
    firsts = range(0, len(pieces), settings.batch_texts)

    def act(_: object) -> Tensor:
        losses = []
        for number, first in enumerate(firsts):
            places = range(first, min(first + settings.batch_texts, len(pieces)))
            losses.append(objective.take_step(places, number))
        return losses[-1]

    return act


def _padded(bench: GpuBench, model: Model, parts: Sequence[Sequence[Pieces]]) -> Candidate:
    encoder = model.classifier.encoder
    ours = pretrained.Pretrained(encoder, model.tokenizer, model.base, None)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        pretrained.save(ours, Path(folder))
        network = hugging_face.classifier_of(folder, n_labels=SENTIMENT.n_outputs)
    network = network.to(bench.device)
    settings = TrainingSettings()
    optimizer = AdamW(
        network.parameters(),
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
        fused=bench.device.type == "cuda",
    )
    batches = []
    for part in parts:
        inputs = hugging_face.padded(part, encoder.spec.padding_piece)
        batches.append({name: tensor.to(bench.device) for name, tensor in inputs.items()})
    act = plain_steps(lambda batch: network(**batch).logits, batches, optimizer, bench.device)
    lengths = [length for part in parts for length in hugging_face.padded_lengths(part)]
    cost = PASSES * flops(encoder, lengths).total // len(parts)
    return Candidate(act, against=(), flops=cost)


def plain_steps(
    logits_of: Callable[[Any], Tensor],
    batches: Sequence[Any],
    optimizer: Optimizer,
    device: torch.device,
) -> Callable[[object], Tensor]:
    """A step for each batch, operation by operation; gives the last loss."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    limit = TrainingSettings().max_gradient_norm

    def act(_: object) -> Tensor:
        for batch in batches:
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device.type, torch.bfloat16):
                logits = logits_of(batch)
            # any labels will do: the time does not depend on them
            labels = torch.arange(len(logits), device=device) % logits.shape[1]
            loss = functional.cross_entropy(logits.float(), labels)
            loss.backward()
            clip_grad_norm_(parameters, limit)
            optimizer.step()
        return loss.detach()

    return act
