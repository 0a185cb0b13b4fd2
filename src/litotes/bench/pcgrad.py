"""pcgrad: from two losses to the gradients of a step.

Two plain backward passes against ours and torchjd's gradient surgery.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from litotes.bench.lines import BenchResult, Candidate, time_lines
from litotes.core.progress import Watch, unwatched
from litotes.data.tasks import SARCASM, SENTIMENT
from litotes.encoders import pretrained
from litotes.encoders.encoding import Encoding
from litotes.heads import HeadPerTask
from litotes.model.classifier import Classifier
from litotes.text.packing import pack
from litotes.training.balancing.pcgrad import PCGrad
from litotes.training.processes import Processes

BATCH = 16
"""Texts of the step that is timed: those of our default training."""


def pcgrad(
    texts: Sequence[str], *, encoder: str = "minilm", n_rounds: int = 5, watch: Watch = unwatched
) -> BenchResult:
    """One batch of the texts and two tasks made to conflict (where they agree there is less to do);
    the forward pass is not timed.
    """
    loaded = pretrained.load(encoder)
    torch.manual_seed(0)
    classifier = Classifier(
        loaded.encoder, [SENTIMENT, SARCASM], head="multitask", dropout=0.0
    ).train()
    heads = classifier.heads
    assert isinstance(heads, HeadPerTask)
    heads["sarcasm"].load_state_dict(heads["sentiment"].state_dict())
    batch = pack(loaded.tokenizer.encode(texts[:BATCH]))
    parameters = list(classifier.parameters())
    labels = torch.randint(0, 2, (batch.layout.n_texts,))
    gold = (labels, 1 - labels)  # two equal heads asked for opposite answers

    def forward() -> tuple[Tensor, list[Tensor]]:
        classifier.zero_grad(set_to_none=True)
        hidden = classifier.encoder(batch).hidden
        logits = classifier.read(Encoding(hidden, batch.layout, batch.layout.positions)).values()
        return hidden, [
            torch.nn.functional.cross_entropy(values, wanted)
            for values, wanted in zip(logits, gold, strict=True)
        ]

    def two_backwards(made: tuple[Tensor, list[Tensor]]) -> None:
        first, second = made[1]
        first.backward(retain_graph=True)
        second.backward()

    def ours(made: tuple[Tensor, list[Tensor]]) -> None:
        PCGrad(2).backward(made[1], parameters, processes=Processes(), step=0)

    candidates = {
        "two-backwards": Candidate(two_backwards, forward),
        "litotes": Candidate(ours, forward),
    }
    left_out = {}
    try:
        from torchjd.aggregation import PCGrad as Theirs
        from torchjd.autojac import jac_to_grad, mtl_backward
    except ImportError:
        left_out["torchjd"] = "torchjd"
    else:

        def theirs(made: tuple[Tensor, list[Tensor]]) -> None:
            mtl_backward(made[1], features=made[0], parallel_chunk_size=1)
            jac_to_grad(classifier.encoder.parameters(), Theirs())

        candidates["torchjd"] = Candidate(theirs, forward)
    lines = time_lines(
        "pcgrad", candidates, n_texts=batch.layout.n_texts, n_rounds=n_rounds, watch=watch
    )
    return BenchResult("two-backwards", lines, left_out)
