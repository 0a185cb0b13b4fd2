"""The inputs of a training step: whole texts, or what the frozen layers made of them.

With `freeze_below = n` the embeddings and the first n layers stay as they are. They are computed
once per text (without dropout) and kept, so that every epoch walks only the upper layers.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from litotes.core.errors import UserError
from litotes.core.progress import Watch, ignore_progress
from litotes.encoder.encoder import Encoder
from litotes.encoder.layout import Layout
from litotes.encoder.packing import TextSet, batches_without_gradients
from litotes.model.classifier import Classifier


class Inputs:
    """A set of texts, and logits for chosen ones; every step starts from the pieces."""

    def __init__(self, texts: TextSet, device: torch.device) -> None:
        self.texts, self.device = texts, device

    def logits(self, classifier: Classifier, places: Sequence[int]) -> dict[str, Tensor]:
        return classifier(self.texts.batch(places, self.device))


class HiddenInputs(Inputs):
    """Every step starts from the kept output of layer `layer`."""

    def __init__(
        self,
        texts: TextSet,
        device: torch.device,
        *,
        classifier: Classifier,
        layer: int,
        watch: Watch = ignore_progress,
    ) -> None:
        if (pruning := classifier.encoder.spec.pruning) != "none":
            raise UserError(
                f"freeze_below does not go with pruning = {pruning}, which begins in the first"
                " layers. Set freeze_below = 0."
            )
        super().__init__(texts, device)
        self.layer = layer
        self.hidden: list[Tensor] = []  # per text (piece, width)
        encoder = classifier.eval().encoder
        for places in batches_without_gradients(texts.lengths, device):
            self.hidden += self._compute(encoder, places)
            watch("frozen layers", len(self.hidden), len(texts), "")

    @torch.no_grad()
    def _compute(self, encoder: Encoder, places: Sequence[int]) -> list[Tensor]:
        batch = self.texts.batch(places, self.device)
        embedded = encoder.embeddings(batch)
        hidden = encoder.walk(embedded, batch.layout, stop=self.layer).hidden  # (piece, width)
        return [part.clone() for part in hidden.split(batch.layout.lengths)]

    def logits(self, classifier: Classifier, places: Sequence[int]) -> dict[str, Tensor]:
        chosen = [self.hidden[place] for place in places]
        layout = Layout.of([len(hidden) for hidden in chosen], self.device)
        return classifier.from_layer(torch.cat(chosen), layout, self.layer)


def freeze(classifier: Classifier, below: int) -> None:
    """Keeps the embeddings and the first `below` layers from learning."""
    spec = classifier.encoder.spec
    if not below:
        return
    if spec.n_layer_groups:
        raise UserError(
            f"freeze_below does not go with {spec.family}: its layers share their weights. Set"
            " freeze_below = 0."
        )
    if below > spec.n_layers:
        raise UserError(f"freeze_below = {below}, but the encoder has {spec.n_layers} layers.")
    encoder = classifier.encoder
    # the frozen layers use what all layers share, too
    for part in (encoder.embeddings, encoder.relative_bias, encoder.distances):
        if part is not None:
            part.requires_grad_(False)
    encoder.blocks[:below].requires_grad_(False)


def all_logits(
    inputs: Inputs, classifier: Classifier, *, watch: Watch = ignore_progress, what: str = "testing"
) -> dict[str, Tensor]:
    """Logits of every text in order, on the CPU, in evaluation mode. {task: (text, class)}"""
    classifier.eval()
    parts: dict[str, list[Tensor]] = {task: [] for task in classifier.tasks}
    n_done = 0
    with torch.no_grad():
        for places in batches_without_gradients(inputs.texts.lengths, classifier.device):
            for task, logits in inputs.logits(classifier, places).items():
                parts[task].append(logits.float().cpu())
            n_done += len(places)
            watch(what, n_done, len(inputs.texts), "")
    return {task: torch.cat(logits) for task, logits in parts.items()}
