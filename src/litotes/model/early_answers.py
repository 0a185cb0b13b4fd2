"""Texts that leave the encoder with an answer as soon as an exit is sure of it (exits.py).

batch  →  layers  →  exit: sure of some texts  →  their answers; they leave the packed tensor
                  →  layers, with the others  →  …  →  the model's own head
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from litotes.encoder.batch import Batch
from litotes.encoder.encoding import Encoding
from litotes.model.calibration import Calibration
from litotes.model.classifier import Classifier
from litotes.model.exits import Exits
from litotes.model.heads.exits import ExitHeads
from litotes.model.static_table import StaticTable


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
        """With random weights, and without a table."""
        n_outputs = {name: task.n_outputs for name, task in classifier.tasks.items()}
        heads = ExitHeads(classifier.encoder.spec.width, n_outputs, rule.inner_layers)
        return cls(heads.eval(), rule)

    def answer(
        self, classifier: Classifier, batch: Batch, calibration: Mapping[str, Calibration]
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Logits {task: (text, class)}, and after how many layers each text was answered, (text,).

        A text alone is answered as it is in any batch.
        """
        departures = _Departures(self, calibration, batch.layout.n_texts)
        encoding = classifier.encoder(
            batch, firsts_only=classifier.firsts_only, leave=departures.leave
        )
        if len(departures.there):
            departures.add(
                len(classifier.encoder.spec.walk), departures.there, classifier.read(encoding)
            )
        return departures.in_order()


class _Departures:
    """The texts of one batch that have been answered, and those still there."""

    def __init__(
        self, exits: EarlyExits, calibration: Mapping[str, Calibration], n_texts: int
    ) -> None:
        self._exits, self._calibration = exits, calibration
        self.there = torch.arange(n_texts)
        self._places: list[Tensor] = []
        self._layers: list[Tensor] = []
        self._logits: list[Mapping[str, Tensor]] = []

    def leave(self, layer: int, encoding: Encoding) -> Tensor | None:
        """Which texts stay after `layer` layers, (text,); None: all."""
        rule = self._exits.rule
        if layer not in rule.layers:
            return None
        logits = self._exits.heads(layer, encoding)
        arrays = {task: values.detach().numpy() for task, values in logits.items()}
        is_sure = torch.from_numpy(rule.log_odds(layer, arrays, self._calibration) >= rule.cut)
        if not is_sure.any():
            return None
        self.add(layer, self.there[is_sure], {task: own[is_sure] for task, own in logits.items()})
        self.there = self.there[~is_sure]
        return ~is_sure

    def add(self, layer: int, places: Tensor, logits: Mapping[str, Tensor]) -> None:
        """Answers to the texts at `places`."""
        self._places.append(places)
        self._layers.append(torch.full_like(places, layer))
        self._logits.append(logits)

    def in_order(self) -> tuple[dict[str, Tensor], Tensor]:
        order = torch.cat(self._places).argsort()
        logits = {}
        for task in self._logits[0]:
            logits[task] = torch.cat([part[task] for part in self._logits])[order]
        return logits, torch.cat(self._layers)[order]
