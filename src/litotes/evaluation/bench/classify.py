"""classify: texts to last hidden states, tokenizing included. Hugging Face padded (sdpa) against litotes packed, dense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from litotes.data.packing import pack
from litotes.encoders import pretrained
from litotes.evaluation.bench import hugging_face
from litotes.evaluation.bench.lines import Bench, Way, machine, take_turns
from litotes.progress import Watch, unwatched

BATCH = 32


def classify(texts: Sequence[str], *, encoder: str = "minilm", n_rounds: int = 5, watch: Watch = unwatched) -> Bench:
    """All texts in batches of 32 as they come; Hugging Face also one at a time."""
    loaded = pretrained.load(encoder)
    ways = {"litotes-dense": Way(lambda _: _packed(loaded, texts))}
    left_out = {}
    try:
        reference = hugging_face.encoder_of(encoder)
    except ImportError:
        left_out = dict.fromkeys(("hf-padded-32", "hf-1"), "transformers")
    else:
        ways["hf-padded-32"] = Way(lambda _: _padded(reference, loaded, texts, BATCH))
        ways["hf-1"] = Way(lambda _: _padded(reference, loaded, texts, 1))
    with torch.inference_mode():
        lines = take_turns("classify", ways, n_texts=len(texts), n_rounds=n_rounds, watch=watch)
    return Bench(machine(), "hf-padded-32", lines, left_out)


def _packed(loaded: pretrained.Pretrained, texts: Sequence[str]) -> None:
    for start in range(0, len(texts), BATCH):
        loaded.encoder(pack(loaded.tokenizer.encode(texts[start : start + BATCH])))


def _padded(reference: Any, loaded: pretrained.Pretrained, texts: Sequence[str], size: int) -> None:
    padding = loaded.encoder.spec.padding_piece
    for start in range(0, len(texts), size):
        reference(**hugging_face.padded(loaded.tokenizer.encode(texts[start : start + size]), padding))
