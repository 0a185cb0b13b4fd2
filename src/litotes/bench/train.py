"""train: seconds per batch of whole training steps (forward, loss, backward, optimizer), as in
tables I and II of the paper.

Nespolo et al., "Figurative Language Understanding": batches of 8, every head dense and with cascade
pruning. Dropout is on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_
from torch.optim import AdamW, Optimizer

from litotes.bench import hugging_face
from litotes.bench.lines import BenchResult, Candidate, Line, time_lines
from litotes.core.progress import Watch, ignore_progress
from litotes.core.registry import pick
from litotes.data.tasks import SARCASM, SENTIMENT
from litotes.encoders import pretrained
from litotes.encoders.encoder import Encoder
from litotes.encoders.reshaping import rebuild_encoder
from litotes.heads import HEADS
from litotes.model.classifier import Classifier
from litotes.prune.cost import flops
from litotes.text.packing import pack
from litotes.text.tokenizer import Pieces
from litotes.training.checkpoints import trainable_parameters
from litotes.training.optimizer import make_optimizer
from litotes.training.settings import TrainingSettings

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
    parts = [pieces[start : start + batch_texts] for start in range(0, len(pieces), batch_texts)]
    lines: list[Line] = []
    left_out: dict[str, str] = {}
    # head after head: a dozen models with their optimizers would not fit small machines
    for head in heads:
        torch.manual_seed(0)
        candidates = {
            name_of(kind, head): _packed(loaded.encoder, parts, head=head, kind=kind)
            for kind in COMPARED
        }
        if head == "linear":
            try:
                candidates = {PADDED: _padded(encoder, loaded.encoder, parts), **candidates}
            except ImportError:
                left_out[PADDED] = "transformers"
        lines += time_lines(
            "train",
            candidates,
            n_texts=len(pieces),
            n_batches=len(parts),
            n_rounds=n_rounds,
            watch=watch,
        )
    return BenchResult(PADDED, tuple(lines), left_out, ms_of=f"a batch of {batch_texts}")


def name_of(kind: str, head: str) -> str:
    return f"litotes-{kind}" if head == "linear" else f"litotes-{kind}-{head}"


def table_of_heads(bench: BenchResult) -> list[tuple[str, float, float]]:
    """Rows in the manner of the paper's tables: head, seconds per batch dense, seconds per batch
    with cascade pruning.
    """
    seconds = {line.name: line.ms / 1000 for line in bench.lines}
    there = [head for head in HEADS if name_of("dense", head) in seconds]
    return [
        (head, seconds[name_of("dense", head)], seconds[name_of("cascade", head)]) for head in there
    ]


def _packed(
    encoder: Encoder, parts: Sequence[Sequence[Pieces]], *, head: str, kind: str
) -> Candidate:
    tasks = (SENTIMENT, SARCASM) if head in OF_TWO_TASKS else (SENTIMENT,)
    own = rebuild_encoder(encoder, pruning=COMPARED[kind])
    classifier = Classifier(own, tasks, head=head, dropout=0.1).train()
    parameters = trainable_parameters(classifier)
    optimizer = make_optimizer(parameters, TrainingSettings())
    act = _training(
        lambda batch: classifier(batch).values(), [pack(part) for part in parts], optimizer
    )
    lengths = [len(text.ids) for part in parts for text in part]
    n_operations = (
        PASSES * flops(own, lengths, firsts_only=classifier.firsts_only).total // len(parts)
    )
    padded, dense = (PADDED,) * (head == "linear"), (name_of("dense", head),) * (kind != "dense")
    return Candidate(act, against=padded + dense, flops=n_operations)


def _padded(name: str, encoder: Encoder, parts: Sequence[Sequence[Pieces]]) -> Candidate:
    model = hugging_face.classifier_of(name, n_labels=SENTIMENT.n_outputs)
    settings = TrainingSettings()
    optimizer = AdamW(
        model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    batches = [hugging_face.padded(part, encoder.spec.padding_piece) for part in parts]
    act = _training(lambda batch: [model(**batch).logits], batches, optimizer)
    lengths = [length for part in parts for length in hugging_face.padded_lengths(part)]
    return Candidate(act, against=(), flops=PASSES * flops(encoder, lengths).total // len(parts))


def _training(
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
            losses = [
                functional.cross_entropy(logits, _labels(len(logits)))
                for logits in logits_of(batch)
            ]
            torch.stack(losses).sum().backward()
            clip_grad_norm_(parameters, limit)
            optimizer.step()

    return act


def _labels(n_texts: int) -> Tensor:
    """Any will do: the time of a step does not depend on them. (text,)"""
    return torch.arange(n_texts) % 2
