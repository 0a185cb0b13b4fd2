"""Exits learn to say what the last layer says; the model itself stays as it is.

    minimise over W, b   mean over texts of KL(softmax(z / T) ‖ softmax((W x + b) / T)) + λ‖W‖²

z are the logits of the whole model, T the temperature of the task, x the vector that the exit
reads, standardised; soft answers teach more than labels (Hinton et al. 2015, arXiv 1503.02531).
No gold label is needed: any text teaches. λ is the best of some on texts of their own.

The table that answers before the first layer learns the same with counts of pieces for x: n pieces
of a text, each divided by √n (static_table.py). That is sparse, so scipy's L-BFGS takes all texts
at once; λ is smaller, for √n pieces share what a text says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import expit, log_softmax, logit
from torch import Tensor, nn
from torch.nn import functional

from litotes.core.numbers import Floats
from litotes.core.progress import Watch
from litotes.encoder.operations import Encoding
from litotes.encoder.packing import batches_by_budget, pack
from litotes.encoder.tokenizer import Pieces
from litotes.encoder.walk import GoOn
from litotes.model.checkpoint import Model
from litotes.model.exits import LARGEST, STORED, StaticTable, Sureness
from litotes.model.heads import ExitHeads, read_texts

PENALTIES = (1e-4, 1e-3, 1e-2)
"""λ of an exit; the best of them is taken."""
TABLE_PENALTIES = (3e-6, 1e-5, 3e-5, 1e-4, 3e-4)
"""λ of the table."""
_N_STEPS, _N_TABLE_STEPS, _N_NEWTON_STEPS = 60, 100, 100
_TINY = 1e-9


@dataclass(frozen=True)
class Lessons:
    """The inputs of exits for some texts, and the answers they should give.

    vectors: {layer: (text, 2 × width)}. logits: of the whole model, {task: (text, class)}. texts:
    what the table before the first layer reads.
    """

    vectors: Mapping[int, Tensor]
    logits: Mapping[str, Tensor]
    texts: Sequence[Pieces] = ()


def read_lessons(
    model: Model, texts: Sequence[Pieces], layers: Sequence[int], *, what: str, watch: Watch
) -> Lessons:
    """Takes every text to the end. layers: those of the encoder that exits read. what: names the
    work in the progress bar.
    """
    classifier, n_done = model.classifier.eval(), 0
    seen: dict[Any, list[Tensor]] = {key: [] for key in (*layers, *classifier.tasks)}

    def look(layer: int, encoding: Encoding, go_on: GoOn) -> Encoding:
        seen[layer].append(read_texts(encoding))
        whole: Encoding = go_on(None)
        return whole

    exits = {layer: partial(look, layer) for layer in layers}
    # texts of about the same length together: less to pad in attention
    order = sorted(range(len(texts)), key=lambda place: len(texts[place].ids))
    with torch.no_grad():
        for places in batches_by_budget([len(texts[place].ids) for place in order]):
            batch = pack([texts[order[place]] for place in places])
            encoding = classifier.encoder(batch, firsts_only=classifier.firsts_only, exits=exits)
            for task, own in classifier.read(encoding).items():
                seen[task].append(own)
            n_done += len(places)
            watch(what, n_done, len(texts), "")
    back = torch.tensor(order).argsort()
    whole = {key: torch.cat(parts)[back] for key, parts in seen.items()}
    vectors = {layer: whole[layer] for layer in layers}
    return Lessons(vectors, {task: whole[task] for task in classifier.tasks}, texts)


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
        read, other = lessons.vectors[layer], checked.vectors[layer]
        for task, output in heads.outputs(layer).items():
            temperature = temperatures[task]
            wanted, told = (own.logits[task] / temperature for own in (lessons, checked))
            fitted = (_fit(read, wanted, penalty) for penalty in PENALTIES)
            best = min(fitted, key=lambda own: _divergence(own(other), told).item())
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


def teach_table(
    lessons: Lessons,
    checked: Lessons,
    temperatures: Mapping[str, float],
    *,
    n_pieces: int,
    watch: Watch,
) -> StaticTable:
    """Fits the table. checked: the lessons by which λ is chosen. n_pieces: of the vocabulary."""
    what, n_tasks = "teaching the table", len(temperatures)
    counts, others = (_count(own.texts, n_pieces) for own in (lessons, checked))
    columns, n_outputs = [], {}
    for number, (task, temperature) in enumerate(temperatures.items()):
        watch(what, number, n_tasks, task)
        wanted, told = (own.logits[task].numpy() / temperature for own in (lessons, checked))
        fitted = [_fit_table(counts, wanted, penalty) for penalty in TABLE_PENALTIES]
        best = min(fitted, key=lambda rows: _table_divergence(others @ rows, told))
        columns.append(best * temperature)
        n_outputs[task] = wanted.shape[1]
    watch(what, n_tasks, n_tasks, "")
    return StaticTable(np.concatenate(columns, axis=1).astype(STORED), n_outputs)


def _count(texts: Sequence[Pieces], n_pieces: int) -> Any:
    """X as a sparse matrix, with a first column of ones for b. (text, 1 + piece)"""
    lengths = np.array([len(text.ids) for text in texts])
    pieces = np.fromiter(chain.from_iterable(text.ids for text in texts), np.int64)
    every = np.arange(len(texts))
    values = np.concatenate([np.ones(len(texts)), np.repeat(1 / np.sqrt(lengths), lengths)])
    rows = np.concatenate([every, np.repeat(every, lengths)])
    columns = np.concatenate([np.zeros(len(texts), np.int64), 1 + pieces])
    return csr_matrix((values, (rows, columns)), shape=(len(texts), 1 + n_pieces))


def _fit_table(counts: Any, answers: NDArray[Any], penalty: float) -> Floats:
    """Fits the rows of the table, the first of them b. (1 + piece, class)"""
    shape = (counts.shape[1], answers.shape[1])
    wanted = np.exp(log_softmax(answers.astype(np.float64), axis=1))  # (text, class)
    by_piece = counts.T.tocsr()

    def loss(flat: Floats) -> tuple[float, Floats]:
        rows = flat.reshape(shape)
        held = rows.copy()
        held[0] = 0  # nothing holds b back
        said = log_softmax(counts @ rows, axis=1)
        value = -(wanted * said).sum() / len(wanted) + penalty * np.square(held).sum()
        slope = by_piece @ ((np.exp(said) - wanted) / len(wanted)) + 2 * penalty * held
        return float(value), slope.ravel()

    start, options = np.zeros(shape).ravel(), {"maxiter": _N_TABLE_STEPS}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    rows: Floats = found.x.reshape(shape)
    return rows


def _table_divergence(logits: Floats, answers: NDArray[Any]) -> float:
    """KL(answers ‖ logits), mean over texts. (text, class) each"""
    said, wanted = log_softmax(logits, axis=1), log_softmax(answers, axis=1)
    return float((np.exp(wanted) * (wanted - said)).sum(1).mean())


def fit_sureness(margins: Floats, agrees: NDArray[np.bool_]) -> Sureness:
    """Fits how sure an exit is: the chance that the whole model gives the same label, from the
    margin. Margins (text,), agrees (text,)

        minimise over a, b ≥ 0   − Σ t log σ(a + b m) + (1 − t) log(1 − σ(a + b m))

    m is the margin, t nearly 1 where the labels agree and nearly 0 where they do not: (N₊ + 1) /
    (N₊ + 2) and 1 / (N₋ + 2), so that texts that all agree do not make an exit infinitely sure
    (Platt 1999, Probabilistic outputs for support vector machines, §2.2).
    """
    n_agree = int(agrees.sum())
    n_not = len(agrees) - n_agree
    targets = np.where(agrees, (n_agree + 1) / (n_agree + 2), 1 / (n_not + 2))
    offset, slope = _newton(margins, targets)
    if slope <= 0 or not np.isfinite([offset, slope]).all():  # a larger margin says nothing
        return Sureness(float(logit(targets.mean())), 0.0)
    return Sureness(float(np.clip(offset, -LARGEST, LARGEST)), float(min(slope, LARGEST)))


def _newton(margins: Floats, targets: Floats) -> tuple[float, float]:
    """The problem is convex; steps that would not lower the loss are halved."""

    def loss_of(some: Floats) -> float:
        scores = inputs @ some
        return float((np.logaddexp(0, scores) - targets * scores).sum())

    inputs = np.stack([np.ones_like(margins), margins], axis=1)  # (text, 2)
    found = np.array([logit(targets.mean()), 0.0])
    loss = loss_of(found)
    for _ in range(_N_NEWTON_STEPS):
        probabilities = expit(inputs @ found)
        slope = inputs.T @ (probabilities - targets)
        curvature = (inputs.T * (probabilities * (1 - probabilities))) @ inputs
        step = np.linalg.solve(curvature + _TINY * np.eye(2), slope)
        while (next_loss := loss_of(found - step)) > loss and np.any(step):
            step = step / 2 if np.abs(step).max() > _TINY else np.zeros(2)
        found, improved, loss = found - step, loss - next_loss, next_loss
        if improved <= _TINY * len(targets):
            break
    return float(found[0]), float(found[1])
