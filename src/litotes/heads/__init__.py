"""From hidden states to a label. A new head is one file and one line in `HEADS`."""

from litotes.heads.bilstm import BiLSTM
from litotes.heads.convolution import Convolution
from litotes.heads.crosstalk import CrossTalk
from litotes.heads.head import Head, HeadPerTask, JointHead
from litotes.heads.linear import Linear
from litotes.heads.mean import Mean
from litotes.heads.multitask import Multitask
from litotes.heads.words import Span, Tagging, WordHead

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

__all__ = ["HEADS", "WORD_HEADS", "Head", "HeadPerTask", "JointHead", "WordHead"]
