"""From hidden states to a label. A new head is one file and one line in `HEADS`."""

from litotes.model.heads.bilstm import BiLSTM
from litotes.model.heads.convolution import Convolution
from litotes.model.heads.crosstalk import CrossTalk
from litotes.model.heads.head import Head, HeadPerTask, JointHead
from litotes.model.heads.linear import Linear
from litotes.model.heads.mean import Mean
from litotes.model.heads.multitask import Multitask
from litotes.model.heads.words import Span, Tagging, WordHead

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
