"""pcgrad: from two losses to the gradients of a step.

Two plain backward passes against ours and torchjd's gradient surgery.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from bench.lines import BenchResult, Candidate, time_lines
from litotes.core.progress import Watch, ignore_progress
from litotes.data.corpus import SARCASM, SENTIMENT
from litotes.encoder import pretrained
from litotes.encoder.packing import pack
from litotes.encoder.walk import Encoding
from litotes.model.classifier import Classifier
from litotes.model.heads import HeadPerTask
from litotes.training.balancing import PCGrad
from litotes.training.processes import Processes

BATCH = 16
"""Texts of the step that is timed: those of our default training."""

Forward = tuple[Tensor, list[Tensor]]
"""Hidden states (piece, width), and the loss of each task."""


def pcgrad(
    texts: Sequence[str],
    *,
    encoder: str = "minilm",
    n_rounds: int = 5,
    watch: Watch = ignore_progress,
) -> BenchResult:
    """One batch of the texts and two tasks made to conflict (where they agree there is less to do);
    the forward pass is not timed.
    """
    step = ConflictingStep(encoder, texts[:BATCH])
    candidates = {
        "two-backwards": Candidate(step.backward_twice, step.forward),
        "litotes": Candidate(step.backward_with_ours, step.forward),
    }
    left_out = {}
    try:
        candidates["torchjd"] = Candidate(step.backward_with_torchjd(), step.forward)
    except ImportError:
        left_out["torchjd"] = "torchjd"
    n_texts = step.batch.layout.n_texts
    lines = time_lines("pcgrad", candidates, n_texts=n_texts, n_rounds=n_rounds, watch=watch)
    return BenchResult("two-backwards", lines, left_out)


class ConflictingStep:
    """A step with two tasks whose gradients point against each other: two equal heads with
    opposite targets.
    """

    def __init__(self, encoder: str, texts: Sequence[str]) -> None:
        loaded = pretrained.load(encoder)
        torch.manual_seed(0)
        tasks = [SENTIMENT, SARCASM]
        self.classifier = Classifier(loaded.encoder, tasks, head="multitask", dropout=0.0).train()
        heads = self.classifier.heads
        assert isinstance(heads, HeadPerTask)
        heads["sarcasm"].load_state_dict(heads["sentiment"].state_dict())
        self.batch = pack(loaded.tokenizer.encode(texts))
        labels = torch.randint(0, 2, (self.batch.layout.n_texts,))
        self.targets = (labels, 1 - labels)
        self.parameters = list(self.classifier.parameters())

    def forward(self) -> Forward:
        self.classifier.zero_grad(set_to_none=True)
        hidden = self.classifier.encoder(self.batch).hidden
        layout = self.batch.layout
        logits = self.classifier.read(Encoding(hidden, layout, layout.positions)).values()
        pairs = zip(logits, self.targets, strict=True)
        return hidden, [functional.cross_entropy(values, wanted) for values, wanted in pairs]

    def backward_twice(self, made: Forward) -> None:
        _, (first, second) = made
        first.backward(retain_graph=True)
        second.backward()

    def backward_with_ours(self, made: Forward) -> None:
        _, losses = made
        PCGrad(2).backward([losses], self.parameters, processes=Processes(), step=0)

    def backward_with_torchjd(self) -> Callable[[Forward], None]:
        from torchjd.aggregation import PCGrad as Theirs
        from torchjd.autojac import jac_to_grad, mtl_backward

        def backward(made: Forward) -> None:
            hidden, losses = made
            mtl_backward(losses, features=hidden, parallel_chunk_size=1)
            jac_to_grad(self.classifier.encoder.parameters(), Theirs())

        return backward
