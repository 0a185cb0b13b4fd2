"""The opponent in several benches: a `transformers` model over padded batches, its attention by torch's fused kernel (sdpa)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from litotes.data.pieces import Pieces
from litotes.encoders import pretrained


def encoder_of(name: str) -> Any:
    """The encoder litotes calls `name`, in evaluation mode."""
    from transformers import AutoModel

    return _load(AutoModel, name).eval()


def classifier_of(name: str, n_labels: int) -> Any:
    """The same with a fresh head over [CLS], ready to be trained."""
    from transformers import AutoModelForSequenceClassification

    return _load(AutoModelForSequenceClassification, name, num_labels=n_labels).train()


def padded(texts: Sequence[Pieces], padding_piece: int) -> dict[str, Tensor]:
    """Pieces filled up to the longest text, and which of them are real; both (text, longest)."""
    longest = max(len(text.ids) for text in texts)
    ids = torch.tensor([text.ids + [padding_piece] * (longest - len(text.ids)) for text in texts])
    live = torch.tensor([[1] * len(text.ids) + [0] * (longest - len(text.ids)) for text in texts])
    return {"input_ids": ids, "attention_mask": live}


def padded_lengths(texts: Sequence[Pieces]) -> list[int]:
    return [max(len(text.ids) for text in texts)] * len(texts)


def _load(kind: Any, name: str, **choices: Any) -> Any:
    from transformers.utils import logging

    logging.disable_progress_bar()
    before = logging.get_verbosity()
    logging.set_verbosity_error()  # a fresh head is what we want, and no news
    try:
        return kind.from_pretrained(pretrained.locate(name)[0], attn_implementation="sdpa", dtype=torch.float32, **choices)
    finally:
        logging.set_verbosity(before)
