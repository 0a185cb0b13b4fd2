"""exits: small heads after chosen layers, so that a text that is easy can leave with its answer.

Schwartz et al. 2020, arXiv 2004.07453, §3; Xin et al. 2020 (DeeBERT), arXiv 2004.12993, §3. Unlike
there, an exit reads the mean of the pieces besides [CLS], which says little before the last layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from litotes.encoder.encoding import Encoding
from litotes.model.heads.pooling import mean_by_text


class ExitHeads(nn.Module):
    """y_{l,k} = W_{l,k} [h_CLS; 1/n Σ_t h_t] + b_{l,k} over the states after layer l, for task k.

    layers: after how many layers each of them reads, 1 after the first.
    """

    def __init__(self, width: int, n_outputs: Mapping[str, int], layers: Sequence[int]) -> None:
        super().__init__()
        self.layers = tuple(layers)
        self.by_layer = nn.ModuleDict()
        for layer in layers:
            outputs = {task: nn.Linear(2 * width, n) for task, n in n_outputs.items()}
            self.by_layer[str(layer)] = nn.ModuleDict(outputs)

    def forward(self, layer: int, encoding: Encoding) -> dict[str, Tensor]:
        """Logits {task: (text, n_outputs)} of the exit after `layer` layers."""
        vectors = read_texts(encoding)
        return {task: output(vectors) for task, output in self.outputs(layer).items()}

    def outputs(self, layer: int) -> dict[str, nn.Linear]:
        """What each task is answered by after `layer` layers."""
        outputs: dict[str, nn.Linear] = {}
        heads = self.by_layer[str(layer)]
        assert isinstance(heads, nn.ModuleDict)
        for task, output in heads.items():
            assert isinstance(output, nn.Linear)
            outputs[task] = output
        return outputs


def read_texts(encoding: Encoding) -> Tensor:
    """What an exit reads: each text's first piece, and the mean of all. (text, 2 × width)"""
    first = encoding.hidden[encoding.layout.starts]
    return torch.cat([first, mean_by_text(encoding.hidden, encoding.layout)], dim=1)
