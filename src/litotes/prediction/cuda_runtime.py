"""A model on a GPU: packed texts through kernels, in half precision where it costs no answer.

    texts  →  buckets: batches are filled by pieces, not by texts
           →  a pass over a bucket, recorded once as a CUDA graph and replayed  →  logits

Shapes never change, so nothing is launched piece by piece: the host copies one block of numbers,
replays, and later reads the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from litotes.core.registry import pick
from litotes.encoder.operations import Encoding
from litotes.encoder.packing import lay_end_to_end
from litotes.encoder.tokenizer import Pieces
from litotes.kernels.route import RoutePlan, Sizes
from litotes.kernels.tiles import Numbers
from litotes.kernels.triton_operations import (
    SideStream,
    TritonOperations,
    route_options,
    walk_route,
)
from litotes.model.checkpoint import Model
from litotes.model.classifier import Classifier
from litotes.model.exits import Outputs
from litotes.model.runtime import Runtime, all_layers, compute_logits, static_tier
from litotes.prediction.torch_runtime import TorchRuntime

N_SLOTS = 2
"""Batches on their way at a time: one is computed while the next is written."""


class Slot:
    """Memory of the host that the device reads and writes by itself."""

    def __init__(self, n_numbers: int, logits: Tensor) -> None:
        self.numbers = torch.empty(n_numbers, dtype=torch.int32, pin_memory=True)
        self.logits = torch.empty(logits.shape, dtype=logits.dtype, pin_memory=True)
        self.done = torch.cuda.Event()


class CapturedPass:
    """A classifier over one bucket. pool: the memory that all buckets' graphs share, which run one
    after the other and so share `side` too.
    """

    def __init__(
        self, classifier: Classifier, plan: RoutePlan, pool: Any, side: SideStream
    ) -> None:
        self.classifier, self.plan, self.pool = classifier, plan, pool
        self.side = side
        self.block = torch.zeros(plan.n_numbers, dtype=torch.int32, device=classifier.device)
        self.route = plan.read(self.block)
        self.graph: torch.cuda.CUDAGraph | None = None
        self.n_runs = 0
        self.slots: list[Slot] = []
        self.logits = torch.empty(0)

    def start(self, pieces: Numbers, segments: Numbers | None, lengths: Numbers) -> Slot:
        """Sets a batch going; its logits are in the slot once it is done."""
        slot = self._free_slot()
        self.plan.write(pieces, segments, lengths, slot.numbers.numpy())
        self.block[: self.plan.n_sent].copy_(slot.numbers, non_blocking=True)
        self._run()
        if slot.logits.shape != self.logits.shape:
            slot.logits = torch.empty(self.logits.shape, pin_memory=True)
        slot.logits.copy_(self.logits, non_blocking=True)
        slot.done.record()
        self.n_runs += 1
        return slot

    def _free_slot(self) -> Slot:
        if len(self.slots) < N_SLOTS:
            self.slots.append(Slot(self.plan.n_sent, self.logits))
        slot = self.slots[self.n_runs % N_SLOTS]
        slot.done.synchronize()
        return slot

    def _run(self) -> None:
        """The first time step by step, which also compiles the kernels; then recorded; then
        replayed.
        """
        if self.n_runs == 0:
            self.logits = self._compute()
            return
        if self.graph is None:
            graph = torch.cuda.CUDAGraph()
            torch.cuda.synchronize()
            with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
                self.logits = self._compute()
            self.graph = graph
        self.graph.replay()

    def _compute(self) -> Tensor:
        """The logits of all tasks side by side. (text, class)"""
        ops = TritonOperations(self.route, fused=True, side=self.side)
        walked = walk_route(self.classifier.encoder, ops)
        hidden, layout = walked.hidden.float(), walked.layout
        with torch.autocast(
            "cuda",
            self.classifier.encoder.embeddings.piece.weight.dtype,
            enabled=self._heads_are_half,
        ):
            logits = self.classifier.heads(Encoding(hidden, layout, layout.positions))
        return torch.cat([values.float() for values in logits.values()], dim=1)

    @property
    def _heads_are_half(self) -> bool:
        """A head that reads all pieces is as much work as a layer; one row a text is nothing."""
        is_half = self.classifier.encoder.embeddings.piece.weight.dtype != torch.float32
        return is_half and not self.classifier.firsts_only


BUCKETS = (256, 1024, 4096, 16384, 32768)
"""Pieces. A batch takes the smallest that holds what is left, else the largest."""

PIECES_PER_TEXT = (48, 16)
"""How long texts are on average, at least, before a bucket runs out of room for texts: a bucket
for long ones has fewer programs that find nothing to do, one for short ones holds more of them.
"""


class Buckets:
    """All buckets of a classifier. largest: pieces at most, of `BUCKETS`."""

    def __init__(self, classifier: Classifier, *, largest: int = BUCKETS[-1]) -> None:
        self.classifier = classifier
        self.sizes = tuple(size for size in BUCKETS if size <= largest)
        self.pool = torch.cuda.graph_pool_handle()
        self.side = SideStream()
        self.passes: dict[tuple[int, int], CapturedPass] = {}
        self.longest = classifier.encoder.spec.max_pieces

    def logits(
        self, texts: Sequence[Pieces], *, between: Callable[[], None] = lambda: None
    ) -> NDArray[np.float32]:
        """The logits of all tasks side by side, in the texts' order. (text, class)"""
        left = np.fromiter((len(text.ids) for text in texts), np.int32, len(texts))
        parts: list[NDArray[np.float32]] = []
        waiting: list[tuple[Slot, int]] = []  # where the logits of so many texts will be
        with torch.inference_mode():
            while len(left):
                between()
                bucket = self._bucket_for(left)
                n_texts, first = bucket.plan.n_fitting(left), len(texts) - len(left)
                pieces, segments = lay_end_to_end(texts[first : first + n_texts])
                waiting.append((bucket.start(pieces, segments, left[:n_texts]), n_texts))
                left = left[n_texts:]
                if len(waiting) > 1:
                    parts.append(_collect(*waiting.pop(0)))
            parts += [_collect(*started) for started in waiting]
        return np.concatenate(parts)

    def _bucket_for(self, left: Numbers) -> CapturedPass:
        total = int(left.sum())
        size = next((size for size in self.sizes if total <= size), self.sizes[-1])
        for bucket_size in self.sizes[self.sizes.index(size) :]:
            bucket = self._pass(bucket_size, self._pieces_per_text(left, bucket_size))
            if bucket.plan.n_fitting(left) == len(left):
                return bucket
        return self._pass(self.sizes[-1], self._pieces_per_text(left, self.sizes[-1]))

    def _pieces_per_text(self, left: Numbers, size: int) -> int:
        """Picks the pieces per text for texts as long as the next ones are."""
        many, few = PIECES_PER_TEXT
        n_texts = max(1, size // many)
        enough = len(left) <= n_texts or int(left[:n_texts].sum()) >= size
        return many if enough else few

    def _pass(self, size: int, pieces_per_text: int) -> CapturedPass:
        key = (size, pieces_per_text)
        if key not in self.passes:
            options = route_options(
                self.classifier.encoder, firsts_only=self.classifier.firsts_only, trains=False
            )
            sizes = Sizes(size, max(1, size // pieces_per_text), min(self.longest, size))
            plan = RoutePlan.for_bucket(options, sizes)
            self.passes[key] = CapturedPass(self.classifier, plan, self.pool, self.side)
        return self.passes[key]


def _collect(slot: Slot, n_texts: int) -> NDArray[np.float32]:
    slot.done.synchronize()
    return slot.logits[:n_texts].numpy().copy()


PRECISIONS = {
    "auto": torch.float16,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
"""auto: as quick as bfloat16 and eight times as fine; what does not fit its range is computed in
float32.
"""


class CudaRuntime(TorchRuntime):
    """bucket: the most pieces computed at a time."""

    def __init__(
        self,
        model: Model,
        device: torch.device,
        *,
        precision: str = "auto",
        bucket: int | None = None,
    ) -> None:
        super().__init__(model, device)
        self.precision = pick(PRECISIONS, precision, "precision")
        classifier = in_precision(model.classifier, self.precision)
        self.buckets = Buckets(classifier, largest=bucket or BUCKETS[-1])

    def compute(self, texts: Sequence[Pieces]) -> Outputs:
        """Every text that the table leaves goes to the end: a recorded pass has no exits."""
        if not texts:
            return super().compute(texts)
        tier = static_tier(self._model)
        return (
            self._compute_whole(texts) if tier is None else tier.answer(texts, self._compute_whole)
        )

    def _compute_whole(self, texts: Sequence[Pieces]) -> Outputs:
        return Outputs(self._whole_logits(texts), all_layers(self._model, len(texts)))

    def _whole_logits(self, texts: Sequence[Pieces]) -> dict[str, NDArray[np.float32]]:
        with self._turn:
            together = self.buckets.logits(texts)  # (text, class)
            lost = np.flatnonzero(~np.isfinite(together).all(axis=1))
            if len(lost) and self.precision != torch.float32:
                exact = compute_logits(self._model, [texts[place] for place in lost.tolist()])
                together[lost] = torch.cat(list(exact.values()), dim=1).numpy()
        ends = np.cumsum([task.n_outputs for task in self.tasks.values()])
        return dict(zip(self.tasks, np.split(together, ends[:-1], axis=1), strict=True))

    def to_torch(self) -> Runtime:
        """Explanations look at float32, without kernels."""
        return TorchRuntime(self._model, self._device)

    def deciding(self) -> Iterator[bytes]:
        yield str(self.precision).encode()
        yield from super().deciding()

    def describe(self) -> str:
        precision = str(self.precision).removeprefix("torch.")
        name = torch.cuda.get_device_name(self._device)
        most = self.buckets.sizes[-1]
        return f"torch {torch.__version__}, {precision} on {name}, up to {most} pieces at a time."


def in_precision(classifier: Classifier, precision: torch.dtype) -> Classifier:
    """The classifier itself, or a copy whose encoder's products are computed in half precision;
    norms, heads and what attention learns stay float32.
    """
    if precision == torch.float32:
        return classifier
    half = deepcopy(classifier)
    for part in (half.encoder.embeddings, *half.encoder.blocks):
        for module in part.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                module.to(precision)
    return half
