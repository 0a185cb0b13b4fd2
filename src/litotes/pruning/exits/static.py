"""The table that answers before the first layer learns to say what the whole model says.

    minimise over W, b   mean over texts of KL(softmax(z / T) ‖ softmax(X W + b)) + λ‖W‖²

z are the logits of the whole model, T the temperature of the task; a row of X counts the pieces of
a text, divided by √n (static_table.py). Convex and sparse, so all texts at once: L-BFGS. λ is the
best of some on texts of their own. It is small, for √n pieces share what a text says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import log_softmax

from litotes.core.numbers import Floats
from litotes.core.progress import Watch
from litotes.encoder.tokenizer import Pieces
from litotes.model.exits import STORED, StaticTable
from litotes.pruning.exits.teaching import Lessons

PENALTIES = (3e-6, 1e-5, 3e-5, 1e-4, 3e-4)
"""λ; the best of them is taken."""
_N_STEPS = 100
_WHAT = "teaching the table"


def teach_table(
    lessons: Lessons,
    checked: Lessons,
    temperatures: Mapping[str, float],
    *,
    n_pieces: int,
    watch: Watch,
) -> StaticTable:
    """checked: the lessons by which λ is chosen. n_pieces: those of the vocabulary."""
    counts, others = (_count(own.texts, n_pieces) for own in (lessons, checked))
    columns, n_outputs = [], {}
    for number, (task, temperature) in enumerate(temperatures.items()):
        watch(_WHAT, number, len(temperatures), task)
        said, wanted = (own.logits[task].numpy() / temperature for own in (lessons, checked))
        fitted = [_fit(counts, said, penalty) for penalty in PENALTIES]
        best = min(fitted, key=lambda rows: _divergence(others @ rows, wanted))
        columns.append(best * temperature)
        n_outputs[task] = said.shape[1]
    watch(_WHAT, len(temperatures), len(temperatures), "")
    return StaticTable(np.concatenate(columns, axis=1).astype(STORED), n_outputs)


def _count(texts: Sequence[Pieces], n_pieces: int) -> Any:
    """X as a sparse matrix, with a first column of ones for b. (text, 1 + piece)"""
    lengths = np.array([len(text.ids) for text in texts])
    pieces = np.fromiter(chain.from_iterable(text.ids for text in texts), np.int64)
    places = np.repeat(np.arange(len(texts)), lengths)
    values = np.concatenate([np.ones(len(texts)), np.repeat(1 / np.sqrt(lengths), lengths)])
    rows = np.concatenate([np.arange(len(texts)), places])
    columns = np.concatenate([np.zeros(len(texts), np.int64), 1 + pieces])
    return csr_matrix((values, (rows, columns)), shape=(len(texts), 1 + n_pieces))


def _fit(counts: Any, answers: NDArray[Any], penalty: float) -> Floats:
    """Rows of the table, the first of them b. (1 + piece, class)"""
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

    start = np.zeros(shape).ravel()
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _N_STEPS})
    rows: Floats = found.x.reshape(shape)
    return rows


def _divergence(logits: Floats, answers: NDArray[Any]) -> float:
    """KL(answers ‖ logits), mean over texts. (text, class) each"""
    said, wanted = log_softmax(logits, axis=1), log_softmax(answers, axis=1)
    return float((np.exp(wanted) * (wanted - said)).sum(1).mean())
