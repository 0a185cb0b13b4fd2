"""Steps recorded as CUDA graphs, one for each bucket of pieces, and replayed.

A step of a BERT launches some two thousand small kernels, and the host is slower at launching them
than the device at computing them. Recorded, a step is one launch. All that changes from step to
step is read from the device's memory: one block of numbers, with the texts and their places in the
set, the learning rates (optimizer.py), and the state of torch's generator.

The first step in a bucket is taken as it is, which compiles the kernels; the second is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from litotes.encoder.attention.pruning import Learned
from litotes.encoder.operations import Encoding
from litotes.encoder.packing import TextSet, lay_end_to_end
from litotes.encoder.tokenizer import Pieces
from litotes.kernels.encode import attention_seeds, uses_kernels
from litotes.kernels.route import ALIGNED, RoutePlan, Sizes
from litotes.kernels.triton_operations import TritonOperations, route_options, walk_route
from litotes.model.classifier import Classifier
from litotes.model.heads import HEADS
from litotes.training.losses import TaskLosses
from litotes.training.objective import Objective

SMALLEST_STEP = 256
"""Pieces from one bucket to the next, at least."""


def bucket_size(n_pieces: int) -> int:
    """The pieces of the smallest bucket for so many: at most an eighth of the next power of 2 more.

    Sizes lie 256 apart up to 2,048, 512 up to 4,096, 1,024 up to 8,192 and so on: a dozen for a
    usual batch, and four more whenever it doubles.
    """
    step = max(SMALLEST_STEP, (1 << (n_pieces - 1).bit_length()) // 8)
    return -(-n_pieces // step) * step


def can_capture(objective: Objective, classifier: Classifier) -> bool:
    """Tells whether steps of this classifier from whole texts are the same work every time."""
    pruning = objective.encoder.pruning
    draws_plans = isinstance(pruning, Learned) and pruning.explore > 0
    return (
        objective.processes.n == 1
        and objective.balancing.repeats
        and not HEADS[classifier.head_name].needs_lengths
        and not draws_plans
        and not objective.settings.recompute_activations
        and all(parameter.requires_grad for parameter in classifier.parameters())
        and uses_kernels(classifier.encoder)
    )


class NoGraphs:
    """Runs a function, or records it to be run again; for devices without graphs."""

    def run(self, function: Callable[[], Tensor]) -> Tensor:
        return function()

    def record(self, function: Callable[[], Tensor]) -> Callable[[], Tensor]:
        return function


class CudaGraphs(NoGraphs):
    """Graphs that share their memory: they run one after the other."""

    def __init__(self) -> None:
        self.stream = torch.cuda.Stream()
        self.pool = torch.cuda.graph_pool_handle()

    def run(self, function: Callable[[], Tensor]) -> Tensor:
        """On the stream that records: what libraries set up for a stream is then there."""
        current = torch.cuda.current_stream()
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            result = function()
        current.wait_stream(self.stream)
        return result

    def record(self, function: Callable[[], Tensor]) -> Callable[[], Tensor]:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(
            graph, pool=self.pool, stream=self.stream, capture_error_mode="thread_local"
        ):
            result = function()

        def replay() -> Tensor:
            graph.replay()
            return result

        return replay


class CapturedSteps:
    """The steps of a run in all buckets."""

    def __init__(
        self, objective: Objective, classifier: Classifier, texts: TextSet, losses: TaskLosses
    ) -> None:
        self.objective, self.classifier = objective, classifier
        self.texts, self.task_losses = texts, losses
        self.lengths = np.array(texts.lengths, dtype=np.int32)
        self.on_cuda = objective.device.type == "cuda"
        self.recorder = CudaGraphs() if self.on_cuda else NoGraphs()
        self.buckets: dict[int, StepBucket] = {}

    def take(self, places: Sequence[int]) -> Tensor | None:
        """Changes the weights; gives the loss, on the device, until the next step overwrites it.

        None, and nothing changed: the weighting still changes, or such texts have no bucket.
        """
        if not self.objective.is_settled:
            return None
        lengths = self.lengths[list(places)]
        # many tiny texts, each of which keeps its first piece, need more room than their pieces
        for n_pieces in (int(lengths.sum()), 2 * int(lengths.sum())):
            size = bucket_size(n_pieces)
            if size not in self.buckets:
                self.buckets[size] = StepBucket(self, self._plan(size))
            bucket = self.buckets[size]
            if bucket.plan.n_fitting(lengths) == len(lengths):
                return bucket.take([self.texts.pieces[place] for place in places], places, lengths)
        return None

    def _plan(self, size: int) -> RoutePlan:
        classifier, n_texts = self.classifier, self.objective.settings.batch_texts
        with self.objective.autocast():  # as the step will be taken
            options = route_options(
                classifier.encoder, firsts_only=classifier.firsts_only, trains=True
            )
        sizes = Sizes(size, n_texts, min(size, int(self.lengths.max())))
        return RoutePlan.for_bucket(options, sizes)


class StepBucket:
    """Steps over tensors that stay where they are."""

    def __init__(self, steps: CapturedSteps, plan: RoutePlan) -> None:
        self.steps, self.plan = steps, plan
        on_cuda = steps.on_cuda
        # the places of the texts, then the route's block, whose beginning is sent
        self.begin = -(-plan.sizes.n_texts // ALIGNED) * ALIGNED
        n_sent = self.begin + plan.n_sent
        self.sent = torch.zeros(n_sent, dtype=torch.int32, pin_memory=on_cuda)
        self.arrived = torch.cuda.Event() if on_cuda else None
        n_numbers = self.begin + plan.n_numbers
        self.block = torch.zeros(n_numbers, dtype=torch.int32, device=steps.objective.device)
        self.route = plan.read(self.block[self.begin :])
        self.replay: Callable[[], Tensor] | None = None
        self.is_new = True

    def take(self, texts: Sequence[Pieces], places: Sequence[int], lengths: np.ndarray) -> Tensor:
        self._send(texts, places, lengths)
        if self.is_new:
            self.is_new = False
            return self.steps.recorder.run(self._compute)
        if self.replay is None:
            self.replay = self.steps.recorder.record(self._compute)
        return self.replay()

    def _send(self, texts: Sequence[Pieces], places: Sequence[int], lengths: np.ndarray) -> None:
        if self.arrived is not None:
            self.arrived.synchronize()  # what was sent the last time
        numbers = self.sent.numpy()
        numbers[: self.begin] = -1
        numbers[: len(places)] = places
        self.plan.write(*lay_end_to_end(texts), lengths, numbers[self.begin :])
        self.block[: len(self.sent)].copy_(self.sent, non_blocking=True)
        if self.arrived is not None:
            self.arrived.record()

    def _compute(self) -> Tensor:
        # its number is for what the host draws, which a step that repeats does not
        return self.steps.objective.update(self._losses(), 0)

    def _losses(self) -> Iterator[Sequence[Tensor]]:
        places = self.block[: self.plan.sizes.n_texts].long()
        classifier, n_texts = self.steps.classifier, self.route.n_texts
        encoder = classifier.encoder
        with self.steps.objective.autocast():
            seeds = attention_seeds(encoder)
            walked = walk_route(encoder, TritonOperations(self.route, fused=False, seeds=seeds))
            layout = walked.layout
            logits = classifier.read(Encoding(walked.hidden, layout, layout.positions))
        # the last row may be that of padding pieces
        rows = {task: values[:n_texts] for task, values in logits.items()}  # (text, class)
        yield self.steps.task_losses.of_batch(rows, batch=places, own=places)
