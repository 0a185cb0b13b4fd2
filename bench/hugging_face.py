"""The baseline of several benches: a `transformers` model over padded batches, its attention by
torch's fused kernel (sdpa).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn

from litotes.core.errors import UserError
from litotes.encoder import pretrained
from litotes.encoder.tokenizer import Pieces
from litotes.model.checkpoint import Model
from litotes.model.heads import Head, HeadPerTask


def encoder_of(name: str) -> Any:
    """The encoder litotes calls `name`, in evaluation mode."""
    from transformers import AutoModel

    return _load(AutoModel, name).eval()


def classifier_of(name: str, n_labels: int) -> Any:
    """The same with a fresh head over [CLS], ready to be trained."""
    from transformers import AutoModelForSequenceClassification

    return _load(AutoModelForSequenceClassification, name, num_labels=n_labels).train()


def _first(hidden: Tensor, live: Tensor) -> Tensor:
    return hidden[:, 0]


def _mean(hidden: Tensor, live: Tensor) -> Tensor:
    counted = live[:, :, None].to(hidden.dtype)  # (text, piece, 1)
    return (hidden * counted).sum(1) / counted.sum(1)


READERS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"linear": _first, "mean": _mean}
"""The heads that have a baseline, and how they read hidden states (text, piece, width) of which
some are live, (text, piece).
"""


class Baseline(nn.Module):
    """A `transformers` encoder without its pooler, and the head: padded pieces to the logits of all
    tasks side by side, (text, class).
    """

    def __init__(
        self, encoder: nn.Module, read: Callable[[Tensor, Tensor], Tensor], output: nn.Linear
    ) -> None:
        super().__init__()
        self.encoder, self.read, self.output = encoder, read, output

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        # (text, piece, width)
        hidden = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return self.answer(hidden, attention_mask)

    def answer(self, hidden: Tensor, live: Tensor) -> Tensor:
        """The head alone. hidden: (text, piece, width)"""
        return self.output(self.read(hidden, live))


def with_same_weights(model: Model) -> Baseline:
    """Our model as people would write it with `transformers`, in evaluation mode."""
    classifier = model.classifier
    if classifier.head_name not in READERS:
        heads, name = " and ".join(READERS), classifier.head_name
        raise UserError(
            f"The head {name} has no baseline in `transformers`; the heads {heads} have one. Bench"
            " a model with one of these."
        )
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        save_encoder(model, Path(folder))
        encoder = encoder_of(folder)
    if hasattr(encoder, "pooler"):
        encoder.pooler = None  # its output is not read; it would only cost the baseline time
    return Baseline(encoder, READERS[classifier.head_name], _side_by_side(classifier.heads)).eval()


def save_encoder(model: Model, folder: Path) -> None:
    """As a folder that `transformers` reads."""
    encoder = model.classifier.encoder
    pretrained.save(pretrained.Pretrained(encoder, model.tokenizer, model.base, None), folder)


def _side_by_side(heads: nn.Module) -> nn.Linear:
    """The last products of all tasks as one."""
    assert isinstance(heads, HeadPerTask)
    outputs = [head.output for head in heads.values() if isinstance(head, Head)]
    whole = nn.Linear(outputs[0].in_features, sum(output.out_features for output in outputs))
    with torch.no_grad():
        whole.weight.copy_(torch.cat([output.weight for output in outputs]))
        whole.bias.copy_(torch.cat([output.bias for output in outputs]))
    return whole


def padded(texts: Sequence[Pieces], padding_piece: int) -> dict[str, Tensor]:
    """Pieces filled up to the longest text, and which of them are real; both (text, longest)."""
    longest = max(len(text.ids) for text in texts)
    ids, live = [], []
    for text in texts:
        n_pieces = len(text.ids)
        ids.append(text.ids + [padding_piece] * (longest - n_pieces))
        live.append([1] * n_pieces + [0] * (longest - n_pieces))
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(live)}


def padded_lengths(texts: Sequence[Pieces]) -> list[int]:
    return [max(len(text.ids) for text in texts)] * len(texts)


@contextmanager
def quiet() -> Iterator[None]:
    """Neither progress bars nor warnings of `transformers`, such as those about a fresh head, which
    is wanted.
    """
    from transformers.utils import logging

    logging.disable_progress_bar()
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _load(kind: Any, name: str, **choices: Any) -> Any:
    with quiet():
        return kind.from_pretrained(
            pretrained.find_encoder(name)[0],
            attn_implementation="sdpa",
            dtype=torch.float32,
            **choices,
        )
