"""How a piece looks at the others, and which go on.

A new weighting or pruning is one file and one line in its table.
"""

from litotes.attention.block_top_k import BlockTopK
from litotes.attention.cascade import Cascade
from litotes.attention.entmax import Entmax
from litotes.attention.keep_all import KeepAll
from litotes.attention.learned import Learned
from litotes.attention.pruning import Pruning
from litotes.attention.softmax import Softmax
from litotes.attention.top_k import TopK
from litotes.attention.weighting import Weighting

WEIGHTINGS: dict[str, type[Weighting]] = {
    "softmax": Softmax,
    "entmax": Entmax,
    "top_k": TopK,
    "block_top_k": BlockTopK,
}

PRUNINGS: dict[str, type[Pruning]] = {
    "none": KeepAll,
    "cascade": Cascade,
    "learned": Learned,
}

__all__ = ["PRUNINGS", "WEIGHTINGS", "Pruning", "Weighting"]
