"""An encoder with a head that answers words."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from litotes.core.errors import UserError
from litotes.core.registry import pick
from litotes.core.values import Task
from litotes.encoder.device_encoding import encode
from litotes.encoder.encoder import Encoder
from litotes.encoder.word_pieces import WordBatch
from litotes.model.classifier import is_task_name
from litotes.model.heads import WORD_HEADS


class WordModel(nn.Module):
    """WordBatch → logits (word, n_outputs). kind: tagging or span."""

    def __init__(self, encoder: Encoder, task: Task, *, kind: str, dropout: float) -> None:
        super().__init__()
        if not is_task_name(task.name):
            raise UserError(
                f"A task cannot be called {task.name!r}. Choose another name of letters, digits, -"
                " and _."
            )
        if encoder.spec.pruning != "none" and not encoder.pruning.restore:
            raise UserError(
                f'kind = "{kind}" needs an answer for every word, and pruning ='
                f" {encoder.spec.pruning} removes pieces for good: set"
                " model.pruning_options.restore = true."
            )
        self.task, self.kind, self.dropout = task, kind, dropout
        self.encoder = encoder
        head = pick(WORD_HEADS, kind, "kind of word model called")
        width = encoder.spec.width
        self.heads = nn.ModuleDict({task.name: head(width, len(task.labels), dropout=dropout)})
        self.reads_first = head.reads_first

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.encoder.device

    def forward(self, words: WordBatch) -> Tensor:
        encoding = encode(self.encoder, words.batch)
        logits: Tensor = self.heads[self.task.name](encoding, words.places)
        return logits  # (word, n_outputs)
