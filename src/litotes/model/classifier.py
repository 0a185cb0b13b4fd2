"""An encoder with a classification head for every task."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from litotes.core.errors import UserError
from litotes.core.registry import can_name_task, pick
from litotes.core.values import Task
from litotes.encoder.attention.observer import Observer
from litotes.encoder.batch import Batch
from litotes.encoder.device_encoding import encode
from litotes.encoder.encoder import Encoder
from litotes.encoder.encoding import Encoding
from litotes.encoder.layout import Layout
from litotes.model.heads import HEADS


class Classifier(nn.Module):
    """Batch → logits{task: (text, class)}. All tasks share the encoder."""

    def __init__(
        self, encoder: Encoder, tasks: Sequence[Task], *, head: str, dropout: float
    ) -> None:
        super().__init__()
        for task in tasks:
            if not is_task_name(task.name):
                raise UserError(
                    f"A task cannot be called {task.name!r}. Choose another name of letters,"
                    " digits, - and _, in a table's source with task=NAME."
                )
        self.tasks = {task.name: task for task in tasks}
        self.head_name, self.dropout = head, dropout
        self.encoder = encoder
        kind = pick(HEADS, head, "head")
        self.heads = kind.for_tasks(
            encoder.spec.width, {task.name: task.n_outputs for task in tasks}, dropout=dropout
        )
        self.firsts_only = kind.firsts_only

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.encoder.device

    def forward(self, batch: Batch, *, observer: Observer | None = None) -> dict[str, Tensor]:
        return self.read(
            encode(self.encoder, batch, firsts_only=self.firsts_only, observer=observer)
        )

    def from_layer(self, hidden: Tensor, layout: Layout, layer: int) -> dict[str, Tensor]:
        """The same from hidden states (piece, width) that `layer` layers have already seen."""
        return self.read(
            self.encoder.walk(hidden, layout, start=layer, firsts_only=self.firsts_only)
        )

    def read(self, encoding: Encoding) -> dict[str, Tensor]:
        return self.heads(encoding)


def is_task_name(name: str) -> bool:
    """Whether a task may have this name, which also becomes part of the names of its head's
    weights.
    """
    is_attribute = hasattr(nn.ModuleDict(), name)  # torch would refuse a head of that name
    return can_name_task(name) and not is_attribute
