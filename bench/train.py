"""train: seconds per batch of whole training steps (forward, loss, backward, optimizer), as in
tables I and II of the paper.

Nespolo et al., "Figurative Language Understanding": batches of 8, every head dense and with cascade
pruning. Dropout is on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_
from torch.optim import AdamW, Optimizer

from bench import hugging_face
from bench.batching import split
from bench.lines import BenchResult, Candidate, Line, time_lines
from litotes.core.progress import Watch, ignore_progress
from litotes.core.registry import pick
from litotes.core.values import Task
from litotes.data.corpus import SARCASM, SENTIMENT
from litotes.encoder import pretrained
from litotes.encoder.encoder import Encoder
from litotes.encoder.packing import pack
from litotes.encoder.reshaping import rebuild_encoder
from litotes.encoder.tokenizer import Pieces
from litotes.model.classifier import Classifier
from litotes.model.heads import HEADS
from litotes.pruning.cost import flops
from litotes.training.checkpoints import trainable_parameters
from litotes.training.optimizer import make_optimizer
from litotes.training.recipe import TrainingSettings

PADDED = "hf-padded"
COMPARED = {"dense": "none", "cascade": "cascade"}
OF_TWO_TASKS = ("multitask", "crosstalk")
"""Heads that are there for several tasks: they get sentiment and sarcasm, the others sentiment
alone.
"""
N_BATCHES = 4
"""Steps of a round; texts differ in length, so a single batch would say little."""
PASSES = 3
"""The backward pass of a matrix product is two products of the same size."""


def train(
    texts: Sequence[str],
    *,
    encoder: str = "minilm",
    heads: Sequence[str] = ("linear",),
    batch_texts: int = 8,
    n_rounds: int = 5,
    watch: Watch = ignore_progress,
) -> BenchResult:
    """The first batches of the texts, the same for all.

    The candidates of a head take turns; Hugging Face trains the head linear.
    """
    for head in heads:
        pick(HEADS, head, "head")
    loaded = pretrained.load(encoder)
    pieces = loaded.tokenizer.encode(texts[: N_BATCHES * batch_texts])
    parts = split(pieces, batch_texts)
    time = partial(
        time_lines,
        "train",
        n_texts=len(pieces),
        n_batches=len(parts),
        n_rounds=n_rounds,
        watch=watch,
    )
    lines: list[Line] = []
    left_out: dict[str, str] = {}
    # head after head: a dozen models with their optimizers would not fit small machines
    for head in heads:
        torch.manual_seed(0)
        candidates = {}
        for kind in COMPARED:
            candidates[name_of(kind, head)] = _packed(loaded.encoder, parts, head=head, kind=kind)
        if head == "linear":
            try:
                candidates = {PADDED: _padded(encoder, loaded.encoder, parts), **candidates}
            except ImportError:
                left_out[PADDED] = "transformers"
        lines += time(candidates)
    return BenchResult(PADDED, tuple(lines), left_out, ms_of=f"a batch of {batch_texts}")


def tasks_of(head: str) -> tuple[Task, ...]:
    return (SENTIMENT, SARCASM) if head in OF_TWO_TASKS else (SENTIMENT,)


def name_of(kind: str, head: str) -> str:
    return f"litotes-{kind}" if head == "linear" else f"litotes-{kind}-{head}"


def table_of_heads(bench: BenchResult) -> list[tuple[str, float, float]]:
    """Rows like those of the paper's tables: head, seconds per batch dense, seconds per batch with
    cascade pruning.
    """
    seconds = {line.name: line.ms / 1000 for line in bench.lines}
    rows = []
    for head in HEADS:
        dense, cascade = name_of("dense", head), name_of("cascade", head)
        if dense in seconds:
            rows.append((head, seconds[dense], seconds[cascade]))
    return rows


def _packed(
    encoder: Encoder, parts: Sequence[Sequence[Pieces]], *, head: str, kind: str
) -> Candidate:
    own = rebuild_encoder(encoder, pruning=COMPARED[kind])
    classifier = Classifier(own, tasks_of(head), head=head, dropout=0.1).train()
    optimizer = make_optimizer(trainable_parameters(classifier), TrainingSettings())
    batches = [pack(part) for part in parts]
    act = _make_steps(lambda batch: classifier(batch).values(), batches, optimizer)
    lengths = [length for batch in batches for length in batch.layout.lengths]
    cost = flops(own, lengths, firsts_only=classifier.firsts_only)
    against = []
    if head == "linear":
        against.append(PADDED)
    if kind != "dense":
        against.append(name_of("dense", head))
    return Candidate(act, against=tuple(against), flops=PASSES * cost.total // len(parts))


def _padded(name: str, encoder: Encoder, parts: Sequence[Sequence[Pieces]]) -> Candidate:
    model = hugging_face.classifier_of(name, n_labels=SENTIMENT.n_outputs)
    settings = TrainingSettings()
    rate, decay = settings.learning_rate, settings.weight_decay
    optimizer = AdamW(model.parameters(), lr=rate, weight_decay=decay)
    batches = [hugging_face.padded(part, encoder.spec.padding_piece) for part in parts]
    act = _make_steps(lambda batch: [model(**batch).logits], batches, optimizer)
    lengths = [length for part in parts for length in hugging_face.padded_lengths(part)]
    return Candidate(act, against=(), flops=PASSES * flops(encoder, lengths).total // len(parts))


def _make_steps(
    logits_of: Callable[[Any], Iterable[Tensor]], batches: Sequence[Any], optimizer: Optimizer
) -> Callable[[object], None]:
    """A step for each batch: logits (text, class) of every task, losses, gradients no longer than
    the limit, new weights.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    limit = TrainingSettings().max_gradient_norm

    def act(_: object) -> None:
        for batch in batches:
            optimizer.zero_grad(set_to_none=True)
            losses = []
            for logits in logits_of(batch):
                labels = torch.arange(len(logits)) % 2  # any: the time does not depend on them
                losses.append(functional.cross_entropy(logits, labels))
            torch.stack(losses).sum().backward()
            clip_grad_norm_(parameters, limit)
            optimizer.step()

    return act
