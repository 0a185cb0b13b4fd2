"""Exits learn to say what the last layer says; the model itself stays as it is.

    minimise over W, b   mean over texts of KL(softmax(z / T) ‖ softmax((W x + b) / T)) + λ‖W‖²

z are the logits of the whole model, T the temperature of the task, x the vector that the exit
reads, standardised; soft answers teach more than labels (Hinton et al. 2015, arXiv 1503.02531).
No gold label is needed: any text teaches. λ is the best of three on texts of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from litotes.core.progress import Watch
from litotes.encoder.encoding import Encoding
from litotes.encoder.packing import batches_by_budget, pack
from litotes.encoder.tokenizer import Pieces
from litotes.model.checkpoint import Model
from litotes.model.heads.exits import ExitHeads, read_texts

PENALTIES = (1e-4, 1e-3, 1e-2)
"""λ; the best of them is taken."""
_N_STEPS = 60


@dataclass(frozen=True)
class Lessons:
    """What exits see of some texts, and what they should say.

    vectors: {layer: (text, 2 × width)}. logits: of the whole model, {task: (text, class)}. texts:
    what the table before the first layer reads.
    """

    vectors: Mapping[int, Tensor]
    logits: Mapping[str, Tensor]
    texts: Sequence[Pieces] = ()


def read_lessons(
    model: Model, texts: Sequence[Pieces], layers: Sequence[int], *, what: str, watch: Watch
) -> Lessons:
    """Every text goes to the end. layers: those of the encoder that exits read. what: names the
    work in the progress bar.
    """
    classifier = model.classifier.eval()
    vectors: dict[int, list[Tensor]] = {layer: [] for layer in layers}
    logits: dict[str, list[Tensor]] = {task: [] for task in classifier.tasks}

    def look(layer: int, encoding: Encoding) -> None:
        if layer in vectors:
            vectors[layer].append(read_texts(encoding))

    # texts of about the same length together: less to pad in attention
    order = sorted(range(len(texts)), key=lambda place: len(texts[place].ids))
    n_done = 0
    with torch.no_grad():
        for places in batches_by_budget([len(texts[place].ids) for place in order]):
            batch = pack([texts[order[place]] for place in places])
            encoding = classifier.encoder(batch, firsts_only=classifier.firsts_only, leave=look)
            for task, own in classifier.read(encoding).items():
                logits[task].append(own)
            n_done += len(places)
            watch(what, n_done, len(texts), "")
    back = torch.tensor(order).argsort()
    return Lessons(
        {layer: torch.cat(parts)[back] for layer, parts in vectors.items()},
        {task: torch.cat(parts)[back] for task, parts in logits.items()},
        texts,
    )


def teach(
    heads: ExitHeads,
    lessons: Lessons,
    checked: Lessons,
    temperatures: Mapping[str, float],
    *,
    watch: Watch,
) -> None:
    """Fits every exit. checked: the lessons by which λ is chosen."""
    for number, layer in enumerate(heads.layers):
        watch("teaching exits", number, len(heads.layers), f"layer {layer}")
        for task, output in heads.outputs(layer).items():
            temperature = temperatures[task]
            read, other = lessons.vectors[layer], checked.vectors[layer]
            answers = [lesson.logits[task] / temperature for lesson in (lessons, checked)]
            fitted = [_fit(read, answers[0], penalty) for penalty in PENALTIES]
            best = min(fitted, key=lambda own: _divergence(own(other), answers[1]).item())
            with torch.no_grad():
                output.weight.copy_(best.weight * temperature)
                output.bias.copy_(best.bias * temperature)
    watch("teaching exits", len(heads.layers), len(heads.layers), "")


def _fit(vectors: Tensor, answers: Tensor, penalty: float) -> nn.Linear:
    """A layer that says the same of these vectors. (text, input), (text, class)"""
    mean, spread = vectors.mean(0), vectors.std(0, correction=0) + 1e-6
    inputs = (vectors - mean) / spread
    layer = nn.Linear(inputs.shape[1], answers.shape[1])
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    optimizer = torch.optim.LBFGS(
        layer.parameters(), max_iter=_N_STEPS, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = _divergence(layer(inputs), answers) + penalty * layer.weight.square().sum()
        value.backward()
        return value

    with torch.enable_grad():
        optimizer.step(loss)
    with torch.no_grad():  # from standardised vectors to vectors as they are
        layer.weight.div_(spread)
        layer.bias.sub_(layer.weight @ mean)
    return layer.requires_grad_(False)


def _divergence(logits: Tensor, answers: Tensor) -> Tensor:
    """KL(answers ‖ logits), mean over texts. (text, class) each"""
    said, wanted = functional.log_softmax(logits, dim=1), functional.log_softmax(answers, dim=1)
    return functional.kl_div(said, wanted, reduction="batchmean", log_target=True)
