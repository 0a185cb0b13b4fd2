"""How a piece looks at the others, and which go on.

A new weighting or pruning is one file and one line in its table.
"""

from litotes.encoder.attention.entmax import Entmax
from litotes.encoder.attention.pruning import Cascade, KeepAll, Learned, Pruning
from litotes.encoder.attention.top_k import BlockTopK, TopK
from litotes.encoder.attention.weighting import Softmax, Weighting

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
