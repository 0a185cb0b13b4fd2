"""One pass over a bucket of pieces, recorded once as a CUDA graph and replayed.

Shapes never change, so nothing is launched piece by piece: the host copies one block of numbers,
replays, and later reads the answers.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from litotes.encoder.operations import Encoding
from litotes.kernels.route import RoutePlan
from litotes.kernels.tiles import Numbers
from litotes.kernels.triton_operations import SideStream, TritonOperations, walk_route
from litotes.model.classifier import Classifier

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
