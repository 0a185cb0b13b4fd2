"""none: every piece and every attention head goes on."""

from torch import Tensor

from litotes.encoder.attention.pruning import AttentionOutput, Plan, Pruning
from litotes.encoder.attention.survivors import Survivors


class KeepAll(Pruning):
    """Nothing leaves."""

    def __init__(self, n_layers: int, n_attention_heads: int, width: int) -> None:
        super().__init__(n_layers, n_attention_heads, width)

    def plan(self) -> Plan:
        return Plan((1.0,) * self.n_layers, (1.0,) * self.n_layers)

    def importance(
        self, layer: int, hidden: Tensor, survivors: Survivors, attention: AttentionOutput
    ) -> Tensor:
        return survivors.importance
