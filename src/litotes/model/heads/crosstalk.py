"""crosstalk: tasks that listen to each other.

Nespolo et al., "Figurative Language Understanding", §II.B.3.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from litotes.core.errors import UserError
from litotes.encoder.encoding import Encoding
from litotes.model.heads.convolution import neighbours
from litotes.model.heads.head import JointHead
from litotes.model.heads.pooling import mean_by_text


class CrossTalk(JointHead):
    """s = 1/n Σ_t ReLU(W [h_{t-1}; h_t; h_{t+1}] + b) for all, p_k = ReLU(P_k s), f_k = ReLU(F_k
    [p_1; …; p_K]), y_k = W_k f_k.

    One convolution is shared, a projection per task gives each its own view of it, and the fusion
    lets a task's classifier see the other tasks' views.
    """

    def __init__(self, width: int, n_outputs: Mapping[str, int], *, dropout: float) -> None:
        super().__init__(width, n_outputs, dropout=dropout)
        if len(n_outputs) < 2:
            raise UserError(
                f"crosstalk needs two tasks or more, and there is only {', '.join(n_outputs)}. Use"
                " the head convolution."
            )
        self.filters = nn.Linear(3 * width, width)
        self.projections = nn.ModuleDict({task: nn.Linear(width, width) for task in n_outputs})
        fused_width = len(n_outputs) * width
        self.fusions = nn.ModuleDict({task: nn.Linear(fused_width, width) for task in n_outputs})
        self.outputs = nn.ModuleDict({task: nn.Linear(width, n) for task, n in n_outputs.items()})
        self.dropout = nn.Dropout(dropout)

    def forward(self, encoding: Encoding) -> dict[str, Tensor]:
        shared = self.dropout(self._convolve(encoding))  # (text, width)
        views = [torch.relu(project(shared)) for project in self.projections.values()]
        all_views = torch.cat(views, dim=-1)  # (text, task × width)
        # (text, width)
        fused = {task: torch.relu(fuse(all_views)) for task, fuse in self.fusions.items()}
        return {task: output(self.dropout(fused[task])) for task, output in self.outputs.items()}

    def _convolve(self, encoding: Encoding) -> Tensor:
        windows = neighbours(encoding.hidden, encoding.layout)  # (piece, 3 × width)
        features = torch.relu(self.filters(windows))  # (piece, width)
        return mean_by_text(features, encoding.layout)
