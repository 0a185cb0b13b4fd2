"""Side by side in one run: every speed is a ratio against a named baseline measured in the same minutes.

All lines of a group take turns, round after round, so that a busy moment of the machine hits them alike; the median round counts.
Tokenizing is part of every line.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from litotes.data.packing import pack
from litotes.encoders import pretrained
from litotes.progress import Watch, unwatched

BATCH = 32


@dataclass(frozen=True)
class Line:
    """One way of doing the work: milliseconds for all texts (median of the rounds), and texts per second."""

    group: str
    name: str
    ms: float
    per_second: float
    ms_all_rounds: tuple[float, ...]


@dataclass(frozen=True)
class Bench:
    """The lines of a run, and the machine they ran on; `left_out` names lines whose library is absent."""

    machine: dict[str, Any]
    lines: tuple[Line, ...]
    left_out: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def ratio(self, name: str, baseline: str) -> float:
        speeds = {line.name: line.per_second for line in self.lines}
        return speeds[name] / speeds[baseline]


def classify(texts: Sequence[str], *, encoder: str = "minilm", n_rounds: int = 5, watch: Watch = unwatched) -> Bench:
    """Texts to last hidden states in batches of 32 as they come: Hugging Face padded (sdpa), and litotes packed, dense."""
    loaded = pretrained.load(encoder)
    ways: dict[str, Callable[[], None]] = {"litotes-dense": lambda: _packed(loaded, texts)}
    left_out = []
    try:
        reference = _hugging_face(encoder)
    except ImportError:
        left_out = ["hf-padded-32", "hf-1"]
    else:
        ways["hf-padded-32"] = lambda: _padded(reference, loaded, texts, BATCH)
        ways["hf-1"] = lambda: _padded(reference, loaded, texts, 1)
    rounds = _take_turns(ways, n_rounds=n_rounds, watch=watch)
    lines = tuple(_line("classify", name, len(texts), times) for name, times in rounds.items())
    return Bench(machine(), lines, tuple(left_out))


def machine() -> dict[str, Any]:
    """What the figures belong to."""
    return {
        "processor": platform.machine(),
        "n_cores": os.cpu_count(),
        "n_threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def _take_turns(ways: dict[str, Callable[[], None]], *, n_rounds: int, watch: Watch) -> dict[str, list[float]]:
    """Seconds per way and round; the first round warms up and is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    with torch.inference_mode():
        for number in range(n_rounds + 1):
            for name, way in ways.items():
                start = time.perf_counter()
                way()
                if number:
                    seconds[name].append(time.perf_counter() - start)
                watch("rounds", number, n_rounds, name)
    return seconds


def _line(group: str, name: str, n_texts: int, seconds: Sequence[float]) -> Line:
    middle = statistics.median(seconds)
    return Line(group, name, round(middle * 1000, 1), round(n_texts / middle, 1), tuple(round(s * 1000, 1) for s in seconds))


def _packed(loaded: pretrained.Pretrained, texts: Sequence[str]) -> None:
    for start in range(0, len(texts), BATCH):
        loaded.encoder(pack(loaded.tokenizer.encode(texts[start : start + BATCH])))


def _hugging_face(encoder: str) -> Any:
    from transformers import AutoModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    return AutoModel.from_pretrained(pretrained.locate(encoder)[0], attn_implementation="sdpa", dtype=torch.float32).eval()


def _padded(reference: Any, loaded: pretrained.Pretrained, texts: Sequence[str], size: int) -> None:
    padding = loaded.encoder.spec.padding_piece
    for start in range(0, len(texts), size):
        pieces = loaded.tokenizer.encode(texts[start : start + size])
        longest = max(len(text.ids) for text in pieces)
        ids = torch.tensor([text.ids + [padding] * (longest - len(text.ids)) for text in pieces])
        live = torch.tensor([[1] * len(text.ids) + [0] * (longest - len(text.ids)) for text in pieces])
        reference(input_ids=ids, attention_mask=live)
