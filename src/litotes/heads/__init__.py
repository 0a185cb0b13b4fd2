"""From hidden states to a label. A new head is one file and one line in `HEADS`."""

from litotes.heads.bilstm import BiLSTM
from litotes.heads.convolution import Convolution
from litotes.heads.head import Head
from litotes.heads.linear import Linear
from litotes.heads.mean import Mean

HEADS: dict[str, type[Head]] = {
    "linear": Linear,
    "mean": Mean,
    "convolution": Convolution,
    "bilstm": BiLSTM,
}

__all__ = ["HEADS", "Head"]
