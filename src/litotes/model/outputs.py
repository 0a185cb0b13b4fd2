"""What a model computes for texts, whatever computes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Outputs:
    """What a model computed for some texts. logits: {task: (text, class)}.

    layers: after how many layers each text was answered, (text,); None: of a model without exits.
    """

    logits: dict[str, NDArray[np.float32]]
    layers: NDArray[np.int64] | None = None


def join_outputs(parts: Sequence[Outputs]) -> Outputs:
    """Those of several groups of texts, one after the other."""
    logits = {}
    for task in parts[0].logits:
        logits[task] = np.concatenate([part.logits[task] for part in parts])
    layers = [part.layers for part in parts if part.layers is not None]
    return Outputs(logits, np.concatenate(layers) if layers else None)
