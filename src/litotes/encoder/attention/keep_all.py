"""none: every piece and every attention head goes on."""

from litotes.encoder.attention.pruning import Plan, Pruning


class KeepAll(Pruning):
    """Nothing leaves."""

    def __init__(self, n_layers: int, n_attention_heads: int, width: int) -> None:
        super().__init__(n_layers, n_attention_heads, width)

    def plan(self) -> Plan:
        return Plan((1.0,) * self.n_layers, (1.0,) * self.n_layers)
