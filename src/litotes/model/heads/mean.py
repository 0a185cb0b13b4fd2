"""mean: all live pieces alike.

How sentence encoders such as MiniLM are trained; Reimers and Gurevych 2019, arXiv 1908.10084, §3.
"""

from torch import Tensor

from litotes.encoder.encoding import Encoding
from litotes.model.heads.head import Head
from litotes.model.heads.pooling import mean_by_text


class Mean(Head):
    """y = W (1/n Σ_t h_t) + b."""

    def read(self, encoding: Encoding) -> Tensor:
        return mean_by_text(encoding.hidden, encoding.layout)
