"""How a piece looks at the others. A new weighting is one file and one line in `WEIGHTINGS`."""

from litotes.attention.softmax import Softmax
from litotes.attention.weighting import Weighting

WEIGHTINGS: dict[str, type[Weighting]] = {
    "softmax": Softmax,
}

__all__ = ["WEIGHTINGS", "Weighting"]
