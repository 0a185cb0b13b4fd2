"""An encoder with a classification head for every task."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from litotes.core.errors import UserError
from litotes.core.progress import TimedAction, Watch, time_in_turns
from litotes.core.registry import can_name_task, pick
from litotes.core.values import Task
from litotes.encoder.encoder import Encoder
from litotes.encoder.layout import Batch, Layout
from litotes.encoder.operations import TORCH, Encoding
from litotes.encoder.packing import TextSet, WordBatch, batches_by_budget
from litotes.encoder.walk import GoOn, Observer, walk
from litotes.kernels.encode import encode
from litotes.model.calibration import Calibration
from litotes.model.exits import Exits, StaticTable
from litotes.model.heads import HEADS, WORD_HEADS, ExitHeads


class Classifier(nn.Module):
    """Batch → logits{task: (text, class)}. All tasks share the encoder."""

    def __init__(
        self, encoder: Encoder, tasks: Sequence[Task], *, head: str, dropout: float
    ) -> None:
        super().__init__()
        for task in tasks:
            _check_name(task)
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
    """Tells whether a task may have this name, which also becomes part of the names of its head's
    weights.
    """
    is_attribute = hasattr(nn.ModuleDict(), name)  # torch would refuse a head of that name
    return can_name_task(name) and not is_attribute


def _check_name(task: Task) -> None:
    if not is_task_name(task.name):
        raise UserError(
            f"A task cannot be called {task.name!r}. Choose another name of letters, digits, - and"
            " _, in a table's source with task=NAME."
        )


# An encoder with a head that answers words.


class WordModel(nn.Module):
    """WordBatch → logits (word, n_outputs). kind: tagging or span."""

    def __init__(self, encoder: Encoder, task: Task, *, kind: str, dropout: float) -> None:
        super().__init__()
        _check_name(task)
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


# Texts that leave the encoder with an answer as soon as an exit is sure of it (exits.py).
#
# batch  →  layers  →  exit: sure of some texts  →  their answers; they leave the packed tensor
#                   →  layers, with the others  →  …  →  the model's own head


@dataclass(frozen=True)
class EarlyExits:
    """The heads that answer early, and the rule by which a text may leave. On the CPU.

    table: what answers before the first layer, where the rule has such an exit; a batch has passed
    it already (inference.py).
    """

    heads: ExitHeads
    rule: Exits
    table: StaticTable | None = None

    @classmethod
    def for_classifier(cls, classifier: Classifier, rule: Exits) -> EarlyExits:
        """Makes exits with random weights, and without a table."""
        n_outputs = {name: task.n_outputs for name, task in classifier.tasks.items()}
        heads = ExitHeads(classifier.encoder.spec.width, n_outputs, rule.inner_layers)
        return cls(heads.eval(), rule)

    def answer(
        self, classifier: Classifier, batch: Batch, calibration: Mapping[str, Calibration]
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Logits {task: (text, class)}, and after how many layers each text was answered, (text,).

        A text alone is answered as it is in any batch.
        """
        n_texts, rule = batch.layout.n_texts, self.rule
        there = torch.arange(n_texts)  # the places of the texts that have not left
        layers = torch.full((n_texts,), len(classifier.encoder.spec.walk))
        kind = classifier.encoder.embeddings.piece.weight.dtype
        logits = {
            name: torch.empty(n_texts, task.n_outputs, dtype=kind)
            for name, task in classifier.tasks.items()
        }

        def put(places: Tensor, found: Mapping[str, Tensor]) -> None:
            for task, own in found.items():
                logits[task][places] = own.detach()

        def ask(layer: int, encoding: Encoding, go_on: GoOn) -> None:
            nonlocal there
            found = self.heads(layer, encoding)
            arrays = {task: values.detach().numpy() for task, values in found.items()}
            is_sure = torch.from_numpy(rule.log_odds(layer, arrays, calibration) >= rule.cut)
            if not is_sure.any():
                go_on(None)
                return
            put(there[is_sure], {task: own[is_sure] for task, own in found.items()})
            layers[there[is_sure]] = layer
            there = there[~is_sure]
            if len(there):
                go_on(~is_sure)

        walk(
            TORCH,
            classifier.encoder,
            batch,
            firsts_only=classifier.firsts_only,
            exits={layer: partial(ask, layer) for layer in rule.inner_layers},
            read=lambda encoding: put(there, classifier.read(encoding)),
        )
        return logits, layers


# How long classifiers take to answer, measured side by side.


def seconds_in_turns(
    classifiers: Mapping[str, tuple[Classifier, TextSet]],
    *,
    what: str,
    n_rounds: int,
    watch: Watch,
) -> dict[str, float]:
    """The median seconds that each classifier takes for its texts, from pieces to logits, by name.

    what: names the rounds in the progress bar.
    """
    actions = {}
    for name, (classifier, texts) in classifiers.items():
        places = batches_by_budget(texts.lengths, max_texts=32)
        batches = [texts.batch(some, classifier.device) for some in places]
        actions[name] = TimedAction(partial(_answer_all, batches), prepare=classifier.eval)
    with torch.inference_mode():
        seconds = time_in_turns(actions, what=what, n_rounds=n_rounds, watch=watch)
    return {name: statistics.median(times) for name, times in seconds.items()}


def _answer_all(batches: Sequence[Batch], classifier: Classifier) -> None:
    for batch in batches:
        for logits in classifier(batch).values():
            logits.sum().item()  # waits for a device
