"""From hidden states to labels. A new head is one class and one line in `HEADS`; written with `ops`
alone (encoder/operations.py) it trains, runs on a GPU and is exported.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from torch import Tensor, nn

from litotes.core.errors import UserError
from litotes.encoder.operations import TORCH, Encoding, Operations, Texts, Value
from litotes.encoder.packing import WordPlaces


class Head(nn.Module, ABC):
    """Hidden states of packed texts → logits (text, n_outputs), for one task.

    With several tasks each has a head of its own.

    firsts_only: the head reads only each text's first piece, so the encoder may leave out the
    others in its last layer.
    needs_lengths: the head has to know on the host how long the texts are.
    """

    firsts_only: ClassVar[bool] = False
    needs_lengths: ClassVar[bool] = False

    def __init__(self, width: int, n_outputs: int, *, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(width, n_outputs)

    @classmethod
    def for_tasks(cls, width: int, n_outputs: Mapping[str, int], *, dropout: float) -> HeadPerTask:
        return HeadPerTask({task: cls(width, n, dropout=dropout) for task, n in n_outputs.items()})

    def forward(self, encoding: Encoding, *, ops: Operations = TORCH) -> Value:
        vectors = ops.dropout(self.dropout, self.read(encoding, ops))
        return ops.linear(self.output, vectors)  # (text, n_outputs)

    @abstractmethod
    def read(self, encoding: Encoding, ops: Operations) -> Value:
        """One vector per text. (text, width)"""


class HeadPerTask(nn.ModuleDict):
    """Hidden states → logits {task: (text, n_outputs)}, each task read by a head of its own."""

    def forward(self, encoding: Encoding, *, ops: Operations = TORCH) -> dict[str, Value]:
        return {task: head(encoding, ops=ops) for task, head in self.items()}


class JointHead(nn.Module, ABC):
    """Hidden states → logits {task: (text, n_outputs)}, the tasks read together."""

    firsts_only: ClassVar[bool] = False
    needs_lengths: ClassVar[bool] = False

    @abstractmethod
    def __init__(self, width: int, n_outputs: Mapping[str, int], *, dropout: float) -> None:
        super().__init__()

    @classmethod
    def for_tasks(cls, width: int, n_outputs: Mapping[str, int], *, dropout: float) -> Self:
        return cls(width, n_outputs, dropout=dropout)

    @abstractmethod
    def forward(self, encoding: Encoding, *, ops: Operations = TORCH) -> dict[str, Value]: ...


class Linear(Head):
    """y = W h_CLS + b.

    Devlin et al. 2019, arXiv 1810.04805, §4.1.
    """

    firsts_only: ClassVar[bool] = True

    def read(self, encoding: Encoding, ops: Operations) -> Value:
        return ops.first_pieces(encoding.hidden, encoding.layout)


class Mean(Head):
    """y = W (1/n Σ_t h_t) + b.

    How sentence encoders such as MiniLM are trained; Reimers and Gurevych 2019, arXiv 1908.10084,
    §3.
    """

    def read(self, encoding: Encoding, ops: Operations) -> Value:
        return ops.mean_by_text(encoding.hidden, encoding.layout)


class Convolution(Head):
    """c_t = ReLU(W [h_{t-1}; h_t; h_{t+1}] + b), y = W' (1/n Σ_t c_t) + b'; beyond a text's ends
    stand zeros.

    Kim 2014, arXiv 1408.5882, with mean pooling.
    """

    def __init__(self, width: int, n_outputs: int, *, dropout: float) -> None:
        super().__init__(width, n_outputs, dropout=dropout)
        self.filters = nn.Linear(3 * width, width)

    def read(self, encoding: Encoding, ops: Operations) -> Value:
        return convolve(ops, self.filters, encoding)


def convolve(ops: Operations, filters: nn.Linear, encoding: Encoding) -> Value:
    """1/n Σ_t ReLU(W [h_{t-1}; h_t; h_{t+1}] + b). (text, width)"""
    windows = ops.neighbours(encoding.hidden, encoding.layout)  # (piece, 3 × width)
    return ops.mean_by_text(ops.linear(filters, windows, "relu"), encoding.layout)


class Multitask(Convolution):
    """One convolution per task over shared hidden states: y_k = W'_k (1/n Σ_t ReLU(W_k [h_{t-1};
    h_t; h_{t+1}] + b_k)) + b'_k.

    Caruana 1997, hard parameter sharing.
    """


class BiLSTM(Head):
    """z_t = [forward h_t; backward h_t], y = W z_1 + b: at the first piece the backward half has
    read the whole text, and the forward half that piece alone.

    Hochreiter and Schmidhuber 1997; Graves and Schmidhuber 2005.
    """

    needs_lengths: ClassVar[bool] = True

    def __init__(self, width: int, n_outputs: int, *, dropout: float) -> None:
        super().__init__(width, n_outputs, dropout=dropout)
        # each direction has half of the width, so that z_t is as wide as the encoder
        self.lstm = nn.LSTM(width, width // 2, bidirectional=True)

    def read(self, encoding: Encoding, ops: Operations) -> Value:
        return ops.read_both_ways(self.lstm, encoding.hidden, encoding.layout)


class CrossTalk(JointHead):
    """s = 1/n Σ_t ReLU(W [h_{t-1}; h_t; h_{t+1}] + b) for all, p_k = ReLU(P_k s), f_k = ReLU(F_k
    [p_1; …; p_K]), y_k = W_k f_k.

    One convolution is shared, a projection per task gives each its own view of it, and the fusion
    lets a task's classifier see the other tasks' views. Nespolo et al., "Figurative Language
    Understanding", §II.B.3.
    """

    projections: Any
    fusions: Any
    outputs: Any

    def __init__(self, width: int, n_outputs: Mapping[str, int], *, dropout: float) -> None:
        super().__init__(width, n_outputs, dropout=dropout)
        if len(n_outputs) < 2:
            raise UserError(
                f"crosstalk needs two tasks or more, and there is only {', '.join(n_outputs)}. Use"
                " the head convolution."
            )
        self.filters = nn.Linear(3 * width, width)
        self.projections = nn.ModuleDict({task: nn.Linear(width, width) for task in n_outputs})
        fused_width = len(n_outputs) * width
        self.fusions = nn.ModuleDict({task: nn.Linear(fused_width, width) for task in n_outputs})
        self.outputs = nn.ModuleDict({task: nn.Linear(width, n) for task, n in n_outputs.items()})
        self.dropout = nn.Dropout(dropout)

    def forward(self, encoding: Encoding, *, ops: Operations = TORCH) -> dict[str, Value]:
        # (text, width)
        shared = ops.dropout(self.dropout, convolve(ops, self.filters, encoding))
        views = [ops.linear(project, shared, "relu") for project in self.projections.values()]
        all_views = ops.concat(*views)  # (text, task × width)
        # all before the first dropout of a task: the order in which numbers are drawn
        fused = {task: ops.linear(fuse, all_views, "relu") for task, fuse in self.fusions.items()}
        return {
            task: ops.linear(output, ops.dropout(self.dropout, fused[task]))
            for task, output in self.outputs.items()
        }


class ExitHeads(nn.Module):
    """Small heads after chosen layers, so that a text that is easy can leave with its answer:

        y_{l,k} = W_{l,k} [h_CLS; 1/n Σ_t h_t] + b_{l,k}      after layer l, for task k

    Schwartz et al. 2020, arXiv 2004.07453, §3; Xin et al. 2020 (DeeBERT), arXiv 2004.12993, §3.
    Unlike there, an exit reads the mean of the pieces besides [CLS], which says little before the
    last layers.

    layers: after how many layers each of them reads, 1 after the first.
    """

    def __init__(self, width: int, n_outputs: Mapping[str, int], layers: Sequence[int]) -> None:
        super().__init__()
        self.layers = tuple(layers)
        self.by_layer = nn.ModuleDict()
        for layer in layers:
            outputs = {task: nn.Linear(2 * width, n) for task, n in n_outputs.items()}
            self.by_layer[str(layer)] = nn.ModuleDict(outputs)

    def forward(
        self, layer: int, encoding: Encoding, *, ops: Operations = TORCH
    ) -> dict[str, Value]:
        """Computes the logits {task: (text, n_outputs)} of the exit after `layer` layers."""
        vectors = read_texts(encoding, ops)
        return {task: ops.linear(output, vectors) for task, output in self.outputs(layer).items()}

    def outputs(self, layer: int) -> dict[str, nn.Linear]:
        """Returns each task's linear map after `layer` layers."""
        return dict(self.by_layer[str(layer)].items())  # type: ignore[operator]


def read_texts(encoding: Encoding, ops: Operations = TORCH) -> Value:
    """Joins what an exit reads: each text's first piece, and the mean of all. (text, 2 × width)"""
    first = ops.first_pieces(encoding.hidden, encoding.layout)
    return ops.concat(first, ops.mean_by_text(encoding.hidden, encoding.layout))


class WordHead(nn.Module):
    """Hidden states of all pieces → logits (word, n_outputs).

        h_w = 1/|w| Σ_{t ∈ w} h_t              a word is the mean of its pieces

    Devlin et al. 2019, arXiv 1810.04805, §4.2–4.3 and §5.3, read a word at its first piece instead.

    reads_first: whether each text has one word more, before its others, that is its first piece.
    """

    reads_first: ClassVar[bool] = False
    n_outputs: ClassVar[int | None] = None
    """None: one for each label."""

    def __init__(self, width: int, n_labels: int, *, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(width, self.n_outputs or n_labels)

    def forward(self, encoding: Encoding, places: WordPlaces) -> Tensor:
        words: Texts = places.words
        pieces = encoding.hidden[places.pieces]  # (piece of a word, width)
        logits: Tensor = self.output(self.dropout(TORCH.mean_by_text(pieces, words)))
        return logits


class Tagging(WordHead):
    """y_w = W (1/n Σ_t h_t) + b over the n pieces of each word: a label for every word."""


class Span(WordHead):
    """(s_w, e_w) = W (1/n Σ_t h_t) + b over the n pieces of each word, and over [CLS] for "no
    stretch": where it begins, where it ends.

    p(i, j) = softmax(s)_i · softmax(e)_j,  i ≤ j
    """

    reads_first: ClassVar[bool] = True
    n_outputs: ClassVar[int | None] = 2


HEADS: dict[str, type[Head] | type[JointHead]] = {
    "linear": Linear,
    "mean": Mean,
    "convolution": Convolution,
    "bilstm": BiLSTM,
    "multitask": Multitask,
    "crosstalk": CrossTalk,
}

WORD_HEADS: dict[str, type[WordHead]] = {"tagging": Tagging, "span": Span}
"""Those that answer words; each is the head of the kind of model that has its name."""
