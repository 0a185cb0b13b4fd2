"""linear: the first piece, [CLS], and nothing else. Devlin et al. 2019, arXiv 1810.04805, §4.1."""

from typing import ClassVar

from torch import Tensor

from litotes.encoder.encoding import Encoding
from litotes.model.heads.head import Head


class Linear(Head):
    """y = W h_CLS + b."""

    firsts_only: ClassVar[bool] = True

    def read(self, encoding: Encoding) -> Tensor:
        return encoding.hidden[encoding.layout.starts]
